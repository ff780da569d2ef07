"""Nodes whose operands are all constants: evaluated by the reference implementation that comes with onnx."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import AttributeProto, helper
from onnx.reference import ReferenceEvaluator

from xcc.dialects.xt.numeric import one_nan
from xcc.dialects.xt.types import NUMPY_DTYPES
from xcc.frontends.onnx.context import Array, Context, Tensor

__all__ = ["LIMIT", "evaluate", "grows", "is_evaluated"]

LIMIT = 1024
"""What has more elements than this is left to the converters: constants are kept out of memory, and each symbolic
element of a value takes its time."""

_KEPT = {"Bernoulli", "DequantizeLinear", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
         "RandomUniformLike"}
"""Never evaluated: random numbers, and bytes that a contraction may take as they are."""

_KNOWN = set(NUMPY_DTYPES.values())


def evaluate(cx: Context) -> tuple[Tensor, ...] | None:
    """All operands are constants: the reference implementation's results, None when large or not to be had."""
    if cx.op == "Constant":
        return (Tensor.of_array(_constant(cx)),)
    if not is_evaluated(cx):
        return None
    names = [n for n in dict.fromkeys(cx.node.input) if n]
    outputs = [n for n in cx.node.output if n]
    graph = helper.make_graph([cx.node], "node", [_any(n) for n in names], [_any(n) for n in outputs])
    feeds = {n: np.array(t.const, order="C") for n, t in zip(cx.node.input, cx.tensors, strict=True)
             if n and t is not None and t.const is not None}
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(graph, opsets={"": cx.opset}).run(None, feeds)
    except Exception:  # the converter reports what is wrong, with the node's name
        return None
    by_name = dict(zip(outputs, results, strict=True))
    if any(not isinstance(r, np.ndarray | np.generic) or np.asarray(r).dtype not in _KNOWN for r in results):
        return None
    out = [by_name.get(n) for n in cx.node.output]
    return tuple(None if r is None else Tensor.of_array(one_nan(np.asarray(r))) for r in out)  # type: ignore[misc]


def is_evaluated(cx: Context) -> bool:
    """Whether all operands are small constants, and the result is not to be had from ops in the program instead."""
    if cx.op in _KEPT or any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in cx.node.attribute):
        return False
    if not all(v is None or isinstance(v, Tensor) for v in cx.inputs):
        return False
    operands = [t for t in cx.tensors if t is not None]
    return len(operands) > 0 and all(t.const is not None and t.const.size <= LIMIT for t in operands) and not grows(cx)


def _any(name: str) -> Any:
    return helper.make_value_info(name, helper.make_tensor_type_proto(1, None))


def grows(cx: Context) -> bool:
    """Whether a constant result would be large: those stay ops (a broadcast needs no storage)."""
    if cx.op in ("Expand", "ConstantOfShape", "EyeLike", "Tile", "OneHot", "Range"):
        if cx.op == "Range":
            start, limit, delta = (cx.const(i).reshape(-1)[0] for i in range(3))
            return bool(delta == 0 or (limit - start) / delta > LIMIT)
        shape = cx.tensors[1 if cx.op in ("Expand", "Tile") else 0]
        return shape is None or shape.const is None or bool(np.prod(shape.const.astype(float)) > LIMIT)
    return False


def _constant(cx: Context) -> Array:
    attrs = cx.attrs
    if attrs.get("value") is not None:
        if not isinstance(attrs["value"], np.ndarray):
            cx.fail("a string constant is not supported")
        return np.asarray(attrs["value"])
    if attrs.get("sparse_value") is not None:
        return cx.graph.model.source.dense(attrs["sparse_value"])
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32), ("value_int", np.int64),
                        ("value_ints", np.int64)):
        if name in attrs:
            return np.array(attrs[name], dtype)
    cx.fail("a constant without a numeric value is not supported")
