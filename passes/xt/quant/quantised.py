"""Quantised values in xt: reading them, and dividing what is about to be quantised by its scale where it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.op import attrs_of, grouped_operands
from xcc.passes.shared.dot_instructions import dot_products_of
from xcc.passes.shared.instruction_tables import instructions_of
from xcc.passes.xt.graph.match import array_of, dims_of, dtype_of, only_user
from xcc.passes.xt.graph.rewrite import access_of, is_stored, name_of, producer, rebuilt
from xcc.symbolic import Dim
from xcc.targets.base import Chip
from xcc.weights import WeightStore

__all__ = ["MOVES", "Quantised", "Signs", "divided", "flat", "is_constant", "is_per_tensor", "number_of", "quantised",
           "rebuilt", "same_numbers", "shift", "with_sign"]

BYTES = ("i8", "ui8")
FLOATS = ("f8E4M3FN", "f8E5M2")
MOVES = ("broadcast", "concatenate", "reshape", "reverse", "slice", "transpose")
"""Ops that only move elements, and take every operand in one type."""


@dataclass(frozen=True)
class Quantised:
    """Numbers (values - zero) * scale, or values - zero in i32 where `scale` is None.

    values: i8, ui8 or f8. zero: None, or of rank 0, or with as many elements as values has along `axis`. scale: rank 0
    or a vector along `axis`.
    """

    values: Any
    zero: Any = None
    scale: Any = None
    axis: int = 0


@dataclass(frozen=True)
class Signs:
    """The signs that a chip's instructions want of the left and the right bytes of a product ("": any), and whether
    they are matrix instructions, which take activations on both sides; `floats`: 8-bit floats too, if only as f16;
    `dots`: instructions that sum a lane's products."""

    left: str = ""
    right: str = "i8"
    both: bool = False
    floats: bool = False
    dots: bool = False

    @staticmethod
    def of(chip: Chip | None) -> Signs:
        if chip is None:
            return Signs()
        taken = {i.types[:2] for i in instructions_of(chip)}
        if ("ui8", "ui8") in taken:
            return Signs("", "", True, ("f16", "f16") in taken)
        if ("i8", "i8") in taken:
            return Signs("i8", "i8", True, ("f16", "f16") in taken)
        return Signs(chip.byte_products, dots=any(d.element == "i8" for d in dot_products_of(chip)))


def quantised(value: Value) -> Quantised | None:
    """What `value` was made of, when that are bytes."""
    op = producer(value)
    if op is None:
        return None
    if name_of(op) == "dequantize":
        x, scale, zero = grouped_operands(op)
        a = attrs_of(op)
        known = dtype_of(x) in (*BYTES, *FLOATS) and not a.block and a.dtype == "f32" and dtype_of(scale) == "f32"
        return Quantised(x, zero, scale, a.axis) if known else None
    if dtype_of(value) != "i32":
        return None
    if name_of(op) == "convert" and dtype_of(op.operands[0]) in BYTES:
        return Quantised(op.operands[0])
    if name_of(op) == "sub":
        x, zero = producer(op.operands[0], "convert"), op.operands[1]
        if x is not None and dtype_of(x.operands[0]) in BYTES and dims_of(x.operands[0]) == dims_of(value):
            long = [d for d, n in enumerate(_aligned(zero, len(dims_of(value)))) if n != 1]
            if len(long) < 2:
                return Quantised(x.operands[0], zero, None, long[0] if long else 0)
    return None


def _aligned(value: Value, rank: int) -> tuple[Dim, ...]:
    """The dims of `value` as they broadcast to `rank` dims."""
    dims = dims_of(value)
    return (*[1] * (rank - len(dims)), *dims)


def is_per_tensor(q: Quantised) -> bool:
    return all(v is None or all(d == 1 for d in dims_of(v)) for v in (q.zero, q.scale))


def same_numbers(a: Value, b: Value, weights: WeightStore | None) -> bool:
    """Whether two values are one, or constants with equal elements, rounded to f32; None stands for 0."""
    if a is b or (a is not None and b is not None and a == b):
        return True
    x, y = (np.zeros(()) if v is None else array_of(v, weights) for v in (a, b))
    return x is not None and y is not None and x.size == y.size \
        and bool(np.all(x.reshape(-1).astype(np.float32) == y.reshape(-1).astype(np.float32)))


def is_constant(value: Value) -> bool:
    """Whether `value` depends on weights and constants alone."""
    op = producer(value)
    if op is None or is_stored(value):
        return op is not None
    computed = access_of(op) in ("composite", "movement", "pointwise", "reduction", "view")
    return computed and len(op.operands) > 0 and all(map(is_constant, op.operands))


def number_of(zero: Value | None, weights: WeightStore | None) -> float | None:
    """The one number that a constant's elements are, 0 for None; else None."""
    found = np.zeros(1) if zero is None else array_of(zero, weights)
    if found is None or found.size == 0 or np.any(found != found.reshape(-1)[0]):
        return None
    return float(found.reshape(-1)[0])


def flat(value: Value) -> Value:
    """A value of one element with rank 0."""
    return value if dims_of(value) == () else xt.reshape(value, shape=())


def shift(sign: str) -> int:
    """What makes bytes of the other sign bytes of the type `sign`."""
    return 128 if sign == "ui8" else -128


def with_sign(values: Value, sign: str) -> Value:
    """Bytes as bytes of the type `sign`, 128 more or less where it changes."""
    if dtype_of(values) == sign:
        return values
    return xt.convert(xt.add(xt.convert(values, dtype="i32"), xt.constant(np.asarray(shift(sign)), "i32")), dtype=sign)


def divided(value: Value, scale: Value, first: bool = True) -> Value | None:
    """value / scale with the division in the factors that make `value`; None unless it is all integers times factors.

    value: f32. scale: rank 0, positive.
    """
    op = producer(value)
    if op is None:
        return None
    name = name_of(op)
    if is_constant(value):
        return xt.div(value, scale)
    if not first and not only_user(value) and name != "dequantize":
        return None
    if name == "dequantize":
        return _dequantised(op, scale)
    if name == "mul":
        a, b = op.operands
        for x, factor in ((a, b), (b, a)):
            whole = producer(x, "convert")
            if whole is not None and dtype_of(whole.operands[0]) == "i32" and is_constant(factor):
                return xt.mul(x, xt.div(factor, scale))
        return None
    if name in ("add", "maximum", "minimum"):
        parts = [d for v in op.operands if (d := divided(v, scale, first=False)) is not None]
        return rebuilt(op, parts) if len(parts) == len(op.operands) else None
    if name in ("reshape", "transpose", "broadcast"):
        inner = divided(op.operands[0], scale, first=False)
        return None if inner is None else rebuilt(op, [inner])
    return None


def _dequantised(op: Operation, scale: Value) -> Value | None:
    """(x - zero) * (x's scale / scale)."""
    x, mine, zero = grouped_operands(op)
    if dims_of(mine) != () or attrs_of(op).dtype != "f32" or xt.is_float(dtype_of(x)) or dtype_of(mine) != "f32":
        return None
    whole = xt.convert(x, dtype="i32")
    if zero is not None:
        whole = xt.sub(whole, xt.convert(zero, dtype="i32"))
    return xt.mul(xt.convert(whole, dtype="f32"), xt.div(mine, scale))
