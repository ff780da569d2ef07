"""Random pointwise steps."""

from __future__ import annotations

import numpy as np
from graph_builder import Builder
from graph_step import F32, a_float, any_value, partner, step
from onnx import TensorProto

SMOOTH = ["Sigmoid", "Tanh", "Erf", "Gelu", "Elu", "HardSwish", "Softplus", "Softsign", "Sin", "Cos", "Atan", "Mish",
          "Selu", "Celu", "HardSigmoid", "LeakyRelu"]


@step(4)
def unary(b: Builder) -> None:
    x = a_float(b)
    if x is None:
        return
    if b.chance(0.4):
        b.emit(b.pick(["Relu", "Abs", "Neg", "Identity"]), x, copies=True)
    elif x.exact and b.chance(0.2):
        b.emit(b.pick(["Floor", "Ceil", "Round", "Sign"]), x, exact=True)
    elif x.largest < 6 and b.chance(0.15):
        b.emit("Exp", x)
    elif x.smallest > 0.05 and b.chance(0.3):
        b.emit("Reciprocal", x)
    else:
        b.emit(b.pick(SMOOTH), x)


@step(1)
def positive(b: Builder) -> None:
    """Ops of positive numbers."""
    x = a_float(b)
    if x is not None:
        y = b.emit("Abs", x, copies=True)
        y = y and b.emit("Add", y[0], b.constant(0.3, x.dtype))
        if y:
            op = b.pick(["Sqrt", "Log", "Reciprocal", "Pow"])
            b.emit(op, y[0], *[b.constant(b.pick([0.5, 2.0, 3.0, -0.5, 1.7]), x.dtype)] * (op == "Pow"))


@step(1)
def clip(b: Builder) -> None:
    x = b.value(lambda v: v.dtype in (F32, np.float16, np.int32, np.int64))
    if x is not None:
        low, high = b.pick([(-1, 1), (0, 6), (None, 1), (-2, None)])
        b.emit("Clip", x, *[b.constant(c, x.dtype) if c is not None else None for c in (low, high)], copies=True)


@step(5)
def binary(b: Builder) -> None:
    x = a_float(b)
    if x is not None:
        y = partner(b, x)
        op = b.pick(["Add", "Sub", "Mul", "Max", "Min", "Div", "PRelu", "Mean", "Sum"])
        if op == "Div" and y.smallest < 0.2 or op == "PRelu" and any(
                np.broadcast_shapes(y.worlds[i].shape, x.worlds[i].shape) != x.worlds[i].shape for i in (0, 2)):
            op = "Mul"
        pair = (y, x) if op not in ("Div", "PRelu") and b.chance(0.5) else (x, y)
        b.emit(op, *pair, copies=op in ("Max", "Min"))


@step(2)
def integers(b: Builder) -> None:
    x = b.value(lambda v: v.dtype.kind in "iu")
    if x is not None:
        y = partner(b, x)
        op = b.pick(["Add", "Sub", "Mul", "Max", "Min", "Div", "Mod", "Neg", "Abs", "BitwiseAnd", "BitwiseXor"])
        if op in ("Neg", "Abs"):
            b.emit(op, x, exact=True)
        elif op in ("Div", "Mod"):
            y = b.constant(b.pick([1, 2, 3, 5, 7]), x.dtype)
            b.emit(op, x, y, exact=True, **({"fmod": int(b.chance(0.3))} if op == "Mod" else {}))
        else:
            b.emit(op, x, y, exact=True)


@step(2)
def compare(b: Builder) -> None:
    x = b.value(lambda v: v.exact and v.dtype.kind in "fiu")
    if x is not None:
        y = partner(b, x)
        if y.exact:
            b.emit(b.pick(["Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"]), x, y, exact=True)


@step(1)
def logic(b: Builder) -> None:
    x = b.value(lambda v: v.dtype == bool)
    if x is not None:
        if b.chance(0.3):
            b.emit("Not", x, exact=True)
        else:
            b.emit(b.pick(["And", "Or", "Xor"]), x, partner(b, x), exact=True)


@step(2)
def where(b: Builder) -> None:
    c = b.value(lambda v: v.dtype == bool)
    x = any_value(b)
    if c is not None and x is not None:
        y = partner(b, x)
        b.emit("Where", c, *((x, y) if b.chance(0.5) else (y, x)), copies=True)


@step(1.5)
def cast(b: Builder) -> None:
    x = any_value(b)
    if x is None:
        return
    wanted = [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.FLOAT16]
    if x.exact and x.largest < 100:
        wanted += [TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL, TensorProto.INT8]
    b.emit("Cast", x, to=b.pick(wanted), exact=True)
