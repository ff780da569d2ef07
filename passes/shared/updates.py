"""Buffers that the instances of a tile program only update (``tile.atomic``): CPUs and GPUs update copies of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcc import symbolic
from xcc._mlir import Operation, Type, Value, ir
from xcc.passes.shared.dims import emit_dim, read_dim
from xcc.passes.walk import ops_where

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
