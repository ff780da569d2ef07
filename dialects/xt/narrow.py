"""What weights of few bits are stored and decoded with: numbers that share bytes, scales that many numbers share."""

from typing import Any

import numpy as np

from xcc.dialects.xt.fields import axis, dims, dtype, integer, operand
from xcc.dialects.xt.op import Attrs, InferError, XtOp, same_dims
from xcc.dialects.xt.reading import check_rank
from xcc.dialects.xt.shape import static_dims
from xcc.dialects.xt.types import TensorType, numpy_dtype, width
from xcc.symbolic import Dim, ceildiv


def per_byte(name: str) -> int:
    """How many numbers of the element type `name` share a byte; 1 for all that has 8 bits or more, and for bools."""
    return 8 // width(name) if width(name) in (2, 4) else 1


def _resized(a: Attrs, x: TensorType, times: int) -> tuple[Dim, ...]:
    """The dims of x with the dim `size` at `axis`, checked to be made of so many."""
    check_rank("size", a.size, 1)
    if not same_dims(x.shape[a.axis], ceildiv(a.size[0], times)):
        raise InferError(f"{a.size[0]} elements are made of {ceildiv(a.size[0], times)}, not of {x.shape[a.axis]}")
    return tuple(a.size[0] if d == a.axis else n for d, n in enumerate(x.shape))


class Stretch(XtOp, name="stretch"):
    """Each element `times` times along `axis`, the first `size` of them: element i of the result is x's i // times."""

    x = operand()
    axis = axis()
    times = integer()
    size = dims()
    access = "movement"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        if a.times < 1:
            raise InferError(f"every element {a.times} times")
        return x.with_shape(_resized(a, x, a.times))

    def evaluate(a: Attrs, x: Any) -> Any:
        return np.take(x, np.arange(*static_dims(a.size, "size")) // a.times, a.axis)


class Unpack(XtOp, name="unpack"):
    """The numbers of 4 or 2 bits that share the bytes x along `axis`, the first `size` of them, as `dtype`.

    Element i is in byte i // n, n = 2 or 4 a byte, the first of them in the lowest bits.
    """

    x = operand()
    axis = axis()
    size = dims()
    dtype = dtype()
    access = "movement"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        if x.dtype != "ui8":
            raise InferError(f"takes ui8, not {x.dtype}")
        if per_byte(a.dtype) == 1:
            raise InferError(f"makes numbers of 4 or 2 bits, not {a.dtype}")
        return TensorType(_resized(a, x, per_byte(a.dtype)), a.dtype)

    def evaluate(a: Attrs, x: Any) -> Any:
        bits, index = width(a.dtype), np.arange(*static_dims(a.size, "size"))
        shifts = (index % per_byte(a.dtype) * bits).astype(np.uint8)
        codes = np.take(x, index // per_byte(a.dtype), a.axis) >> shifts.reshape(
            [-1 if d == a.axis else 1 for d in range(x.ndim)]) & np.uint8((1 << bits) - 1)
        if a.dtype.startswith("f"):
            return codes.view(numpy_dtype(a.dtype))
        signs = codes >> np.uint8(bits - 1) if a.dtype.startswith("i") else np.zeros_like(codes)
        return (codes.astype(np.int16) - signs.astype(np.int16) * (1 << bits)).astype(numpy_dtype(a.dtype))
