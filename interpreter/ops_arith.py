"""`arith`: constants, integer and float arithmetic, comparisons, casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from xcc._mlir import Operation, ir
from xcc.interpreter.machine import Machine, expand
from xcc.interpreter.registry import Runner, op, pure
from xcc.interpreter.types import constant_array, dtype_of, poison_of, unsigned

if TYPE_CHECKING:
    from xcc.interpreter.kernel import Kernel

Array = np.ndarray[Any, Any]


@op("arith.constant")
def _constant(source: Operation, _: Kernel) -> Runner:
    value = constant_array(source.attributes["value"], source.result.type)
    return lambda machine: value


@op("ub.poison")
def _poison(source: Operation, _: Kernel) -> Runner:
    t = source.result.type
    shape = tuple(ir.VectorType(t).shape) if isinstance(t, ir.VectorType) else ()
    dtype = dtype_of(ir.VectorType(t).element_type if shape else t)
    filled = np.full((1, *shape), poison_of(dtype), dtype)
    return lambda machine: filled


def _quiet_max(a: Array, b: Array) -> Array:
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, np.maximum(a, b)))


def _quiet_min(a: Array, b: Array) -> Array:
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, np.minimum(a, b)))


_SIMPLE: dict[str, Callable[..., Array]] = {
    "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide, "negf": np.negative,
    "maximumf": np.maximum, "minimumf": np.minimum, "maxnumf": _quiet_max, "minnumf": _quiet_min,
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "maxsi": np.maximum, "minsi": np.minimum,
    "andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor,
}
for _name, _function in _SIMPLE.items():
    pure(f"arith.{_name}", _function)


pure("arith.remf", np.fmod)


def _as_unsigned(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def run(a: Array, b: Array) -> Array:
        return function(a.view(unsigned(a.dtype)), b.view(unsigned(b.dtype))).view(a.dtype)
    return run


pure("arith.maxui", _as_unsigned(np.maximum))
pure("arith.minui", _as_unsigned(np.minimum))


def _truncating(a: Array, b: Array) -> Array:
    quotient = a // b
    return quotient + ((quotient * b != a) & ((a < 0) != (b < 0))).astype(a.dtype)


def _ceiling(a: Array, b: Array) -> Array:
    return -(-a // b)


_DIVISIONS: dict[str, Callable[[Array, Array], Array]] = {
    "divsi": _truncating, "floordivsi": np.floor_divide, "ceildivsi": _ceiling,
    "remsi": lambda a, b: a - _truncating(a, b) * b,
    "divui": _as_unsigned(np.floor_divide), "remui": _as_unsigned(np.remainder),
    "ceildivui": _as_unsigned(lambda a, b: a // b + (a % b != 0).astype(a.dtype)),
}


def _division(name: str, function: Callable[[Array, Array], Array]) -> None:
    def run(machine: Machine, a: Array, b: Array) -> Array:
        zero = b == 0
        if zero.any():
            if machine.active(zero).any():
                raise machine.fault("division-by-zero", machine.name_thread(machine.active(expand_any(zero))))
            b = np.where(zero, b.dtype.type(1), b)
        return function(a, b)
    op(f"arith.{name}")(lambda *_: run)


def expand_any(flags: Array) -> Array:
    """One flag a thread: whether any element of its vector is set."""
    return np.any(flags.reshape(flags.shape[0], -1), axis=1)


for _name, _function in _DIVISIONS.items():
    _division(_name, _function)


def _shift(name: str, function: Callable[[Array, Array], Array]) -> None:
    def run(a: Array, b: Array) -> Array:
        bits = a.dtype.itemsize * 8
        far = b.view(unsigned(b.dtype)) >= bits
        return function(a, np.where(far, b.dtype.type(bits - 1), b))
    pure(f"arith.{name}", run)


_shift("shli", np.left_shift)
_shift("shrsi", np.right_shift)
_shift("shrui", _as_unsigned(np.right_shift))


@op("arith.select")
def _select(source: Operation, _: Kernel) -> Runner:
    def run(machine: Machine, condition: Array, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any,
            Any]:
        if not isinstance(a, np.ndarray):
            return select_ref(machine, condition, a, b)
        return np.where(expand(condition, max(a.ndim, b.ndim)), a, b)
    return run


def select_ref(machine: Machine, condition: Array, a: Array, b: Array) -> Any:
    """A memref chosen by a condition that all active threads agree on."""
    chosen = machine.uniform(condition)
    if chosen is None:
        raise machine.fault("divergent-barrier", "a memref chosen by a condition that differs between threads")
    return a if chosen else b


_INTEGER: tuple[tuple[Callable[[Array, Array], Array], bool], ...] = (
    (np.equal, False), (np.not_equal, False), (np.less, False), (np.less_equal, False), (np.greater, False),
    (np.greater_equal, False), (np.less, True), (np.less_equal, True), (np.greater, True), (np.greater_equal, True))


@op("arith.cmpi")
def _cmpi(source: Operation, _: Kernel) -> Runner:
    function, is_unsigned = _INTEGER[ir.IntegerAttr(source.attributes["predicate"]).value]
    if is_unsigned:
        return lambda machine, a, b: function(a.view(unsigned(a.dtype)), b.view(unsigned(b.dtype)))
    return lambda machine, a, b: function(a, b)


_ORDERED: dict[int, Callable[[Array, Array], Array]] = {
    1: np.equal, 2: np.greater, 3: np.greater_equal, 4: np.less, 5: np.less_equal, 6: np.not_equal}


@op("arith.cmpf")
def _cmpf(source: Operation, _: Kernel) -> Runner:
    predicate = ir.IntegerAttr(source.attributes["predicate"]).value

    def run(machine: Machine, a: Array, b: Array) -> Array:
        unordered = np.isnan(a) | np.isnan(b)
        if predicate in (0, 15):
            return np.full(unordered.shape, predicate == 15)
        if predicate == 7:
            return ~unordered
        if predicate == 14:
            return unordered
        if predicate < 7:
            return _ORDERED[predicate](a, b) & ~unordered
        return _ORDERED[predicate - 7](a, b) | unordered
    return run


@op("arith.extf", "arith.truncf", "arith.sitofp", "arith.trunci", "arith.index_cast")
def _cast(source: Operation, _: Kernel) -> Runner:
    dtype = dtype_of(source.result.type)
    signed = source.operation.name != "arith.trunci"

    def run(machine: Machine, a: Array) -> Array:
        if dtype == np.bool_ and not signed:
            return (a & 1).astype(np.bool_)
        if a.dtype == np.bool_ and source_signed:
            return -(a.astype(dtype))
        return a.astype(dtype)
    source_signed = source.operation.name in ("arith.sitofp", "arith.index_cast")
    return run


@op("arith.extsi")
def _extsi(source: Operation, _: Kernel) -> Runner:
    dtype = dtype_of(source.result.type)
    return lambda machine, a: -(a.astype(dtype)) if a.dtype == np.bool_ else a.astype(dtype)


@op("arith.extui", "arith.uitofp", "arith.index_castui")
def _from_unsigned(source: Operation, _: Kernel) -> Runner:
    dtype = dtype_of(source.result.type)
    return lambda machine, a: a.view(unsigned(a.dtype)).astype(dtype)


@op("arith.fptosi", "arith.fptoui")
def _to_integer(source: Operation, _: Kernel) -> Runner:
    dtype = dtype_of(source.result.type)
    wide = unsigned(dtype) if source.operation.name == "arith.fptoui" else dtype

    def run(machine: Machine, a: Array) -> Array:
        return np.trunc(a.astype(np.float64)).astype(np.int64 if wide.itemsize < 8 else wide).astype(wide).view(dtype)
    return run


@op("arith.bitcast", "vector.bitcast")
def _bitcast(source: Operation, _: Kernel) -> Runner:
    dtype = dtype_of(source.result.type)

    def run(machine: Machine, a: Array) -> Array:
        return np.ascontiguousarray(a).view(dtype)
    return run


@op("arith.mulsi_extended", "arith.mului_extended")
def _mul_extended(source: Operation, _: Kernel) -> Runner:
    is_unsigned = source.operation.name == "arith.mului_extended"

    def run(machine: Machine, a: Array, b: Array) -> tuple[Array, Array]:
        bits, dtype = a.dtype.itemsize * 8, a.dtype
        x, y = ((v.view(unsigned(dtype)) if is_unsigned else v).astype(object) for v in (a, b))
        product = x * y
        low = (product & ((1 << bits) - 1)).astype(unsigned(dtype)).view(dtype)
        high = ((product >> bits) & ((1 << bits) - 1)).astype(unsigned(dtype)).view(dtype)
        return low, high
    return run


@op("arith.addui_extended")
def _add_extended(source: Operation, _: Kernel) -> Runner:
    def run(machine: Machine, a: Array, b: Array) -> tuple[Array, Array]:
        total = a + b
        return total, total.view(unsigned(a.dtype)) < a.view(unsigned(a.dtype))
    return run
