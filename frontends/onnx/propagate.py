"""Values known at import: constants are computed, shape arithmetic stays symbolic.

A node whose operands are all small constants is evaluated by the reference implementation that comes with onnx, unless
it computes floats otherwise than by arithmetic (:mod:`xcc.frontends.onnx.constant_floats`). A node
that works on symbolic dims (object arrays of ints, Exprs and Ratios) is evaluated by a rule of :data:`RULES`. Whatever
no rule can decide is left to the op's converter, and becomes host-scalar arithmetic in the program.
"""

from __future__ import annotations

import numpy as np

from xcc.bounds import Undecided
from xcc.frontends.onnx import registry
from xcc.frontends.onnx.context import Array, Context, Tensor
from xcc.frontends.onnx.element_types import DType, from_onnx, is_floating
from xcc.frontends.onnx.evaluate import LIMIT, evaluate, grows
from xcc.frontends.onnx.ratio import parts
from xcc.frontends.onnx.shape_arithmetic import ARITHMETIC, Rule
from xcc.frontends.onnx.shape_movement import MOVEMENT
from xcc.symbolic import LONGEST, Dim, Expr

__all__ = ["RULES", "propagate"]

RULES: dict[str, Rule] = ARITHMETIC | MOVEMENT


def propagate(cx: Context) -> tuple[Tensor, ...] | None:
    """The node's results where import can tell them, else None."""
    if cx.node.domain not in ("", "ai.onnx"):
        return None
    if cx.op in ("Shape", "Size"):
        return None
    if not all(t is None or isinstance(t, Tensor) for t in cx.inputs):
        return None
    if cx.op == "Identity":
        return (cx.tensor(0),)
    if not any(t is not None for t in cx.tensors) and cx.op != "Constant":
        return None
    if any(t is not None and t.data is None for t in cx.tensors):
        return None
    if all(t is None or t.const is not None for t in cx.tensors):
        known = evaluate(cx)
        return None if known is not None and _differs(cx, known) else known
    return _symbolic(cx)


def _differs(cx: Context, known: tuple[Tensor | None, ...]) -> bool:
    """Whether numpy may compute `known` otherwise on another machine, and there is a converter that does not.

    What is arithmetic of sizes, too, consists of what IEEE 754 defines.
    """
    return cx.op not in RULES and cx.op != "Constant" and any(t is not None and is_floating(t.dtype) for t in known) \
        and registry.lookup("", cx.op, cx.opset) is not None


def _symbolic(cx: Context) -> tuple[Tensor, ...] | None:
    function = RULES.get(cx.op)
    if function is None or any(t is not None and t.data is not None and t.data.size > LIMIT for t in cx.tensors):
        return None
    if cx.op in ("Expand", "Tile") and grows(cx):
        return None
    try:
        result = function(cx, [np.array(None) if t is None else _object(t.data) for t in cx.tensors])
    except Undecided:
        return None
    dtype = _result_dtype(cx)
    results = [np.asarray(r, object) for r in (result if isinstance(result, tuple) else (result,))]
    if any(_is_long(d) for r in results for d in r.flat):
        return None
    return tuple(Tensor.of_dims(r, dtype) for r in results)


def _is_long(d: int | Expr) -> bool:
    """Whether arithmetic with `d` is better left to a run."""
    return any(isinstance(n, Expr) and (len(str(n)) > LONGEST or _largest(n) >> 62) for n in parts(d))


def _largest(d: Dim) -> int:
    """The largest number in `d`."""
    if not isinstance(d, Expr):
        return abs(d)
    return max(max(abs(c), *(_largest(a) for atom in atoms for a in atom[1:]), 0) for atoms, c in d.terms)


def _object(data: Array | None) -> Array:
    assert data is not None
    if data.dtype == object:
        return data
    out = np.empty(data.shape, object)
    out[...] = data.tolist()
    return out


def _result_dtype(cx: Context) -> DType:
    if cx.op in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Not", "And", "Or"):
        return np.dtype(np.bool_)
    if cx.op == "Cast":
        return from_onnx(cx.attr("to"))
    if cx.op == "ConstantOfShape":
        return cx.attr("value").dtype if cx.attr("value") is not None else np.dtype(np.float32)
    return cx.dtype(1) if cx.op in ("Where", "CastLike") else cx.dtype(0)
