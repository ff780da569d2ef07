"""What a kernel of some ops is estimated to cost: evaluations of each op, reads, and bytes to and from memory.

A kernel is evaluated on demand from its results. An op is evaluated once for all readers at its own coordinates, and
again for each that needs it elsewhere: a window, a slice, a concatenation (which makes all operands for each element of
its result). What a reader needs element by element, or along another dim, is also read so. Kernels are compared by this
number alone: what is fused must not cost more than its parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Set
from dataclasses import dataclass
from itertools import accumulate

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.passes.xt.fusion.fusion_group import PLACES, is_pointwise, is_stored_pad
from xcc.passes.xt.fusion.kernel_summary import contracted
from xcc.passes.xt.fusion.lanes import SCATTERED, UNIFORM, lanes_of, last_dim, picked_dims, sampled_dims
from xcc.passes.xt.graph.op_graph import Node, element_bytes, is_inline, nominal_count
from xcc.symbolic import Dim

FLOPS: dict[str, int] = {
    name: 16 for name in ("exp exp2 expm1 log log1p log2 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
                          "erf sigmoid pow atan2 cbrt next_after random_uniform random_normal").split()
} | {name: 4 for name in "div rem mod sqrt rsqrt reciprocal quantize".split()}
"""Cost of a pointwise op for one element, in additions; 1 where absent. Movement ops cost 0 or a select."""
POINTS: dict[str, int] = {"nearest": 1, "linear": 2, "cubic": 4}
"""Elements along each sampled dim that one of a grid_sample or a resize is made of."""
COMPUTED = ("concatenate", "dynamic_slice", "gather", "gather_nd", "gather_elements", "grid_sample", "pad")
"""Movement ops that compute the places they read: a tile across their last dim is read one element after the other.
A stored pad computes none: its kernel's tiles are those of what it pads."""
SMALL = 16
"""A value is read so many times over from registers or the L1 cache, at no cost beside what is made of it."""
FAR, LINE, LINES = 4, 64, 16
"""A strided element takes as long as so many gathered ones (on a Zen 5: 6) where neighbours lie so many bytes apart or
more, and are more than the lines that a cache keeps until the next elements of each are read."""
TILE = 64
"""Rows or columns of a product's tile: so many uses of an operand's element share one evaluation."""


@dataclass(frozen=True)
class FusionLimits:
    """Bounds that a target sets: options of FormKernels."""

    max_ops: int = 256
    max_buffers: int = 28
    max_row: int = 65536
    flops_per_byte: int = 8
    prologue: tuple[str, ...] = ("broadcast", "convert")
    tile_row: int = 0
    single: int = 4
    launch: int = 0
    piece: int = 0


@dataclass(frozen=True)
class _Need:
    """What readers need of a value: `count` evaluations of at most `distinct` elements.

    lanes: the value's dim that vectors of the kernel's result lie along. computed: the share whose places are computed.
    """

    count: float
    distinct: float
    lanes: int
    computed: float = 0.0

    def with_(self, other: _Need | None) -> _Need:
        """Both, of readers at the same coordinates."""
        if other is None:
            return self
        return _Need(max(self.count, other.count), max(self.distinct, other.distinct), min(self.lanes, other.lanes),
                     max(self.computed, other.computed))


@dataclass(frozen=True)
class _Value:
    """moved: the cost of writing or reading it once; lanes: the dim that vectors of it lie along."""

    shape: tuple[Dim, ...]
    size: int
    lanes: int
    moved: float


