"""`vector`: small vectors of one thread. A vector value is (threads, *shape)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from xcc._mlir import Operation, ir
from xcc.diagnostics import UserError
from xcc.interpreter.machine import Machine, expand
from xcc.interpreter.registry import Runner, op, pure
from xcc.interpreter.types import poison_of, vector_shape

if TYPE_CHECKING:
    from xcc.interpreter.kernel import Kernel

Array = np.ndarray[Any, Any]
_DYNAMIC = ir.ShapedType.get_dynamic_size()


@op("vector.broadcast")
def _broadcast(source: Operation, _: Kernel) -> Runner:
    shape = vector_shape(source.result.type)

    def run(machine: Machine, value: Array) -> Array:
        inner = value.shape[1:]
        return np.broadcast_to(value.reshape(value.shape[0], *(1,) * (len(shape) - len(inner)), *inner),
                               (value.shape[0], *shape))
    return run


@op("vector.splat")
def _splat(source: Operation, kernel: Kernel) -> Runner:
    return _broadcast(source, kernel)


@op("vector.shape_cast")
def _shape_cast(source: Operation, _: Kernel) -> Runner:
    shape = vector_shape(source.result.type)
    return lambda machine, value: value.reshape(value.shape[0], *shape)


@op("vector.transpose")
def _transpose(source: Operation, _: Kernel) -> Runner:
    axes = (0, *(int(p) + 1 for p in source.attributes["permutation"]))
    return lambda machine, value: value.transpose(axes)


def _position(machine: Machine, static: list[int], dynamic: tuple[Array, ...]) -> tuple[Array | int, ...]:
    rest = iter(dynamic)
    return tuple(next(rest) if p == _DYNAMIC else int(p) for p in static)


@op("vector.extract")
def _extract(source: Operation, _: Kernel) -> Runner:
    static = list(source.attributes["static_position"])

    def run(machine: Machine, value: Array, *dynamic: Array) -> Array:
        if not dynamic:
            return value[(slice(None), *static)]
        value = np.broadcast_to(value, (machine.count, *value.shape[1:]))
        return value[(np.arange(machine.count), *_position(machine, static, dynamic))]
    return run


@op("vector.insert")
def _insert(source: Operation, _: Kernel) -> Runner:
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
def _extract_slice(source: Operation, _: Kernel) -> Runner:
    cut = _slices(source, "sizes", vector_shape(source.operands[0].type))
    return lambda machine, value: value[cut]


@op("vector.insert_strided_slice")
def _insert_slice(source: Operation, _: Kernel) -> Runner:
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


def _slices(source: Operation, sizes: str, shape: tuple[int, ...]) -> tuple[slice, ...]:
    starts = [ir.IntegerAttr(a).value for a in source.attributes["offsets"]]
    counts = [ir.IntegerAttr(a).value for a in source.attributes[sizes]]
    cut = [slice(o, o + n) for o, n in zip(starts, counts, strict=True)]
    return (slice(None), *cut, *(slice(None),) * (len(shape) - len(cut)))


@op("vector.shuffle")
def _shuffle(source: Operation, _: Kernel) -> Runner:
    order = [int(m) for m in source.attributes["mask"]]
    nobody = np.array(order) < 0

    def run(machine: Machine, a: Array, b: Array) -> Array:
        threads = max(a.shape[0], b.shape[0])
        both = np.concatenate([np.broadcast_to(v, (threads, *v.shape[1:])) for v in (a, b)], axis=1)
        out = both[:, order]
        if nobody.any():
            out[:, nobody] = poison_of(out.dtype)
        return out
    return run


@op("vector.from_elements")
def _from_elements(source: Operation, _: Kernel) -> Runner:
    shape = vector_shape(source.result.type)

    def run(machine: Machine, *values: Array) -> Array:
        threads = max(v.shape[0] for v in values)
        return np.stack([np.broadcast_to(v, (threads,)) for v in values], axis=1).reshape(threads, *shape)
    return run


@op("vector.to_elements")
def _to_elements(source: Operation, _: Kernel) -> Runner:
    def run(machine: Machine, value: Array) -> Array | tuple[Array, ...]:
        flat = value.reshape(value.shape[0], -1)
        return flat[:, 0] if flat.shape[1] == 1 else tuple(flat[:, i] for i in range(flat.shape[1]))
    return run


@op("vector.interleave")
def _interleave(source: Operation, _: Kernel) -> Runner:
    shape = vector_shape(source.result.type)
    return lambda machine, a, b: np.stack(np.broadcast_arrays(a, b), axis=-1).reshape(-1, *shape)


@op("vector.deinterleave")
def _deinterleave(source: Operation, _: Kernel) -> Runner:
    return lambda machine, a: (a[..., 0::2], a[..., 1::2])


@op("vector.step")
def _step(source: Operation, _: Kernel) -> Runner:
    values = np.arange(vector_shape(source.result.type)[0], dtype=np.int64)[None]
    return lambda machine: values


@op("vector.create_mask")
def _create_mask(source: Operation, _: Kernel) -> Runner:
    shape = vector_shape(source.result.type)

    def run(machine: Machine, *limits: Array) -> Array:
        out: Any = np.True_
        for axis, limit in enumerate(limits):
            position = np.arange(shape[axis]).reshape(1, *(-1 if a == axis else 1 for a in range(len(shape))))
            out = out & (position < expand(limit, len(shape) + 1))
        return np.broadcast_to(out, (out.shape[0], *shape))
    return run


@op("vector.constant_mask")
def _constant_mask(source: Operation, _: Kernel) -> Runner:
    shape = vector_shape(source.result.type)
    out = np.zeros((1, *shape), np.bool_)
    out[(slice(None), *(slice(int(n)) for n in source.attributes["mask_dim_sizes"]))] = True
    return lambda machine: out


pure("vector.fma", lambda a, b, c: (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(a.dtype))

_KINDS: dict[str, Callable[..., Array]] = {
    "add": np.add, "mul": np.multiply, "minsi": np.minimum, "maxsi": np.maximum, "minnumf": np.fmin,
    "maxnumf": np.fmax, "minimumf": np.minimum, "maximumf": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor}


def _kind(source: Operation) -> Any:
    name = str(source.attributes["kind"]).removeprefix("#vector.kind<").rstrip(">")
    if name not in _KINDS:
        raise UserError(f"the interpreter does not know the combining kind '{name}'")
    return _KINDS[name]


def _fold(function: np.ufunc, value: Array, axis: int) -> Array:
    parts = np.moveaxis(value, axis, 0)
    out = parts[0]
    for part in parts[1:]:
        out = function(out, part)
    return out


@op("vector.reduction")
def _reduction(source: Operation, _: Kernel) -> Runner:
    function = _kind(source)

    def run(machine: Machine, value: Array, *start: Array) -> Array:
        out = _fold(function, value, 1)
        return function(out, start[0]) if start else out
    return run


@op("vector.multi_reduction")
def _multi_reduction(source: Operation, _: Kernel) -> Runner:
    function, axes = _kind(source), [int(a) + 1 for a in source.attributes["reduction_dims"]]

    def run(machine: Machine, value: Array, start: Array) -> Array:
        for axis in sorted(axes, reverse=True):
            value = _fold(function, value, axis)
        return function(value, start)
    return run


@op("vector.outerproduct")
def _outer(source: Operation, _: Kernel) -> Runner:
    function = _kind(source)

    def run(machine: Machine, a: Array, b: Array, *start: Array) -> Array:
        product = a[:, :, None] * (b[:, None, :] if b.ndim == 2 else expand(b, 3))
        product = product.reshape(product.shape[0], *vector_shape(source.result.type))
        return function(product, start[0]) if start else product
    return run
