"""Floats that nodes make of constants: computed as the xt ops of their converters mean it, the same everywhere.

The reference implementation that comes with onnx asks numpy, whose exponentials and matrix products differ by CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.dialects.xt.interpret import Interpreter
from xcc.dialects.xt.numeric import one_nan
from xcc.frontends.onnx.context import Array, Context, Tensor, Value
from xcc.frontends.onnx.evaluate import LIMIT, is_evaluated

__all__ = ["computed"]


def computed(cx: Context, converter: Callable[[Context], Any]) -> tuple[Value | None, ...] | None:
    """What `converter` makes of the node, where all operands are small constants; None where that is not to be had."""
    if cx.node.domain not in ("", "ai.onnx") or not is_evaluated(cx):
        return None
    made, cx.graph.made = cx.graph.made, {}
    aside = ir.Module.create()
    try:
        with ir.InsertionPoint(aside.body), np.errstate(all="ignore"):
            results = converter(cx)
            values = results if isinstance(results, tuple | list) else (results,)
            return _arrays(cx, aside, values)
    except UserError:       # the converter, called again, reports what is wrong
        return None
    finally:
        cx.graph.made = made


def _arrays(cx: Context, aside: Any, values: Sequence[Any]) -> tuple[Value | None, ...] | None:
    built = [v for v in values if v is not None and not isinstance(v, Value)]
    kinds = [xt.TensorType.of(v) for v in built]
    counts = [symbolic.product(k.shape) for k in kinds]
    if not all(isinstance(n, int) and n <= LIMIT for n in counts):
        return None
    env: dict[Any, Array] = {}
    Interpreter(aside, cx.graph.model.weights).block(aside.body, env, {})
    return tuple(v if v is None or isinstance(v, Value) else Tensor.of_array(one_nan(env[v])) for v in values)
