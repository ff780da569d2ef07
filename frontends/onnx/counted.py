"""Sizes that the graph computes from data: a run counts them, up to the limits that the options give.

    Range(0, ReduceMax(lengths), 1) with --dim longest=0..512 for the value `longest` that ReduceMax makes:

    %flags = %longest > iota(512)                       a run whose value is out of the bounds ends with an error
    %kept = "xt.compress"(%flags, %flags) {symbol = "longest"}
    %y = "xt.iota"() {shape = ["longest"]}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xcc import symbolic
from xcc._mlir import Value, ir
from xcc.dialects import xt
from xcc.dialects.xt.control import Never
from xcc.frontends.onnx.element_types import is_floating
from xcc.frontends.shared.helpers import convert

if TYPE_CHECKING:
    from xcc.frontends.onnx.context import Array, Context

__all__ = ["countable", "counted"]

MOST_ELEMENTS = 8
"""Of a value whose elements are counted, each by a kernel of its own."""


def countable(cx: Context, i: int) -> tuple[str, ...]:
    """The names that the elements of operand `i` have as counted sizes; none where they cannot be counted."""
    tensor, model = cx.tensor(i), cx.graph.model
    count = symbolic.product(tensor.shape)
    if is_floating(tensor.dtype) or tensor.dtype == np.bool_ or len(tensor.shape) > 1 or not isinstance(count, int) or \
            not 0 < count <= MOST_ELEMENTS or ir.InsertionPoint.current.block != model.entry:
        return ()
    base = cx.node.input[i]
    names = (base,) if not tensor.shape else tuple(f"{base}_{n}" for n in range(count))
    return names if base and not any(n in model.symbols for n in names) else ()


def counted(cx: Context, i: int) -> Array | None:
    """Operand `i` as symbols, where the options bound its elements; it has them as its data from now on."""
    model, tensor, names = cx.graph.model, cx.tensor(i), countable(cx, i)
    limits = [model.limits_of(name) for name in names]
    if not limits or any(limit is None for limit in limits):
        return None
    given = xt.reshape(convert(cx[i], "i64"), shape=(len(names),))
    data: Array = np.empty(tensor.shape, object)
    for n, (name, limit) in enumerate(zip(names, limits, strict=True)):
        assert limit is not None
        _bind(cx, xt.reshape(xt.slice(given, starts=(n,), limits=(n + 1,)), shape=()), name, *limit)
        data.reshape(-1)[n] = model.count(name)
    tensor.data = data
    return data


def _bind(cx: Context, value: Value, name: str, low: int, high: int) -> None:
    """Makes the symbol `name` the scalar `value`, which is in low..high."""
    outside = xt.or_(xt.compare(value, xt.scalar(low, "i64"), direction="lt"),
                     xt.compare(value, xt.scalar(high, "i64"), direction="gt"))
    (checked,) = xt.if_(outside, lambda: Never(cx.where(f"'{name}' is not in {low}..{high}")), lambda: [value])
    flags = xt.compare(xt.iota(shape=(high,), axis=0, dtype="i64"), checked, direction="lt")
    xt.compress(flags, flags, symbol=name, axis=0, flat=False)
