"""Calls of single ATen ops with arguments that models seldom give, against eager torch.

    python test/e2e/torch_calls.py 30                    # so many of each op that has a converter; prints what is wrong
    python test/e2e/torch_calls.py 200 'sum*' 'pad.*'    # of these ops
    python test/e2e/torch_calls.py 5 --compile           # compiled for this CPU, else by the xt dialect's own semantics

Calls begin as those that torch's own operator tests make (``op_db``); :mod:`torch_arguments` then exchanges arguments.
What eager refuses is no call. xcc may refuse one, too, with an error that names the op.
"""

from __future__ import annotations

import argparse
import logging
import pickle
import random
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from operator import getitem
from typing import Any

import numpy as np
import torch
import torch_conformance
import torch_outcomes
import torch_samples
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch_arguments import Arguments, text, varied
from torch_samples import Case, Sample

from xcc.frontends.torch import registry
from xcc.frontends.torch.capture import capture_fx
from xcc.frontends.torch.dtypes import to_numpy

MOST = 4000
"""Elements of a tensor: larger ones take long and show no more."""
KEPT = 40
"""Calls of an op that are kept as they were, to begin with."""
UNWRITTEN = ("empty", "new_empty", "draw_state")
"""Ops, by the beginnings of their names, whose results nobody has written."""
UNREAD: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("_embedding_bag.default", "_embedding_bag_forward_only.default", "embedding_bag.default",
                     "embedding_bag.padding_idx"), (1, 2, 3)),
    **dict.fromkeys(("nll_loss_forward.default", "nll_loss2d_forward.default"), (1,))}
"""Results that hold what the kernel at hand has use for."""


@dataclass(frozen=True)
class Call:
    """`op` as torch prints it, without namespace; every argument by its name."""

    op: str
    arguments: Arguments

    @property
    def target(self) -> Any:
        return overload(self.op)

    def __str__(self) -> str:
        return f"{self.op}({', '.join(f'{k}={text(v)}' for k, v in self.arguments.items())})"


def overload(op: str) -> Any:
    packet, name = op.split(".")
    return getattr(getattr(torch.ops.aten, packet), name)


@cache
def ops() -> tuple[str, ...]:
    """The overloads that have a converter and whose results do not depend on chance."""
    names = sorted(n.removeprefix("aten.") for n in registry.table() if n.startswith("aten."))
    return tuple(n for n in names if _exists(n) and not n.startswith(UNWRITTEN)
                 and torch.Tag.nondeterministic_seeded not in overload(n).tags
                 and not overload(n)._schema.is_mutable)


def _exists(op: str) -> bool:
    """Whether this version of torch has the op."""
    packet, name = op.split(".")
    return hasattr(torch.ops.aten, packet) and name in getattr(torch.ops.aten, packet).overloads()


class _Recorder(TorchDispatchMode):
    """Keeps the calls of ops in :func:`ops`, with copies of their tensors."""

    def __init__(self, known: frozenset[str]) -> None:
        super().__init__()
        self.known, self.calls = known, []  # type: frozenset[str], list[Call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.keep(func, args, kwargs or {})
        return func(*args, **kwargs or {})

    def keep(self, func: Any, args: Any, kwargs: Any) -> None:
        """Records the call where it fits the op's schema."""
        name = str(func).removeprefix("aten.")
        names = [a.name for a in func._schema.arguments]
        if name not in self.known or len(args) > len(names) or not kwargs.keys() <= set(names):
            return
        given = dict(zip(names, args, strict=False)) | kwargs
        if any(not given.keys() & {a.name} and not a.has_default_value() for a in func._schema.arguments):
            return
        every = {a.name: given.get(a.name, a.default_value) for a in func._schema.arguments}
        tensors = [t for t in _pytree.tree_leaves(every) if isinstance(t, torch.Tensor)]
        if all(t.numel() <= MOST and not torch_samples._strange(t) for t in tensors):
            self.calls.append(Call(name, _pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), every)))


def recorded(info: str, dtype: str, most: int = 12) -> list[Call]:
    """What samples of one of torch's operator tests call, the op itself first where converters take it whole."""
    recorder = _Recorder(frozenset(ops()))
    given = list(torch_samples.sample_inputs(info, dtype))
    chosen = random.Random(info).sample(given, min(most, len(given)))
    own = torch_samples.database()[info]
    packet = getattr(torch.ops.aten, (own.aten_name or own.name).split(".")[-1], None)
    for sample in chosen:
        for name in packet.overloads() if packet is not None else ():
            recorder.keep(getattr(packet, name), (sample.input, *sample.args), sample.kwargs)
        try:
            with recorder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _run(own, sample)
        except Exception:
            continue        # what eager refuses is no sample
    return recorder.calls


def _run(info: Any, sample: Any) -> None:
    """The op, and its backward where it has one."""
    def leaf(t: Any) -> Any:
        return t.detach().requires_grad_(t.is_floating_point())

    given = _pytree.tree_map_only(torch.Tensor, leaf, (sample.input, sample.args, sample.kwargs))
    results = _pytree.tree_leaves(info.op(given[0], *given[1], **given[2]))
    for t in results:
        if isinstance(t, torch.Tensor) and t.requires_grad:
            t.sum().backward(retain_graph=True)


