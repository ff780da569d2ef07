"""Views and movements."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.types import width
from xcc.frontends.shared.helpers import convert, dim_scalar, element, slice_axis, split
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten
from xcc.frontends.torch.slices import clamp_index
from xcc.symbolic import Dim


@aten("view", "_unsafe_view", "reshape", "view_copy", "_reshape_alias", "flatten.using_ints", "unflatten.int",
      "unsqueeze", "_reshape_copy")
def view(cx: Context) -> Value:
    """The same elements in row-major order; torch says the shape."""
    return xt.reshape(cx.tensor("self"), shape=cx.out().shape)


@aten("squeeze", "squeeze.dim", "squeeze.dims")
def squeeze(cx: Context) -> Value:
    """Without dims of 1: those that torch dropped. A run where another is 1, or one of them is not, is refused."""
    axes = cx.axes()
    dropped = len(cx.out().shape) == cx.rank() - len(axes)
    for d in axes:
        size = cx.shape("self")[d]
        if not isinstance(size, int):
            why = "not 1, and squeeze would keep it" if dropped else "1, which squeeze would drop"
            xt.require(symbolic.is_equal(size, 1), int(dropped), f"{cx.place}: dim {d} is {why}")
    return view(cx)


@aten("expand", "expand_copy", "broadcast_to")
def expand(cx: Context) -> Value:
    return xt.broadcast(cx.tensor("self"), shape=cx.out().shape)


@aten("permute", "permute_copy")
def permute(cx: Context) -> Value:
    return xt.transpose(cx.tensor("self"), perm=tuple(cx.normal(d) for d in cx["dims"]))


@aten("transpose.int", "t", "numpy_T", "mT", "swapaxes")
def transpose(cx: Context) -> Value:
    """Two dims exchanged; t exchanges the two that there are."""
    rank = cx.rank()
    order = list(range(rank))
    if "dim0" in cx.args:
        a, b = cx.axis("dim0"), cx.axis("dim1")
        order[a], order[b] = order[b], order[a]
    elif cx.node.op.startswith("aten.mT"):
        order[-2:] = order[:-3:-1]
    else:
        order.reverse()
    return xt.transpose(cx.tensor("self"), perm=tuple(order)) if rank else cx.tensor("self")


@aten("cat", "concatenate", "concat")
def cat(cx: Context) -> Value:
    """Tensors one after the other; ones of shape [0] count for nothing, as torch has it."""
    kind = cx.out().dtype
    rank = len(cx.out().shape)
    values = [cx.value_of(t, kind) for t in cx["tensors"]]
    values = [v for v in values if rank == 1 or tuple(xt.shape_of(v)) != (0,)]
    return values[0] if len(values) == 1 else xt.concatenate(*values, axis=cx.axis(rank=rank))


@aten("stack")
def stack(cx: Context) -> Value:
    rank = len(cx.out().shape)
    axis = cx.axis(rank=rank)
    parts = []
    for t in cx.tensors("tensors"):
        shape = list(xt.shape_of(t))
        parts.append(xt.reshape(t, shape=(*shape[:axis], 1, *shape[axis:])))
    return parts[0] if len(parts) == 1 else xt.concatenate(*parts, axis=axis)


@aten("slice.Tensor", "slice_copy.Tensor")
def slice_(cx: Context) -> Value:
    """self[start:end:step] along one dim."""
    x, axis, shape = cx.tensor("self"), cx.axis(), cx.shape("self")
    start = clamp_index(cx.get("start"), shape[axis], 0, cx.graph.bounds)
    step = cx.get("step", 1)
    length = cx.out().shape[axis]
    if step == 1:
        return slice_axis(x, axis, start, start + length)
    limit = clamp_index(cx.get("end"), shape[axis], shape[axis], cx.graph.bounds)
    starts: list[Dim] = [0] * len(shape)
    limits, strides = list(shape), [1] * len(shape)
    starts[axis], limits[axis], strides[axis] = start, symbolic.dim_max(limit, start), step
    return xt.slice(x, starts=tuple(starts), limits=tuple(limits), strides=tuple(strides))


@aten("select.int", "select_copy.int")
def select(cx: Context) -> Value:
    """self at one index of a dim, which goes."""
    x, axis = cx.tensor("self"), cx.axis()
    at = cx.position("index", cx.shape("self")[axis])
    found = slice_axis(x, axis, at, at + 1) if isinstance(at, int | symbolic.Expr) else xt.gather(x, at, axis=axis)
    return xt.reshape(found, shape=cx.out().shape)


@aten("split.Tensor", "split_with_sizes", "chunk", "split_with_sizes_copy", "tensor_split.sections")
def split_(cx: Context) -> list[Value]:
    """Consecutive parts; torch says how long each is."""
    axis = cx.axis()
    return split(cx.tensor("self"), axis, [cx.out(n).shape[axis] for n in range(len(cx.node.results))])


@aten("tensor_split.indices")
def tensor_split(cx: Context) -> list[Value]:
    """The parts between indices, which need not grow; torch says how long each is."""
    axis = cx.axis()
    size = cx.shape("self")[axis]
    begins = [0, *(clamp_index(i, size, 0, cx.graph.bounds) for i in cx.dims("indices"))]
    return [slice_axis(cx.tensor("self"), axis, begin, begin + cx.out(n).shape[axis])
            for n, begin in enumerate(begins)]


@aten("unbind.int")
def unbind(cx: Context) -> list[Value]:
    """The slices along a dim, which goes."""
    axis = cx.axis()
    parts = split(cx.tensor("self"), axis, [1] * len(cx.node.results))
    return [xt.reshape(p, shape=cx.out(n).shape) for n, p in enumerate(parts)]


@aten("flip")
def flip(cx: Context) -> Value:
    return xt.reverse(cx.tensor("self"), axes=cx.axes("dims") if cx["dims"] else ())


@aten("full", "full_like", "zeros", "ones", "zeros_like", "_efficientzerotensor", "ones_like", "empty.memory_format",
      "empty_like", "new_zeros", "new_full", "new_empty", "empty_strided", "new_ones", "scalar_tensor",
      "new_empty_strided", "empty_permuted")
def full(cx: Context) -> Value:
    """One value everywhere; what is empty in torch is 0 here."""
    out = cx.out()
    op = cx.node.op.split(".")[1]
    value = 1 if "ones" in op else cx.args["s"] if op == "scalar_tensor" else cx.args.get("fill_value", 0)
    return xt.broadcast(cx.value_of(value, out.dtype), shape=out.shape)


@aten("repeat")
def repeat(cx: Context) -> Value:
    """self one after the other so often along each dim."""
    counts, shape = cx.dims("repeats"), cx.shape("self")
    shape = (*[1] * (len(counts) - len(shape)), *shape)
    between = [d for pair in zip(counts, shape, strict=True) for d in pair]
    x = xt.reshape(cx.tensor("self"), shape=tuple(d for n in shape for d in (1, n)))
    return xt.reshape(xt.broadcast(x, shape=tuple(between)), shape=cx.out().shape)


@aten("arange.start_step", "arange.start", "arange")
def arange(cx: Context) -> Value:
    """start, start + step, ...: floats in f64, as torch has it."""
    out = cx.out()
    wide = "f64" if out.dtype.startswith(("f", "bf")) else "i64"
    line = xt.mul(xt.iota(shape=out.shape, axis=0, dtype=wide), cx.value_of(cx.get("step", 1), wide))
    return convert(xt.add(line, cx.value_of(cx.get("start", 0), wide)), out.dtype)


@aten("linspace", "linspace.Tensor_Tensor", "linspace.Tensor_Scalar", "linspace.Scalar_Tensor")
def linspace(cx: Context) -> Value:
    """Both halves are counted from their own end; whole numbers in f64, between ends that are cut to whole ones."""
    out = cx.out()
    steps, wide = out.shape[0], "f32" if out.dtype in ("f16", "bf16", "f32") else "f64"
    first, last = (convert(convert(cx.value_of(cx[name], "f64"), out.dtype), wide) for name in ("start", "end"))
    step = xt.div(xt.sub(last, first), dim_scalar(symbolic.dim_max(steps - 1, 1), wide))
    places = xt.iota(shape=out.shape, axis=0, dtype="i64")
    forward = xt.add(first, xt.mul(step, convert(places, wide)))
    left = convert(xt.sub(dim_scalar(steps - 1, "i64"), places), wide)
    early = xt.compare(places, dim_scalar(symbolic.floordiv(steps, 2), "i64"), direction="lt")
    line = xt.select(early, forward, xt.sub(last, xt.mul(step, left)))
    return convert(xt.select(xt.compare(places, xt.scalar(0, "i64"), direction="eq"), first, line), out.dtype)


@aten("roll")
def roll(cx: Context) -> Value:
    """What goes out at the end of a dim comes in at its front; without dims self is one line."""
    x, shape = cx.tensor("self"), cx.shape("self")
    dims = tuple(cx.normal(d) for d in cx["dims"])
    if not dims:
        x, dims = xt.reshape(x, shape=(symbolic.product(shape),)), (0,)
    for axis, shift in zip(dims, cx.dims("shifts"), strict=True):
        size = xt.shape_of(x)[axis]
        if size == 0:
            continue
        cut = symbolic.mod(-shift, symbolic.dim_max(size, 1))
        x = xt.concatenate(slice_axis(x, axis, cut, size), slice_axis(x, axis, 0, cut), axis=axis)
    return xt.reshape(x, shape=shape)


@aten("view.dtype")
def view_as_type(cx: Context) -> Value:
    """self's bits as elements of another type: of a narrower one there are more along the last dim."""
    x, kind = cx.tensor("self"), cx.out().dtype
    if "i1" in (element(x), kind):
        cx.fail("it reads bits as bools, or bools as bits")
    parts = width(kind) // width(element(x))
    if parts > 1:
        x = xt.reshape(x, shape=(*cx.out().shape, parts))
    return xt.reshape(xt.bitcast(x, dtype=kind), shape=cx.out().shape)
