"""`vector`: small vectors of one thread. A vector value is (threads, *shape)."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.interpreter.machine import Machine, expand
from xcc.interpreter.memory import MemRef
from xcc.interpreter.ops_memref import note_shared
from xcc.interpreter.registry import op, pure
from xcc.interpreter.types import dtype_of, vector_shape

Array = np.ndarray[Any, Any]
_DYNAMIC = ir.ShapedType.get_dynamic_size()


def _as(dtype: np.dtype[Any], value: Array) -> Array:
    return value.astype(np.bool_) if dtype == np.bool_ else value


def _aligned(machine: Machine, ref: MemRef, linear: Array, alignment: int) -> None:
    if alignment and machine.active((linear - ref.base) * ref.dtype.itemsize % alignment != 0).any():
        raise machine.fault("misaligned", f"an address is not a multiple of {alignment} bytes")


def _alignment(source: Any) -> int:
    return int(ir.IntegerAttr(source.attributes["alignment"]).value) if "alignment" in source.attributes else 0


def _width(source: Any, type_: Any) -> int:
    shape = vector_shape(type_)
    if any(n != 1 for n in shape[:-1]):
        raise UserError(f"the interpreter moves rows only: {source}")
    return shape[-1] if shape else 1


@op("vector.load")
def _load(source: Any, kernel: Any) -> Any:
    type_ = source.result.type
    note_shared(kernel, source.operands[0].type)
    dtype, shape, width, alignment = dtype_of(type_), vector_shape(type_), _width(source, type_), _alignment(source)

    def run(machine: Machine, ref: MemRef, *indices: Array) -> Array:
        at = machine.address(ref, list(indices), width)
        _aligned(machine, ref, at, alignment)
        return _as(dtype, machine.read(ref, at, width).reshape(-1, *shape))
    return run


@op("vector.store")
def _store(source: Any, kernel: Any) -> Any:
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
def _masked_load(source: Any, kernel: Any) -> Any:
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
def _masked_store(source: Any, kernel: Any) -> Any:
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
def _transfer(source: Any, _: Any) -> Any:
    raise UserError(f"the interpreter takes vector.load and vector.store, not block-level transfers: {source}")


@op("vector.broadcast")
def _broadcast(source: Any, _: Any) -> Any:
    shape = vector_shape(source.result.type)

    def run(machine: Machine, value: Array) -> Array:
        inner = value.shape[1:]
        return np.broadcast_to(value.reshape(value.shape[0], *(1,) * (len(shape) - len(inner)), *inner),
                               (value.shape[0], *shape))
    return run


@op("vector.splat")
def _splat(source: Any, kernel: Any) -> Any:
    return _broadcast(source, kernel)


@op("vector.shape_cast")
def _shape_cast(source: Any, _: Any) -> Any:
    shape = vector_shape(source.result.type)
    return lambda machine, value: value.reshape(value.shape[0], *shape)


@op("vector.transpose")
def _transpose(source: Any, _: Any) -> Any:
    axes = (0, *(int(p) + 1 for p in source.attributes["permutation"]))
    return lambda machine, value: value.transpose(axes)


def _position(machine: Machine, static: list[int], dynamic: tuple[Array, ...]) -> tuple[Any, ...]:
    rest = iter(dynamic)
    return tuple(next(rest) if p == _DYNAMIC else int(p) for p in static)


@op("vector.extract")
def _extract(source: Any, _: Any) -> Any:
    static = list(source.attributes["static_position"])

    def run(machine: Machine, value: Array, *dynamic: Array) -> Array:
        if not dynamic:
            return value[(slice(None), *static)]
        value = np.broadcast_to(value, (machine.count, *value.shape[1:]))
        return value[(np.arange(machine.count), *_position(machine, static, dynamic))]
    return run


@op("vector.insert")
def _insert(source: Any, _: Any) -> Any:
    static = list(source.attributes["static_position"])

    def run(machine: Machine, value: Array, target: Array, *dynamic: Array) -> Array:
        if not dynamic:
            threads = max(value.shape[0], target.shape[0])
            out = np.broadcast_to(target, (threads, *target.shape[1:])).copy()
            out[(slice(None), *static)] = value
            return out
        out = np.broadcast_to(target, (machine.count, *target.shape[1:])).copy()
        out[(np.arange(machine.count), *_position(machine, static, dynamic))] = value
        return out
    return run


@op("vector.extract_strided_slice")
def _extract_slice(source: Any, _: Any) -> Any:
    cut = _slices(source, "sizes", vector_shape(source.operands[0].type))
    return lambda machine, value: value[cut]


@op("vector.insert_strided_slice")
def _insert_slice(source: Any, _: Any) -> Any:
    inner, outer = (vector_shape(o.type) for o in source.operands)
    offsets = [ir.IntegerAttr(a).value for a in source.attributes["offsets"]]
    sizes = (1,) * (len(outer) - len(inner)) + inner
    cut = (slice(None), *(slice(o, o + s) for o, s in zip(offsets, sizes, strict=True)))

    def run(machine: Machine, value: Array, target: Array) -> Array:
        threads = max(value.shape[0], target.shape[0])
        out = np.broadcast_to(target, (threads, *target.shape[1:])).copy()
        out[cut] = value.reshape(value.shape[0], *sizes)
        return out
    return run


def _slices(source: Any, sizes: str, shape: tuple[int, ...]) -> tuple[slice, ...]:
    starts = [ir.IntegerAttr(a).value for a in source.attributes["offsets"]]
    counts = [ir.IntegerAttr(a).value for a in source.attributes[sizes]]
    cut = [slice(o, o + n) for o, n in zip(starts, counts, strict=True)]
    return (slice(None), *cut, *(slice(None),) * (len(shape) - len(cut)))


@op("vector.shuffle")
def _shuffle(source: Any, _: Any) -> Any:
    order = [int(m) for m in source.attributes["mask"]]

    def run(machine: Machine, a: Array, b: Array) -> Array:
        threads = max(a.shape[0], b.shape[0])
        both = np.concatenate([np.broadcast_to(v, (threads, *v.shape[1:])) for v in (a, b)], axis=1)
        return both[:, [max(o, 0) for o in order]]
    return run


@op("vector.from_elements")
def _from_elements(source: Any, _: Any) -> Any:
    shape = vector_shape(source.result.type)

    def run(machine: Machine, *values: Array) -> Array:
        threads = max(v.shape[0] for v in values)
        return np.stack([np.broadcast_to(v, (threads,)) for v in values], axis=1).reshape(threads, *shape)
    return run


@op("vector.to_elements")
def _to_elements(source: Any, _: Any) -> Any:
    def run(machine: Machine, value: Array) -> Any:
        flat = value.reshape(value.shape[0], -1)
        return flat[:, 0] if flat.shape[1] == 1 else tuple(flat[:, i] for i in range(flat.shape[1]))
    return run


@op("vector.interleave")
def _interleave(source: Any, _: Any) -> Any:
    shape = vector_shape(source.result.type)
    return lambda machine, a, b: np.stack(np.broadcast_arrays(a, b), axis=-1).reshape(-1, *shape)


@op("vector.deinterleave")
def _deinterleave(source: Any, _: Any) -> Any:
    return lambda machine, a: (a[..., 0::2], a[..., 1::2])


@op("vector.step")
def _step(source: Any, _: Any) -> Any:
    values = np.arange(vector_shape(source.result.type)[0], dtype=np.int64)[None]
    return lambda machine: values


@op("vector.create_mask")
def _create_mask(source: Any, _: Any) -> Any:
    shape = vector_shape(source.result.type)

    def run(machine: Machine, *limits: Array) -> Array:
        out: Any = np.True_
        for axis, limit in enumerate(limits):
            position = np.arange(shape[axis]).reshape(1, *(-1 if a == axis else 1 for a in range(len(shape))))
            out = out & (position < expand(limit, len(shape) + 1))
        return np.broadcast_to(out, (out.shape[0], *shape))
    return run


@op("vector.constant_mask")
def _constant_mask(source: Any, _: Any) -> Any:
    shape = vector_shape(source.result.type)
    out = np.zeros((1, *shape), np.bool_)
    out[(slice(None), *(slice(int(n)) for n in source.attributes["mask_dim_sizes"]))] = True
    return lambda machine: out


pure("vector.fma", lambda a, b, c: (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(a.dtype))

_KINDS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "minsi": np.minimum, "maxsi": np.maximum, "minnumf": np.fmin,
    "maxnumf": np.fmax, "minimumf": np.minimum, "maximumf": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor}


def _kind(source: Any) -> Any:
    name = str(source.attributes["kind"]).removeprefix("#vector.kind<").rstrip(">")
    if name not in _KINDS:
        raise UserError(f"the interpreter does not know the combining kind '{name}'")
    return _KINDS[name]


def _fold(function: Any, value: Array, axis: int) -> Array:
    parts = np.moveaxis(value, axis, 0)
    out = parts[0]
    for part in parts[1:]:
        out = function(out, part)
    return out


@op("vector.reduction")
def _reduction(source: Any, _: Any) -> Any:
    function = _kind(source)

    def run(machine: Machine, value: Array, *start: Array) -> Array:
        out = _fold(function, value, 1)
        return function(out, start[0]) if start else out
    return run


@op("vector.multi_reduction")
def _multi_reduction(source: Any, _: Any) -> Any:
    function, axes = _kind(source), [int(a) + 1 for a in source.attributes["reduction_dims"]]

    def run(machine: Machine, value: Array, start: Array) -> Array:
        for axis in sorted(axes, reverse=True):
            value = _fold(function, value, axis)
        return function(value, start)
    return run


@op("vector.outerproduct")
def _outer(source: Any, _: Any) -> Any:
    function = _kind(source)

    def run(machine: Machine, a: Array, b: Array, *start: Array) -> Array:
        product = a[:, :, None] * (b[:, None, :] if b.ndim == 2 else expand(b, 3))
        product = product.reshape(product.shape[0], *vector_shape(source.result.type))
        return function(product, start[0]) if start else product
    return run
