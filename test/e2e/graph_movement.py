"""Random steps that move elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from graph_builder import Builder, Value
from graph_step import F32, any_value, ints, step


@step(2)
def transpose(b: Builder) -> None:
    x = any_value(b, 2)
    if x is not None:
        b.emit("Transpose", x, perm=[int(p) for p in b.rng.permutation(x.rank)], copies=True)


@step(3)
def reshape(b: Builder) -> None:
    x = any_value(b, 1)
    if x is None:
        return
    match b.int(0, 4):
        case 0:
            b.emit("Flatten", x, axis=b.int(0, x.rank), copies=True)
        case 1:
            b.emit("Unsqueeze", x, ints(b, b.int(-x.rank - 1, x.rank)), copies=True)
        case 2 if 1 in x.shape:
            b.emit("Squeeze", x, ints(b, b.pick([i for i, d in enumerate(x.shape) if d == 1])), copies=True)
        case 3:     # neighbours merge, sizes stay where they are symbolic
            first = b.int(0, x.rank - 1)
            last = b.int(first, min(first + 2, x.rank - 1))
            dims = [0 if i < first else d for i, d in enumerate(x.shape)]
            rest = x.shape[last + 1:]
            if all(x.static(i) for i in range(last + 1, x.rank)) and x.worlds[0].size and x.worlds[2].size:
                b.emit("Reshape", x, ints(b, *dims[:first], -1, *rest), copies=True)
        case _:     # one dim splits
            axis = b.int(0, x.rank - 1)
            parts = [p for p in range(1, x.shape[axis] + 1)
                     if all(w.shape[axis] % p == 0 for w in x.worlds)] or [1]
            if all(x.static(i) for i in range(axis + 1, x.rank)) and x.worlds[0].size and x.worlds[2].size:
                part = b.pick(parts)
                pair = (-1, part) if not x.static(axis) or b.chance(0.5) else (part, x.shape[axis] // part)
                b.emit("Reshape", x, ints(b, *[0] * axis, *pair, *x.shape[axis + 1:]), copies=True)


@step(1)
def reshape_by_shape(b: Builder) -> None:
    """Sizes computed from other values' shapes, as exporters write them."""
    x, y = any_value(b, 2), any_value(b, 1)
    if x is None or y is None:
        return
    dims = b.emit("Shape", x, exact=True)
    if dims:
        first = b.emit("Slice", dims[0], ints(b, 0), ints(b, 1), copies=True)
        shape = first and b.emit("Concat", first[0], ints(b, -1), axis=0, copies=True)
        if shape:
            b.emit("Reshape", x, shape[0], copies=True)
    if b.chance(0.4):
        other = b.emit("Shape", y, exact=True)
        other and b.emit("ConstantOfShape", other[0], exact=True)


@step(2)
def slice_(b: Builder) -> None:
    x = any_value(b, 1)
    if x is None:
        return
    axes = sorted({b.int(0, x.rank - 1) for _ in range(b.int(1, 2))})
    starts, ends, steps = [], [], []
    for _ in axes:
        if b.chance(0.25):
            starts.append(b.pick([-1, 100, -2, 3]))
            ends.append(b.pick([-100, -(1 << 62), 0]))
            steps.append(b.pick([-1, -1, -2]))
        else:
            starts.append(b.pick([0, 1, 2, -3, -100]))
            ends.append(b.pick([100, 3, -1, (1 << 63) - 1, 4]))
            steps.append(b.pick([1, 1, 2, 3]))
    b.emit("Slice", x, *[ints(b, *n) for n in (starts, ends, axes, steps)], copies=True)


@step(2)
def concat(b: Builder) -> None:
    x = any_value(b, 1)
    if x is None:
        return
    axis = b.int(0, x.rank - 1)

    def fits(v: Value) -> bool:
        return v.dtype == x.dtype and v.rank == x.rank and all(
            v.worlds[i].shape[d] == x.worlds[i].shape[d] for i in (0, 2) for d in range(x.rank) if d != axis)
    parts = [b.value(fits) for _ in range(b.int(2, 3))]
    if b.chance(0.3) and x.is_static:
        parts.append(b.weight(*x.shape[:axis], b.int(1, 3), *x.shape[axis + 1:], dtype=x.dtype))
    b.emit("Concat", *parts, axis=axis - x.rank if b.chance(0.5) else axis, copies=True)


