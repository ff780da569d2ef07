"""Shape rules shared by the families."""

from collections.abc import Sequence
from itertools import zip_longest

from xcc.dialects.xt.op import InferError, same_dims
from xcc.dialects.xt.types import TensorType
from xcc.symbolic import Dim, floordiv


def merge_dim(a: Dim, b: Dim) -> Dim | None:
    """The dim that `a` and `b` must both be: the static one, else `a`; None when they provably differ."""
    if not same_dims(a, b):
        return None
    return b if isinstance(b, int) else a


def broadcast_shapes(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """numpy's rule: shapes aligned at the right; dims are equal or 1. Different expressions count as equal."""
    out: list[Dim] = []
    for dims in zip_longest(*(reversed(s) for s in shapes), fillvalue=1):
        result: Dim = 1
        for d in dims:
            if result == 1:
                result = d
            elif d != 1:
                merged = merge_dim(result, d)
                if merged is None:
                    raise InferError(f"cannot broadcast {' with '.join(shape_text(s) for s in shapes)}: "
                                     f"{result} is not {d}")
                result = merged
        out.append(result)
    return tuple(reversed(out))


def shape_text(shape: Sequence[Dim]) -> str:
    return "[" + ", ".join(str(d) for d in shape) + "]"


def same_dtype(*operands: TensorType) -> str:
    """The one element type of `operands`."""
    for t in operands[1:]:
        if t.dtype != operands[0].dtype:
            raise InferError(f"element types differ: {operands[0].dtype} and {t.dtype}")
    return operands[0].dtype


def window_size(size: Dim, window: Dim, stride: int, low: Dim, high: Dim, dilation: int = 1) -> Dim:
    """How many windows fit: floor((low + size + high - dilation*(window - 1) - 1) / stride) + 1."""
    return floordiv(size + low + high - (window - 1) * dilation - 1, stride) + 1
