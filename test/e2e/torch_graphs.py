"""Random FX graphs against eager torch: views, writes in place, inputs that share memory, sizes of 0 and 1.

    python test/e2e/torch_graphs.py 1000 2000       # these seeds; prints the graphs that go wrong
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.fx.experimental import _config as sizes
from torch_graph_builder import SIZES, Builder
from torch_graph_steps import STEPS

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


def _laid_out(b: Builder, t: Any, before: list[Any]) -> Any:
    same = [o for o in before if o.shape == t.shape and o.dtype == t.dtype]
    match b.int(0, 9):
        case 0 if same:
            return same[0]
        case 1 if same:
            return same[0].view(same[0].shape) if same[0].is_contiguous() else same[0]
        case 2 if t.ndim > 1:
            return t.transpose(0, -1).contiguous().transpose(0, -1)
        case 3 if t.ndim:
            return torch.stack([t, t], -1)[..., 0]
        case _:
            return t


def random_graph(seed: int, most: int = 14) -> RandomGraph:
    """A graph of one to some `most` steps."""
    b = Builder(np.random.default_rng(seed))
    b.symbolic = b.chance(0.6)
    for i in range(b.int(1, 3)):
        dims = [b.pick(["n", "m"]) if b.symbolic and b.chance(0.5) else b.pick([1, 2, 3, 4, 6, 8, 17])
                for _ in range(b.pick([0, 1, 2, 2, 3, 3, 4]))]
        if b.inputs and b.chance(0.5):
            dims = list(b.inputs[0].dims)
        b.input(dims, b.pick([torch.float32] * 6 + [torch.int64, torch.int32, torch.bool]) if i else torch.float32)
    names = list(STEPS)
    weights = np.array([STEPS[n][0] for n in names]) * b.rng.choice([0.2, 1.0, 3.0], len(names))
    for _ in range(b.int(1, most) + 1):
        STEPS[names[int(b.rng.choice(len(names), p=weights / weights.sum()))]][1](b)
    made = [v for v in b.values if b.chance(0.4)] + b.values[-2:]
    b.graph.output(tuple(v.node for v in made))
    return RandomGraph(b, torch.fx.GraphModule({}, b.graph), seed)


def check(seed: int) -> bool:
    """Compiles the graph of `seed` and compares it with eager in all of its sizes; an exception says what is off.

    False for a graph that torch.compile gets wrong, or refuses, without xcc, too.
    """
    try:
        compare(random_graph(seed), seed, backend, options={"strict": True})
    except Exception:
        try:
            compare(random_graph(seed), seed, "aot_eager")
        except Exception:
            return False
        raise
    return True


def compare(graph: RandomGraph, seed: int, backend: Any, **options: Any) -> None:
    """AssertionError where a backend's results, or what it has written, differ from eager's."""
    torch._dynamo.reset()
    oblivious = graph.builder.symbolic and seed % 2 == 0
    compiled = torch.compile(lambda *args: graph.module.forward(*args), backend=backend, fullgraph=True,
                             dynamic=graph.builder.symbolic or None, **options)
    allowed = 2e-5 * graph.builder.largest
    with torch.no_grad(), sizes.patch(backed_size_oblivious=oblivious), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dims in _runs(graph):
            mine, own = graph.drawn(dims), graph.drawn(dims)
            try:
                want = graph.module.forward(*own)
            except Exception:
                continue        # eager does not run such sizes
            got = compiled(*mine)
            for what, a, e in (("output", got, want), ("input", mine, own)):
                for n, pair in enumerate(zip(a, e, strict=True)):
                    assert not (said := _difference(*pair, allowed)), f"{what} {n} with {dims}: {said}"
            assert _sharing(mine, got) == _sharing(own, want), f"with {dims}: other inputs are outputs"


def _runs(graph: RandomGraph) -> Iterator[dict[str, int]]:
    worlds = [{name: both[i] for name, both in SIZES.items()} for i in range(2)]
    yield from (*worlds, *OTHERS) if graph.builder.symbolic else worlds[:1]


def _difference(got: Any, want: Any, allowed: float) -> str:
    facts = [(t.dtype, tuple(t.shape)) for t in (got, want)]
    if facts[0] != facts[1]:
        return f"{facts[0]}, eager has {facts[1]}"
    if order_of(want.shape, want.stride()) is not None and _strides(got) != _strides(want):
        return f"strides {got.stride()}, eager has {want.stride()} of {tuple(want.shape)}"
    if not want.dtype.is_floating_point:
        return "" if torch.equal(got, want) else f"{got.tolist()}, eager has {want.tolist()}"
    off = (got.double() - want.double()).abs()
    off = off.masked_fill((got == want) | got.isnan() & want.isnan(), 0)
    most = float(off.max()) if off.numel() else 0.0
    return "" if most <= allowed else f"off by {most}, {allowed} is allowed"


def _strides(t: Any) -> list[int]:
    return [s for s, d in zip(t.stride(), t.shape, strict=True) if d > 1 and t.numel()]


def _sharing(inputs: list[Any], outputs: Any) -> list[int]:
    """For each output the first input that it shares memory with, -1 for none."""
    memory = [t.untyped_storage().data_ptr() for t in inputs]
    return [memory.index(m) if t.numel() and (m := t.untyped_storage().data_ptr()) in memory else -1 for t in outputs]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    options = parser.parse_args()
    wrong = refused = 0
    for seed in range(options.first, options.end):
        try:
            refused += not check(seed)
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
