"""Sizes that GPUs count in 32 bits: what is known is compared when a model is compiled, the rest before a run."""

from __future__ import annotations

from collections.abc import Iterable

from xcc._mlir import Module, ir
from xcc.bounds import Bounds, interval
from xcc.dialects import xt
from xcc.passes.xt.sizes.equal_dims import EQUAL
from xcc.symbolic import Dim, Expr, dim_min

MOST = 1 << 31          # numbers of elements are i32


def require_countable(module: Module, sizes: Iterable[Dim], bounds: Bounds) -> None:
    """Lists `sizes` on the module as equal to what can be counted of them, where bounds do not exclude more.

    Runs of more elements are refused then. A size that only a run knows is not compared: what it counts is.
    """
    attributes = module.operation.attributes
    listed = list(attributes[EQUAL]) if EQUAL in attributes else []
    for d in sizes:
        if isinstance(d, Expr) and interval(bounds, d, 0)[1] >= MOST:
            pair = xt.dims_attr((d, dim_min(d, MOST - 1)))
            if pair not in listed:
                listed.append(pair)
    if listed:
        attributes[EQUAL] = ir.ArrayAttr.get(listed)
