"""Products of matrices of any rank."""

from math import prod
from typing import Any

import numpy as np

from xcc._mlir import Value
from xcc.dialects.xt import products
from xcc.dialects.xt.broadcasting import merge_dim
from xcc.dialects.xt.fields import boolean, dims, dtype, integer, integers, operand, text
from xcc.dialects.xt.numeric import NARROW, Array
from xcc.dialects.xt.op import BUILDERS, Attrs, InferError, XtOp, axis_of, build
from xcc.dialects.xt.types import TensorType, is_float, numpy_dtype
from xcc.symbolic import Dim, product

PRECISIONS = ("", "tf32")
"""Types to which a product may round f32 operands; "": none."""
BY_BLOCK = "i8"
"""Of a product whose right operand is dequantised by blocks: the left one may be rounded to bytes by block."""


def accumulator(name: str) -> np.dtype[Any]:
    """The numpy type that sums of products are formed in."""
    return np.dtype(np.float32) if name in NARROW else numpy_dtype(name)


class DotGeneral(XtOp, name="dot_general"):
    """Sum over the contracted dims of a * b. Result dims: batch, free dims of a, free dims of b.

    `lhs_batch[i]` pairs with `rhs_batch[i]`, `lhs_contract[i]` with `rhs_contract[i]`. `dtype` is the result type
    (default a's); sums are formed in it, and in f32 for narrow floats.
    `precision` "tf32" lets f32 operands be rounded to 10 bits of mantissa, as a chip's matrix instructions read them;
    "i8" lets a be rounded to i8 where b is dequantised, with a scale for each of b's blocks of each row.
    """

    a = operand()
    b = operand()
    lhs_batch = integers(())
    rhs_batch = integers(())
    lhs_contract = integers()
    rhs_contract = integers()
    dtype = dtype(None)
    precision = text("", (*PRECISIONS, BY_BLOCK), optional=True)
    access = "contraction"

    def normalize(a: Attrs, lhs: TensorType, rhs: TensorType) -> None:
        a.dtype = a.dtype or lhs.dtype
        for side, t in (("lhs", lhs), ("rhs", rhs)):
            for what in (f"{side}_batch", f"{side}_contract"):
                setattr(a, what, tuple(axis_of(d, t.rank, f"{what} entry") for d in getattr(a, what)))

    def infer(a: Attrs, lhs: TensorType, rhs: TensorType) -> TensorType:
        if is_float(lhs.dtype) != is_float(rhs.dtype) or is_float(lhs.dtype) != is_float(a.dtype):
            raise InferError(f"cannot multiply {lhs.dtype} with {rhs.dtype} into {a.dtype}")
        batch = _paired(lhs, rhs, a.lhs_batch, a.rhs_batch, "batch")
        _paired(lhs, rhs, a.lhs_contract, a.rhs_contract, "contracted")
        free = [n for d, n in enumerate(lhs.shape) if d not in (*a.lhs_batch, *a.lhs_contract)]
        free += [n for d, n in enumerate(rhs.shape) if d not in (*a.rhs_batch, *a.rhs_contract)]
        return TensorType((*batch, *free), a.dtype)

    def evaluate(a: Attrs, lhs: Array, rhs: Array) -> Array:
        wide = accumulator(a.dtype)
        lhs_free = [d for d in range(lhs.ndim) if d not in (*a.lhs_batch, *a.lhs_contract)]
        rhs_free = [d for d in range(rhs.ndim) if d not in (*a.rhs_batch, *a.rhs_contract)]
        x = np.transpose(lhs, (*a.lhs_batch, *lhs_free, *a.lhs_contract)).astype(wide)
        y = np.transpose(rhs, (*a.rhs_batch, *a.rhs_contract, *rhs_free)).astype(wide)
        batch = [lhs.shape[d] for d in a.lhs_batch]
        m, n = [lhs.shape[d] for d in lhs_free], [rhs.shape[d] for d in rhs_free]
        k = int(np.prod([lhs.shape[d] for d in a.lhs_contract], dtype=np.int64))
        rows, columns = int(np.prod(m, dtype=np.int64)), int(np.prod(n, dtype=np.int64))
        with np.errstate(all="ignore"):
            out = products.matmul(x.reshape(*batch, rows, k), y.reshape(*batch, k, columns))
        return np.reshape(out, (*batch, *m, *n)).astype(numpy_dtype(a.dtype))


