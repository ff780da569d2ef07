"""Samples of torch's own operator tests (``op_db``), traced to core ATen and run by the xt dialect's semantics.

A sample is an op of the database, an element type and a number: ``Sample("nn.functional.pad", "f32", 3)``. It is left
out of what is counted where torch cannot trace it, where it is not dense, real and deterministic, and where its trace
has an op that is neither core ATen nor kept whole (:mod:`xcc.frontends.torch.keep`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal import common_methods_invocations
from torch.utils import _pytree

from xcc.dialects.xt.interpret import interpret
from xcc.frontends.torch import keep
from xcc.frontends.torch.capture import TorchProgram, capture_fx
from xcc.frontends.torch.dtypes import NAMES, to_numpy
from xcc.frontends.torch.importer import load

Array = np.ndarray[Any, Any]

DTYPES = {"f32": torch.float32, "i64": torch.int64, "i1": torch.bool}
TOLERANCES = {"float64": (1e-7, 1e-9), "float32": (1e-4, 1e-5), "float16": (1e-2, 1e-3), "bfloat16": (3e-2, 1e-2)}
"""By numpy's names of types: relative, absolute."""

SEED = 1234


@dataclass(frozen=True)
class Sample:
    """`number` counts the samples that the database gives for the op and the element type."""

    op: str
    dtype: str
    number: int

    def __str__(self) -> str:
        return f"{self.op} {self.dtype} {self.number}"


@dataclass
class Case:
    """A traced sample with its inputs and what eager gives; `left_out` says why it does not count.

    `beyond`: ops that are neither core nor kept.
    """

    sample: Sample
    left_out: str = ""
    program: TorchProgram | None = None
    inputs: list[Array] = field(default_factory=list)
    expected: list[Array] = field(default_factory=list)
    beyond: tuple[str, ...] = ()


@cache
def database() -> dict[str, Any]:
    """The ops by name, with the variant that tells two of one name apart."""
    out = {}
    for info in common_methods_invocations.op_db:
        out[f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name] = info
    return out


def supported(op: str, dtype: str) -> bool:
    return DTYPES[dtype] in database()[op].supported_dtypes("cpu")