@step(1)
def split(b: Builder) -> None:
    x = any_value(b, 1)
    if x is None:
        return
    axis = b.int(0, x.rank - 1)
    n = x.shape[axis]
    if x.static(axis) and n >= 2:
        first = b.int(1, n - 1)
        b.emit("Split", x, ints(b, first, n - first), axis=axis, outputs=2, copies=True)
    elif n >= 2:
        b.emit("Split", x, axis=axis, outputs=2, num_outputs=2, copies=True)


@step(2)
def pad(b: Builder) -> None:
    x = b.value(lambda v: 1 <= v.rank <= 4)
    if x is None or not all(w.size for w in x.worlds):
        return
    mode = b.pick(["constant", "constant", "reflect", "edge", "wrap"])
    most = 2 if mode != "reflect" else max(0, min(2, min(min(w.shape) for w in x.worlds) - 1))
    amounts = [b.int(-1 if mode == "constant" and b.chance(0.1) else 0, most) for _ in range(2 * x.rank)]
    value = [b.constant(b.pick([0, 1, 3]), x.dtype)] * (mode == "constant" and b.chance(0.6))
    b.emit("Pad", x, ints(b, *amounts), *value, mode=mode, copies=True)


@step(1)
def stretch(b: Builder) -> None:
    x = b.value(lambda v: 1 <= v.rank <= 4)
    if x is None:
        return
    if b.chance(0.5):
        b.emit("Tile", x, ints(b, *[b.int(1, 2) for _ in range(x.rank)]), copies=True)
    else:
        b.emit("Expand", x, ints(b, *[b.int(1, 3) for _ in range(b.int(0, 1))],
                                 *[b.int(1, 4) if d == 1 and x.static(i) else 1 for i, d in enumerate(x.shape)]),
               copies=True)


@step(2)
def gather(b: Builder) -> None:
    x = any_value(b, 1)
    if x is None:
        return
    axis = b.int(0, x.rank - 1)
    size = min(w.shape[axis] for w in x.worlds)
    if not size:
        return
    shape = [b.int(1, 3) for _ in range(b.int(0, 2))]
    if b.chance(0.3):
        known = b.value(lambda v: v.dtype in (np.int64, np.int32) and v.rank <= 2 and v.exact)
        moved = known and b.emit("Mod", known, b.constant(size, known.dtype), exact=True)
        if moved:
            b.emit("Gather", x, moved[0], axis=axis, copies=True)
            return
    if b.chance(0.2):
        shape = [b.int(1, 3) if i == axis or not x.static(i) else b.int(1, x.shape[i]) for i in range(x.rank)]
        if not all(s <= min(w.shape[i] for w in x.worlds) for i, s in enumerate(shape) if i != axis):
            return
        b.emit("GatherElements", x, b.constant(b.rng.integers(-size, size, shape), np.int64), axis=axis, copies=True)
    elif b.chance(0.15) and x.rank >= 2:
        sizes = [min(w.shape[i] for w in x.worlds) for i in range(2)]
        if min(sizes):
            indices = np.stack([b.rng.integers(-s, s, shape) for s in sizes], -1)
            b.emit("GatherND", x, b.constant(indices, np.int64), copies=True)
    else:
        b.emit("Gather", x, b.constant(b.rng.integers(-size, size, shape), b.pick([np.int64, np.int32])), axis=axis,
               copies=True)


