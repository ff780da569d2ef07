"""Random FX graphs against eager torch: views, writes in place, inputs that share memory, sizes of 0 and 1.

    python test/e2e/torch_graphs.py 1000 2000       # these seeds; prints the graphs that go wrong

A seed's graph goes one of the three ways to xcc: ``torch.compile(backend="xcc")``, ``xcc.torch.compile``, and as an
exported program.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental import _config as sizes
from torch.utils import _pytree
from torch_graph_builder import SIZES, Builder
from torch_graph_layers import STEPS

import xcc.torch
from xcc.frontends.torch.backend import backend
from xcc.frontends.torch.layout import order_of

OTHERS: tuple[dict[str, int], ...] = ({"n": 1, "m": 3}, {"n": 6, "m": 1}, {"n": 0, "m": 2}, {"n": 1, "m": 0})
"""Sizes besides those of the worlds that a graph is run with."""


@dataclass
class RandomGraph:
    """`outputs` are values of the graph; `seed` draws the inputs' numbers."""

    builder: Builder
    module: Any
    seed: int

    def drawn(self, dims: dict[str, int]) -> list[Any]:
        """Inputs with these sizes. Some lie in memory in another order, with gaps, or share it with another input."""
        b = Builder(np.random.default_rng(self.seed))
        out: list[Any] = []
        for i in self.builder.inputs:
            shape = [d if isinstance(d, int) else dims[d] for d in i.dims]
            t = b.numbers(shape, i.value.dtype, i.below)
            out.append(t if i.below else _laid_out(b, t, out))
        return out

    @cached_property
    def wide(self) -> Any:
        """The function with f64 in the place of all floats: what it gives tells how far eager is from it."""
        graph = torch.fx.Graph()
        graph.output(graph.graph_copy(self.module.graph, {}))
        for node in graph.nodes:
            node.args, node.kwargs = _pytree.tree_map_only(torch.dtype, _widened, (node.args, node.kwargs))
        return torch.fx.GraphModule({}, graph)

    @property
    def spacing(self) -> float:
        """The largest relative error of one rounding in the graph."""
        return max(torch.finfo(v.dtype).eps for v in self.builder.values if v.is_float)


def _widened(kind: Any) -> Any:
    return torch.float64 if kind.is_floating_point else kind


def _laid_out(b: Builder, t: Any, before: list[Any]) -> Any:
    same = [o for o in before if o.shape == t.shape and o.dtype == t.dtype]
    match b.int(0, 11):
        case 0 if same:
            return same[0]
        case 1 if same:
            return same[0].view(same[0].shape) if same[0].is_contiguous() else same[0]
        case 2 if t.ndim > 1:
            return t.transpose(0, -1).contiguous().transpose(0, -1)
        case 3 if t.ndim:
            return torch.stack([t, t], -1)[..., 0]
        case 4 | 5 if t.ndim == 4:
            return t.contiguous(memory_format=torch.channels_last)
        case 6:
            return torch.cat([t.reshape(-1)[:1], t.reshape(-1)])[min(1, t.numel()):].view(t.shape)
        case _:
            return t


KINDS = (torch.float32,) * 6 + (torch.float16, torch.bfloat16, torch.float64)


def random_graph(seed: int, most: int = 14) -> RandomGraph:
    """A graph of one to some `most` steps."""
    b = Builder(np.random.default_rng(seed))
    b.symbolic, b.kind = b.chance(0.6), b.pick(KINDS)
    for i in range(b.int(1, 3)):
        dims = [b.pick(["n", "m"]) if b.symbolic and b.chance(0.5) else b.pick([1, 2, 3, 4, 6, 8, 17])
                for _ in range(b.pick([0, 1, 2, 2, 3, 3, 4, 4]))]
        if b.inputs and b.chance(0.5):
            dims = list(b.inputs[0].dims)
        others = [torch.int64, torch.int32, torch.bool, torch.uint8, b.pick(KINDS)]
        b.input(dims, b.pick([b.kind] * 7 + others) if i else b.kind)
    names = list(STEPS)
    weights = np.array([STEPS[n][0] for n in names]) * b.rng.choice([0.2, 1.0, 3.0], len(names))
    for _ in range(b.int(1, most) + 1):
        STEPS[names[int(b.rng.choice(len(names), p=weights / weights.sum()))]][1](b)
    made = [v for v in b.values if b.chance(0.4)] + b.values[-2:]
    b.graph.output(tuple(v.node for v in made))
    return RandomGraph(b, torch.fx.GraphModule({}, b.graph), seed)


