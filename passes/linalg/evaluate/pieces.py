"""Ops whose elements come from one of several pieces, as a concatenation's do: a tile is one piece's, where it can be.

    %v = arith.select %after, %b[...], %a[...]      with %after = "i1 >= 256"
    ->
    %v = scf.if %tile_after { read of b } else { read of a }

The piece is chosen once a tile, by bounds that may be symbols: nothing of the others is evaluated, and its coordinates
need no clamps. A tile across a bound, where there may be one, is evaluated as before: every piece that it may lie in at
clamped coordinates. A tile that has all of a dim in its lanes is put together of an element's tile of each: their
transpose, of which a store makes whole lines.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Value, arith_d, ir, maker, owner_op
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.build.tile_values import Axis, Ix, V
from xcc.passes.linalg.kernel.domain import Domain
from xcc.passes.linalg.kernel.kernel import Access, Kernel, Tensor
from xcc.passes.shared.attributes import PIECES
from xcc.passes.shared.values import predicate

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.body import Body


@dataclass(frozen=True)
class Pieces:
    """values[0] where the loop's index `at` is below bounds[0], values[k] from bounds[k - 1] on."""

    at: Value
    bounds: tuple[Value, ...]
    values: tuple[Value, ...]

    @property
    def loop(self) -> int:
        """The number of the loop."""
        return _loop(self.at) or 0

    def short(self, size: int) -> bool:
        """Whether pieces of `size` elements together are one element long, but for few."""
        return size < 2 * len(self.values)

    @staticmethod
    def of(select: Operation | None) -> Pieces | None:
        """The pieces behind an arith.select of elements that are read; None where it is something else."""
        bounds, values, at, found = list[Any](), list[Any](), None, select
        while found is not None and found.name == "arith.select":
            test = maker(found.operands[0])
            if test is None or test.name != "arith.cmpi" or maker(found.operands[1]) is None \
                    or int(test.attributes["predicate"].value) != int(arith_d.CmpIPredicate.sge):
                return None
            index, bound = test.operands
            if _loop(index) is None or (at is not None and index != at) or not _is_read(found.operands[1]):
                return None
            at = index
            bounds.insert(0, bound)
            values.insert(0, found.operands[1])
            rest = found.operands[2]
            found = maker(rest)
            if _is_read(rest):
                return Pieces(at, tuple(bounds), (rest, *values))
        return None


@dataclass(frozen=True)
class Within:
    """The walk `index` is known to stay in [low, high]."""

    index: Ix
    low: int
    high: int

    def unclamped(self, name: str, a: Ix, b: Ix) -> Ix | None:
        """min(a, b) or max(a, b), where it is known to be `a`, a constant away from the walk."""
        same = a.vec is None and (a.base, a.coefs) == (self.index.base, self.index.coefs)
        if not same or b.axes or b.base is not None:
            return None
        shift = a.const - self.index.const
        idle = name == "arith.minsi" and self.high + shift <= b.const or \
            name == "arith.maxsi" and self.low + shift >= b.const
        return a if idle else None


@dataclass(frozen=True)
class InPiece:
    """The walk `index` stays in piece `number`, or is masked."""

    number: int
    index: Ix

    def unclamped(self, name: str, a: Ix, _: Ix) -> Ix | None:
        """min(a, b) or max(a, b), where `a` is a place on the walk."""
        walked = a.vec is None and bool(a.coefs) and a.coefs == self.index.coefs
        return a if walked and name in ("arith.minsi", "arith.maxsi") else None


def one_piece(body: Body, select: Operation) -> V | None:
    """The tile of a select between pieces; None where it is none, or where no tile is one piece's."""
    pieces = Pieces.of(select)
    if pieces is None:
        return None
    index, bounds = body.index(pieces.at), [body.index(v) for v in pieces.bounds]
    if index.is_scalar:
        return _Branches(body, pieces, index, bounds, 1, True).emit(len(bounds))
    size = body.op.loops[pieces.loop]
    if index.vec is not None or len(index.coefs) != 1 or index.coefs[0][1] != 1 or any(b.axes for b in bounds):
        return None
    lanes = index.coefs[0][0].size
    if not isinstance(size, int) or any(b.base is not None for b in bounds):
        some = _Branches(body, pieces, index, bounds, lanes, False)
        return some.emit(len(bounds)) if PIECES in select.attributes else None
    starts = [0, *(b.const for b in bounds), size]
    begin = gcd(index.const, 0 if index.base is None else body.b.multiple(index.base))
    if lanes == size and pieces.short(size) and begin % lanes == 0 and sorted(starts) == starts:
        return _stacked(body, pieces, starts, index.coefs[0][0])
    if max(b - a for a, b in zip(starts, starts[1:], strict=False)) < lanes:
        return None
    aligned = begin % lanes == 0 and not any(s % lanes for s in starts[1:-1])
    return _Branches(body, pieces, index, bounds, lanes, aligned).emit(len(bounds))