@step(1.5)
def scatter(b: Builder) -> None:
    x = b.value(lambda v: v.rank >= 1 and v.dtype in (F32, np.int32, np.int64))
    if x is None or not all(w.size for w in x.worlds):
        return
    sizes = [min(w.shape[i] for w in x.worlds) for i in range(x.rank)]
    reduction = b.pick(["none", "add", "mul", "max", "min"])
    exact = not x.is_float or reduction in ("none", "max", "min")
    if b.chance(0.5):
        axis = b.int(0, x.rank - 1)
        shape = [b.int(1, s) for s in sizes]
        if reduction == "none":     # which of two writes stays is not defined
            lines = [b.rng.permutation(sizes[axis])[:shape[axis]]
                     for _ in range(int(np.prod(shape)) // shape[axis])]
            rest = [s for i, s in enumerate(shape) if i != axis]
            indices = np.moveaxis(np.array(lines).reshape(*rest, shape[axis]), -1, axis)
        else:
            indices = b.rng.integers(-sizes[axis], sizes[axis], shape)
        b.emit("ScatterElements", x, b.constant(indices, np.int64), b.weight(*shape, dtype=x.dtype), axis=axis,
               reduction=reduction, exact=exact)
    else:
        depth, n = b.int(1, x.rank), b.int(1, 4)
        if not all(x.static(i) for i in range(depth, x.rank)):
            return
        flat = int(np.prod(sizes[:depth]))
        n = min(n, flat)
        picked = b.rng.permutation(flat)[:n] if reduction == "none" else b.rng.integers(0, flat, n)
        indices = np.stack(np.unravel_index(picked, sizes[:depth]), -1)
        b.emit("ScatterND", x, b.constant(indices, np.int64), b.weight(n, *x.shape[depth:], dtype=x.dtype),
               reduction=reduction, exact=exact)


@step(1)
def blocks(b: Builder) -> None:
    x = b.value(lambda v: v.dtype == F32 and v.rank == 4)
    if x is None:
        return
    if b.chance(0.5) and x.shape[1] % 4 == 0 and x.static(1):
        b.emit("DepthToSpace", x, blocksize=2, mode=b.pick(["DCR", "CRD"]), copies=True)
    elif all(w.shape[i] % 2 == 0 for w in x.worlds for i in (2, 3)):
        b.emit("SpaceToDepth", x, blocksize=2, copies=True)


@step(1.5)
def resize(b: Builder) -> None:
    x = b.value(lambda v: v.dtype == F32 and v.rank in (3, 4) and all(w.size for w in v.worlds))
    if x is None:
        return
    mode = b.pick(["nearest", "linear", "linear", "cubic"])
    if mode == "cubic" and x.rank != 4:
        return
    attrs: dict[str, Any] = {"coordinate_transformation_mode": b.pick(
        ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]), "mode": mode}
    if mode == "nearest":
        attrs["nearest_mode"] = b.pick(["round_prefer_floor", "floor", "ceil", "round_prefer_ceil"])
    ones = [1.0] * 2
    scales = ones + [b.pick([2.0, 0.5, 1.0, 3.0, 1.5]) for _ in range(x.rank - 2)]
    if attrs["coordinate_transformation_mode"] == "align_corners":      # where onnxruntime rounds the result's size
        scales = [s if s >= 1 and s == int(s) else 2.0 for s in scales]
    if b.chance(0.6) or not (x.static(0) and x.static(1)):
        b.emit("Resize", x, None, b.constant(scales, F32), copies=mode == "nearest", **attrs)
    else:
        b.emit("Resize", x, None, None, ints(b, *x.shape[:2], *[b.int(1, 9) for _ in range(x.rank - 2)]),
               copies=mode == "nearest", **attrs)


@step(1)
def masks(b: Builder) -> None:
    x = b.value(lambda v: v.rank >= 2 and v.dtype in (F32, np.int64))
    if x is None:
        return
    if b.chance(0.6):
        b.emit("Trilu", x, b.constant(b.int(-2, 2), np.int64), upper=b.int(0, 1), copies=True)
    else:
        i = b.value(lambda v: v.dtype == np.int64 and v.rank <= 2 and v.exact)
        if i is not None:
            b.emit("OneHot", i, b.constant(b.int(2, 6), np.int64), b.constant([0, 2], F32),
                   axis=b.pick([-1, 0]), exact=True)


@step(0.5)
def found(b: Builder) -> None:
    """Sizes that depend on data."""
    x = b.value(lambda v: v.exact and v.rank >= 1 and v.dtype in (bool, F32, np.int64))
    if x is not None:
        if b.chance(0.6):
            b.emit("NonZero", x, exact=True)
        else:
            axis = b.int(0, x.rank - 1)
            n = min(w.shape[axis] for w in x.worlds)
            b.emit("Compress", x, b.constant(b.rng.random(n) < 0.5, bool), axis=axis, copies=True)
