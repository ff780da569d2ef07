"""Random products, convolutions, windows and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from graph_builder import Builder, Value
from graph_step import F32, a_float, ints, pads, step


@step(3)
def matmul(b: Builder) -> None:
    x = a_float(b, 1)
    if x is None:
        return
    def fits(v: Value) -> bool:
        k = -2 if v.rank > 1 else -1
        return v.dtype == x.dtype and v.rank >= 1 and all(v.worlds[i].shape[k] == x.worlds[i].shape[-1] for i in (0, 2))
    y = b.value(fits) if b.chance(0.4) else None
    if y is None:
        if not x.static(x.rank - 1):
            y = b.emit("Transpose", x, perm=[*range(x.rank - 2), x.rank - 1, x.rank - 2], copies=True)[0] \
                if x.rank >= 2 else None
        else:
            n = b.pick([1, 2, 3, 8, 16, 17, 33])
            y = b.weight(x.shape[-1], n, dtype=x.dtype, scale=0.3)
    if y is not None:
        out = b.emit("MatMul", x, y)
        if out and out[0].rank and out[0].static(out[0].rank - 1) and b.chance(0.5):
            b.emit("Add", out[0], b.weight(out[0].shape[-1], dtype=x.dtype))


@step(1)
def gemm(b: Builder) -> None:
    x = b.value(lambda v: v.dtype == F32 and v.rank == 2)
    if x is None:
        return
    a_t, b_t = b.int(0, 1), b.int(0, 1)
    k = 0 if a_t else 1
    if x.static(k):
        n = b.pick([1, 4, 7, 16, 19])
        w = b.weight(*((n, x.shape[k]) if b_t else (x.shape[k], n)))
        c = b.pick([[], [b.weight(n)], [b.weight(1, n)], [b.weight(1)]])
        b.emit("Gemm", x, w, *c, transA=a_t, transB=b_t, alpha=b.pick([1.0, 0.5]), beta=b.pick([1.0, 2.0]))


@step(0.7)
def einsum(b: Builder) -> None:
    x = b.value(lambda v: v.dtype == F32 and v.rank == 3)
    if x is not None:
        match b.int(0, 3):
            case 0:
                b.emit("Einsum", x, x, equation=b.pick(["abc,abd->acd", "abc,adc->abd"]))
            case 1:
                b.emit("Einsum", x, equation=b.pick(["abc->cab", "abc->b", "abc->ca"]))
            case 2 if x.static(2):
                b.emit("Einsum", x, b.weight(x.shape[2], 3, 4), equation="abc,cde->adbe")
            case _ if x.static(0) and x.static(2):
                b.emit("Einsum", x, b.weight(x.shape[0], x.shape[2], 5), equation="abc,acd->abd")


@step(3)
def conv(b: Builder) -> None:
    x = b.value(lambda v: v.is_float and 3 <= v.rank <= 5 and v.static(1))
    if x is None or min(x.shape) == 0:
        return
    n, c = x.rank - 2, x.shape[1]
    group = b.pick([1, 1, c, *[g for g in (2, 3, 4) if c % g == 0]])
    out = group * b.pick([1, 2, 3, 4, 8])
    kernel = [b.int(1, 3)] * n if b.chance(0.7) else [b.int(1, 4) for _ in range(n)]
    extra = pads(b, n)
    attrs: dict[str, Any] = dict(extra, group=group, kernel_shape=kernel)
    if b.chance(0.4):
        attrs["strides"] = [b.int(1, 3) for _ in range(n)]
    if b.chance(0.2) and "auto_pad" not in extra:
        attrs["dilations"] = [b.int(1, 2) for _ in range(n)]
    bias = [b.weight(out, dtype=x.dtype)] * b.int(0, 1)
    y = b.emit("Conv", x, b.weight(out, c // group, *kernel, dtype=x.dtype, scale=0.5), *bias, **attrs)
    if y and b.chance(0.5):
        b.emit("Relu", y[0], copies=True)


@step(0.7)
def conv_transpose(b: Builder) -> None:
    x = b.value(lambda v: v.dtype == F32 and 3 <= v.rank <= 4 and v.static(1))
    if x is None or min(x.shape) == 0:
        return
    n, c = x.rank - 2, x.shape[1]
    group = b.pick([1, 1, c])
    kernel = [b.int(1, 4) for _ in range(n)]
    strides = [b.int(1, 3) for _ in range(n)]
    attrs: dict[str, Any] = {"group": group, "strides": strides, "kernel_shape": kernel,
                             "pads": [b.int(0, min(kernel) - 1) for _ in range(2 * n)]}
    if b.chance(0.3):
        attrs["output_padding"] = [b.int(0, s - 1) for s in strides]
    if b.chance(0.2):
        attrs["dilations"] = [b.int(1, 2) for _ in range(n)]
    out = b.pick([1, 2, 3])
    b.emit("ConvTranspose", x, b.weight(c, out, *kernel, scale=0.5), *[b.weight(out * group)] * b.int(0, 1), **attrs)


@step(2)
def pool(b: Builder) -> None:
    x = b.value(lambda v: v.is_float and 3 <= v.rank <= 5)
    if x is None or min(x.shape) == 0:
        return
    n = x.rank - 2
    op = b.pick(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool"])
    if op.startswith("Global"):
        b.emit(op, x, copies=op == "GlobalMaxPool")
        return
    kernel = [b.int(1, 4) for _ in range(n)]
    attrs: dict[str, Any] = dict(pads(b, n, min(kernel) - 1), kernel_shape=kernel)
    if b.chance(0.6):
        attrs["strides"] = [b.int(1, 3) for _ in range(n)]
    if b.chance(0.3) and "auto_pad" not in attrs:
        attrs["ceil_mode"] = 1
    if b.chance(0.2) and "auto_pad" not in attrs:
        attrs["dilations"] = [b.int(1, 2) for _ in range(n)]
    if op == "AveragePool":
        attrs["count_include_pad"] = b.int(0, 1)
    b.emit(op, x, outputs=2 if op == "MaxPool" and x.exact and b.chance(0.2) else 1, copies=op == "MaxPool", **attrs)

@step(1)
def attention(b: Builder) -> None:
    """softmax(q k^T / s + mask) v of one value's projections."""
    x = b.value(lambda v: v.dtype == F32 and v.rank == 3 and v.static(2) and v.largest < 5 and v.shape[2] > 0)
    if x is None:
        return
    heads, width, c = b.int(1, 3), b.pick([4, 8, 16]), x.shape[2]
    parts = []
    for _ in range(3):
        y = b.emit("MatMul", x, b.weight(c, heads * width, scale=0.3))
        y = y and b.emit("Reshape", y[0], ints(b, 0, 0, heads, width), copies=True)
        y = y and b.emit("Transpose", y[0], perm=[0, 2, 1, 3], copies=True)
        if not y:
            return
        parts.append(y[0])
    k = b.emit("Transpose", parts[1], perm=[0, 1, 3, 2], copies=True)
    s = k and b.emit("MatMul", parts[0], k[0])
    s = s and b.emit("Mul", s[0], b.constant(0.3, F32))
    if s and b.chance(0.5) and s[0].is_static:
        mask = np.where(np.tril(np.ones(s[0].shape[-2:])) > 0, 0, -10000.0)
        s = b.emit("Add", s[0], b.constant(mask, F32)) or s
    s = s and b.emit("Softmax", s[0], axis=-1)
    y = s and b.emit("MatMul", s[0], parts[2])
    y = y and b.emit("Transpose", y[0], perm=[0, 2, 1, 3], copies=True)
    y and b.emit("Reshape", y[0], ints(b, 0, 0, heads * width), copies=True)