Call = Callable[..., Any]


def by_backend(graph: RandomGraph, backend: Any = backend, **options: Any) -> Call:
    return torch.compile(lambda *args: graph.module.forward(*args), backend=backend, fullgraph=True,
                         dynamic=graph.builder.symbolic or None, **options)


def by_xcc(graph: RandomGraph) -> Call:
    """Sizes are symbols, all of them."""
    return xcc.torch.compile(lambda *args: graph.module.forward(*args), strict=True, versions=0)


def by_export(graph: RandomGraph) -> Call:
    """An exported program takes dense tensors that share no memory; sizes that torch has fixed are fixed."""
    first = graph.drawn({name: both[0] for name, both in SIZES.items()})
    free = tuple({axis: torch.export.Dim.AUTO for axis, d in enumerate(i.dims) if isinstance(d, str)}
                 for i in graph.builder.inputs)
    program = torch.export.export(graph.module, tuple(_apart(first)), dynamic_shapes=free)
    return xcc.torch.function(xcc.compile(program, isolate=False))


def _apart(inputs: list[Any]) -> list[Any]:
    return [t.clone(memory_format=torch.contiguous_format) for t in inputs]


WAYS: dict[str, Callable[[RandomGraph], Call]] = {
    "backend": partial(by_backend, options={"strict": True}), "xcc": by_xcc, "export": by_export}


def check(seed: int, way: str = "") -> bool:
    """Compiles the graph of `seed` one way and compares it with eager in all of its sizes; an exception says what is
    off. False for a graph that torch gets wrong, or refuses, without xcc, too."""
    way = way or list(WAYS)[seed % 3]
    graph = random_graph(seed)
    try:
        compare(graph, WAYS[way], way == "export")
    except Exception:
        try:
            compare(random_graph(seed), _PLAIN[way], way == "export")
        except Exception:
            return False
        raise
    return True


def _exported(graph: RandomGraph) -> Call:
    """What torch runs of an exported program."""
    first = graph.drawn({name: both[0] for name, both in SIZES.items()})
    return torch.export.export(graph.module, tuple(_apart(first))).run_decompositions().module()


def _oblivious(graph: RandomGraph) -> Call:
    call = by_backend(graph, "aot_eager")

    def run(*args: Any) -> Any:
        with sizes.patch(backed_size_oblivious=True):
            return call(*args)

    return run


_PLAIN: dict[str, Callable[[RandomGraph], Call]] = {
    "backend": partial(by_backend, backend="aot_eager"), "xcc": _oblivious, "export": _exported}
"""The ways without xcc."""


def compare(graph: RandomGraph, way: Callable[[RandomGraph], Call], exported: bool) -> None:
    """AssertionError where a way's results, or what it has written, differ from eager's."""
    torch._dynamo.reset()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = way(graph)
        for dims in _runs(graph):
            mine, own = graph.drawn(dims), graph.drawn(dims)
            if exported:
                mine, own = _apart(mine), _apart(own)
            try:
                want = graph.module.forward(*own)
            except Exception:
                continue        # eager does not run such sizes
            try:
                got = compiled(*mine)
            except xcc.UserError:
                if exported:
                    continue    # torch has fixed a size
                raise
            got = got if isinstance(got, tuple | list) else (got,)
            allowed = _allowed(graph, dims, exported, want)
            for what, a, e in (("output", got, want), ("input", mine, own)):
                for n, pair in enumerate(zip(a, e, strict=True)):
                    assert not (said := _difference(*pair, allowed)), f"{what} {n} with {dims}: {said}"
            if not exported:
                assert _sharing(mine, got) == _sharing(own, want), f"with {dims}: other inputs are outputs"
                said = _laid_otherwise(graph, dims, got, want)
                assert not said, f"with {dims}: {said}"


