"""What goes through block values element by element: atomic updates. Sorts are in `sort`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Value, arith_d, ir, owner_op, scf_d
from xcc.passes.shared.regions import any_of, when
from xcc.passes.shared.updates import UPDATES, emit_update, update_kind
from xcc.passes.tile.nests.choice import before_lines
from xcc.passes.tile.nests.kept import Coords, Kept
from xcc.passes.tile.nests.lines import run_along
from xcc.passes.tile.nests.loops import loops
from xcc.passes.tile.nests.pieces import Pieces
from xcc.passes.tile.nests.private import Private
from xcc.passes.tile.nests.single import update_one, update_plainly
from xcc.passes.tile.nests.sort import sort

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler


def _loops(r: Retiler, sizes: list[int], body: Callable[[list[Any]], None]) -> None:
    loops(r.wholes, sizes, [1] * len(sizes), body)


def _atomic(r: Retiler, source: Operation) -> None:
    """tile.atomic or tile.compare_swap of a line of elements, in the shape that they had before"""
    operands = value, mask, *expected, places = before_lines(source)
    memref, element = source.operands[1], ir.VectorType(value.type).element_type
    kind = "" if expected else update_kind(source)
    shape = list(ir.VectorType(places.type).shape)
    wanted = any(True for _ in source.results[0].uses)
    target = r.buffer(shape, element) if wanted else None
    # computed by whole vectors first, where that is dear
    for v in operands:
        if v not in r.kept and not isinstance(v.owner, ir.Block) and _worth(v):
            r.keep(v)

    private = r.private.get(memref)
    if private is not None:
        _plain_or_atomic(r, (value, mask, places), shape, r.get(memref), private)
        return

    def one(at: list[Value]) -> None:
        coords: Coords = tuple(at)
        pieces = Pieces(r)
        branch = scf_d.IfOp(pieces.of(mask, coords, 0, 0), has_else=wanted)
        with ir.InsertionPoint(branch.then_block):
            inner = Pieces(r)
            place, new, *wants = (inner.of(v, coords, 0, 0) for v in (places, value, *expected))
            old = emit_update(source, r.get(memref), place, new, wants) if wants or kind == "exchange" \
                else update_one(r, kind, r.get(memref), place, new)
            if target is not None:
                target.store(old, coords, 0)
            scf_d.yield_([])
        if target is not None:
            with ir.InsertionPoint(branch.else_block):
                zero = 0.0 if isinstance(element, ir.FloatType) else 0
                target.store(arith_d.constant(element, zero), coords, 0)
                scf_d.yield_([])

    _loops(r, shape, one)
    if target is not None:
        line = ir.VectorType(source.results[0].type).shape
        r.kept[source.results[0]] = Kept(target.memref, line, element)


def _plain_or_atomic(r: Retiler, operands: tuple[Value, Value, Value], shape: list[int], memref: Value,
                     private: Private) -> None:
    """Updates of the copy where it is used, neighbours in vectors, or of the buffer `memref`: a nest for each, in the
    branches of scf.if. `operands`: value, mask and places, of one shape."""
    value, mask, places = operands
    element, lane = ir.VectorType(value.type).element_type, len(shape) - 1
    width = r.width(shape[lane], element) if run_along(r, places, lane) == 1 else 0

    def nest(update: Callable[[Any, Any], Any]) -> None:
        def one(at: list[Value]) -> None:
            coords: Coords = tuple(at)
            with when(Pieces(r).of(mask, coords, 0, 0)):
                pieces = Pieces(r)
                update(pieces.of(value, coords, 0, 0), pieces.of(places, coords, 0, 0))

        _loops(r, shape, one)

    def neighbours(at: list[Value], memref: Value) -> None:
        coords, pieces = tuple(at), Pieces(r)
        private.update_line(memref, pieces.of(value, coords, lane, width), pieces.of(places, coords, 0, 0),
                            pieces.of(mask, coords, lane, width))

    def plain(memref: Value) -> list[Value]:
        if width:
            loops(r.wholes, shape, [1] * lane + [width], lambda at: neighbours(at, memref))
        else:
            nest(lambda v, at: update_plainly(private.kind, memref, at, v))
        return []

    def by_atomics() -> list[Value]:
        nest(lambda v, at: update_one(r, private.kind, memref, at, v))
        return []

    def in_place() -> list[Value]:
        return by_atomics() if private.alone is None else any_of(private.alone, [], lambda: plain(memref), by_atomics)

    any_of(private.used, [], lambda: plain(private.copy), in_place)


def _worth(value: Value) -> bool:
    from xcc.passes.tile.nests.choice import DEAR, cost_of

    return cost_of(owner_op(value)) >= DEAR


HANDLERS: dict[str, Callable[..., None]] = {**dict.fromkeys(UPDATES, _atomic), "tile.sort": sort}
