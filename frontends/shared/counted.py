"""Sizes that a graph computes from data: a run counts them, up to a limit."""

from __future__ import annotations

from collections.abc import Callable

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.control import Never
from xcc.frontends.shared.helpers import dim_scalar
from xcc.symbolic import Dim

__all__ = ["count_up_to"]


def count_up_to(value: Value, name: str, low: int, high: Dim, where: Callable[[str], str]) -> None:
    """Makes the symbol `name` the scalar `value` (i64[]); a run in which it is not in low..high ends with an error, of
    which `where` says the place.

        %flags = %value > iota(high)
        %kept = "xt.compress"(%flags, %flags) {symbol = "name"}
    """
    outside = xt.or_(xt.compare(value, xt.scalar(low, "i64"), direction="lt"),
                     xt.compare(value, dim_scalar(high, "i64"), direction="gt"))
    (checked,) = xt.if_(outside, lambda: Never(where(f"'{name}' is not in {low}..{high}")), lambda: [value])
    flags = xt.compare(xt.iota(shape=(high,), axis=0, dtype="i64"), checked, direction="lt")
    xt.compress(flags, flags, symbol=name, axis=0, flat=False)
