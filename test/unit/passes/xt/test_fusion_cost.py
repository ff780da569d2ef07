"""No kernel that form-kernels makes of random graphs costs 3 times its ops alone: by its own estimate, and counted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from kernel_cases import check, functions, module_of

from xcc._mlir import ir
from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.xt.form_kernels import FormKernels
from xcc.passes.xt.fusion.fusion_cost import WORSE, FusionCost
from xcc.passes.xt.fusion.kernel_cost import FLOPS, FusionLimits, KernelCost
from xcc.passes.xt.graph.op_graph import Graph, Node, element_bytes

SIZES = (4, 24, 64)
COUNTED = (4, 8, 32)
SMALL = (2, 3, 5)
SINGLE = 48         # what an element that is gathered costs
GRAPHS = 60


def picks(rng: np.random.Generator, size: int) -> Any:
    return xt.constant(rng.integers(0, size, int(rng.choice([size, 2 * size]))))


def grow(values: list[Any], rng: np.random.Generator) -> Any:
    """One more value of rank 3, of one or two earlier ones."""
    x = values[-1] if rng.random() < 0.7 else values[int(rng.integers(len(values)))]
    shape, axis = xt.shape_of(x), int(rng.integers(3))
    alike = [v for v in values if xt.shape_of(v) == shape]
    y = alike[int(rng.integers(len(alike)))]
    match int(rng.integers(12)):
        case 0:
            return xt.exp(x)
        case 1:
            return xt.mul(xt.abs(x), y)
        case 2 | 3:
            return xt.transpose(x, perm=[int(d) for d in rng.permutation(3)])
        case 4:
            x, y = (xt.transpose(v, perm=[0, 2, 1]) for v in (x, y))
            others = [xt.tanh(y) if rng.random() < 0.3 else y for _ in range(int(rng.integers(1, 6)))]
            return xt.concatenate(x, *others, axis=axis)
        case 5:
            return xt.gather(x, picks(rng, shape[axis]), axis=axis)
        case 6:     # a dear value at shifted places
            e, width = xt.exp(xt.tanh(x)), max(1, shape[axis] - 15)
            moved = [xt.slice(e, starts=[lo * (d == axis) for d in range(3)], strides=[1] * 3, limits=[
                lo + width if d == axis else n for d, n in enumerate(shape)]) for lo in range(min(16, shape[axis]))]
            for m in moved[1:]:
                moved[0] = xt.add(moved[0], m)
            return moved[0]
        case 7:
            return xt.sub(x, xt.reduce(y, kind="max", axes=[2], keepdims=True))
        case 8:     # what all rows need
            row = xt.exp(xt.slice(y, starts=[0] * 3, strides=[1] * 3, limits=[1, 1, shape[2]]))
            return xt.add(x, row)
        case 9:
            window = [1 if d != axis else min(n, int(rng.choice([3, 15]))) for d, n in enumerate(shape)]
            return xt.reduce_window(x, kind="max", window=window, strides=[1] * 3)
        case 10:
            return xt.pad(x, low=[1, 0, 2], high=[0, 2, 1], value=0.5)
        case _:
            return xt.reduce(x, kind="sum", axes=[axis], keepdims=True)


def drawn(seed: int, sizes: tuple[int, ...]) -> tuple[Any, list[Any]]:
    """A function that builds a random graph, and the types of its arguments."""
    def build(*arguments: Any) -> Any:
        rng, values = np.random.default_rng(seed), list(arguments)
        while len(values) < 12 and math.prod(xt.shape_of(values[-1])) < 64 * sizes[-1] ** 3:
            values.append(grow(values, rng))
        return values[-1] if seed % 3 else values[-2:]

    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.choice(sizes, 3))
    return build, [xt.TensorType(shape, "f32")] * 2


@contextmanager
def kernels(seed: int, sizes: tuple[int, ...], **options: Any) -> Iterator[list[list[Node]]]:
    """The ops of each kernel of a random graph, of the functions that form-kernels makes."""
    build, types = drawn(seed, sizes)
    module = module_of(build, *types)
    for op in reversed(list(functions(module)["main"].regions[0].blocks[0].operations)[:-1]):
        if not any(list(v.uses) for v in op.results):
            op.operation.erase()
    FormKernels(**options).run(module, PassContext())
    graphs = [Graph(f.regions[0].blocks[0]) for f in functions(module).values() if "xt.kernel" in f.attributes]
    yield [[n for n in g.nodes if n.kind not in ("host", "source")] for g in graphs]


def worst(seed: int, **options: Any) -> float:
    """The largest factor between the estimate of a kernel and that of its ops alone."""
    with kernels(seed, SIZES, **options) as found:
        cost = [(KernelCost(FusionLimits(**options), {}), nodes) for nodes in found]
        return max(c.of(nodes) / sum(c.of([n]) for n in nodes if n.kind != "unit_view") for c, nodes in cost)


@pytest.mark.parametrize("single", [4, SINGLE])
def test_estimates(single: int) -> None:
    for seed in range(GRAPHS):
        assert worst(seed, single=single) < WORSE, f"seed {seed}"


def test_it_takes_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it some of these graphs have kernels that are slower."""
    monkeypatch.setattr(FusionCost, "fault", lambda *_args: "")
    assert max(worst(seed, single=SINGLE) for seed in range(GRAPHS)) > WORSE