def _allowed(graph: RandomGraph, dims: dict[str, int], exported: bool, want: Any) -> float:
    """How far a result may be off: more where eager's own narrow floats are."""
    if graph.spacing <= torch.finfo(torch.float32).eps:
        return 160 * max(graph.spacing, 1e-12) * graph.builder.largest
    given = graph.drawn(dims)
    if exported:
        given = _apart(given)
    once = {t.data_ptr(): t.to(_widened(t.dtype)) for t in given}
    given = [once[t.data_ptr()] for t in given]
    off = [(a.double() - b.double()).abs().max() for a, b in zip(want, graph.wide.forward(*given), strict=True)
           if a.numel() and a.is_floating_point()]
    largest = [t.double().abs().max() for t in want if t.numel() and t.is_floating_point()]
    return 4 * float(max(off, default=0)) + 8 * graph.spacing * max(1.0, float(max(largest, default=0)))


def _runs(graph: RandomGraph) -> Iterator[dict[str, int]]:
    worlds = [{name: both[i] for name, both in SIZES.items()} for i in range(2)]
    yield from (*worlds, *OTHERS) if graph.builder.symbolic else worlds[:1]


def _laid_otherwise(graph: RandomGraph, dims: dict[str, int], got: Any, want: Any) -> str:
    """"" where results lie in memory as eager's, or as torch's own trace says that they do."""
    if all(_strides(*pair) for pair in zip(got, want, strict=True)):
        return ""
    with FakeTensorMode() as mode:
        traced = graph.module.forward(*map(mode.from_tensor, graph.drawn(dims)))
    for n, (one, own, fake) in enumerate(zip(got, want, traced, strict=True)):
        if not _strides(one, own) and not _strides(one, fake):
            return f"output {n} has strides {one.stride()}, eager {own.stride()}, a trace {fake.stride()}"
    return ""


def _strides(got: Any, want: Any) -> bool:
    """Whether they are alike, where the tensor that is wanted is dense."""
    own, other = ([s for s, d in zip(t.stride(), t.shape, strict=True) if d > 1 and t.numel()] for t in (got, want))
    return own == other or order_of(want.shape, want.stride()) is None


def _difference(got: Any, want: Any, allowed: float) -> str:
    facts = [(t.dtype, tuple(t.shape)) for t in (got, want)]
    if facts[0] != facts[1]:
        return f"{facts[0]}, eager has {facts[1]}"
    if not want.dtype.is_floating_point:
        return "" if torch.equal(got, want) else f"{got.tolist()}, eager has {want.tolist()}"
    off = (got.double() - want.double()).abs()
    off = off.masked_fill((got == want) | got.isnan() & want.isnan(), 0)
    most = float(off.max()) if off.numel() else 0.0
    return "" if most <= allowed else f"off by {most}, {allowed} is allowed"


def _sharing(inputs: list[Any], outputs: Any) -> list[int]:
    """For each output the first input that it shares memory with, -1 for none."""
    memory = [t.untyped_storage().data_ptr() for t in inputs]
    return [memory.index(m) if t.numel() and (m := t.untyped_storage().data_ptr()) in memory else -1 for t in outputs]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--way", choices=WAYS, default="", help="default: by the seed")
    options = parser.parse_args()
    wrong = refused = 0
    for seed in range(options.first, options.end):
        try:
            refused += not check(seed, options.way)
        except Exception as e:
            wrong += 1
            lines = str(e).strip().splitlines()
            print(f"--- {seed}: {type(e).__name__}: {' '.join(lines[:3])[:600]}\n{random_graph(seed).module.code}",
                  flush=True)
    print(f"{options.end - options.first} graphs, {wrong} wrong, {refused} that torch itself gets wrong or refuses")
    return bool(wrong)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
