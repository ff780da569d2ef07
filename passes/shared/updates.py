"""Buffers that the instances of a tile program only update (``tile.atomic``): CPUs and GPUs update copies of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xcc import symbolic
from xcc._mlir import Operation, Type, Value, arith_d, ir
from xcc.passes.shared.combining import rmw_kind
from xcc.passes.shared.dims import emit_dim, read_dim
from xcc.passes.shared.values import op
from xcc.passes.walk import ops_where

UPDATES = ("tile.atomic", "tile.compare_swap")
_LINE = "memref.collapse_shape"


def updated_only(forall: Operation) -> dict[Value, list[Operation]]:
    """The updates of each buffer that `forall` only updates, in one way, by the value that they update it through."""
    by_buffer: dict[Any, list[Any]] = {}
    for update in ops_where(forall, lambda o: o.name == "tile.atomic"):
        by_buffer.setdefault(_buffer(update.operands[1]), []).append(update)
    out: dict[Any, list[Any]] = {}
    for buffer, updates in by_buffer.items():
        first = updates[0]
        alike = all(u.operands[1] == first.operands[1] and u.attributes["kind"] == first.attributes["kind"]
                    and not any(True for _ in u.results[0].uses) for u in updates)
        if buffer is not None and alike and update_kind(first) != "exchange" and set(_users(buffer)) == set(updates):
            out[first.operands[1]] = updates
    return out


def update_kind(update: Operation) -> str:
    return str(ir.StringAttr(update.attributes["kind"]).value)


def emit_update(update: Operation, memref: Value, at: Value, value: Value, expected: Sequence[Value] = ()) -> Value:
    """One element of `update` to the place `at` of a line; what was there before. expected: of a tile.compare_swap."""
    if not expected:
        kind = rmw_kind(update_kind(update), value.type)
        return op("memref.atomic_rmw", [value.type], [value, memref, at], kind=kind)
    made = ir.Operation.create("memref.generic_atomic_rmw", results=[value.type], operands=[memref, at], regions=1)
    block = made.regions[0].blocks.append(value.type)
    with ir.InsertionPoint(block):
        same = arith_d.cmpi(arith_d.CmpIPredicate.eq, block.arguments[0], expected[0])
        op("memref.atomic_yield", [], [arith_d.select(same, value, block.arguments[0])])
    return made.result


def neutral(kind: str, element: Type) -> float:
    """What changes nothing."""
    if isinstance(element, ir.FloatType):
        return {"add": 0.0, "max": float("-inf"), "min": float("inf")}[kind]
    high = (1 << (element.width - 1)) - 1
    return {"add": 0, "or": 0, "xor": 0, "umax": 0, "and": -1, "umin": -1, "max": -high - 1, "min": high}[kind]


def emit_extent(memref: Value, get: Callable[[Any], Any]) -> Value:
    """How many elements the buffer behind `memref` has, of what `get` makes of the kernel's arguments."""
    buffer = _buffer(memref)
    assert buffer is not None and isinstance(buffer.owner, ir.Block)
    attributes, arguments = buffer.owner.owner.operation.attributes, list(buffer.owner.arguments)
    names = [ir.StringAttr(s).value for s in attributes["xt.symbols"]] if "xt.symbols" in attributes else []
    symbols = {name: get(v) for name, v in zip(names, arguments[len(arguments) - len(names):], strict=True)}
    return emit_dim(symbolic.product(map(read_dim, attributes["xt.arg_dims"][buffer.arg_number])), symbols)


def _buffer(memref: Value) -> Value | None:
    """The argument that `memref` is a view of all elements of; None where it is something else."""
    if not isinstance(memref.owner, ir.Block) and memref.owner.name == _LINE:
        memref = memref.owner.operands[0]
    return memref if isinstance(memref.owner, ir.Block) else None


def _users(memref: Value) -> list[Operation]:
    """What reads or writes the elements of `memref`, as a line too."""
    out = []
    for user in (u.owner.operation for u in memref.uses):
        out += _users(user.results[0]) if user.name == _LINE else [user]
    return out
