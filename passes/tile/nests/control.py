"""Loops and branches that carry block values: these are in memory, at the same place in every turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from xcc._mlir import Block, Operation, Value, ir
from xcc.passes.shared.values import is_elementwise, is_vector
from xcc.passes.tile.nests.choice import is_lazy, is_view
from xcc.passes.tile.nests.kept import Kept

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler


def _terminator(block: Block) -> Operation:
    return list(block.operations)[-1].operation


def _body(r: Retiler, block: Block) -> None:
    """The operations of a block but for its last."""
    for operation in list(block.operations)[:-1]:
        with operation.operation.location:
            r.emit(operation.operation)


@contextmanager
def _inside(r: Retiler, block: Block) -> Iterator[None]:
    """Emits into `block`: what is put in memory there is not there behind it."""
    known = dict(r.kept)
    with ir.InsertionPoint(block):
        yield
    r.kept = known


def _like(r: Retiler, value: Value) -> Kept:
    kind = ir.VectorType(value.type)
    return r.buffer(kind.shape, kind.element_type)


def _put(r: Retiler, values: list[Value], places: list[Kept]) -> None:
    """Has the `values` in `places`, as if all were put there at once."""
    made = []
    for v, place in zip(values, places, strict=True):
        have = r.in_memory(v)       # what is only computed from others may read a place that is written
        if have.memref == place.memref:
            continue
        if any(have.memref == p.memref for p in places):
            aside = r.buffer(have.shape, have.element)
            _copy(r, have, aside)
            have = aside
        made.append((have, place))
    for have, place in made:
        _copy(r, have, place)


def _copy(r: Retiler, source: Kept, target: Kept) -> None:
    r.nest(source.shape, lambda coords, lane, width: target.store(source.load(coords, lane, width), coords, lane))


def _plan(r: Retiler, block: Block, values: list[Value], arguments: list[Value], places: list[Kept]) -> None:
    """Lets a value that a loop carries on be computed where the last turn's lies, if nobody reads that any more."""
    for v, a, place in zip(values, arguments, places, strict=True):
        if isinstance(v.owner, ir.Block) or v.owner.operation.block != block or list(values).count(v) > 1:
            continue
        source = v.owner.operation
        if _last_reader(source, a, block):
            r.targets[v] = place


def _shape(value: Value) -> list[int]:
    return list(ir.VectorType(value.type).shape)


def _last_reader(source: Operation, argument: Value, block: Block) -> bool:
    """Whether the operation `source` of `block` reads `argument` at the places that it writes alone, and nobody does so
    behind it."""
    order = [o.operation for o in block.operations]
    at = order.index(source)
    todo, seen = [argument], set()
    while todo:
        for use in todo.pop().uses:
            user = use.owner.operation
            if user in seen:
                continue
            seen.add(user)
            if user.block != block:
                return False
            if user == source:
                if not (is_elementwise(user) or (user.name == "vector.contract" and use.operand_number == 2)
                        or (user.name == "vector.multi_reduction" and use.operand_number == 1)):
                    return False
                continue
            if is_lazy(user):
                reads_same = is_elementwise(user) and _shape(user.results[0]) == _shape(argument)
                if not reads_same and _reaches(user, source):
                    return False
                todo += list(user.results)
            elif order.index(user) > at:
                return False
    return True


def _reaches(user: Operation, source: Operation) -> bool:
    """Whether `source` computes elements of `user`'s result."""
    if user == source:
        return True
    return any(_reaches(u.owner.operation, source) for r in user.results for u in r.uses
               if u.owner.operation == source or (is_lazy(u.owner.operation) or is_view(u.owner.operation)))


def _for(r: Retiler, source: Operation) -> None:
    """scf.for"""
    block = source.regions[0].blocks[0]
    init, carried = list(source.operands)[3:], list(block.arguments)[1:]
    whole = [is_vector(v) for v in init]
    places = [_begin(r, v, source) if w else None for v, w in zip(init, whole, strict=True)]
    scalars = [r.get(v) for v, w in zip(init, whole, strict=True) if not w]
    loop = ir.Operation.create("scf.for", results=[v.type for v in scalars], regions=1,
                               operands=[*(r.get(v) for v in list(source.operands)[:3]), *scalars])
    new = loop.regions[0].blocks.append(ir.IndexType.get(), *[v.type for v in scalars])
    _enter(r, list(block.arguments), [True, *[not w for w in whole]], list(new.arguments))
    r.kept.update((a, p) for a, p in zip(carried, places, strict=True) if p is not None)
    values = list(_terminator(block).operands)
    tiles = [i for i, w in enumerate(whole) if w]
    kept = [p for p in places if p is not None]
    _plan(r, block, [values[i] for i in tiles], [carried[i] for i in tiles], kept)
    with _inside(r, new):
        _body(r, block)
        _put(r, [values[i] for i in tiles], kept)
        ir.Operation.create("scf.yield", operands=[r.get(v) for v, w in zip(values, whole, strict=True) if not w])
    _leave(r, source.results, places, list(loop.results))


