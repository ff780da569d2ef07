"""What goes through block values element by element: sorts, atomic updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Value, arith_d, ir, owner_op, scf_d
from xcc.passes.shared.combining import rmw_kind
from xcc.passes.shared.regions import when
from xcc.passes.shared.values import index, is_less, op
from xcc.passes.tile.nests.kept import Coords, Kept
from xcc.passes.tile.nests.loops import loops
from xcc.passes.tile.nests.pieces import Pieces
from xcc.passes.tile.nests.private import Private

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler


def _loops(r: Retiler, sizes: list[int], body: Callable[[list[Any]], None]) -> None:
    loops(r.wholes, sizes, [1] * len(sizes), body)


def _sort(r: Retiler, source: Operation) -> None:
    """tile.sort: a bitonic network over each row, in place (Batcher, 1968)."""
    words: list[Kept] = []
    for v in source.operands:
        kind = ir.VectorType(v.type)
        words.append(r.buffer(kind.shape, kind.element_type))
        r.fill(words[-1], v)
    rows, n = words[0].shape
    block = 2
    while block <= n:
        apart = block // 2
        while apart:
            _loops(r, [rows, n // 2], lambda at, b=block, d=apart: _exchange(words, at[0], at[1], b, d))  # type: ignore[misc]
            apart //= 2
        block *= 2
    for v, w in zip(source.results, words, strict=True):
        kind = ir.VectorType(v.type)
        if tuple(kind.shape) == w.shape:
            r.kept[v] = w
            continue
        first = r.buffer(kind.shape, kind.element_type)
        _loops(r, list(kind.shape), lambda at, f=first, w=w: f.store(w.load((at[0], at[1]), 1, 0), (at[0], at[1]), 1))  # type: ignore[misc]
        r.kept[v] = first


def _exchange(words: list[Kept], row: Value, number: Value, block: int, apart: int) -> None:
    """Comparison `number` of those of elements that lie `apart`: blocks are sorted upwards and downwards in turn."""
    inside = op("arith.remui", [ir.IndexType.get()], [_value(number), index(apart)])
    group = op("arith.divui", [ir.IndexType.get()], [_value(number), index(apart)])
    low = arith_d.addi(arith_d.muli(group, index(2 * apart)), inside)
    high = arith_d.addi(low, index(apart))
    a, b = ([w.load((row, at), 1, 0) for w in words] for at in (low, high))
    swap = is_less(b, a)
    if block < words[0].shape[1]:
        down = arith_d.cmpi(arith_d.CmpIPredicate.ne, arith_d.andi(low, index(block)), index(0))
        swap = arith_d.select(down, is_less(a, b), swap)
    for w, x, y in zip(words, a, b, strict=True):
        w.store(arith_d.select(swap, y, x), (row, low), 1)
        w.store(arith_d.select(swap, x, y), (row, high), 1)


def _value(n: Value) -> Value:
    return index(n) if isinstance(n, int) else n


def _atomic(r: Retiler, source: Operation) -> None:
    """tile.atomic of a line of elements"""
    value, memref, mask, places = source.operands
    kind = ir.VectorType(value.type)
    wanted = any(True for _ in source.results[0].uses)
    target = r.buffer(kind.shape, kind.element_type) if wanted else None
    rmw = rmw_kind(ir.StringAttr(source.attributes["kind"]).value, kind.element_type)
    # computed by whole vectors first, where that is dear
    for v in (value, mask, places):
        if v not in r.kept and not isinstance(v.owner, ir.Block) and _worth(v):
            r.keep(v)

    private = r.private.get(memref)
    if private is not None:
        _plain_or_atomic(r, source, private)
        return

    def one(at: list[Value]) -> None:
        coords: Coords = (at[0],)
        pieces = Pieces(r)
        branch = scf_d.IfOp(pieces.of(mask, coords, 0, 0), has_else=wanted)
        with ir.InsertionPoint(branch.then_block):
            inner = Pieces(r)
            operands = [inner.of(value, coords, 0, 0), r.get(memref), inner.of(places, coords, 0, 0)]
            old = ir.Operation.create("memref.atomic_rmw", results=[kind.element_type], operands=operands,
                                      attributes={"kind": rmw}).result
            if target is not None:
                target.store(old, coords, 0)
            scf_d.yield_([])
        if target is not None:
            with ir.InsertionPoint(branch.else_block):
                zero = 0.0 if isinstance(kind.element_type, ir.FloatType) else 0
                target.store(arith_d.constant(kind.element_type, zero), coords, 0)
                scf_d.yield_([])

    _loops(r, list(kind.shape), one)
    if target is not None:
        r.kept[source.results[0]] = target


def _plain_or_atomic(r: Retiler, source: Operation, private: Private) -> None:
    """Updates of the copy where it is used, else of the buffer: two loops, in the branches of an scf.if."""
    value, memref, mask, places = source.operands
    kind = ir.VectorType(value.type)

    def line(update: Callable[[Any, Any], Any]) -> None:
        def one(at: list[Value]) -> None:
            coords: Coords = (at[0],)
            with when(Pieces(r).of(mask, coords, 0, 0)):
                pieces = Pieces(r)
                update(pieces.of(value, coords, 0, 0), pieces.of(places, coords, 0, 0))

        _loops(r, list(kind.shape), one)
        scf_d.yield_([])

    rmw = rmw_kind(private.kind, kind.element_type)
    branch = scf_d.IfOp(private.used, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        line(private.update)
    with ir.InsertionPoint(branch.else_block):
        line(lambda v, at: op("memref.atomic_rmw", [kind.element_type], [v, r.get(memref), at], kind=rmw))


def _worth(value: Value) -> bool:
    from xcc.passes.tile.nests.choice import DEAR, cost_of

    return cost_of(owner_op(value)) >= DEAR


HANDLERS: dict[str, Callable[..., None]] = {"tile.atomic": _atomic, "tile.sort": _sort}