class PackedMatmul(XtOp, name="packed_matmul"):
    """Sum over the last dim of a times a matrix [K, N] that lies in panels of P columns; columns = [N].

    b is [ceil(N / P), K, P]: column n is n mod P of panel n // P; what lies past the last column is not used. Or b is
    [ceil(N / P), K / G, P, G], with every G rows of a column next to each other, or [ceil(N / P), Q, K / Q / G, P, G],
    these in Q blocks. The first `batch` dims of a and b are the same; with `panels_first` they come behind the panels
    in b, [ceil(N / P), .., K / G, P, G]. Sums are formed as in dot_general.
    """

    a = operand()
    b = operand()
    columns = dims()
    batch = integer(0)
    panels_first = boolean(False, optional=True)
    dtype = dtype(None)
    access = "contraction"

    def normalize(a: Attrs, lhs: TensorType, rhs: TensorType) -> None:
        a.dtype = a.dtype or lhs.dtype

    def infer(a: Attrs, lhs: TensorType, rhs: TensorType) -> TensorType:
        if is_float(lhs.dtype) != is_float(rhs.dtype) or is_float(lhs.dtype) != is_float(a.dtype):
            raise InferError(f"cannot multiply {lhs.dtype} with {rhs.dtype} into {a.dtype}")
        if a.batch < 0 or lhs.rank < 1 + a.batch or rhs.rank - a.batch not in (3, 4, 5) or len(a.columns) != 1:
            raise InferError(f"a needs a dim to sum over, b rank 3 to 5 behind {a.batch} of both, and columns one dim, "
                             f"not ranks {lhs.rank} and {rhs.rank} and {len(a.columns)}")
        both, first = tuple(range(a.batch)), int(a.panels_first)
        _paired(lhs, rhs, both, tuple(d + first for d in both), "batch")
        shape = (rhs.shape[0], *rhs.shape[a.batch + 1:]) if first else rhs.shape[a.batch:]
        panels, *depth, width, group = shape if len(shape) > 3 else (*shape, 1)
        summed = product((*depth, group))
        if merge_dim(lhs.shape[-1], summed) is None:
            raise InferError(f"contracted dims differ: {lhs.shape[-1]} and {summed}")
        n, = a.columns
        if all(isinstance(d, int) for d in (panels, width, n)) and not 0 <= panels * width - n < width:
            raise InferError(f"{panels} panels of {width} columns do not hold {n} columns")
        return TensorType((*lhs.shape[:-1], *a.columns), a.dtype)

    def evaluate(a: Attrs, lhs: Array, rhs: Array) -> Array:
        rhs = np.moveaxis(rhs, 0, a.batch) if a.panels_first else rhs
        wide, batch = accumulator(a.dtype), rhs.shape[:a.batch]
        outer = lhs.shape[:-1]
        if rhs.ndim - a.batch > 3:
            rhs = np.moveaxis(rhs, -1, -2).reshape(*batch, rhs.shape[a.batch], lhs.shape[-1], rhs.shape[-2])
        matrix = np.moveaxis(rhs, -2, -3).reshape(*batch, rhs.shape[-2], rhs.shape[-3] * rhs.shape[-1])
        matrix = matrix[..., :a.columns[0]]
        rows = lhs.reshape(*batch, prod(outer[a.batch:]), rhs.shape[-2])
        with np.errstate(all="ignore"):
            out = products.matmul(rows.astype(wide), matrix.astype(wide))
        return out.reshape(*outer, a.columns[0]).astype(numpy_dtype(a.dtype))


def _paired(lhs: TensorType, rhs: TensorType, left: tuple[int, ...], right: tuple[int, ...], what: str) -> list[Dim]:
    if len(left) != len(right):
        raise InferError(f"{len(left)} {what} dims of a and {len(right)} of b")
    out: list[Dim] = []
    for i, j in zip(left, right, strict=True):
        if i >= lhs.rank or j >= rhs.rank:
            raise InferError(f"{what} dims {i}, {j} are out of range")
        merged = merge_dim(lhs.shape[i], rhs.shape[j])
        if merged is None:
            raise InferError(f"{what} dims differ: {lhs.shape[i]} and {rhs.shape[j]}")
        out.append(merged)
    return out


def matmul(a: Value, b: Value, *, dtype: Any = None) -> Value:
    """numpy's matmul for operands of equal rank >= 2 with equal batch dims, as one xt.dot_general."""
    rank = TensorType.of(a).rank
    batch = tuple(range(rank - 2))
    return build(DotGeneral, a, b, lhs_batch=batch, rhs_batch=batch, lhs_contract=(rank - 1,),
                 rhs_contract=(rank - 2,), dtype=dtype)


BUILDERS.update(matmul=matmul)