def own_lanes(body: Body, select: Operation) -> V | None:
    """The tile of a concatenation of what lies in memory, each piece read in its own lanes alone; else None.

        %0 = vector.gather %a[i] ..., "i < 256"        %1 = vector.gather %b[i - 256] ..., "i >= 256"

    Others read 0, so that the pieces' bits together are the tile, and no place is clamped: neighbours stay neighbours.
    """
    pieces = Pieces.of(select) if PIECES in select.attributes else None
    if pieces is None:
        return None
    b, index, bounds = body.b, body.index(pieces.at), [body.index(v) for v in pieces.bounds]
    if index.vec is not None or not all(i.is_scalar for i in bounds):
        return None
    tests = [_test(b, "sge", index, i) for i in bounds]
    ends = [*(_test(b, "slt", index, i) for i in bounds), None]
    reads = list[V]()
    for k, value in enumerate(pieces.values):
        inside = [v for v in (tests[k - 1] if k else None, ends[k]) if v is not None]
        test = inside[0] if len(inside) == 1 else b.elementwise("arith.andi", b.i1, inside, {})
        read = body.nested(InPiece(k, index)).read_where(owner_op(value), test)
        if read is None:
            return None
        reads.append(read)
    kind = select.results[0].type
    bits = ir.IntegerType.get_signless(kind.width)
    out, *rest = [v if kind == bits else b.elementwise("arith.bitcast", bits, [v], {}) for v in reads]
    for v in rest:
        out = b.elementwise("arith.ori", bits, [out, v], {})
    return out if kind == bits else b.elementwise("arith.bitcast", kind, [out], {})


def _test(b: Builder, how: str, index: Ix, bound: Ix) -> V:
    """A comparison of a place with a bound, in each lane."""
    return b.elementwise("arith.cmpi", b.i1, [b.vector(index), b.vector(bound)], {"predicate": predicate(how)})


def _stacked(body: Body, pieces: Pieces, starts: list[int], lane: Axis) -> V:
    """A tile of all of the pieces along `lane`: each element's tile over the other axes, one behind the other."""
    b = body.b
    parts = [body.at(pieces.loop, n).value(pieces.values[bisect_right(starts, n) - 1]) for n in range(lane.size)]
    outer = b.align(parts)[0].axes
    out, *rest = b.align(parts, (lane, *outer))
    sizes = [a.size for a in out.axes]
    for n, part in enumerate(rest, 1):
        before = b.pure("vector.constant_mask", ir.VectorType.get(sizes, b.i1), [],
                        mask_dim_sizes=ir.DenseI64ArrayAttr.get([n, *sizes[1:]]))
        out = b.elementwise("arith.select", body.op.yielded[0].type, [V(before, out.axes), out, part], {})
    return b.broadcast(out, tuple(sorted(out.axes, key=lambda a: a.order)))


