"""Loops over the places of a block value, the innermost cut in two: whole pieces, which need no mask, and the rest. A
few pieces in a loop are made one by one, so that what is the same for all its turns is computed ahead of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from xcc._mlir import Operation, Value, arith_d, ir
from xcc.passes.shared.values import index
from xcc.passes.tile.lowering.views import add, value_of

FEW = 8         # pieces that are made one by one
_I = arith_d.CmpIPredicate


class Whole:
    """A loop whose body is made as if masks let everything through; `end` is where they no longer do."""

    def __init__(self, loop: Operation, size: int, step: int) -> None:
        self.loop, self.size, self.step = loop, size, step
        self.place = loop.regions[0].blocks[0].arguments[0]
        self.ends: list[Value] = []

    def let(self, place: Value | int, width: int, end: Value) -> bool:
        """Has the loop end before `width` neighbours from `place` on leave `end`; False where only its body knows."""
        walks = self._walks(place, width)
        with ir.InsertionPoint(self.loop):
            ahead = None if walks else self._ahead(place)
            if not walks and ahead is None:
                return False
            if walks:
                self.ends.append(value_of(end))
            else:
                behind = arith_d.addi(value_of(ahead), index(width))
                inside = arith_d.cmpi(_I.sle, behind, value_of(end))
                self.ends.append(arith_d.select(inside, index(self.size), index(0)))
        return True

    def _walks(self, place: Value | int, width: int) -> bool:
        """Whether `width` neighbours from `place` on are among those of a turn of the loop."""
        if isinstance(place, int):
            return False
        if place == self.place:
            return True
        source = place.owner
        if isinstance(source, ir.Block) or source.name != "arith.addi" or source.operands[0] != self.place:
            return False
        ahead = source.operands[1].owner
        return not isinstance(ahead, ir.Block) and ahead.name == "arith.constant" \
            and int(ir.IntegerAttr(ahead.attributes["value"]).value) + width <= self.step

    def _ahead(self, place: Value | int) -> Value | int | None:
        """`place` computed ahead of the loop; None where that needs more than sums."""
        if isinstance(place, int) or not _inside(place, self.loop):
            return place
        source = place.owner
        if isinstance(source, ir.Block):
            return None
        if source.name == "arith.constant":
            return int(ir.IntegerAttr(source.attributes["value"]).value)
        parts = [self._ahead(v) for v in source.operands] if source.name == "arith.addi" else [None]
        return None if any(p is None for p in parts) else add(*parts)

    def lets(self, coords: Sequence[int], place: Value, width: int, end: Callable[[], Any]) -> bool:
        """As `let`, of an end that is computed ahead of the loop where `coords` allow it."""
        if any(not isinstance(c, int) and _inside(c, self.loop) for c in coords) or \
                (not isinstance(place, int) and not self._walks(place, width) and _inside(place, self.loop)):
            return False
        with ir.InsertionPoint(self.loop):
            made = end()
        return self.let(place, width, made)

    def close(self) -> Value | None:
        """The loop's end, which is set; None where no mask asked for one."""
        if not self.ends:
            return None
        with ir.InsertionPoint(self.loop):
            least = index(self.size)
            for end in self.ends:
                least = arith_d.minsi(least, end)
            least = arith_d.maxsi(least, index(0))
            least = arith_d.subi(least, arith_d.remui(least, index(self.step)))
        self.loop.operands[1] = least
        return least


class Wholes:
    """The loop that is made with whole pieces, if one is."""

    def __init__(self, inside: bool = False) -> None:
        self.open: Whole | None = None
        self.inside = inside        # of such a loop, whether or not it is that of whole pieces

    def cut(self, size: int, step: int, start: Sequence[Value],
            body: Callable[[Any, list[Any]], list[Any]]) -> list[Value]:
        """The loops from 0 to `size` by `step` that carry `start`: one of whole pieces, one of what is left."""
        loop = _loop(index(0), size, step, start)
        outer, inside = self.open, self.inside
        self.open, self.inside = Whole(loop, size, step), True
        try:
            _fill(loop, body)
            end = self.open.close()
            if end is None:
                return list(loop.results)
            self.open = None
            rest = _loop(end, size, step, list(loop.results))
            _fill(rest, body)
            return list(rest.results)
        finally:
            self.open, self.inside = outer, inside


def _inside(value: Value, loop: Operation) -> bool:
    owner = value.owner
    block = owner if isinstance(owner, ir.Block) else owner.operation.block
    while block is not None:
        parent = block.owner
        if parent == loop:
            return True
        if parent is None or parent.operation.name == "func.func":
            return False
        block = parent.operation.block
    return False


def _loop(begin: Value, size: int, step: int, start: Sequence[Value]) -> Operation:
    loop = ir.Operation.create("scf.for", results=[v.type for v in start], regions=1,
                               operands=[begin, index(size), index(step), *start])
    loop.regions[0].blocks.append(ir.IndexType.get(), *[v.type for v in start])
    return loop


def _fill(loop: Operation, body: Callable[[Any, list[Any]], list[Any]]) -> None:
    block = loop.regions[0].blocks[0]
    with ir.InsertionPoint(block):
        place, *carried = block.arguments
        ir.Operation.create("scf.yield", operands=body(place, carried))


def loops(wholes: Wholes, sizes: Sequence[int], steps: Sequence[int], body: Callable[[list[Any]], None],
          few: int = 1) -> None:
    """`body(places)` for every place; a dim of one step has no loop, dims of `few` steps none inside a loop."""
    def nothing(places: list[Value | int], _: list[Any]) -> list[Any]:
        body(places)
        return []

    carried_loops(wholes, sizes, steps, [], nothing, few)


def carried_loops(wholes: Wholes, sizes: Sequence[int], steps: Sequence[int], start: list[Value],
                  body: Callable[[list[Any], list[Any]], list[Any]], few: int = 1) -> list[Value]:
    """`body(places, carried) -> carried` for every place, one after the other."""
    if not sizes:
        return body([], start)
    counts = [-(-n // s) for n, s in zip(sizes, steps, strict=True)]

    def inner(place: Value | int, carried: list[Value]) -> list[Value]:
        return carried_loops(wholes, sizes[1:], steps[1:], carried, lambda rest, c: body([place, *rest], c), few)

    if counts[0] == 1 or (wholes.inside and prod(counts) <= few):
        for place in range(0, sizes[0], steps[0]):
            start = inner(place, start)
        return start
    if prod(counts[1:]) <= few:
        return wholes.cut(sizes[0], steps[0], start, inner)
    loop = _loop(index(0), sizes[0], steps[0], start)
    _fill(loop, inner)
    return list(loop.results)