def _begin(r: Retiler, value: Value, source: Operation) -> Kept:
    """Where the loop `source` carries what begins as `value`: where the loop ahead left it, if nobody else needs it."""
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.name == "scf.for" and owner.operation.block == source.block \
            and len(list(value.uses)) == 1:
        return r.kept[value]
    place = _like(r, value)
    r.fill(place, value)
    return place


def _enter(r: Retiler, old: list[Value], scalar: list[bool], new: list[Value]) -> None:
    for a, s in zip(old, scalar, strict=True):
        if s:
            r.values[a] = new.pop(0)


def _leave(r: Retiler, results: Sequence[Value], places: list[Kept | None], made: list[Value]) -> None:
    for v, place in zip(results, places, strict=True):
        if place is not None:
            r.kept[v] = place
        else:
            r.values[v] = made.pop(0)


def _if(r: Retiler, source: Operation) -> None:
    """scf.if"""
    whole = [is_vector(v) for v in source.results]
    places = [_like(r, v) if w else None for v, w in zip(source.results, whole, strict=True)]
    kinds = [v.type for v, w in zip(source.results, whole, strict=True) if not w]
    branch = ir.Operation.create("scf.if", results=kinds, operands=[r.get(source.operands[0])], regions=2)
    for old, new in zip(source.regions, branch.regions, strict=True):
        if not len(old.blocks):
            continue
        block = old.blocks[0]
        values = list(_terminator(block).operands)
        with _inside(r, new.blocks.append()):
            _body(r, block)
            for v, place in zip(values, places, strict=True):
                if place is not None:
                    r.fill(place, v)
            ir.Operation.create("scf.yield", operands=[r.get(v) for v, w in zip(values, whole, strict=True) if not w])
    _leave(r, source.results, places, list(branch.results))


def _passed_on(source: Operation) -> dict[int, int]:
    """By the number of a result of a scf.while, that of the operand which the condition passes on for it."""
    before = source.regions[0].blocks[0]
    arguments, passed = list(before.arguments), list(_terminator(before).operands)[1:]
    found: dict[int, int] = {}
    for n, v in enumerate(passed):
        if v in arguments and arguments.index(v) not in found.values():
            found[n] = arguments.index(v)
    return found


def _while(r: Retiler, source: Operation) -> None:
    """scf.while"""
    before, after = (x.blocks[0] for x in source.regions)
    whole_in, whole_out = ([is_vector(v) for v in vs] for vs in (source.operands, source.results))
    places_in = [_like(r, v) if w else None for v, w in zip(source.operands, whole_in, strict=True)]
    on = _passed_on(source)
    places_out = [(places_in[on[n]] if n in on else _like(r, v)) if w else None
                  for n, (v, w) in enumerate(zip(source.results, whole_out, strict=True))]
    for v, place in zip(source.operands, places_in, strict=True):
        if place is not None:
            r.fill(place, v)
    first = [r.get(v) for v, w in zip(source.operands, whole_in, strict=True) if not w]
    results = [v.type for v, w in zip(source.results, whole_out, strict=True) if not w]
    loop = ir.Operation.create("scf.while", results=results, operands=first, regions=2)
    new = loop.regions[0].blocks.append(*[v.type for v in first])
    _enter(r, list(before.arguments), [not w for w in whole_in], list(new.arguments))
    r.kept.update((a, p) for a, p in zip(before.arguments, places_in, strict=True) if p is not None)
    with _inside(r, new):
        _body(r, before)
        go, *passed = list(_terminator(before).operands)
        _put(r, [v for v, w in zip(passed, whole_out, strict=True) if w], [p for p in places_out if p is not None])
        ir.Operation.create("scf.condition", operands=[
            r.get(go), *(r.get(v) for v, w in zip(passed, whole_out, strict=True) if not w)])
    _turn(r, after, loop.regions[1].blocks.append(*results), places_in, places_out, on)
    _leave(r, source.results, places_out, list(loop.results))


def _turn(r: Retiler, after: Block, new: Block, places_in: Sequence[Kept | None], places_out: Sequence[Kept | None],
          on: dict[int, int]) -> None:
    """The body of a scf.while: `on` has what is passed on to it."""
    _enter(r, list(after.arguments), [p is None for p in places_out], list(new.arguments))
    r.kept.update((a, p) for a, p in zip(after.arguments, places_out, strict=True) if p is not None)
    values = list(_terminator(after).operands)
    same = [(values[i], after.arguments[n], place) for n, i in on.items() if (place := places_in[i]) is not None]
    _plan(r, after, [v for v, _, _ in same], [a for _, a, _ in same], [p for _, _, p in same])
    with _inside(r, new):
        _body(r, after)
        _put(r, [v for v, p in zip(values, places_in, strict=True) if p is not None],
             [p for p in places_in if p is not None])
        ir.Operation.create("scf.yield",
                            operands=[r.get(v) for v, p in zip(values, places_in, strict=True) if p is None])


HANDLERS: dict[str, Callable[[Any, Any], None]] = {"scf.for": _for, "scf.if": _if, "scf.while": _while}
