"""Scatters on GPUs: which update a place gets is found first, then all elements are written side by side.

    %y = xt.scatter_nd(%x, %i, %u) : 4096x64, 32x1, 32x64
becomes, with %k the index vectors as row-major places,
    %w = for each place the last of %k that names it, -1 where none does
    %y = xt.select(%w >= 0, xt.gather(%u, %w), %x)                      a kernel that fuses with what is around

%w is a reduction over all pairs where these are few, else ``xt.last_writers``, whose threads leave the largest number
whichever comes first. Where updates are combined (add, mul, max, min), they are sorted by place, and each element takes
those of its place in order, so that results do not depend on when threads run:

    %s, %o = xt.sort(%k)        %y = xt.combine_segments(%x, xt.segment_starts(%s), %o, %u)

What such sums are added to is what they begin with, and they are rounded where they are combined: the gradient of an
embedding, which starts with zeros, adds to that of a head that shares its weights, in f16.

Sums for a handful of places (embeddings of token types) are reductions of what each of them is named for.
Rows that are combined at few places, many at each (tables of relative positions), are updates of columns, too.
Along an axis, where each column has indices of its own, a workgroup keeps some columns in shared memory and writes or
combines the updates there (``xt.combine_columns``); a long column is cut into parts, so that all cores have work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.positions import HALVES
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.decompose.build import dim_scalar, wrapped
from xcc.passes.xt.decompose.scatter_seconds import estimated, rows_seconds, sort_seconds, walk_seconds
from xcc.passes.xt.decompose.scattered_columns import MOVED_SECONDS, Scatter, combined, planned
from xcc.passes.xt.graph.op_graph import IN_PLACE
from xcc.passes.xt.graph.rewrite import apply_rules, dim_bounds, name_of, producer, rewrite, users_of
from xcc.passes.xt.sizes.counted import MOST, require_countable
from xcc.passes.xt.xt_simplify import splat
from xcc.symbolic import Dim, product
from xcc.targets.base import Chip

PAIRS = 1 << 21         # of places and updates that are compared in the time of two launches
WALKED = 32             # updates that are combined as fast by threads that walk all of them
ADDED = 8               # places that all updates are compared with
PARTS = 64              # of the updates, which add up for those
MANY = 32               # updates of a place


@register_pass
class ScatterPlaces(Pass):
    """Turns scatters into gathers, and into sorts where updates are combined."""

    def run(self, module: Module, ctx: PassContext) -> None:
        bounds = dim_bounds(module)

        def gathered(op: Operation) -> Value | None:
            made = None if IN_PLACE in op.attributes else \
                _nd(op, ctx.chip) if name_of(op) == "scatter_nd" else _elements(op, ctx.chip)
            if made is not None:
                require_countable(module, _counted(op), bounds)
            return made

        rewrite(module, dict.fromkeys(("scatter_nd", "scatter_elements"), gathered))
        apply_rules(module, {"add": [_begun_with], "convert": [_rounded_once], "combine_segments": [_one_number]})


def _begun_with(op: Operation) -> Value | None:
    """y + the sums of updates, begun with zeros: begun with y."""
    for y, sums in (op.operands, list(op.operands)[::-1]):
        made = _combining(sums)
        if made is not None and _number_of(made.operands[0]) == 0 and xt.attrs_of(made).reduction == "add" \
                and xt.shape_of(y) == xt.shape_of(sums):
            return xt.combine_segments(y, *list(made.operands)[1:], reduction="add")
    return None


def _rounded_once(op: Operation) -> Value | None:
    """What was widened to be combined, or is one number, is combined as it is: in f32, and rounded once."""
    made, dtype = _combining(op.operands[0]), xt.attrs_of(op).dtype
    if made is None or dtype not in HALVES or xt.TensorType.of(op.operands[0]).dtype != "f32":
        return None
    x, *rest = made.operands
    widened, number = producer(x, "convert"), _number_of(x)
    if widened is not None and xt.TensorType.of(widened.operands[0]).dtype == dtype:
        x = widened.operands[0]
    elif number == 0:
        x = xt.constant(np.zeros((1, 1)), dtype=dtype)
    else:
        return None
    return xt.combine_segments(x, *rest, reduction=xt.attrs_of(made).reduction)


def _one_number(op: Operation) -> Value | None:
    """A start that is one number everywhere is read from one element."""
    x, *rest = op.operands
    if tuple(xt.shape_of(x)) == (1, 1) or (number := _number_of(x)) is None:
        return None
    first = xt.constant(np.full((1, 1), number), dtype=xt.TensorType.of(x).dtype)
    return xt.combine_segments(first, *rest, reduction=xt.attrs_of(op).reduction)


def _combining(value: Value) -> Operation | None:
    """The combine_segments that makes `value` for one reader."""
    made = producer(value, "combine_segments")
    return made if made is not None and len(users_of(value)) == 1 else None


def _number_of(value: Value) -> float | None:
    """The number that all elements of `value` have, or None."""
    while (made := producer(value)) is not None and name_of(made) in ("broadcast", "reshape"):
        value = made.operands[0]
    return splat(value)


def _counted(op: Operation) -> list[Dim]:
    """The places and the updates that are told apart by their numbers."""
    shape, given = xt.shape_of(op.operands[0]), xt.shape_of(op.operands[1])
    if name_of(op) == "scatter_elements":
        axis = xt.attrs_of(op).axis
        return [product(shape), product(given)] if xt.attrs_of(op).reduction != "none" else [shape[axis], given[axis]]
    assert isinstance(given[-1], int)
    return [product(shape[:given[-1]]), product(given[:-1])]


def _elements(op: Operation, chip: Chip) -> Value | None:
    """The result of a scatter_elements, or None where it stays."""
    x, indices, updates = op.operands
    a, shape, size = xt.attrs_of(op), xt.shape_of(x), xt.shape_of(updates)
    beside = [d for d in range(len(shape)) if d != a.axis]
    if not _some(shape, size):
        return None
    if xt.shape_of(indices) != size:
        indices = xt.broadcast(indices, shape=size)
    if all(shape[d] == size[d] for d in beside):
        columns = _columns(op, indices, chip)
        if columns is not None:
            return columns
    if a.reduction != "none" and sort_seconds(op, chip) < walk_seconds(op, chip):
        return _in_order(op, indices)
    if a.reduction != "none" or not all(shape[d] == size[d] for d in beside):
        if not isinstance(shape[a.axis], int) or xt.TensorType.of(indices).dtype != "i64":
            return None
        narrow = xt.convert(wrapped(indices, shape[a.axis]), dtype="i32")      # each thread reads all of them
        return xt.scatter_elements(x, narrow, updates, axis=a.axis, reduction=a.reduction)
    if len(shape) == 1 and _few(shape[0], size[0]):
        writers = _compared(wrapped(xt.convert(indices, dtype="i64"), shape[0]), shape[0])
    else:
        writers = xt.last_writers(indices, shape=shape, axis=a.axis)
    return _chosen(writers, xt.gather_elements(updates, writers, axis=a.axis), x)


def _columns(op: Operation, indices: Value, chip: Chip) -> Value | None:
    """The result of a scatter_elements by columns in shared memory; None where others are faster."""
    scatter = Scatter.of(op, indices)
    plan = planned(scatter, chip)
    if plan is None:
        return None
    if xt.attrs_of(op).reduction == "none":     # numbers of writers are stored and read; the choice fuses
        kind = xt.TensorType.of(op.operands[0])
        other = estimated(kind.shape) * (4 + xt.width(kind.dtype) // 8) * MOVED_SECONDS / chip.cores
    else:
        other = min(walk_seconds(op, chip), sort_seconds(op, chip))
    return combined(scatter, plan) if plan.seconds <= other else None


def _rows(op: Operation, keys: Value, places: Dim, width: Dim, chip: Chip) -> Value | None:
    """The result of a scatter_nd of rows, many for each place, that are combined at `keys`: by columns in shared
    memory. None where there are not so many, or a thread that follows those of its place, sorted, is as fast."""
    x, _, updates = op.operands
    count, dtype = xt.shape_of(keys)[0], xt.TensorType.of(x).dtype
    if not (isinstance(places, int) and isinstance(width, int) and isinstance(count, int)) or count < MANY * places:
        return None
    wide = "f32" if dtype in HALVES else dtype
    narrow = xt.reshape(xt.convert(keys, dtype="i32"), shape=(count, 1))
    start, rows = (v if wide == dtype else xt.convert(v, dtype=wide) for v in (
        _shaped(x, (places, width)), _shaped(updates, (count, width))))
    made = Scatter(start, xt.broadcast(narrow, shape=(count, width)), rows, 0, xt.attrs_of(op).reduction)
    plan = planned(made, chip)
    spread = chip.launch_seconds + count * width * 8 * MOVED_SECONDS / chip.cores
    if plan is None or plan.seconds + spread > rows_seconds(count, places, chip):
        return None
    out = _shaped(combined(made, plan), xt.shape_of(x))
    return out if wide == dtype else xt.convert(out, dtype=dtype)


def _in_order(op: Operation, indices: Value) -> Value:
    """The result of a scatter_elements whose updates are sorted by the number of their place."""
    x, _, updates = op.operands
    shape, size, axis = xt.shape_of(x), xt.shape_of(updates), xt.attrs_of(op).axis
    place = wrapped(xt.convert(indices, dtype="i64"), shape[axis])
    keys: Value | None = None
    stride: Dim = 1
    for d in reversed(range(len(shape))):
        at = place if d == axis else xt.iota(shape=size, axis=d, dtype="i64")
        part = xt.mul(at, dim_scalar(stride, "i64"))
        keys, stride = part if keys is None else xt.add(keys, part), stride * shape[d]
    return _combined(op, xt.reshape(keys, shape=(product(size),)), product(shape), 1)


def _nd(op: Operation, chip: Chip) -> Value | None:
    """The result of a scatter_nd, or None where it stays."""
    x, indices, updates = op.operands
    a, shape, vectors = xt.attrs_of(op), xt.shape_of(x), xt.shape_of(indices)
    depth = vectors[-1]
    assert isinstance(depth, int)
    lead, inner = shape[:depth], shape[depth:]
    places, count = product(lead), product(vectors[:-1])
    if not depth or not _some(shape, vectors):
        return None
    if a.reduction != "none":
        if isinstance(count, int) and count <= WALKED:
            return None
        keys = xt.reshape(_flat(indices, lead), shape=(count,))
        if a.reduction == "add" and isinstance(places, int) and places <= ADDED \
                and xt.width(xt.TensorType.of(x).dtype) >= 32:
            return xt.add(x, xt.reshape(_added(keys, updates, places, product(inner)), shape=shape))
        return _rows(op, keys, places, product(inner), chip) or _combined(op, keys, places, product(inner))
    keys = xt.reshape(_flat(indices, lead), shape=(count,))
    writers = _compared(keys, places) if _few(places, count) else \
        xt.last_writers(keys, shape=(places,), axis=0)
    rows = xt.gather(xt.reshape(updates, shape=(count, *inner)), xt.reshape(writers, shape=lead), axis=0)
    return _chosen(xt.reshape(writers, shape=(*lead, *(1,) * len(inner))), rows, x)


def _added(keys: Value, updates: Value, places: int, width: Dim) -> Value:
    """Sums for each of a few places, [places, width], of all rows that name it: in parts, then those added up."""
    count = math.prod(d for d in xt.shape_of(keys) if isinstance(d, int))
    parts = math.gcd(count, PARTS)
    rows = xt.reshape(updates, shape=(1, parts, count // parts, width))
    place = xt.iota(shape=(places, 1, 1, 1), axis=0, dtype="i64")
    named = xt.compare(xt.reshape(keys, shape=(1, parts, count // parts, 1)), place, direction="eq")
    wide = xt.select(named, rows, xt.constant(0, dtype=xt.TensorType.of(updates).dtype))
    return xt.reduce(xt.reduce(wide, kind="sum", axes=(2,)), kind="sum", axes=(1,))


def _combined(op: Operation, keys: Value, places: Dim, width: Dim) -> Value:
    x, _, updates = op.operands
    count = xt.shape_of(keys)[0]
    keys, order = xt.sort(xt.convert(keys, dtype="i32"), axis=0)
    out = xt.combine_segments(_shaped(x, (places, width)), xt.segment_starts(keys, count=(places,)), order,
                              _shaped(updates, (count, width)), reduction=xt.attrs_of(op).reduction)
    return _shaped(out, xt.shape_of(x))


def _shaped(value: Value, shape: tuple[Dim, ...]) -> Value:
    return value if xt.shape_of(value) == shape else xt.reshape(value, shape=shape)


def _some(*shapes: Sequence[Dim]) -> bool:
    """Whether there is something to write, and numbers of elements fit."""
    return all(d != 0 for shape in shapes for d in shape) and all(
        not isinstance(d, int) or d < MOST for shape in shapes for d in (product(shape),))


def _few(places: Dim, count: Dim) -> bool:
    return isinstance(places, int) and isinstance(count, int) and places * count <= PAIRS


def _flat(indices: Value, lead: Sequence[Dim]) -> Value | None:
    """i64 row-major places of the vectors in the last dim of `indices`."""
    indices, out = xt.convert(indices, dtype="i64"), None
    shape = xt.shape_of(indices)
    for d, size in enumerate(lead):
        starts = (*(0,) * (len(shape) - 1), d)
        part = xt.slice(indices, starts=starts, limits=(*shape[:-1], d + 1), strides=(1,) * len(shape))
        part = wrapped(part, size)
        out = part if out is None else xt.add(xt.mul(out, dim_scalar(size, "i64")), part)
    return out


def _compared(keys: Value, places: Dim) -> Value:
    """For each place the last of the flat `keys` that names it, -1 where none does: a reduction over all pairs."""
    (count,) = xt.shape_of(keys)
    place = xt.iota(shape=(places, 1), axis=0, dtype="i32")
    number = xt.iota(shape=(1, count), axis=1, dtype="i32")
    hit = xt.compare(xt.reshape(xt.convert(keys, dtype="i32"), shape=(1, count)), place, direction="eq")
    return xt.reduce(xt.select(hit, number, xt.constant(-1, dtype="i32")), kind="max", axes=(1,), keepdims=False)


def _chosen(writers: Value, updates: Value, x: Value) -> Value:
    return xt.select(xt.compare(writers, xt.constant(0, dtype="i32"), direction="ge"), updates, x)
