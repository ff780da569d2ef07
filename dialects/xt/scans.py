"""What long running sums on GPUs are made of: rows and parts of rows that one workgroup scans."""

from typing import Any

import numpy as np

from xcc.dialects.xt.fields import boolean, integer, operand, optional, text
from xcc.dialects.xt.numeric import NARROW
from xcc.dialects.xt.op import Attrs, InferError, XtOp, same_dims
from xcc.dialects.xt.reduce import REDUCERS, Cumulative, check_kind
from xcc.dialects.xt.types import TensorType, dtype_name, numpy_dtype
from xcc.symbolic import ceildiv


def _scanned(dtype: str) -> str:
    """The type in which elements of `dtype` are scanned."""
    return "f32" if dtype in NARROW else dtype


def _reducer(kind: str) -> np.ufunc:
    return np.logaddexp if kind == "logsumexp" else REDUCERS[kind]


def _check_rows(kind: str, x: TensorType) -> None:
    check_kind("sum" if kind == "logsumexp" else kind, x.dtype)
    if x.rank not in (2, 3):
        raise InferError(f"rows or columns of {x}")


class ScanParts(XtOp, name="scan_parts"):
    """The sum, prod, max, min or logsumexp of each `part` neighbours of the rows of x [rows, n]:
    [rows, ceil(n / part)]; of the columns of x [matrices, n, columns]: [matrices, ceil(n / part), columns].

    Narrow floats give f32.
    """

    x = operand()
    kind = text(choices=("sum", "prod", "max", "min", "logsumexp"))
    part = integer()

    def infer(a: Attrs, x: TensorType) -> TensorType:
        _check_rows(a.kind, x)
        return TensorType((x.shape[0], ceildiv(x.shape[1], a.part), *x.shape[2:]), _scanned(x.dtype))

    def evaluate(a: Attrs, x: Any) -> Any:
        wide = x.astype(numpy_dtype(_scanned(dtype_name(x.dtype))))
        if not x.shape[1]:
            return wide
        return _reducer(a.kind).reduceat(wide, np.arange(0, x.shape[1], a.part), 1, wide.dtype)


class ScanRows(XtOp, name="scan_rows"):
    """xt.cumulative along the rows of x [rows, n], each part of which begins at its element of `start` [rows, parts];
    or along the columns of x [matrices, n, columns], with `start` [matrices, parts, columns].

    A part has `part` elements, the last one may have fewer. `start` has the type in which x is scanned.
    """

    x = operand()
    start = optional()
    kind = text(choices=("sum", "prod", "max", "min", "logsumexp"))
    part = integer(0)
    exclusive = boolean(False)
    reverse = boolean(False)

    def infer(a: Attrs, x: TensorType, start: TensorType | None = None) -> TensorType:
        _check_rows(a.kind, x)
        if (start is None) != (not a.part):
            raise InferError(f"parts of {a.part} of {x} that begin at {start}")
        if start is not None and (start.dtype != _scanned(x.dtype) or not all(
                map(same_dims, start.shape, (x.shape[0], ceildiv(x.shape[1], a.part), *x.shape[2:])))):
            raise InferError(f"parts of {a.part} of {x} do not begin at {start}")
        return x

    def evaluate(a: Attrs, x: Any, start: Any = None) -> Any:
        whole = Attrs(kind=a.kind, axis=1, exclusive=a.exclusive, reverse=a.reverse)
        if start is None or not x.shape[1]:
            return Cumulative.evaluate(whole, x)
        wide, out = x.astype(start.dtype), []
        for n, begin in enumerate(range(0, x.shape[1], a.part)):
            own = Cumulative.evaluate(whole, wide[:, begin:begin + a.part])
            out.append(_reducer(a.kind)(start[:, n:n + 1], own, dtype=start.dtype))
        return np.concatenate(out, 1).astype(x.dtype)