class KernelCost:
    """Estimates for kernels of one graph, in additions, lanes of a vector counted each; dims are within `bounds`."""

    def __init__(self, limits: FusionLimits, bounds: dict[str, tuple[int, int]]) -> None:
        self.limits, self.bounds = limits, bounds
        self._counts: dict[tuple[Dim, ...], int] = {}
        self._values: dict[Value, _Value] = {}
        self._operations: dict[int, float] = {}
        self._ways: dict[tuple[int, int, int], tuple[float, int, float]] = {}
        self._known: dict[tuple[frozenset[int], frozenset[int]], float] = {}

    def count(self, shape: tuple[Dim, ...]) -> int:
        if shape not in self._counts:
            self._counts[shape] = nominal_count(shape, self.bounds)
        return self._counts[shape]

    def known(self, ops: Iterable[Node]) -> bool:
        """Whether all sizes are numbers: an estimate for others says how costs grow, not how large they are."""
        return all(isinstance(d, int) for n in ops for d in self._value(n.results[0]).shape)

    def of(self, ops: Iterable[Node], copied: Set[int] = frozenset()) -> float:
        """The cost of one kernel of `ops`; the results of those `copied` are not stored by it, whoever reads them."""
        nodes = {n.index: n for n in ops}
        key = frozenset(nodes), frozenset(copied & nodes.keys())
        if key not in self._known:
            self._known[key] = self._of(nodes, copied)
        return self._known[key]

    def _of(self, nodes: dict[int, Node], copied: Set[int]) -> float:
        needs: dict[int, dict[int, _Need]] = {}
        read: dict[Value, float] = {}
        total = 0.0
        for i, n in sorted(nodes.items(), reverse=True):
            places = needs.pop(i, {})
            stored = i not in copied and any(u.index not in nodes for u in n.users)
            if stored:
                result = self._value(n.results[0])
                places[0] = _Need(result.size, result.size, result.lanes).with_(places.get(0))
            if len(places) > PLACES:
                return math.inf
            if not places:      # copied, and only another kernel needs it
                continue
            total += sum(need.count for need in places.values()) * self.operations(n)
            total += sum(self._value(v).moved for v in n.results) if stored else 0
            aligned = is_pointwise(n) or n.kind == "reduction"
            for k, (v, p) in enumerate(zip(n.operands, n.producers, strict=True)):
                inside = p is not None and p.index in nodes
                if not inside and p is not None and is_inline(p):
                    continue
                for at, need in places.items():
                    part = self._needed(n, k, need)
                    if p is not None and inside:
                        mine = needs.setdefault(p.index, {})
                        place = at if aligned else hash((i, k, at))
                        mine[place] = part.with_(mine.get(place))
                    else:
                        total += self._loading(v, part)
                        read[v] = read.get(v, 0) + part.distinct
        values = ((self._value(v), most) for v, most in read.items())
        return total + sum(v.moved * min(1.0, most / max(v.size, 1)) for v, most in values)

    def _value(self, v: Value) -> _Value:
        if v not in self._values:
            shape = xt.shape_of(v)
            size = self.count(shape)
            self._values[v] = _Value(shape, size, last_dim(shape), size * element_bytes(v) * self.limits.flops_per_byte)
        return self._values[v]

    def mixed(self, n: Node, lanes: int) -> float:
        """The share of a concatenation's result in tiles that evaluate all operands, others the one that they lie in.

        lanes: the dim that vectors go along.
        """
        if not self.limits.piece or lanes == SCATTERED:
            return 1.0
        apart = lanes in (UNIFORM, self._value(n.results[0]).lanes) and lanes != xt.attrs_of(n.op).axis
        return 0.0 if apart else self._across(n)

    def operations(self, n: Node) -> float:
        """Operations for an element of the result of `n`, beside what its operands cost."""
        if n.index not in self._operations:
            self._operations[n.index] = self._steps(n) if n.kind in ("reduction", "window", "contraction") else \
                0 if n.kind != "pointwise" or _extends(n) else FLOPS.get(n.name, 1)
        return self._operations[n.index]

    def _loading(self, v: Value, need: _Need) -> float:
        """The cost of loading what is needed of `v`, which another kernel or nobody makes."""
        value = self._value(v)
        if need.lanes == SCATTERED:
            return need.count * self.limits.single
        tiles = need.count if SMALL * need.distinct >= need.count else 0
        if need.lanes in (UNIFORM, value.lanes):
            return tiles
        stride, lines = self.count(value.shape[need.lanes + 1:]), self.count(value.shape[need.lanes:need.lanes + 1])
        far = stride * element_bytes(v) >= LINE and lines > LINES
        single = need.count * self.limits.single * (FAR if far else 1)
        return need.computed * single + (1 - need.computed) * tiles

    def _needed(self, n: Node, k: int, need: _Need) -> _Need:
        """What `n` needs of its operand `k` where its result is needed as `need` says."""
        key = n.index, k, need.lanes
        if key not in self._ways:
            lanes = need.lanes if need.lanes < 0 else lanes_of(n, k, need.lanes)
            places = n.name in COMPUTED and not is_stored_pad(n)
            computed = self._across(n) if n.name == "concatenate" else float(places)
            self._ways[key] = self._times(n, k, need.lanes), lanes, computed
        times, lanes, computed = self._ways[key]
        distinct = min(self._value(n.operands[k]).size, need.distinct * max(times, 1))
        return _Need(need.count * times, distinct, lanes, max(need.computed, computed))

    def _times(self, n: Node, k: int, lanes: int) -> float:
        """Elements of operand `k` for one of the result of `n`."""
        shape, size = self._value(n.operands[k]).shape, self._value(n.operands[k]).size
        out, whole = self._value(n.results[0]).shape, max(self._value(n.results[0]).size, 1)
        if n.kind == "unit_view":
            return 1
        if is_stored_pad(n):
            return min(1, size / whole)
        if is_pointwise(n):     # an element serves all along the last dims that the operand does not have
            return 1 if lanes == SCATTERED else 1 / self.count(_behind(shape, out))
        if n.kind in ("reduction", "window"):
            return self._steps(n)
        if n.kind == "contraction":
            return size / whole * max(1.0, whole * self._steps(n) / max(size, 1) / TILE)
        if n.kind != "movement":
            return size / whole
        if n.name in ("grid_sample", "resize"):
            return self.count(shape[-1:]) if k else float(POINTS[xt.attrs_of(n.op).mode] ** len(sampled_dims(n)))
        if n.name == "concatenate":
            return self._share(n, k, lanes)
        if k == 0 or n.name == "gather_elements":
            return 1
        if n.name == "dynamic_slice":
            return 1 / whole
        depth = self.count(shape[-1:]) if n.name == "gather_nd" else 1      # of an index, for a row of the operand
        return depth if lanes == SCATTERED else depth / self.count(out[picked_dims(n)[0]:])

    def _share(self, n: Node, k: int, lanes: int) -> float:
        """Evaluations of operand `k` of a concatenation for an element of its result, lanes without work counted.

        A concatenation's dims are not walked as one, so that a short row fills a part of a tile.
        """
        mixed, row = self.mixed(n, lanes), self.count(n.shape[lanes:lanes + 1]) if lanes >= 0 else self.limits.piece
        own = self._value(n.operands[k]).size / max(self._value(n.results[0]).size, 1)
        return mixed + (1 - mixed) * own * max(1.0, self.limits.piece / max(row, 1))

    def _across(self, n: Node) -> float:
        """The share of a concatenation's result in tiles of several of its rows that lie in more than one operand."""
        sizes = [xt.shape_of(v)[xt.attrs_of(n.op).axis] for v in n.operands]
        known = [size for size in sizes if isinstance(size, int)]
        if not self.limits.piece or len(known) < len(sizes):
            return 1.0
        tiles = sum(bound % self.limits.piece != 0 for bound in accumulate(known[:-1]))
        return min(1.0, tiles * self.limits.piece / max(sum(known), 1))

    def _steps(self, n: Node) -> float:
        """Elements of the (first) operand that an element of a reduction, a window or a product is made of."""
        if n.kind == "window":
            return self.count(xt.attrs_of(n.op).window)
        if n.kind == "contraction":
            return self.count((contracted(n.op),))
        return self.count(xt.shape_of(n.operands[0])) / max(self.count(n.shape), 1)


def is_widening(n: Node) -> bool:
    """Whether a convert makes no narrower elements."""
    return n.name == "convert" and element_bytes(n.operands[0]) <= element_bytes(n.results[0])


def _extends(n: Node) -> bool:
    """Whether a convert is a load that extends what it reads: at no cost beside that of loading what it makes."""
    kinds = [xt.is_float(str(xt.element_type_of(v))) for v in (*n.operands, *n.results)] if is_widening(n) else []
    return kinds in ([True, True], [False, False])


def _behind(shape: tuple[Dim, ...], out: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The last dims of `out` that a pointwise operand of `shape` does not have."""
    used = [d for d, size in enumerate(reversed(shape)) if size != 1]
    return out[len(out) - used[0]:] if used else out