class Counted:
    """A kernel's evaluations, counted: each op at each array of places at which another one needs it."""

    def __init__(self, nodes: list[Node]) -> None:
        self.made = {v: n for n in nodes for v in n.results}
        self.places: dict[Any, dict[bytes, Any]] = {}
        self.total = 0.0
        inside = {n.index for n in nodes}
        for n in reversed(nodes):
            v = n.results[0]
            if any(u.index not in inside for u in n.users):
                self.need(v, np.arange(math.prod(n.shape)).reshape(n.shape))
                self.total += 8 * element_bytes(v) * math.prod(n.shape)
            for at in self.places.get(v, {}).values():
                self.total += at.size * FLOPS.get(n.name, 1) * (n.kind == "pointwise")
                self.follow(n, at)
        outside = [v for v in self.places if v not in self.made]
        self.total += sum(8 * element_bytes(v) * len(np.unique(np.concatenate(
            [at.ravel() for at in self.places[v].values()]))) for v in outside)
        self.total += sum(self.loads(v, at) for v in outside for at in self.places[v].values())

    def need(self, v: Any, at: Any) -> None:
        """Elements of `v` by number, for each of a reader's: what is the same all along its last dims is made once."""
        while at.ndim and at.shape[-1] and (at == at[..., :1]).all():
            at = at[..., 0]
        self.places.setdefault(v, {})[at.tobytes()] = at

    def loads(self, v: Any, at: Any) -> float:
        """Vectors of neighbours, or elements one by one."""
        rows = at.ndim == 0 or (np.diff(at, axis=-1) == 1).mean() > 0.5
        return at.size * (1 if rows else SINGLE)

    def follow(self, n: Node, at: Any) -> None:
        for k, (v, p) in enumerate(zip(n.operands, n.producers, strict=True)):
            if p is not None and p.kind == "source":
                continue
            shape = xt.shape_of(v)
            numbers = np.arange(math.prod(shape)).reshape(shape)
            if n.kind == "reduction":
                self.need(v, numbers)
                self.total += numbers.size
            elif n.kind == "window":
                for lane in range(math.prod(xt.attrs_of(n.op).window)):
                    self.total += 2 * at.size
                    self.places.setdefault(v, {})[bytes([n.index, lane])] = np.minimum(at + lane, numbers.size - 1)
            elif n.kind == "pointwise":
                self.need(v, np.broadcast_to(numbers, n.shape).ravel()[at])
            elif n.name == "concatenate":       # each piece for each element of the result
                self.need(v, at % numbers.size)
            elif k == 0:
                moved = moved_by(n, numbers)
                self.need(v, np.maximum(moved.reshape(n.shape).ravel()[at], 0))


def moved_by(n: Node, numbers: Any) -> Any:
    """`numbers` after a movement op; -1 in a border."""
    a = xt.attrs_of(n.op)
    if n.name == "pad":
        a.value = -1
    if n.name == "gather":
        index = np.array(ir.DenseElementsAttr(n.producers[1].op.attributes["value"])) if n.producers[1] is not None \
            else np.arange(xt.shape_of(n.operands[1])[0]) * 7 % numbers.shape[a.axis]
        return xt.op_class(n.op).evaluate(a, numbers, index)
    return numbers if n.kind == "unit_view" else xt.op_class(n.op).evaluate(a, numbers)


def test_counted() -> None:
    """The same by another count, of the evaluations themselves."""
    for seed in range(GRAPHS):
        with kernels(seed, COUNTED, single=SINGLE) as found:
            for nodes in found:
                together, apart = Counted(nodes).total, sum(Counted([n]).total for n in nodes if n.kind != "unit_view")
                assert together < 2 * apart, f"seed {seed}: {nodes}"      # 2.3 without the estimate


@pytest.mark.parametrize("seed", range(6))
def test_numbers(seed: int) -> None:
    """Small ones still mean what their ops mean."""
    build, types = drawn(seed, SMALL)
    rng = np.random.default_rng(seed)
    check(build, types, [rng.standard_normal(t.shape).astype(np.float32) for t in types], single=SINGLE)
