"""Sizes that the graph computes from data: a run counts them, up to the limits that the options give.

    Range(0, ReduceMax(lengths), 1) with --dim longest=0..512 for the value `longest` that ReduceMax makes:

    count_up_to(%longest, "longest", 0, 512)            a run whose value is out of the bounds ends with an error
    %y = "xt.iota"() {shape = ["longest"]}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xcc import symbolic
from xcc._mlir import ir
from xcc.dialects import xt
from xcc.frontends.onnx.element_types import is_floating
from xcc.frontends.shared.counted import count_up_to
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
        value = xt.reshape(xt.slice(given, starts=(n,), limits=(n + 1,)), shape=())
        count_up_to(value, name, *limit, cx.where)
        data.reshape(-1)[n] = model.count(name)
    tensor.data = data
    return data
