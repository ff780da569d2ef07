"""arg_reduce as two reductions: the best value of a row, then the first or last place that has it."""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.reading import Attrs
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import const, dtype, shape


@decomposes("arg_reduce")
def arg_reduce(a: Attrs, x: Value) -> Value:
    """m = max x; min over i of (i where x is m or NaN, else a number above all places).

    NaN is better than any number, and the reduction hands it on: where there is one, m is NaN and equal to nothing.
    Each of the two is a reduction like others, whose rows are read in vectors and cut into parts where they are few;
    a reduction of pairs carries 64-bit places through all of its lanes.
    """
    dims = shape(x)
    best = xt.reduce(x, kind="max" if a.kind == "argmax" else "min", axes=(a.axis,), keepdims=True)
    found = xt.compare(x, best, direction="eq")
    if xt.is_float(dtype(x)):
        found = xt.or_(found, xt.compare(x, x, direction="ne"))
    sizes = [n if d == a.axis else 1 for d, n in enumerate(dims)]
    places = xt.iota(shape=sizes, axis=a.axis, dtype="i32")
    none = -1 if a.select_last else (1 << 31) - 1
    chosen = xt.select(found, places, const(none, places))
    at = xt.reduce(chosen, kind="max" if a.select_last else "min", axes=(a.axis,), keepdims=a.keepdims)
    return xt.convert(at, dtype="i64")