@step(1)
def norm_by_hand(b: Builder) -> None:
    """A layer or RMS norm of primitive ops."""
    x = b.value(lambda v: v.dtype == F32 and v.rank >= 2 and all(w.size for w in v.worlds))
    if x is None:
        return
    axes, centred = ints(b, -1), b.chance(0.5)
    mean = b.emit("ReduceMean", x, axes) if centred else []
    d = b.emit("Sub", x, mean[0])[:1] if mean else [x]
    square = d and b.emit("Mul", d[0], d[0])
    var = square and b.emit("ReduceMean", square[0], axes)
    var = var and b.emit("Add", var[0], b.constant(0.1, F32))
    root = var and b.emit("Sqrt", var[0])
    y = root and b.emit("Div", d[0], root[0])
    if y and y[0].static(x.rank - 1):
        b.emit("Mul", y[0], b.weight(x.shape[-1]))


@step(0.5)
def recurrent(b: Builder) -> None:
    x = b.value(lambda v: v.dtype == F32 and v.rank == 3 and v.static(2) and v.largest < 10
                and all(w.size for w in v.worlds))
    if x is None:
        return
    op, gates = b.pick([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    h, c = b.int(1, 6), x.shape[2]
    direction = b.pick(["forward", "reverse", "bidirectional"])
    n = 2 if direction == "bidirectional" else 1
    attrs: dict[str, Any] = {"linear_before_reset": b.int(0, 1)} if op == "GRU" else {}
    b.emit(op, x, b.weight(n, gates * h, c, scale=0.3), b.weight(n, gates * h, h, scale=0.3),
           *[b.weight(n, 2 * gates * h)] * b.int(0, 1), outputs=3 if op == "LSTM" else 2, hidden_size=h,
           direction=direction, **attrs)