def sample_inputs(op: str, dtype: str) -> Iterator[Any]:
    """What the database gives, the same in every process."""
    torch.manual_seed(SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from database()[op].sample_inputs("cpu", DTYPES[dtype])


def cases(op: str, dtype: str, wanted: int | None = None) -> Iterator[Case]:
    """The traced samples of an op, or the one numbered `wanted`."""
    for number, given in enumerate(sample_inputs(op, dtype)):
        if wanted is None or number == wanted:
            yield _case(Sample(op, dtype, number), given)


def _case(sample: Sample, given: Any) -> Case:
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        leaves, spec = _pytree.tree_flatten((given.input, given.args, given.kwargs))
        places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        tensors = [leaves[n] for n in places]
        if any(map(_strange, tensors)):
            return Case(sample, "sparse, nested, complex or of a type that xcc has not")
        op = database()[sample.op].op

        def function(*values: Any) -> list[Any]:
            own = list(leaves)
            for n, value in zip(places, values, strict=True):
                own[n] = value
            first, args, kwargs = _pytree.tree_unflatten(own, spec)
            return [t for t in _pytree.tree_leaves(op(first, *args, **kwargs)) if isinstance(t, torch.Tensor)]

        try:
            return _traced(sample, function, tensors)
        except Exception as e:
            return Case(sample, f"torch does not trace it: {type(e).__name__}")


def _strange(t: torch.Tensor) -> bool:
    return t.layout != torch.strided or t.is_nested or t.dtype not in NAMES or t.is_conj() or t.is_neg()


def _traced(sample: Sample, function: Any, tensors: list[torch.Tensor]) -> Case:
    torch.manual_seed(0)
    expected = function(*[t.clone() for t in tensors])
    torch.manual_seed(1)
    again = function(*[t.clone() for t in tensors])
    if any(map(_strange, expected)):
        return Case(sample, "gives sparse, nested or complex tensors")
    graph = _graph(function, tensors)
    if any(map(_writes, graph.graph.nodes)):
        graph = _graph(graph, tensors)
    _drop_updates(graph)
    seeded = [n for n in graph.graph.nodes if torch.Tag.nondeterministic_seeded in getattr(n.target, "tags", ())]
    if seeded or not all(map(_same, expected, again)):
        return Case(sample, "random, or of memory that nobody has written")
    strange = {str(t.dtype) for n in graph.graph.nodes for t in _pytree.tree_leaves(n.meta.get("val"))
               if isinstance(t, torch.Tensor) and _strange(t)}
    if strange:
        return Case(sample, f"complex or quantised inside: {', '.join(sorted(strange))}")
    program = capture_fx(graph)
    return Case(sample, "", program, [to_numpy(t.clone()) for t in tensors], [to_numpy(t.clone()) for t in expected],
                tuple(sorted({n.op for n in program.graph.nodes if not _is_core(n.op)})))


def _graph(function: Any, tensors: list[torch.Tensor]) -> Any:
    """The graph of ATen ops of a function."""
    graph = make_fx(torch.func.functionalize(function), decomposition_table=_decompositions(),
                    tracing_mode="fake")(*tensors)
    graph.graph.eliminate_dead_code()
    return graph


def _drop_updates(graph: Any) -> None:
    """What the op writes into its own operands at the end is no result."""
    for node in graph.graph.nodes:
        if str(node.target) == "aten.copy_.default" and node.args[0].op == "placeholder":
            node.replace_all_uses_with(node.args[1])
            graph.graph.erase_node(node)


def _writes(node: Any) -> bool:
    """Whether a decomposition has left a write into a tensor."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


@cache
def _decompositions() -> dict[Any, Any]:
    return keep.aot_decompositions()


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())


def _is_core(op: str) -> bool:
    """Whether it is core ATen, kept whole (in any overload), a copy, or Python's arithmetic of sizes."""
    name = op.split(".")[1]
    return op.startswith("scalar.") or name in core_names() or name in _kept_names() or name == "lift_fresh_copy"


@cache
def core_names() -> frozenset[str]:
    """The names of core ATen ops, without overloads."""
    packets = [getattr(torch.ops.aten, name) for name in dir(torch.ops.aten)]
    return frozenset(str(overload).split(".")[1] for packet in packets
                     if isinstance(packet, torch._ops.OpOverloadPacket) for overload in
                     (getattr(packet, o) for o in packet.overloads()) if torch.Tag.core in overload.tags)


@cache
def _kept_names() -> frozenset[str]:
    return frozenset(name.split(".")[0] for name in keep.KEPT)


def evaluated(case: Case) -> list[Array]:
    """What the xt dialect's own semantics give."""
    assert case.program is not None
    module, weights = load(case.program)
    with np.errstate(all="ignore"):
        return interpret(module, case.inputs, weights)


TIED = ("aten.topk.default", "aten.kthvalue.default", "aten.median.dim", "aten.nanmedian.dim", "aten.mode.default")
"""Ops that do not say which of equal elements they give the place of."""


def _elements(case: Case, results: list[Array]) -> list[Array]:
    """The results, with the elements at the places that an op of TIED gives instead of the places."""
    assert case.program is not None
    node = case.program.graph.nodes[0] if case.program.graph.nodes else None
    if node is None or node.op not in TIED or not case.inputs[0].ndim:
        return results
    x, dim = case.inputs[0], dict(node.args)["dim"]
    places = results[1] if results[1].ndim == x.ndim else np.expand_dims(results[1], dim)
    return [results[0], np.take_along_axis(x, places, dim)]


def difference(case: Case, results: list[Array]) -> str:
    """How the results differ from eager's; "" where they are equal within the tolerance of their type."""
    shapes = [(str(g.dtype), g.shape) for g in results], [(str(w.dtype), w.shape) for w in case.expected]
    if shapes[0] != shapes[1]:
        return f"results are {shapes[0]}, eager has {shapes[1]}"
    for n, (got, want) in enumerate(zip(_elements(case, results), _elements(case, case.expected), strict=True)):
        close = _close(got, want)
        if not np.all(close):
            at = tuple(int(i) for i in np.argwhere(~close)[0])
            return f"result {n}{list(at)} is {got[at]}, eager has {want[at]} ({int(np.sum(~close))} of {want.size})"
    return ""


def _close(got: Array, want: Array) -> Array:
    if str(want.dtype) not in TOLERANCES:
        return np.asarray(got == want)
    relative, absolute = TOLERANCES[str(want.dtype)]
    with np.errstate(all="ignore"):
        return np.isclose(got.astype(np.float64), want.astype(np.float64), relative, absolute, equal_nan=True)