@dataclass(frozen=True)
class _Branches:
    """A chain of branches, the last piece's first. `whole`: no tile lies across a bound."""

    body: Body
    pieces: Pieces
    index: Ix
    bounds: list[Ix]
    lanes: int
    whole: bool

    def emit(self, k: int) -> V:
        """The value of the tile, which is known to lie in none of the pieces behind piece `k`."""
        b = self.body.b
        if k == 0 and self.whole:
            return self._value(0)
        first = b.scalar(self.index)
        tests = [] if k == 0 else [_compare(b, "sge", first, b.scalar(self.bounds[k - 1]))]
        if not self.whole and k < len(self.bounds):
            last = b.add(first, b.int(self.lanes))
            tests.append(_compare(b, "sle", last, b.scalar(self.bounds[k])))
        test = tests[0] if len(tests) == 1 else b.pure("arith.andi", b.i1, tests)
        return _branch(b, test, lambda: self._value(k), lambda: self.emit(k - 1) if k else self._mixed())

    def _value(self, k: int) -> V:
        """Piece `k`, for a tile that is all its own."""
        size = self.body.op.loops[self.pieces.loop]
        starts = [0, *(i.const if i.base is None and not i.axes else None for i in self.bounds),
                  size if isinstance(size, int) else None]
        low, end = starts[k:k + 2]
        known = InPiece(k, self.index) if low is None or end is None else Within(self.index, low, end - 1)
        return self.body.nested(known).value(self.pieces.values[k])

    def _mixed(self) -> V:
        """The last piece that begins at or before each lane. Of more than two, a tile reads those that it lies in."""
        out = self.body.nested(None).value(self.pieces.values[0])
        for k in range(1, len(self.pieces.values)):
            out = self._from(k, out) if len(self.bounds) == 1 else self._reached(k, out)
        return out

    def _reached(self, k: int, before: V) -> V:
        """`_from` where the tile has elements of piece `k`."""
        b, first = self.body.b, self.body.b.scalar(self.index)
        test = _compare(b, "sgt", b.add(first, b.int(self.lanes)), b.scalar(self.bounds[k - 1]))
        if k < len(self.bounds):
            test = b.pure("arith.andi", b.i1, [test, _compare(b, "slt", first, b.scalar(self.bounds[k]))])
        return _branch(b, test, lambda: self._from(k, before), lambda: before)

    def _from(self, k: int, before: V) -> V:
        """Piece `k` in lanes from its bound on, `before` in those ahead of it."""
        b, piece = self.body.b, self.pieces.values[k]
        after = _test(b, "sge", self.index, self.bounds[k - 1])
        return b.elementwise("arith.select", piece.type, [after, self.body.nested(None).value(piece), before], {})


def _branch(b: Builder, test: Value, then: Callable[[], V], other: Callable[[], V]) -> V:
    """scf.if, whose type is known once both sides are built."""
    sides = ir.Operation.create("scf.if", operands=[test], regions=2)
    made = list[V]()
    for region, side in zip(sides.regions, (then, other), strict=True):
        with ir.InsertionPoint(region.blocks.append()), b.scope():
            made.append(side())
    axes = max(made, key=lambda v: len(v.axes)).axes
    axes = tuple(sorted({a for v in made for a in v.axes}, key=lambda a: a.order)) \
        if any(set(v.axes) - set(axes) for v in made) else axes
    for n, region in enumerate(sides.regions):
        with ir.InsertionPoint(region.blocks[0]), b.scope():
            made[n] = b.broadcast(made[n], axes)
            ir.Operation.create("scf.yield", operands=[made[n].value])
    out = ir.Operation.create("scf.if", results=[made[0].value.type], operands=[test], regions=2)
    for old, new in zip(sides.regions, out.regions, strict=True):
        old.blocks[0].append_to(new)
    sides.erase()
    return V(out.results[0], axes)


def _compare(b: Builder, how: str, left: Value, right: Value) -> Value:
    return b.pure("arith.cmpi", b.i1, [left, right], predicate=predicate(how))


def piece_reads(kernel: Kernel, place: Domain) -> Iterator[tuple[Tensor, Access]]:
    """What the kernel's pieces are read from, and where the result's coordinates walk it: up to a constant. What is
    left of a value whose ends a slice cuts off is one piece."""
    for op in kernel.ops:
        position = place.position.get(op)
        if op.operation is None or position is None:
            continue
        pieces = Pieces.of(maker(op.yielded[0]))
        at = op.loops_at(position)
        for read in map(owner_op, pieces.values if pieces is not None else _cut(op.yielded[0])):
            t = kernel.by_value[read.operands[0]]
            loops = [_walked(v) for v in list(read.operands)[1:]]
            yield t, tuple(at.get(f"i{loops[group[0]]}", 0) for group in t.groups)


def _cut(value: Value) -> tuple[Value, ...]:
    """`value` where it is read at the coordinates of loops, which end before what is read does; else nothing."""
    read = maker(value, "tensor.extract")
    return (value,) if read is not None and all(_loop(i) is not None for i in list(read.operands)[1:]) else ()


def _walked(index: Value) -> int | None:
    """The loop that an index follows, behind clamps and sums."""
    owner = maker(index)
    while owner is not None and owner.name in ("arith.maxsi", "arith.minsi", "arith.subi"):
        owner = maker(owner.operands[0])
    return None if owner is None or owner.name != "linalg.index" else int(owner.attributes["dim"].value)


def _loop(index: Value) -> int | None:
    owner = maker(index, "linalg.index")
    return None if owner is None else int(owner.attributes["dim"].value)


def _is_read(v: Value) -> bool:
    owner = maker(v)
    return owner is not None and owner.name == "tensor.extract"
