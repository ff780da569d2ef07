"""`memref`: allocation, views, loads and stores of single elements, atomics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xcc._mlir import Operation, Type, arith_d, ir
from xcc.diagnostics import UserError
from xcc.interpreter.machine import Machine
from xcc.interpreter.memory import MemRef, contiguous_strides
from xcc.interpreter.registry import Runner, op
from xcc.interpreter.types import dtype_of, space_of

if TYPE_CHECKING:
    from xcc.interpreter.kernel import Kernel

Array = np.ndarray[Any, Any]
_DYNAMIC = ir.ShapedType.get_dynamic_size()


def note_shared(kernel: Kernel, memref_type: Type) -> None:
    """Tells the kernel in what size its shared memory is accessed."""
    if space_of(memref_type) == "workgroup":
        kernel.saw_shared(dtype_of(memref_type).itemsize)


def _mixed(static: list[int], operands: list[Array]) -> list[int | Array]:
    """Static numbers with operands in the places of dynamic ones."""
    rest = iter(operands)
    return [next(rest) if s == _DYNAMIC else int(s) for s in static]


@op("memref.alloca", "memref.alloc")
def _alloca(source: Operation, _: Kernel) -> Runner:
    type_ = source.result.type
    space = space_of(type_)
    space, dtype, shape = "private" if space == "global" else space, dtype_of(type_), list(type_.shape)
    return lambda machine, *sizes: machine.allocate("alloca", space, dtype, _mixed(shape, list(sizes)))


@op("memref.dealloc")
def _dealloc(source: Operation, _: Kernel) -> Runner:
    return lambda machine, ref: ()


@op("memref.load")
def _load(source: Operation, kernel: Kernel) -> Runner:
    note_shared(kernel, source.operands[0].type)
    is_bool = dtype_of(source.result.type) == np.bool_

    def run(machine: Machine, ref: MemRef, *indices: Array) -> Array:
        value = machine.read(ref, machine.address(ref, list(indices)), 1)
        return value.astype(np.bool_) if is_bool else value
    return run


@op("memref.store")
def _store(source: Operation, kernel: Kernel) -> Runner:
    note_shared(kernel, source.operands[1].type)

    def run(machine: Machine, value: Array, ref: MemRef, *indices: Array) -> tuple[()]:
        machine.write(ref, machine.address(ref, list(indices)), value[:, None])
        return ()
    return run


@op("memref.dim")
def _dim(source: Operation, _: Kernel) -> Runner:
    def run(machine: Machine, ref: MemRef, axis: Array) -> Array:
        size = ref.sizes[int(axis[0])]
        return size if isinstance(size, np.ndarray) else np.full(1, size, np.int64)
    return run


@op("memref.cast", "memref.memory_space_cast", "memref.assume_alignment", "memref.distinct_objects")
def _same(source: Operation, _: Kernel) -> Runner:
    return lambda machine, ref, *rest: ref if len(source.results) else ()


@op("memref.subview")
def _subview(source: Operation, _: Kernel) -> Runner:
    parts = [list(source.attributes[f"static_{n}"]) for n in ("offsets", "sizes", "strides")]
    counts = [sum(v == _DYNAMIC for v in p) for p in parts]
    kept = _kept_axes(list(source.result.type.shape), parts[1])

    def run(machine: Machine, ref: MemRef, *dynamic: Array) -> MemRef:
        values, start = [], 0
        for part, count in zip(parts, counts, strict=True):
            values.append(_mixed(part, list(dynamic[start:start + count])))
            start += count
        offsets, sizes, steps = values
        offset: Any = ref.offset
        for index, stride in zip(offsets, ref.strides, strict=True):
            offset = offset + index * stride
        strides = [s * t for s, t in zip(ref.strides, steps, strict=True)]
        return MemRef(ref.buffer, ref.dtype, ref.base, offset, [sizes[a] for a in kept], [strides[a] for a in kept])
    return run


def _kept_axes(result: list[int], sizes: list[int]) -> list[int]:
    """Axes of a subview that its type keeps: dropped ones have size 1."""
    kept, wanted = [], list(result)
    for axis, size in enumerate(sizes):
        left = len(sizes) - axis
        if wanted and wanted[0] == size and not (size == 1 and left > len(wanted) and _fits(wanted, sizes[axis + 1:])):
            kept.append(axis)
            wanted.pop(0)
    return kept


def _fits(wanted: list[int], sizes: list[int]) -> bool:
    """Whether `wanted` is `sizes` with some ones left out."""
    rest = iter(sizes)
    return all(any(s == w for s in rest) for w in wanted)


@op("memref.reinterpret_cast")
def _reinterpret(source: Operation, _: Kernel) -> Runner:
    parts = [list(source.attributes[f"static_{n}"]) for n in ("offsets", "sizes", "strides")]
    counts = [sum(v == _DYNAMIC for v in p) for p in parts]

    def run(machine: Machine, ref: MemRef, *dynamic: Array) -> MemRef:
        values, start = [], 0
        for part, count in zip(parts, counts, strict=True):
            values.append(_mixed(part, list(dynamic[start:start + count])))
            start += count
        return MemRef(ref.buffer, ref.dtype, ref.base, values[0][0], values[1], values[2])
    return run


@op("memref.view")
def _view(source: Operation, _: Kernel) -> Runner:
    dtype, shape = dtype_of(source.result.type), list(source.result.type.shape)

    def run(machine: Machine, ref: MemRef, shift: Array, *sizes: Array) -> MemRef:
        start = np.asarray(ref.offset + shift)
        if machine.active(start % dtype.itemsize != 0).any():
            raise machine.fault("misaligned", f"a view of {dtype} starts at byte {int(start.reshape(-1)[0])}")
        extent = _mixed(shape, list(sizes))
        base = ref.base // dtype.itemsize
        return MemRef(ref.buffer, dtype, base, start // dtype.itemsize, extent, contiguous_strides(extent))
    return run


@op("memref.collapse_shape")
def _collapse(source: Operation, _: Kernel) -> Runner:
    groups = [[int(i) for i in g] for g in source.attributes["reassociation"]]

    def run(machine: Machine, ref: MemRef) -> MemRef:
        sizes, strides = [], []
        for group in groups:
            size: Any = 1
            for axis in group:
                size = size * ref.sizes[axis]
            sizes.append(size)
            wide = [a for a in group if not isinstance(ref.sizes[a], int) or ref.sizes[a] != 1]
            strides.append(ref.strides[wide[-1] if wide else group[-1]])
        return MemRef(ref.buffer, ref.dtype, ref.base, ref.offset, sizes, strides)
    return run


@op("memref.expand_shape")
def _expand_shape(source: Operation, _: Kernel) -> Runner:
    groups = [[int(i) for i in g] for g in source.attributes["reassociation"]]
    static = list(source.attributes["static_output_shape"])

    def run(machine: Machine, ref: MemRef, *dynamic: Array) -> MemRef:
        sizes = _mixed(static, list(dynamic))
        strides: list[Any] = [None] * len(sizes)
        for group, stride in zip(groups, ref.strides, strict=True):
            step = stride
            for axis in reversed(group):
                strides[axis] = step
                step = step * sizes[axis]
        return MemRef(ref.buffer, ref.dtype, ref.base, ref.offset, sizes, strides)
    return run


@op("memref.extract_strided_metadata")
def _metadata(source: Operation, _: Kernel) -> Runner:
    def run(machine: Machine, ref: MemRef) -> tuple[MemRef | int | Array, ...]:
        flat = MemRef(ref.buffer, ref.dtype, ref.base, 0, [ref.buffer.size // ref.dtype.itemsize], [1])
        flat = flat if len(source.results[0].type.shape) else MemRef(ref.buffer, ref.dtype, ref.base, 0, [], [])
        numbers = [ref.offset, *ref.sizes, *ref.strides]
        return (flat, *(n if isinstance(n, np.ndarray) else np.full(1, n, np.int64) for n in numbers))
    return run


def _unsigned(function: np.ufunc) -> Any:
    """`function` of integers as unsigned ones."""
    def combined(a: Array, b: Array) -> Array:
        kind = np.dtype(f"u{a.dtype.itemsize}")
        return function(a.view(kind), b.view(kind)).view(a.dtype)

    return combined


_ATOMICS: dict[str, Callable[..., Array] | None] = {
    "addf": np.add, "addi": np.add, "assign": None, "maximumf": np.maximum, "maxs": np.maximum,
    "maxu": _unsigned(np.maximum), "minu": _unsigned(np.minimum), "minimumf": np.minimum,
    "mins": np.minimum, "mulf": np.multiply, "muli": np.multiply, "ori": np.bitwise_or, "andi": np.bitwise_and,
    "xori": np.bitwise_xor}


@op("memref.atomic_rmw")
def _atomic(source: Operation, kernel: Kernel) -> Runner:
    note_shared(kernel, source.operands[1].type)
    kind = arith_d.AtomicRMWKind(ir.IntegerAttr(source.attributes["kind"]).value).name
    if kind not in _ATOMICS:
        raise UserError(f"the interpreter does not know this atomic: {source}")
    function = _ATOMICS[kind] or (lambda old, value: value)

    def run(machine: Machine, value: Array, ref: MemRef, *indices: Array) -> Array:
        value = np.broadcast_to(value, (machine.count,))
        return _one_by_one(machine, ref, indices, lambda old, thread: function(old[thread], value[thread]))
    return run


@op("memref.generic_atomic_rmw")
def _generic_atomic(source: Operation, kernel: Kernel) -> Runner:
    note_shared(kernel, source.operands[0].type)
    body = kernel.block(source.regions[0].blocks[0])

    def run(machine: Machine, ref: MemRef, *indices: Array) -> Array:
        return _one_by_one(machine, ref, indices, lambda old, thread: np.broadcast_to(
            body.run(machine, [old])[0], old.shape)[thread])
    return run


def _one_by_one(machine: Machine, ref: MemRef, indices: Sequence[Array],
                new: Callable[[Array, np.intp], Array]) -> Array:
    """Thread after thread puts to its place what `new` says of it, by the elements that threads found; what was there
    before."""
    at = np.broadcast_to(machine.address(ref, list(indices)), (machine.count,))
    memory, old = ref.buffer.typed(ref.dtype), np.zeros(machine.count, ref.dtype)
    for thread in np.flatnonzero(machine.mask):
        where = at[thread]
        old[thread] = memory[where]
        memory[where] = new(old, thread)
        machine.updates += bool(memory[where] != old[thread])
    return old
