"""Samples of torch's own operator tests (``op_db``), traced to core ATen.

A sample is an op of the database, an element type and a number: ``Sample("nn.functional.pad", "f32", 3)``. It is left
out of what is counted where torch cannot trace it, where it is not dense, real and deterministic, and where its trace
has an op that is neither core ATen nor kept whole (:mod:`xcc.frontends.torch.keep`).
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal import common_methods_invocations, common_utils
from torch.utils import _pytree

from xcc.frontends.torch import keep
from xcc.frontends.torch.capture import TorchProgram, capture_fx
from xcc.frontends.torch.dtypes import NAMES, to_numpy
from xcc.frontends.torch.op_table import core

Array = np.ndarray[Any, Any]

DTYPES = {"f32": torch.float32, "i64": torch.int64, "i1": torch.bool, "f16": torch.float16}
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

    @property
    def counts(self) -> bool:
        return not self.left_out and not self.beyond


@cache
def database() -> dict[str, Any]:
    """The ops by name, with the variant that tells two of one name apart."""
    out = {}
    for info in common_methods_invocations.op_db:
        out[f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name] = info
    return out


def supported(op: str, dtype: str) -> bool:
    return DTYPES[dtype] in database()[op].supported_dtypes("cpu")


def sample_inputs(op: str, dtype: str, *, requires_grad: bool = False) -> Iterator[Any]:
    """What the database gives, the same in every process and on machines with a GPU, which some samples would use.

    Left out is what takes two thirds of the time: a search of all frames for the test of torch's own that asks, which
    there is not, and seeds for devices other than the CPU, each of which is kept with its traceback.
    """
    torch.manual_seed(SEED)
    with warnings.catch_warnings(), mock.patch.object(torch.cuda, "is_available", lambda: False), \
            mock.patch.object(common_utils, "extract_test_fn", lambda: None), \
            mock.patch.object(torch, "manual_seed", torch.default_generator.manual_seed):
        warnings.simplefilter("ignore")
        yield from database()[op].sample_inputs("cpu", DTYPES[dtype], requires_grad=requires_grad)


def cases(op: str, dtype: str, wanted: Callable[[Sample], bool] = lambda sample: True) -> Iterator[Case]:
    """Those of an op's samples that are wanted, traced."""
    for number, given in enumerate(sample_inputs(op, dtype)):
        if wanted(Sample(op, dtype, number)):
            yield _case(Sample(op, dtype, number), given)


def drawn(op: str, dtype: str, numbers: random.Random) -> Case | None:
    """One of them, None where the op has none."""
    given = list(sample_inputs(op, dtype))
    number = numbers.randrange(len(given)) if given else 0
    return _case(Sample(op, dtype, number), given[number]) if given else None


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

        return _traced(sample, function, tensors)


def _strange(t: torch.Tensor) -> bool:
    return t.layout != torch.strided or t.is_nested or t.dtype not in NAMES or t.is_conj() or t.is_neg()


def _traced(sample: Sample, function: Any, tensors: list[torch.Tensor]) -> Case:
    try:
        expected, again = (_eager(seed, function, tensors) for seed in range(2))
        if any(map(_strange, expected)):
            return Case(sample, "gives sparse, nested or complex tensors")
        graph = _graph(function, tensors)
        if any(map(_writes, graph.graph.nodes)):
            graph = _graph(graph, tensors)
    except Exception as e:
        return Case(sample, f"torch does not run or trace it: {type(e).__name__}")
    _drop_updates(graph)
    if any(map(_random, graph.graph.nodes)) or not all(map(_same, expected, again)):
        return Case(sample, "random, or of memory that nobody has written")
    strange = {str(t.dtype) for n in graph.graph.nodes for t in _pytree.tree_leaves(n.meta.get("val"))
               if isinstance(t, torch.Tensor) and _strange(t)}
    if strange:
        return Case(sample, f"complex or quantised inside: {', '.join(sorted(strange))}")
    program = capture_fx(graph)
    return Case(sample, "", program, [to_numpy(t.clone()) for t in tensors], [to_numpy(t.clone()) for t in expected],
                tuple(sorted({n.op for n in program.graph.nodes if not _is_core(n.op)})))


def _eager(seed: int, function: Any, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    out: list[torch.Tensor] = function(*[t.clone() for t in tensors])
    return out


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


def _random(node: Any) -> bool:
    """Whether the node draws numbers, or gives memory that nobody has written as a result."""
    returned = any(user.op == "output" for user in node.users)
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) \
        or returned and "empty" in str(node.target).split(".")[-2:][0]


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
    return op.startswith("scalar.") or name in core() or name in _kept_names() or name == "lift_fresh_copy"


@cache
def _kept_names() -> frozenset[str]:
    return frozenset(name.split(".")[0] for name in keep.KEPT)
