"""How much of a block value is needed: rows and columns behind the end of all that is stored are not computed.

A tile at the end of a matrix, of a group or of a single row has few places inside; products make blocks of sums there
alone. What is left out is any number, from which numbers come that nobody stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, arith_d, ir, owner_op
from xcc.passes.shared.patterns import splat_of
from xcc.passes.shared.regions import when
from xcc.passes.shared.values import conjunction, is_elementwise, is_vector, with_operands
from xcc.passes.tile.lowering.views import value_of
from xcc.passes.tile.nests.choice import dims_of, unit_reshape

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

Place = tuple[Value, int]       # a dim of a block value
End = tuple[Value, Value | None]        # an end, and the place that the block value begins at
MOST = 4        # ends of different stores
_TRAPS = ("arith.div", "arith.rem", "arith.ceildiv", "arith.floordiv")     # of integers that nobody made
_I = arith_d.CmpIPredicate


class Needed:
    """The places of the block value `value` that are needed along `dims`, at the insertion point."""

    def __init__(self, r: Retiler, value: Value, dims: list[int]) -> None:
        self.ends = [_end(r, value, d) for d in dims]

    @contextmanager
    def block(self, *first: Value | int) -> Iterator[None]:
        """Around the code of a block that begins at `first`: it is run where one of its places may be needed."""
        inside = conjunction(
            None if end is None or (isinstance(at, int) and not at) else arith_d.cmpi(_I.slt, value_of(at), end)
            for at, end in zip(first, self.ends, strict=True))
        if inside is None:
            yield
        else:
            with when(inside):
                yield


def _end(r: Retiler, value: Value, dim: int) -> Value | None:
    """Where along `dim` of `value` nothing is needed any more; None where that is not known."""
    found = _stored_ends((value, dim))
    if found is None or not 0 < len(found) <= MOST:
        return None
    at, last = owner_op(value), None
    for ends in found:
        known = [_reach(r, *end, at) for end in ends if all(v is None or _is_known(v, at) for v in end)]
        if not known:
            return None
        least = known[0]
        for other in known[1:]:
            least = arith_d.minsi(least, other)
        last = least if last is None else arith_d.maxsi(last, least)
    return last


def _reach(r: Retiler, end: Value, first: Value | None, at: Operation) -> Value:
    made = _copied(r, end, at)
    return made if first is None else arith_d.subi(made, _copied(r, first, at))


def _stored_ends(start: Place) -> list[tuple[End, ...]] | None:
    """Of each store of what is computed of `start`, and each selection of it by a mask, ends that the mask has along
    this dim; None: all is needed."""
    found: dict[tuple[End, ...], None] = {}
    todo, seen = [start], {start}
    while todo:
        value, dim = todo.pop()
        for use in value.uses:
            user = use.owner.operation
            if user.name == "vector.transfer_write" and use.operand_number == 0:
                ends = tuple(_ends_of_store(user, dim))
                if not ends:
                    return None
                found[ends] = None
                continue
            if user.name == "arith.select" and use.operand_number == 1:
                ends = tuple(_ends(user.operands[0], dim))
                if ends:
                    found[ends] = None
                    continue
            there = _reached(user, use.operand_number, dim)
            if there is None:
                return None
            todo += [p for p in there if p not in seen]
            seen.update(there)
    return list(found)


def _reached(user: Operation, number: int, dim: int) -> list[Place] | None:
    """Where dim `dim` of operand `number` goes; None where other places along it depend on one, or a trap does."""
    if is_elementwise(user):
        integers = not isinstance(ir.VectorType(user.results[0].type).element_type, ir.FloatType)
        return None if integers and user.name.startswith(_TRAPS) else [(v, dim) for v in user.results]
    rule = _RULES.get(user.name)
    return rule(user, number, dim) if rule else None


def _broadcast(user: Operation, _: int, dim: int) -> list[Place] | None:
    have, want = (ir.VectorType(v.type).shape for v in (user.operands[0], user.results[0]))
    there = dim + len(want) - len(have)
    return [(user.results[0], there)] if have[dim] == want[there] else None


def _transposed(user: Operation, _: int, dim: int) -> list[Place]:
    return [(user.results[0], list(ir.DenseI64ArrayAttr(user.attributes["permutation"])).index(dim))]


def _reshaped(user: Operation, _: int, dim: int) -> list[Place] | None:
    """Dims of size 1 added or dropped."""
    have, want = (list(ir.VectorType(v.type).shape) for v in (user.operands[0], user.results[0]))
    if not unit_reshape(user) or have[dim] == 1:
        return None
    there = [d for d, n in enumerate(want) if n > 1][sum(n > 1 for n in have[:dim])]
    return [(user.results[0], there)]


def _reduced(user: Operation, number: int, dim: int) -> list[Place] | None:
    dims = list(ir.DenseI64ArrayAttr(user.attributes["reduction_dims"]))
    if number == 1:
        return [(user.results[0], dim)]
    return None if dim in dims else [(user.results[0], dim - sum(d < dim for d in dims))]


def _multiplied(user: Operation, number: int, dim: int) -> list[Place] | None:
    """Of [..., m, k] and [..., k, n]."""
    summed = ir.VectorType(user.operands[number].type).rank - (1, 2)[number] if number < 2 else -1
    return None if dim == summed else [(user.results[0], dim)]


def _carried(user: Operation, number: int, dim: int) -> list[Place]:
    """An operand of scf.for."""
    return [(user.results[number - 3], dim), (user.regions[0].blocks[0].arguments[number - 2], dim)]


def _yielded(user: Operation, number: int, dim: int) -> list[Place] | None:
    parent = user.block.owner.operation
    if parent.name == "scf.if":
        return [(parent.results[number], dim)]
    return _carried(parent, number + 3, dim) if parent.name == "scf.for" else None


_RULES: dict[str, Callable[[Operation, int, int], list[Place] | None]] = {
    "vector.broadcast": _broadcast, "vector.transpose": _transposed, "vector.shape_cast": _reshaped,
    "vector.multi_reduction": _reduced, "vector.contract": _multiplied, "scf.for": _carried, "scf.yield": _yielded}


def _ends_of_store(store: Operation, dim: int) -> Iterator[End]:
    if list(ir.DenseI32ArrayAttr(store.attributes["operandSegmentSizes"]))[-1]:
        dims = dims_of(store)
        yield from _ends(store.operands[len(store.operands) - 1], sum(d < dims[dim] for d in dims))


def _ends(mask: Value, dim: int) -> Iterator[End]:
    """Ends along `dim` behind which `mask` lets nothing through."""
    source = None if isinstance(mask.owner, ir.Block) or not is_vector(mask) else owner_op(mask)
    if source is None:
        return
    if source.name == "vector.create_mask":
        yield source.operands[dim], None
    elif source.name == "arith.andi":
        for v in source.operands:
            yield from _ends(v, dim)
    elif source.name == "arith.select" and splat_of(source.operands[1]) == 0:
        yield from _ends(source.operands[2], dim)
    elif source.name == "vector.broadcast" and is_vector(source.operands[0]):
        have, want = (ir.VectorType(v.type).shape for v in (source.operands[0], mask))
        before = dim - (len(want) - len(have))
        if before >= 0 and have[before] == want[dim]:
            yield from _ends(source.operands[0], before)
    elif source.name == "arith.cmpi" and ir.IntegerAttr(source.attributes["predicate"]).value == int(_I.slt) \
            and [d for d, n in enumerate(ir.VectorType(mask.type).shape) if n > 1] == [dim]:
        yield from _compared(*source.operands)


def _compared(line: Value, end: Value) -> Iterator[End]:
    """Of `arange(n) + first < end`, whose places are index values along one dim."""
    number, made = _number(end), None if isinstance(line.owner, ir.Block) else owner_op(line)
    if number is None or made is None or not isinstance(number.type, ir.IndexType):
        return
    if _is_step(line):
        yield number, None
    elif made.name == "arith.addi":
        a, b = made.operands
        first = _number(b) if _is_step(a) else _number(a) if _is_step(b) else None
        if first is not None:
            yield number, first


def _number(value: Value) -> Value | None:
    """The number that all places of a block value have."""
    source = None if isinstance(value.owner, ir.Block) else owner_op(value)
    return source.operands[0] if source is not None and source.name == "vector.broadcast" \
        and not is_vector(source.operands[0]) else None


def _is_step(value: Value) -> bool:
    """Whether a block value is the numbers of its places along its one dim that has several."""
    source = None if isinstance(value.owner, ir.Block) else owner_op(value)
    if source is not None and source.name == "vector.shape_cast" and unit_reshape(source):
        return _is_step(source.operands[0])
    return source is not None and source.name == "vector.step"


def _is_known(value: Value, at: Operation) -> bool:
    """Whether a number is there at `at`, or is computed of numbers that are."""
    if _is_ahead(value, at):
        return True
    if isinstance(value.owner, ir.Block):
        return False
    source = owner_op(value)
    return source.name.startswith("arith.") and not is_vector(value) and all(_is_known(v, at) for v in source.operands)


def _is_ahead(value: Value, at: Operation) -> bool:
    """Whether `value` is made ahead of `at`, in a block around it."""
    made = None if isinstance(value.owner, ir.Block) else owner_op(value)
    home = value.owner if made is None else made.block
    inner = at
    while inner.block != home:
        parent = inner.block.owner
        if parent is None or parent.operation.name == "builtin.module":
            return False
        inner = parent.operation
    return made is None or made.is_before_in_block(inner)


def _copied(r: Retiler, value: Value, at: Operation) -> Value:
    """The number `value` at the insertion point, computed again where its own place is further on."""
    if _is_ahead(value, at):
        return r.get(value)
    source = owner_op(value)
    made = with_operands(source, [_copied(r, v, at) for v in source.operands])
    return made.results[list(source.results).index(value)]
