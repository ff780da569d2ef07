"""Tiles of integers as a scalar and the number of an element along one axis: what the positions of a block are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xcc._mlir import Operation, Value, arith_d, ir, maker
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.values import as_index, index
from xcc.passes.tile.lowering.vectors import element_of, shape_of

__all__ = ["Affine", "Axes", "affine", "axes_before", "block_of", "emitted"]

Axes = tuple[int, ...]
_SCALAR = ("arith.", "tile.program_id", "tile.num_programs", "memref.dim")


@dataclass(frozen=True)
class Affine:
    """The sum of `plus` less that of `minus`, `constant`, and the number of an element along `axis` of a tile."""

    plus: tuple[Value, ...] = ()
    minus: tuple[Value, ...] = ()
    constant: int = 0
    axis: int | None = None

    def __add__(self, other: Affine) -> Affine:
        plus, minus = [*self.plus, *other.plus], [*self.minus, *other.minus]
        for p in list(plus):
            same = next((n for n, m in enumerate(minus) if alike(p, m)), None)
            if same is not None:
                plus.remove(p)
                del minus[same]
        return Affine(tuple(plus), tuple(minus), self.constant + other.constant,
                      other.axis if self.axis is None else self.axis)

    def __neg__(self) -> Affine:
        """Of what has no axis."""
        return Affine(self.minus, self.plus, -self.constant)

    @property
    def scalar(self) -> Affine:
        """The same without its axis."""
        return Affine(self.plus, self.minus, self.constant)

    def known(self) -> int | None:
        """The number that it is, if it is one."""
        return None if self.plus or self.minus or self.axis is not None else self.constant

    def like(self, other: Affine) -> bool:
        """Whether the two are known to be equal."""
        return self.axis == other.axis and (self.scalar + -other.scalar).known() == 0


def affine(value: Value, axes: Axes) -> Affine | None:
    """What a tile of integers is, whose dims are those axes of a tile; None where it is nothing of the kind."""
    op = maker(value)
    if op is not None and op.name in ("arith.addi", "arith.subi") and isinstance(element_of(value), ir.IndexType):
        return _sum(op, axes)
    if not isinstance(value.type, ir.VectorType):
        return _scalar(value)
    shape = shape_of(value)
    if op is None:
        return None
    if op.name == "tile.iota":
        return Affine(axis=axes[0]) if shape != (1,) else Affine()
    if op.name in ("tile.broadcast", "tile.reshape"):
        inner = axes_before(op, axes)
        return None if inner is None else affine(op.operands[0], inner)
    if op.name == "arith.constant":
        given = op.attributes["value"]
        return Affine(constant=given.get_splat_value().value) if given.is_splat else None
    if op.name == "arith.index_cast":       # of a sum it would be another number where that wraps
        made = affine(op.operands[0], axes)
        return made if made is not None and (made.axis is None or made == Affine(axis=made.axis)) else None
    return None


def _scalar(value: Value) -> Affine:
    known = int_constant(value)
    return Affine((value,)) if known is None else Affine(constant=known)


def _sum(op: Operation, axes: Axes) -> Affine | None:
    a, b = (affine(v, axes) for v in op.operands)
    if a is None or b is None or (b.axis is not None and (a.axis is not None or op.name == "arith.subi")):
        return None
    return a + (b if op.name == "arith.addi" else -b)


def axes_before(op: Operation, axes: Axes) -> Axes | None:
    """The axes that the dims of an operand are, of a broadcast or of a reshape that only adds or drops dims of one;
    None for other reshapes."""
    before, after = shape_of(op.operands[0]), shape_of(op.results[0])
    if op.name == "tile.broadcast":
        return axes[len(after) - len(before):]
    there = [a for a, n in zip(axes, after, strict=True) if n > 1]
    if [n for n in before if n > 1] != [n for n in after if n > 1]:
        return None
    kept = iter(there)
    return tuple(next(kept) if n > 1 else axes[0] if axes else 0 for n in before)


def alike(a: Value, b: Value, depth: int = 4) -> bool:
    """Whether two scalars are known to be equal: the same operations of the same."""
    if a == b:
        return True
    one, two = maker(a), maker(b)
    return depth > 0 and one is not None and two is not None and one.name == two.name \
        and one.name.startswith(_SCALAR) and len(one.results) == 1 and not len(one.regions) \
        and dict(one.attributes.items()) == dict(two.attributes.items()) \
        and all(alike(p, q, depth - 1) for p, q in zip(one.operands, two.operands, strict=True))


def emitted(x: Affine) -> Value:
    """The scalar `x`, an index, at the insertion point."""
    out: Value | None = None
    for p in x.plus:
        out = as_index(p) if out is None else arith_d.addi(out, as_index(p))
    if out is None or x.constant:
        out = index(x.constant) if out is None else arith_d.addi(out, index(x.constant))
    for m in x.minus:
        out = arith_d.subi(out, as_index(m))
    return out


def block_of(positions: Sequence[Affine], shape: Sequence[int]) -> list[int] | None:
    """The sizes of the block, a dim a position; None where an axis of the tile is that of two positions."""
    axes = [p.axis for p in positions if p.axis is not None]
    if len(axes) != len(set(axes)):
        return None
    sizes = [1 if p.axis is None else shape[p.axis] for p in positions]
    return sizes if prod(sizes) else None
