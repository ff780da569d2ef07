"""Tiles whose last dimension is a group of narrow elements (4 bytes together) that a dot product instruction sums.

A grouped tile of shape (a, b, g) gives, for outer coordinates, either one group repeated along a machine vector, or the
groups of neighbouring coordinates of b, one a lane: what its memory holds in one piece is one load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xcc._mlir import Operation, Type, Value, ir
from xcc.passes.shared.transposes import concatenated
from xcc.passes.shared.values import extract, i64s, op, splat, splat_constant, vec
from xcc.passes.vector.unroll.tiles import Key, Tile

Maker = Callable[[Key, int], Any]


class GroupTile(Tile):
    """`one(at)` makes the group at outer coordinates `at` as a vector of g elements; `row(at, width)` makes `width`
    groups next to each other from the piece at[-1] of the last outer dimension on. Both are built where first used.

    A tile of single elements for the users that take no groups.
    """

    def __init__(self, shape: tuple[int, ...], elem: Type, lanes: int, one: Callable[[Key], Any], row: Maker,
                 at: Any) -> None:
        super().__init__(shape, elem, lanes)
        self.one, self.row, self.at = one, row, at
        self.made: dict[Any, Any] = {}

    def _once(self, key: tuple[object, ...], make: Callable[[], Any]) -> Value:
        if key not in self.made:
            with self.at or ir.InsertionPoint.current:
                self.made[key] = make()
        return self.made[key]

    def repeated(self, at: Key, width: int) -> Value:
        """The group at `at`, `width` times."""
        return self._once(("repeated", at, width), lambda: repeat(self.one(at), width))

    def lanes_of(self, at: Key, width: int) -> Value:
        """`width` neighbouring groups; at[-1] is a number of machine vectors."""
        return self._once(("row", at, width), lambda: self.row(at, width))

    def chunk(self, key: Key) -> Any:
        return self._once(("chunk", key), lambda: self.one(key[:-1]))


def repeat(group: Value, width: int) -> Value:
    """A vector of `width` copies of a group, by way of one i32."""
    t = ir.VectorType(group.type)
    word = ir.IntegerType.get_signless(32)
    words = splat(extract(op("vector.bitcast", [vec(1, word)], [group]), 0), width)
    return op("vector.bitcast", [vec(width * t.shape[0], t.element_type)], [words])


def grouped(tile: Tile) -> GroupTile:
    """Any tile with a group as its last dimension."""
    if isinstance(tile, GroupTile):
        return tile

    def row(at: Key, width: int) -> Any:
        first = at[-1] * tile.lanes
        return concatenated([tile.chunk((*at[:-1], first + i, 0)) for i in range(width)])

    return GroupTile(tile.shape, tile.elem, tile.lanes, lambda at: tile.chunk((*at, 0)), row, None)


def computed_groups(o: Operation, sources: Sequence[Tile | Value], lanes: int) -> GroupTile | None:
    """What an elementwise op makes of groups and numbers that are alike everywhere; None where an operand is another
    tile, or none is of groups."""
    groups = [s for s in sources if isinstance(s, GroupTile)]
    makers = [None if isinstance(s, GroupTile) else uniform(v) for s, v in zip(sources, o.operands, strict=True)]
    if not groups or makers.count(None) != len(groups):
        return None
    elem, attributes = ir.VectorType(o.results[0].type).element_type, {n: o.attributes[n] for n in o.attributes}

    def made(parts: list[Value]) -> Value:
        width, rest = ir.VectorType(parts[0].type).shape[0], iter(parts)
        return op(o.name, [vec(width, elem)], [next(rest) if n is None else n(width) for n in makers], **attributes)

    return GroupTile(groups[0].shape, elem, lanes, lambda at: made([s.chunk((*at, 0)) for s in groups]),
                     lambda at, width: made([s.lanes_of(at, width) for s in groups]), groups[0].at)


def uniform(value: Value) -> Callable[[int], Value] | None:
    """What makes a vector of any width of the one number that all elements of `value` are, where that is known."""
    made = value.owner
    if isinstance(made, ir.Block) or not isinstance(value.type, ir.VectorType):
        return None
    elem = ir.VectorType(value.type).element_type
    if made.name == "arith.constant" and ir.DenseElementsAttr(made.attributes["value"]).is_splat:
        scalar = ir.DenseElementsAttr(made.attributes["value"]).get_splat_value()
        return lambda width: op("arith.constant", [vec(width, elem)], [],
                                value=ir.DenseElementsAttr.get_splat(vec(width, elem), scalar))
    if made.name == "vector.broadcast" and not isinstance(made.operands[0].type, ir.VectorType):
        return lambda width: splat(made.operands[0], width)
    return None


def read_group(memory: Value, address: list[Value], elements: int, mask: Any = None) -> Value:
    """`elements` elements that lie next to each other from `address` on, zeros where `mask` is off."""
    elem = ir.MemRefType(memory.type).element_type
    t = vec(elements, elem)
    if mask is None:
        return op("vector.load", [t], [memory, *address])
    return op("vector.maskedload", [t], [memory, *address, mask, splat_constant(t, 0)])


def widened_mask(mask: Value, group: int) -> Any:
    """Each lane of a mask `group` times."""
    n = ir.VectorType(mask.type).shape[0]
    return op("vector.shuffle", [vec(n * group, ir.IntegerType.get_signless(1))], [mask, mask],
              mask=i64s([i // group for i in range(n * group)]))