def drawn(call: Call, numbers: random.Random) -> Case | None:
    """The call with arguments exchanged, traced and run by eager; None where torch refuses it."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            return _case(Call(call.op, varied(call.target._schema, call.arguments, numbers)))
        except Exception:
            return None


def _case(call: Call) -> Case | None:
    leaves, spec = _pytree.tree_flatten(call.arguments)
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    results = _results(call.target(**_pytree.tree_map_only(torch.Tensor, torch.clone, call.arguments)))
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    with mode:
        fakes = [mode.from_tensor(leaves[n], static_shapes=True) for n in places]
        made = call.target(**_pytree.tree_unflatten(_put(leaves, places, fakes), spec))
    shown = [(r.dtype, len(r.shape)) for r in results]
    if shown != [(r.dtype, len(r.shape)) for r in _results(made)] or any(map(torch_samples._strange, results)):
        return None
    graph = torch.fx.Graph()
    nodes = []
    for n, fake in enumerate(fakes):
        nodes.append(graph.placeholder(f"x{n}"))
        nodes[-1].meta["val"] = fake
    node = graph.call_function(call.target, (), _pytree.tree_unflatten(_put(leaves, places, nodes), spec))
    node.meta["val"] = made
    read = [n for n in range(len(results)) if n not in UNREAD.get(call.op, ())]
    graph.output([_entry(graph, node, n) for n in read] if isinstance(made, tuple | list) else [node])
    program = capture_fx(torch.fx.GraphModule({}, graph))
    return Case(Sample(str(call), "", 0), "", program, [to_numpy(leaves[n].clone()) for n in places],
                [to_numpy(results[n].clone()) for n in read])


def _entry(graph: Any, node: Any, n: int) -> Any:
    out = graph.call_function(getitem, (node, n))
    out.meta["val"] = node.meta["val"][n]
    return out


def _put(leaves: list[Any], places: list[int], values: list[Any]) -> list[Any]:
    out = list(leaves)
    for n, value in zip(places, values, strict=True):
        out[n] = value
    return out


def _results(made: Any) -> list[Any]:
    """TypeError for what is no tensor."""
    out = list(made) if isinstance(made, tuple | list) else [made]
    if not all(isinstance(t, torch.Tensor) for t in out):
        raise TypeError("a result is no tensor")
    return out


def failure(case: Case, compiled: bool = False) -> str:
    """"" where the results are eager's, "refused: ..." for an error that names the op, else what is wrong."""
    results = torch_outcomes.compiled if compiled else torch_outcomes.evaluated
    said = torch_outcomes.outcome(case, lambda c: _of_the_range(c, results(c)))
    named = said.startswith(("UserError: ", "Misfit: ")) and str(case.sample).split("(")[0] in said
    return f"refused: {said}" if named else said


def _of_the_range(case: Case, results: list[Any]) -> list[Any]:
    """The results, with eager's numbers where they are as close as rounding is to the largest one."""
    out = []
    for got, want in zip(results, case.expected, strict=True):
        if str(want.dtype) in torch_outcomes.TOLERANCES and got.shape == want.shape and got.dtype == want.dtype:
            a, b = got.astype("f8"), want.astype("f8")
            with np.errstate(all="ignore"):
                largest = np.abs(b[np.isfinite(b)]).max(initial=0.0)
                near = np.abs(a - b) <= torch_outcomes.TOLERANCES[str(want.dtype)][0] * largest / 4
            got = np.where(near, want, got)
        out.append(got)
    return out


def swept(op: str, calls: list[Call], each: int, compiled: bool) -> tuple[Counter[str], list[str]]:
    """How many calls of an op were right, refused and wrong; what is not right, a line each."""
    numbers = random.Random(op)
    counts: Counter[str] = Counter()
    lines = []
    for _ in range(each):
        case = drawn(numbers.choice(calls), numbers)
        if case is None:
            counts["no call"] += 1
            continue
        said = failure(case, compiled)
        counts["right" if not said else "refused" if said.startswith("refused") else "wrong"] += 1
        if said:
            lines.append(f"{case.sample.op[:600]}\n    {said[:400]}")
    return counts, lines


@cache
def beginnings() -> dict[str, list[Call]]:
    """Calls of each op, of all operator tests that make some; kept on disk."""
    file = torch_conformance.KEPT / f"calls-{torch_conformance.digest('test/e2e/torch_calls.py')}.pkl"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(_collected()))
    kept: dict[str, list[Call]] = pickle.loads(file.read_bytes())
    return kept


def _collected() -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = {}
    for info in torch_samples.database():
        for dtype in ("f32", "i64", "i1"):
            if torch_samples.supported(info, dtype):
                for call in recorded(info, dtype):
                    found.setdefault(call.op, []).append(call)
    return {op: random.Random(op).sample(calls, min(KEPT, len(calls))) for op, calls in found.items()}


def sweep(patterns: list[str], each: int, compiled: bool) -> Iterator[tuple[str, Counter[str], list[str]]]:
    """In another process, as torch's own kernels may end it on odd arguments."""
    pool = ProcessPoolExecutor(1)
    for op, calls in sorted(beginnings().items()):
        if patterns and not any(fnmatch(op, p) for p in patterns):
            continue
        try:
            yield op, *pool.submit(swept, op, calls, each, compiled).result()
        except BrokenProcessPool:
            yield op, Counter({"torch crashed": 1}), []
            pool = ProcessPoolExecutor(1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("each", type=int)
    parser.add_argument("ops", nargs="*", help="names or patterns of overloads; default: all")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    for op, counts, lines in sweep(options.ops, options.each, options.compile):
        total += counts
        print(f"--- {op}: {dict(counts)}", *lines, sep="\n", flush=True)
    print(f"{dict(total)}; of no operator test: {', '.join(sorted(set(ops()) - beginnings().keys()))}")
    return bool(total["wrong"])


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.disable()       # torch's own words about traces that it refuses
    sys.exit(main())
