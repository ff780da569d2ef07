"""Loops and branches of tile programs, whose bodies are Python functions that are called once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xcc._mlir import ir
from xcc.tile.places import place
from xcc.tile.values import Value, as_value, broadcast, complain, convert, index_of

__all__ = ["for_", "if_", "while_"]

Values = Sequence[Any]


def _like(made: Any, first: Sequence[Value], what: str) -> list[Any]:
    """What a body gave, with the types of `first`."""
    values = [] if made is None else list(made) if isinstance(made, (tuple, list)) else [made]
    if len(values) != len(first):
        raise complain(f"{what} gives {len(values)} values where {len(first)} are carried")
    out = []
    for v, f in zip(values, first, strict=True):
        x = convert(as_value(v, f.dtype), f.dtype)
        x = broadcast(x, f.shape) if f.shape and not x.shape else x
        if x.shape != f.shape:
            raise complain(f"{what} gives {x!r} where {f!r} is carried: it must keep dtype and shape")
        out.append(x.ir)
    return out


def _values(arguments: Any, like: Sequence[Value]) -> list[Value]:
    return [Value(v, f.dtype) for v, f in zip(arguments, like, strict=True)]


def for_(low: Any, high: Any, step: Any, init: Values, body: Callable[..., Any]) -> tuple[Value, ...]:
    """``body(i, *carried) -> carried`` for the index i = low, low + step, ... below high; the carried values at the
    end. The step is positive."""
    first = [as_value(v) for v in init]
    bounds = [index_of(v) for v in (low, high, step)]
    loc = place()
    loop = ir.Operation.create("scf.for", results=[v.ir.type for v in first], regions=1, loc=loc,
                               operands=[*bounds, *(v.ir for v in first)])
    kinds = [ir.IndexType.get(context=loc.context), *(v.ir.type for v in first)]
    block = loop.regions[0].blocks.append(*kinds, arg_locs=[loc] * len(kinds))
    with ir.InsertionPoint(block):
        i, *carried = block.arguments
        made = _like(body(Value(i), *_values(carried, first)), first, "the loop's body")
        ir.Operation.create("scf.yield", operands=made, loc=loc)
    return tuple(_values(loop.results, first))


def while_(init: Values, condition: Callable[..., Any], body: Callable[..., Any]) -> tuple[Value, ...]:
    """``body(*carried) -> carried`` as long as ``condition(*carried)``, a scalar i1, is true."""
    first = [as_value(v) for v in init]
    loc, kinds = place(), [v.ir.type for v in first]
    loop = ir.Operation.create("scf.while", results=kinds, operands=[v.ir for v in first], regions=2, loc=loc)
    before, after = (r.blocks.append(*kinds, arg_locs=[loc] * len(kinds)) for r in loop.regions)
    with ir.InsertionPoint(before):
        go = as_value(condition(*_values(before.arguments, first)))
        if go.shape or go.dtype != "i1":
            raise complain(f"the condition is {go!r}, not a scalar i1")
        ir.Operation.create("scf.condition", operands=[go.ir, *before.arguments], loc=loc)
    with ir.InsertionPoint(after):
        made = _like(body(*_values(after.arguments, first)), first, "the loop's body")
        ir.Operation.create("scf.yield", operands=made, loc=loc)
    return tuple(_values(loop.results, first))


def if_(condition: Any, then: Callable[[], Any], orelse: Callable[[], Any] | None = None) -> tuple[Value, ...]:
    """What ``then()`` gives where the scalar i1 is true, else what ``orelse()`` gives: one value, several, or None."""
    go = as_value(condition)
    if go.shape or go.dtype != "i1":
        raise complain(f"the condition is {go!r}, not a scalar i1; where() chooses element by element")
    loc = place()
    blocks, given = [], []
    scratch = ir.Operation.create("scf.if", operands=[go.ir], regions=2, loc=loc)
    for region, branch in zip(scratch.regions, (then, orelse or (lambda: None)), strict=True):
        blocks.append(region.blocks.append())
        with ir.InsertionPoint(blocks[-1]):
            made = branch()
            given.append([] if made is None else list(made) if isinstance(made, (tuple, list)) else [made])
    if len(given[0]) != len(given[1]):
        raise complain(f"one branch gives {len(given[0])} values, the other {len(given[1])}")
    first = [next((v for v in pair if isinstance(v, Value)), None) for pair in zip(*given, strict=True)]
    with ir.InsertionPoint(blocks[0]):
        known = [f if f is not None else as_value(v) for f, v in zip(first, given[0], strict=True)]
    for block, values in zip(blocks, given, strict=True):
        with ir.InsertionPoint(block):
            ir.Operation.create("scf.yield", operands=_like(values, known, "a branch"), loc=loc)
    branch_op = ir.Operation.create("scf.if", results=[v.ir.type for v in known], operands=[go.ir], regions=2, loc=loc)
    for old, new in zip(blocks, branch_op.regions, strict=True):
        old.append_to(new)
    scratch.erase()
    return tuple(_values(branch_op.results, known))
