"""Views and movements whose coordinates are known at compile time."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcc import symbolic
from xcc.bounds import Undecided, sign
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context, RuntimeShape, Shape, Tensor
from xcc.frontends.onnx.element_types import from_onnx, is_floating
from xcc.frontends.onnx.helpers import convert, dim_scalar, element, full, scalar, split, squeeze, unsqueeze
from xcc.frontends.onnx.registry import onnx_op
from xcc.symbolic import Dim, Expr


def computed_dims(cx: Context, i: int, declared_output: bool = True) -> Shape:
    """Operand `i` as dims; where only a run could tell them, the shape that the model declares for its output."""
    try:
        return cx.dims(i)
    except RuntimeShape:
        declared = cx.declared() if declared_output else None
        if declared is None:
            raise
        return declared


@onnx_op("Reshape")
def reshape(cx: Context) -> Any:
    """reshaped = Reshape(data, shape, allowzero): 0 copies a dim, -1 is inferred."""
    wanted = computed_dims(cx, 1)
    old = cx.shape(0)
    zero_is_copy = not cx.attr("allowzero", 0)
    shape: list[Dim] = []
    for i, d in enumerate(wanted):
        if d == 0 and zero_is_copy:
            if i >= len(old):
                cx.misfit(f"the shape {_text(wanted)} copies dim {i}, which {_text(old)} lacks")
            d = old[i]
        shape.append(d)
    if shape.count(-1) > 1:
        cx.fail(f"the shape {_text(wanted)} has more than one -1")
    if -1 in shape:
        shape[shape.index(-1)] = _rest(symbolic.product(old), symbolic.product(d for d in shape if d != -1))
    return xt.reshape(cx[0], shape=tuple(shape))


def _rest(total: Dim, known: Dim) -> Dim:
    if known == 0:
        return 0
    return symbolic.floordiv(total, known)


def _text(shape: Shape | list[Dim]) -> str:
    return f"[{', '.join(str(d) for d in shape)}]"


@onnx_op("Flatten")
def flatten(cx: Context) -> Any:
    """output = Flatten(input, axis): two dims."""
    rank = cx.rank(0)
    axis = cx.attr("axis", 1)
    if not -rank <= axis <= rank:
        cx.misfit(f"axis {axis} is out of range for rank {rank}")
    axis = axis + rank if axis < 0 else axis
    shape = cx.shape(0)
    return xt.reshape(cx[0], shape=(symbolic.product(shape[:axis]), symbolic.product(shape[axis:])))


@onnx_op("Squeeze")
def squeeze_attribute(cx: Context) -> Any:
    return _squeeze(cx, cx.attr("axes"))


@onnx_op("Squeeze", since=13)
def squeeze_operand(cx: Context) -> Any:
    return _squeeze(cx, cx.static_ints(1) if cx.has(1) else None)


def _squeeze(cx: Context, axes: Any) -> Any:
    shape = cx.shape(0)
    if axes is None:
        axes = [i for i, d in enumerate(shape) if d == 1]
    axes = [cx.normal_axis(a) for a in axes]
    for a in axes:
        if isinstance(shape[a], int) and shape[a] != 1:
            cx.misfit(f"dim {a} of {_text(shape)} is not 1 and cannot be squeezed")
    return squeeze(cx[0], axes)


@onnx_op("Unsqueeze")
def unsqueeze_attribute(cx: Context) -> Any:
    return _unsqueeze(cx, cx.attr("axes"))


@onnx_op("Unsqueeze", since=13)
def unsqueeze_operand(cx: Context) -> Any:
    return _unsqueeze(cx, cx.static_ints(1))


def _unsqueeze(cx: Context, axes: Any) -> Any:
    rank = cx.rank(0) + len(axes)
    axes = [cx.normal_axis(a, rank) for a in axes]
    if len(set(axes)) != len(axes):
        cx.misfit(f"axes {axes} repeat")
    return unsqueeze(cx[0], axes)


@onnx_op("Transpose")
def transpose(cx: Context) -> Any:
    return xt.transpose(cx[0], perm=tuple(cx.attr("perm", range(cx.rank(0) - 1, -1, -1))))


@onnx_op("Identity")
def identity(cx: Context) -> Any:
    return cx.inputs[0]


@onnx_op("Expand")
def expand(cx: Context) -> Any:
    """output = Expand(input, shape), numpy broadcasting both ways."""
    old, wanted = list(cx.shape(0)), list(computed_dims(cx, 1))
    rank = max(len(old), len(wanted))
    pairs = zip([*[1] * (rank - len(old)), *old], [*[1] * (rank - len(wanted)), *wanted], strict=True)
    return xt.broadcast(cx[0], shape=tuple(o if w == 1 else w for o, w in pairs))


@onnx_op("Tile")
def tile(cx: Context) -> Any:
    """output = Tile(input, repeats), as broadcast and reshape."""
    x, shape = cx[0], cx.shape(0)
    if cx.tensor(1).data is None and cx.declared() is not None:
        declared = cx.declared()
        assert declared is not None
        repeats: Shape = tuple(symbolic.floordiv(o, n) for o, n in zip(declared, shape, strict=True))
    else:
        repeats = cx.dims(1)
    if len(repeats) != len(shape):
        cx.misfit(f"{len(repeats)} repeats for {len(shape)} dims")
    wide: list[Dim] = [d for r, n in zip(repeats, shape, strict=True) for d in (r, n)]
    spread = xt.reshape(x, shape=tuple(d for n in shape for d in (1, n)))
    return xt.reshape(xt.broadcast(spread, shape=tuple(wide)),
                      shape=tuple(r * n for r, n in zip(repeats, shape, strict=True)))


@onnx_op("Concat")
def concat(cx: Context) -> Any:
    values = cx.values()
    return xt.concatenate(*values, axis=cx.axis(default=1)) if len(values) > 1 else values[0]


@onnx_op("Split")
def split_attribute(cx: Context) -> Any:
    return _split(cx, cx.attr("split"))


@onnx_op("Split", since=13)
def split_operand(cx: Context) -> Any:
    return _split(cx, _split_sizes(cx) if cx.has(1) else None)


def _split_sizes(cx: Context) -> Shape:
    axis = cx.axis()
    declared = [cx.declared(i) for i in range(len(cx.node.output))]
    if cx.tensor(1).data is None and all(d is not None for d in declared):
        return tuple(d[axis] for d in declared if d is not None)
    return cx.dims(1)


def _split(cx: Context, sizes: Any) -> Any:
    axis = cx.axis()
    size, parts = cx.shape(0)[axis], len(cx.node.output)
    if sizes is None:
        each = symbolic.ceildiv(size, parts)
        sizes = [each] * (parts - 1)
        sizes.append(size - each * (parts - 1))
    return split(cx[0], axis, list(sizes))


@onnx_op("Slice")
def slice_attributes(cx: Context) -> Any:
    starts = cx.attr("starts")
    return _slice(cx, starts, cx.attr("ends"), cx.attr("axes", range(len(starts))), [1] * len(starts))


@onnx_op("Slice", since=10)
def slice_operands(cx: Context) -> Any:
    """output = Slice(data, starts, ends, axes?, steps?)."""
    count = cx.shape(1)[0]
    if not isinstance(count, int):
        cx.fail("the number of starts is not known")
    axes = cx.static_ints(3) if cx.has(3) else tuple(range(count))
    steps = cx.static_ints(4) if cx.has(4) else (1,) * count
    if any(cx.tensor(i).data is None for i in (1, 2)):
        return _runtime_slice(cx, axes, steps)
    return _slice(cx, cx.dims(1), cx.dims(2), axes, steps)


def _slice(cx: Context, starts: Any, ends: Any, axes: Any, steps: Any) -> Any:
    x, shape = cx[0], cx.shape(0)
    low: list[Dim] = [0] * len(shape)
    high: list[Dim] = list(shape)
    strides = [1] * len(shape)
    reverse = []
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis = cx.normal_axis(axis)
        size = shape[axis]
        if step == 0:
            cx.fail("a step of 0")
        if step > 0:
            low[axis] = _bound(cx, start, size, 0)
            high[axis] = _at_least(cx, _bound(cx, end, size, 0), low[axis])
        else:
            first = _bound(cx, start, size, -1)
            last = _bound(cx, end, size, -1)
            length = _at_least(cx, first - last, 0)
            low[axis], high[axis] = first - length + 1, first + 1
            # strides count from the front, a backward walk starts at its end: align the first element kept
            kept = symbolic.ceildiv(length, -step)
            low[axis] = first - (kept - 1) * -step
            if length == 0:
                low[axis], high[axis] = 0, 0
            reverse.append(axis)
        strides[axis] = abs(step)
    out = xt.slice(x, starts=tuple(low), limits=tuple(high), strides=tuple(strides))
    return xt.reverse(out, axes=tuple(reverse)) if reverse else out


_FAR = 1 << 30


def _bound(cx: Context, at: Dim, size: Dim, before: int) -> Dim:
    """A start or end clamped into the dim. For backward walks `before` is -1: the place before the first."""
    top = size + before
    if isinstance(at, int):
        if at >= _FAR:
            return top
        if at <= -_FAR:
            return before
        if 0 <= at <= 1 and before == 0:  # every dim that a run meets has an element
            return at
        if at == -1:
            return size - 1
        return _clamp(cx, at if at >= 0 else size + at, before, top)
    bounds = cx.graph.model.bounds
    try:
        negative = sign(bounds, at) == -2
    except Undecided:
        negative = _leading(at) < 0
    return _clamp(cx, size + at if negative else at, before, top)


def _leading(d: Dim) -> int:
    """The sign of the leading coefficient: how an expression of unknown sign is read."""
    return d.terms[0][1] if isinstance(d, Expr) else int(d)


def _clamp(cx: Context, value: Dim, low: Dim, high: Dim) -> Dim:
    return _at_most(cx, _at_least(cx, value, low), high)


def _at_least(cx: Context, value: Dim, low: Dim) -> Dim:
    try:
        s = sign(cx.graph.model.bounds, value - low)
    except Undecided:
        return symbolic.dim_max(value, low)
    return value if s > 0 or value == low else low


def _at_most(cx: Context, value: Dim, high: Dim) -> Dim:
    try:
        s = sign(cx.graph.model.bounds, high - value)
    except Undecided:
        return symbolic.dim_min(value, high)
    return value if s > 0 or value == high else high


def _runtime_slice(cx: Context, axes: tuple[int, ...], steps: tuple[int, ...]) -> Any:
    """Starts known only at run time: a box whose sizes the model declares."""
    sizes = _box_sizes(cx, axes)
    if sizes is None or any(s != 1 for s in steps):
        cx.dims(1)
        cx.dims(2)
    assert sizes is not None
    starts: list[Any] = [xt.scalar(0, "i64")] * cx.rank(0)
    given = convert(cx[1], "i64")
    for i, axis in enumerate(axes):
        axis = cx.normal_axis(axis)
        start = xt.reshape(xt.slice(given, starts=(i,), limits=(i + 1,)), shape=())
        size = dim_scalar(cx.shape(0)[axis], "i64")
        starts[axis] = xt.select(xt.compare(start, scalar(0, start), direction="lt"), xt.add(start, size), start)
    return xt.dynamic_slice(cx[0], *starts, sizes=sizes)


def _box_sizes(cx: Context, axes: tuple[int, ...]) -> Shape | None:
    return cx.declared()


@onnx_op("Pad")
def pad_attributes(cx: Context) -> Any:
    return _pad(cx, tuple(cx.attr("pads")), cx.attr("value", 0.0), range(cx.rank(0)))


@onnx_op("Pad", since=11)
def pad_operands(cx: Context) -> Any:
    """output = Pad(data, pads, constant_value?, axes?; mode)."""
    axes = cx.static_ints(3) if cx.has(3) else tuple(range(cx.rank(0)))
    value = 0
    if cx.has(2) and cx.attr("mode", "constant") == "constant":
        if cx.tensor(2).const is None:
            return _pad_with_value(cx, cx.dims(1), axes)
        value = cx.const(2).reshape(-1)[0] if cx.const(2).size else 0
    return _pad(cx, cx.dims(1), value, axes)


def _sides(cx: Context, pads: Shape, axes: Any) -> tuple[Shape, Shape]:
    low: list[Dim] = [0] * cx.rank(0)
    high: list[Dim] = [0] * cx.rank(0)
    axes = [cx.normal_axis(a) for a in axes]
    if len(pads) != 2 * len(axes):
        cx.misfit(f"{len(pads)} pads for {len(axes)} axes")
    for i, axis in enumerate(axes):
        low[axis], high[axis] = pads[i], pads[i + len(axes)]
    return tuple(low), tuple(high)


def _pad(cx: Context, pads: Shape, value: Any, axes: Any) -> Any:
    low, high = _sides(cx, pads, axes)
    mode = cx.attr("mode", "constant")
    if all(d == 0 for d in (*low, *high)):
        return cx.tensor(0)
    if mode != "constant" and any(isinstance(d, int) and d < 0 for d in (*low, *high)):
        cropped = xt.slice(cx[0], starts=tuple(_crop(d) for d in low),
                           limits=tuple(n - _crop(d) for n, d in zip(cx.shape(0), high, strict=True)))
        return xt.pad(cropped, low=tuple(_grow(d) for d in low), high=tuple(_grow(d) for d in high), mode=mode)
    if isinstance(value, np.generic | float | int) and abs(float(value)) > 2**53:
        return _pad_select(cx, low, high, xt.scalar(value, element(cx[0])))
    return xt.pad(cx[0], low=low, high=high, mode=mode, value=float(value))


def _crop(d: Dim) -> Dim:
    return -d if isinstance(d, int) and d < 0 else 0


def _grow(d: Dim) -> Dim:
    return 0 if isinstance(d, int) and d < 0 else d


def _pad_with_value(cx: Context, pads: Shape, axes: Any) -> Any:
    low, high = _sides(cx, pads, axes)
    return _pad_select(cx, low, high, xt.reshape(cx[2], shape=()))


def _pad_select(cx: Context, low: Shape, high: Shape, value: Any) -> Any:
    """Padding with a value that an attribute cannot hold: a padded mask selects it."""
    inside = xt.pad(full(cx.shape(0), True, "i1"), low=low, high=high, mode="constant", value=0.0)
    return xt.select(inside, xt.pad(cx[0], low=low, high=high, mode="constant", value=0.0), value)


@onnx_op("Shape")
def shape(cx: Context) -> Any:
    """shape = Shape(data; start, end): known at import, as symbols."""
    rank = cx.rank(0)
    start, end = cx.attr("start", 0), cx.attr("end", rank)
    low, high = (min(max(v + rank if v < 0 else v, 0), rank) for v in (start, end))
    dims = np.empty(max(high - low, 0), object)
    dims[:] = cx.shape(0)[low:high]
    return Tensor.of_dims(dims, np.dtype(np.int64))


@onnx_op("Size")
def size(cx: Context) -> Any:
    """The number of elements."""
    out = np.empty((), object)
    out[()] = symbolic.product(cx.shape(0))
    return Tensor.of_dims(out, np.dtype(np.int64))


@onnx_op("Constant")
def constant(cx: Context) -> Any:
    cx.fail("a constant without a numeric value is not supported")


@onnx_op("ConstantOfShape")
def constant_of_shape(cx: Context) -> Any:
    value = cx.attr("value")
    array = np.zeros(1, np.float32) if value is None else np.asarray(value)
    return full(computed_dims(cx, 0), array.reshape(-1)[0], array.dtype)


@onnx_op("Range")
def range_(cx: Context) -> Any:
    """output = Range(start, limit, delta)."""
    dtype = cx.dtype(0)
    known = [cx.tensor(i).data for i in range(3)]
    if any(k is None for k in known):
        length = _declared_length(cx)
        start, delta = xt.reshape(cx[0], shape=()), xt.reshape(cx[2], shape=())
    else:
        start, delta = (_scalar_of(cx, i) for i in (0, 2))
        length = _range_length(cx, is_floating(dtype))
    steps = xt.iota(shape=(length,), axis=0, dtype="i64")
    return xt.add(xt.mul(convert(steps, dtype), delta), start)


def _declared_length(cx: Context) -> Dim:
    declared = cx.declared()
    if declared is None:
        for i in range(3):
            cx.dims(i)
    assert declared is not None
    return declared[0]


def _scalar_of(cx: Context, i: int) -> Any:
    return xt.reshape(cx[i], shape=()) if cx.rank(i) else cx[i]


def _range_length(cx: Context, floating: bool) -> Dim:
    if floating or all(cx.tensor(i).const is not None for i in range(3)):
        start, limit, delta = (cx.const(i).reshape(-1)[0].astype(np.float64) for i in range(3))
        if delta == 0:
            cx.fail("a range with step 0")
        return max(0, int(np.ceil((limit - start) / delta)))
    start, limit = cx.dims(0)[0], cx.dims(1)[0]
    delta = cx.static_ints(2)[0]
    if delta == 0:
        cx.fail("a range with step 0")
    distance = limit - start if delta > 0 else start - limit
    return _at_least(cx, symbolic.ceildiv(distance, abs(delta)), 0)


@onnx_op("EyeLike")
def eye_like(cx: Context) -> Any:
    """A matrix with ones on diagonal k."""
    shape = cx.shape(0)
    dtype = from_onnx(cx.attr("dtype")) if cx.attr("dtype") is not None else cx.dtype(0)
    rows = xt.iota(shape=shape, axis=0, dtype="i64")
    columns = xt.iota(shape=shape, axis=1, dtype="i64")
    return convert(xt.compare(xt.add(rows, xt.scalar(cx.attr("k", 0), "i64")), columns, direction="eq"), dtype)


@onnx_op("Trilu")
def triangle(cx: Context) -> Any:
    """output = Trilu(input, k?, upper): the other triangle is 0."""
    x, shape = cx[0], cx.shape(0)
    if len(shape) < 2:
        cx.fail("takes at least two dims")
    k = xt.reshape(convert(cx[1], "i64"), shape=()) if cx.has(1) else xt.scalar(0, "i64")
    rows = xt.add(xt.iota(shape=shape[-2:], axis=0, dtype="i64"), k)
    columns = xt.iota(shape=shape[-2:], axis=1, dtype="i64")
    keep = xt.compare(columns, rows, direction="ge" if cx.attr("upper", 1) else "le")
    return xt.select(keep, x, scalar(0, x))


@onnx_op("DepthToSpace")
def depth_to_space(cx: Context) -> Any:
    """[n, c*b*b, h, w] -> [n, c, h*b, w*b]; mode DCR or CRD says where the block dims are in c."""
    b = cx.attr("blocksize")
    n, c, h, w = cx.shape(0)
    depth = symbolic.floordiv(c, b * b)
    if cx.attr("mode", "DCR") == "DCR":
        x = xt.transpose(xt.reshape(cx[0], shape=(n, b, b, depth, h, w)), perm=(0, 3, 4, 1, 5, 2))
    else:
        x = xt.transpose(xt.reshape(cx[0], shape=(n, depth, b, b, h, w)), perm=(0, 1, 4, 2, 5, 3))
    return xt.reshape(x, shape=(n, depth, h * b, w * b))


@onnx_op("SpaceToDepth")
def space_to_depth(cx: Context) -> Any:
    """[n, c, h, w] -> [n, b*b*c, h/b, w/b]."""
    b = cx.attr("blocksize")
    n, c, h, w = cx.shape(0)
    rows, columns = symbolic.floordiv(h, b), symbolic.floordiv(w, b)
    if cx.attr("mode", "DCR") == "CRD":
        x = xt.transpose(xt.reshape(cx[0], shape=(n, c, rows, b, columns, b)), perm=(0, 1, 3, 5, 2, 4))
    else:
        x = xt.transpose(xt.reshape(cx[0], shape=(n, c, rows, b, columns, b)), perm=(0, 3, 5, 1, 2, 4))
    return xt.reshape(x, shape=(n, c * (b * b), rows, columns))


@onnx_op("CenterCropPad", since=18)
def center_crop_pad(cx: Context) -> Any:
    """Crops or pads with zeros around the centre to `shape` (of `axes`)."""
    axes = [cx.normal_axis(a) for a in cx.attr("axes", range(cx.rank(0)))]
    x = cx[0]
    for axis, wanted in zip(axes, _cropped_shape(cx, axes), strict=True):
        size = xt.shape_of(x)[axis]
        if not isinstance(wanted - size, int):
            cx.fail(f"whether dim {axis} is cropped or padded depends on symbols")
        x = _center(x, axis, size, wanted)
    return Tensor.of_value(x)


def _cropped_shape(cx: Context, axes: list[int]) -> Shape:
    declared = cx.declared()
    if cx.tensor(1).data is None and declared is not None:
        return tuple(declared[a] for a in axes)
    return cx.dims(1)


def _center(x: Any, axis: int, size: Dim, wanted: Dim) -> Any:
    shape = list(xt.shape_of(x))
    difference = int(wanted - size)  # type: ignore[arg-type]
    low: list[Dim] = [0] * len(shape)
    high: list[Dim] = [0] * len(shape)
    if difference < 0:
        start = symbolic.floordiv(size, 2) - symbolic.floordiv(wanted, 2)
        if isinstance(size, int) and isinstance(wanted, int):
            start = (size - wanted) // 2
        low[axis], limits = start, shape
        limits[axis] = start + wanted
        return xt.slice(x, starts=tuple(low), limits=tuple(limits))
    low[axis] = difference // 2
    high[axis] = difference - difference // 2
    return xt.pad(x, low=tuple(low), high=tuple(high)) if difference else x
