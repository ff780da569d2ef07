"""`vector` ops that read and write memory, by the elements of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xcc._mlir import Operation, Type, ir
from xcc.diagnostics import UserError
from xcc.interpreter.machine import Machine
from xcc.interpreter.memory import MemRef
from xcc.interpreter.ops_memref import note_shared
from xcc.interpreter.registry import Runner, op
from xcc.interpreter.types import dtype_of, vector_shape

if TYPE_CHECKING:
    from xcc.interpreter.kernel import Kernel

Array = np.ndarray[Any, Any]


def _as(dtype: np.dtype[Any], value: Array) -> Array:
    return value.astype(np.bool_) if dtype == np.bool_ else value


def _aligned(machine: Machine, ref: MemRef, linear: Array, alignment: int) -> None:
    if alignment and machine.active((linear - ref.base) * ref.dtype.itemsize % alignment != 0).any():
        raise machine.fault("misaligned", f"an address is not a multiple of {alignment} bytes")


def _alignment(source: Operation) -> int:
    return int(ir.IntegerAttr(source.attributes["alignment"]).value) if "alignment" in source.attributes else 0


def _width(source: Operation, type_: Type) -> int:
    shape = vector_shape(type_)
    if any(n != 1 for n in shape[:-1]):
        raise UserError(f"the interpreter moves rows only: {source}")
    return shape[-1] if shape else 1


@op("vector.load")
def _load(source: Operation, kernel: Kernel) -> Runner:
    type_ = source.result.type
    note_shared(kernel, source.operands[0].type)
    dtype, shape, width, alignment = dtype_of(type_), vector_shape(type_), _width(source, type_), _alignment(source)

    def run(machine: Machine, ref: MemRef, *indices: Array) -> Array:
        at = machine.address(ref, list(indices), width)
        _aligned(machine, ref, at, alignment)
        return _as(dtype, machine.read(ref, at, width).reshape(-1, *shape))
    return run


@op("vector.store")
def _store(source: Operation, kernel: Kernel) -> Runner:
    type_ = source.operands[0].type
    note_shared(kernel, source.operands[1].type)
    width, alignment = _width(source, type_), _alignment(source)

    def run(machine: Machine, value: Array, ref: MemRef, *indices: Array) -> tuple[()]:
        at = machine.address(ref, list(indices), width)
        _aligned(machine, ref, at, alignment)
        machine.write(ref, at, value.reshape(value.shape[0], width))
        return ()
    return run


def lanes_at(machine: Machine, ref: MemRef, indices: list[Array], positions: Array, mask: Array) -> tuple[Array, Array]:
    """Element numbers (threads * width,) at the last index plus `positions` (threads, width), checked where `mask`."""
    count, width = machine.count, positions.shape[1]
    flags = np.broadcast_to(mask, (count, width))
    linear = np.zeros((count, width), np.int64)
    for column in range(width):
        here = [*indices[:-1], indices[-1] + positions[:, column]]
        with machine.masked(machine.mask & flags[:, column]):
            linear[:, column] = machine.address(ref, here)
    return linear, flags


@op("vector.maskedload", "vector.gather")
def _masked_load(source: Operation, kernel: Kernel) -> Runner:
    note_shared(kernel, source.operands[0].type)
    dtype, width = dtype_of(source.result.type), vector_shape(source.result.type)[-1]
    gather = source.operation.name == "vector.gather"

    def run(machine: Machine, ref: MemRef, *rest: Array) -> Array:
        *indices, mask, passed = rest
        positions = indices.pop().astype(np.int64) if gather else np.arange(width)[None]
        at, flags = lanes_at(machine, ref, list(indices), positions, mask)
        columns = []
        for column in range(width):
            read = machine.read(ref, at[:, column], 1, flags[:, column])
            columns.append(np.where(flags[:, column], read, passed[:, column]))
        return _as(dtype, np.stack(columns, axis=1))
    return run


@op("vector.maskedstore", "vector.scatter")
def _masked_store(source: Operation, kernel: Kernel) -> Runner:
    note_shared(kernel, source.operands[0].type)
    width = vector_shape(source.operands[len(source.operands) - 1].type)[-1]
    scatter = source.operation.name == "vector.scatter"

    def run(machine: Machine, ref: MemRef, *rest: Array) -> tuple[()]:
        *indices, mask, value = rest
        positions = indices.pop().astype(np.int64) if scatter else np.arange(width)[None]
        at, flags = lanes_at(machine, ref, list(indices), positions, mask)
        for column in range(width):
            machine.write(ref, at[:, column], value[:, column, None], flags[:, column])
        return ()
    return run


@op("vector.transfer_read", "vector.transfer_write")
def _transfer(source: Operation, _: Kernel) -> Runner:
    raise UserError(f"the interpreter takes vector.load and vector.store, not block-level transfers: {source}")
