"""Random reductions, scans, softmaxes and norms."""

from __future__ import annotations

import numpy as np
from graph_builder import Builder
from graph_step import F32, a_float, ints, step


@step(3)
def reduce(b: Builder) -> None:
    x = b.value(lambda v: v.rank >= 1 and (v.is_float or v.dtype in (np.int32, np.int64)))
    if x is None:
        return
    kinds = ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare"]
    kinds += ["ReduceMean", "ReduceL2", "ReduceLogSumExp"] if x.is_float and x.largest < 20 else []
    op, axes = b.pick(kinds), [i for i in range(x.rank) if b.chance(0.5)]
    axes = [i - x.rank if b.chance(0.5) else i for i in axes]
    if any(w.size == 0 for w in x.worlds):
        op = "ReduceSum"
    operand = [ints(b, *axes)] if axes else []
    b.emit(op, x, *operand, keepdims=b.int(0, 1), exact=not x.is_float, copies=op in ("ReduceMax", "ReduceMin"))


@step(1)
def arg(b: Builder) -> None:
    x = b.value(lambda v: v.rank >= 1 and v.exact and v.dtype in (F32, np.int32, np.int64))
    if x is not None:
        b.emit(b.pick(["ArgMax", "ArgMin"]), x, axis=b.int(-x.rank, x.rank - 1), keepdims=b.int(0, 1), exact=True,
               select_last_index=b.int(0, 1))


@step(1)
def top_k(b: Builder) -> None:
    x = b.value(lambda v: v.rank >= 1 and v.exact and v.dtype in (F32, np.int32, np.int64))
    if x is not None:
        axis = b.int(0, x.rank - 1)
        size = min(w.shape[axis] for w in x.worlds)
        if size:
            b.emit("TopK", x, ints(b, b.int(1, size)), outputs=2, axis=axis, largest=b.int(0, 1), exact=True)


@step(1)
def cumulative(b: Builder) -> None:
    x = b.value(lambda v: v.rank >= 1 and v.dtype in (F32, np.int32, np.int64))
    if x is not None:
        b.emit("CumSum", x, b.constant(b.int(-x.rank, x.rank - 1), np.int64), exclusive=b.int(0, 1),
               reverse=b.int(0, 1), exact=not x.is_float)


@step(2)
def softmax(b: Builder) -> None:
    x = a_float(b, 1)
    if x is not None and x.largest < 50:
        if b.chance(0.1) and x.exact:
            b.emit("Hardmax", x, axis=b.int(-x.rank, x.rank - 1), exact=True)
        else:
            b.emit(b.pick(["Softmax", "Softmax", "LogSoftmax"]), x, axis=b.int(-x.rank, x.rank - 1))


@step(2)
def norm(b: Builder) -> None:
    x = a_float(b, 2)
    if x is None or x.dtype == np.float16:
        return
    match b.int(0, 4):
        case 0:
            axis = b.int(1, x.rank - 1)
            if all(x.static(i) for i in range(axis, x.rank)):
                tail = x.shape[axis:]
                b.emit("LayerNormalization", x, b.weight(*tail), *[b.weight(*tail)] * b.int(0, 1), axis=axis,
                       epsilon=0.01)
        case 1 if x.rank >= 3 and x.static(1):
            b.emit("InstanceNormalization", x, b.weight(x.shape[1]), b.weight(x.shape[1]), epsilon=0.01)
        case 2 if x.rank >= 3 and x.static(1):
            c = x.shape[1]
            groups = b.pick([g for g in range(1, c + 1) if c % g == 0] or [1])
            b.emit("GroupNormalization", x, b.weight(c), b.weight(c), epsilon=0.01, num_groups=groups)
        case 3 if x.static(1):
            c = x.shape[1]
            scale, bias, mean = (b.weight(c) for _ in range(3))
            b.emit("BatchNormalization", x, scale, bias, mean, b.constant(b.rng.uniform(0.5, 2, c), F32), epsilon=0.01)
        case _:
            b.emit("LpNormalization", x, axis=b.int(-x.rank, x.rank - 1), p=b.int(1, 2))
