"""Normalisations and softmax."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, count, element, full, rank_of, scalar
from xcc.frontends.shared.norms import affine_by_channel, inverse_deviation, moments
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten


@aten("softmax.int", "_softmax", "log_softmax.int", "_log_softmax", "_safe_softmax", "special_softmax")
def softmax(cx: Context) -> Value:
    """Computed in the result's type: in f32 where f16 gives f32."""
    x = convert(cx.tensor("self"), cx.out().dtype)
    op = cx.node.op.split(".")[1]
    if rank_of(x) == 0:
        flat = xt.reshape(x, shape=(1,))
        return xt.reshape(_softmax_of(op, flat, 0), shape=())
    return _softmax_of(op, x, cx.axis())


def _softmax_of(op: str, x: Value, axis: int) -> Value:
    if "log" in op:
        return xt.log_softmax(x, axis=axis)
    out = xt.softmax(x, axis=axis)
    if "safe" not in op:
        return out
    hidden = xt.compare(xt.reduce(x, kind="max", axes=(axis,), keepdims=True), scalar(float("-inf"), x), direction="eq")
    return xt.select(hidden, scalar(0, x), out)


def _operands(cx: Context, like: Value) -> tuple[Value | None, Value | None]:
    """weight and bias in the type of `like`, None where they are left out."""
    weight, bias = cx.optional("weight"), cx.optional("bias")
    kind = element(like)
    return None if weight is None else convert(weight, kind), None if bias is None else convert(bias, kind)


def normal_axes(cx: Context) -> tuple[int, ...]:
    """The last dims, which `normalized_shape` lists."""
    rank = cx.rank("input")
    return tuple(range(rank - len(cx["normalized_shape"]), rank))


@aten("layer_norm", "native_layer_norm")
def layer_norm(cx: Context) -> Value | tuple[Value | None, ...]:
    """out, mean, 1 / deviation; the statistics have dims of 1."""
    x, axes, eps = cx.tensor("input"), normal_axes(cx), float(cx["eps"])
    out = xt.layer_norm(x, *_operands(cx, x), axes=axes, eps=eps)
    if len(cx.node.results) == 1:
        return out
    center, inverse = _statistics(cx, x, axes, eps)
    return out, center, inverse


def _statistics(cx: Context, x: Value, axes: tuple[int, ...], eps: float) -> tuple[Value, Value] | tuple[None, None]:
    """Mean and 1 / deviation as results 1 and 2; None where nothing reads them."""
    if not cx.wants(1) and not cx.wants(2):
        return None, None
    wide = convert(x, "f32") if element(x) in ("f16", "bf16") else x
    center, variance = moments(wide, axes)
    inverse = inverse_deviation(variance, eps)
    return convert(center, cx.out(1).dtype), convert(inverse, cx.out(2).dtype)


@aten("rms_norm", "_fused_rms_norm")
def rms_norm(cx: Context) -> Value | tuple[Value, Value]:
    """out, 1 / root mean square; without eps it is the distance of 1 to the next f32 (f64)."""
    x, axes = cx.tensor("input"), normal_axes(cx)
    eps = cx.get("eps", 2.0**-52 if element(x) == "f64" else 2.0**-23)
    out = xt.rms_norm(x, _operands(cx, x)[0], axes=axes, eps=float(eps))
    if len(cx.node.results) == 1:
        return out
    wide = convert(x, cx.out(1).dtype)
    total = xt.reduce(xt.mul(wide, wide), kind="sum", axes=axes, keepdims=True)
    square = xt.div(total, count(wide, axes, element(wide)))
    return out, inverse_deviation(square, float(eps))


@aten("group_norm")
def group_norm(cx: Context) -> Value:
    x = cx.tensor("input")
    return xt.group_norm(x, *_operands(cx, x), groups=int(cx["num_groups"]), eps=float(cx["eps"]))


@aten("native_group_norm")
def native_group_norm(cx: Context) -> tuple[Value | None, ...]:
    """out, mean, 1 / deviation [N, groups]."""
    x, groups, eps = cx.tensor("input"), int(cx["group"]), float(cx["eps"])
    out = xt.group_norm(x, *_operands(cx, x), groups=groups, eps=eps)
    shape = xt.shape_of(x)
    flat = xt.reshape(x, shape=(shape[0], groups, symbolic.floordiv(symbolic.product(shape[1:]), groups)))
    return out, *(None if v is None else xt.reshape(v, shape=(shape[0], groups))
                  for v in _statistics(cx, flat, (2,), eps))


@aten("_native_batch_norm_legit_no_training", "_batch_norm_no_update")
def batch_norm_inference(cx: Context) -> tuple[Value, ...]:
    """By the running statistics; what training would save is empty."""
    x, center, variance = cx.tensor("input"), cx.tensor("running_mean"), cx.tensor("running_var")
    inverse = inverse_deviation(variance, float(cx["eps"]))
    out = affine_by_channel(x, center, inverse, cx.optional("weight"), cx.optional("bias"))
    return out, *_saved(cx, center, inverse)


@aten("native_batch_norm", "_native_batch_norm_legit.no_stats", "_native_batch_norm_legit_functional",
      "_native_batch_norm_legit", "_batch_norm_with_update_functional", "_batch_norm_with_update")
def batch_norm(cx: Context) -> tuple[Value | None, ...]:
    """out, mean, 1 / deviation, a reserve where the op has one, and the new running statistics."""
    if not cx.get("training", True):
        return *batch_norm_inference(cx), *(cx.optional(n) for n in ("running_mean", "running_var"))
    x, eps = cx.tensor("input"), float(cx["eps"])
    axes = tuple(i for i in range(rank_of(x)) if i != 1)
    wide = convert(x, "f32" if element(x) in ("f16", "bf16") else element(x))
    center, variance = (xt.reshape(v, shape=(xt.shape_of(x)[1],)) for v in moments(wide, axes))
    inverse = inverse_deviation(variance, eps)
    out = affine_by_channel(x, center, inverse, cx.optional("weight"), cx.optional("bias"))
    saved = _saved(cx, center, inverse)
    if cx.args.get("running_mean") is None:
        return out, *saved
    n = count(x, axes, element(variance))
    unbiased = xt.mul(variance, xt.div(n, xt.sub(n, scalar(1, n))))
    first = 1 + len(saved)
    if len(cx.node.results) == first:
        cx.fail("it writes its running statistics in place, which the graph does not say: give a functional graph, as "
                "torch.compile and torch.export do (torch.func.functionalize keeps this op)")
    return out, *saved, _running(cx, first, "running_mean", center), _running(cx, first + 1, "running_var", unbiased)


def _saved(cx: Context, center: Value, inverse: Value) -> list[Value]:
    """Results from 1 on that backward reads: mean, 1 / deviation, a reserve; those without elements are empty."""
    op = cx.node.op.split(".")[1]
    made = [center, inverse]
    out = []
    for n in range(1, 4 if op.startswith("_batch_norm") else 3):
        kind = cx.out(n)
        if n < 3 and kind.shape != (0,):
            out.append(convert(made[n - 1], kind.dtype))
        else:
            out.append(full(kind.shape, 0, kind.dtype))
    return out


def _running(cx: Context, n: int, name: str, now: Value) -> Value:
    """Result `n`: (1 - momentum) * old + momentum * now, rounded once."""
    old, momentum = convert(cx.tensor(name), element(now)), float(cx["momentum"])
    new = xt.add(xt.mul(old, scalar(1 - momentum, old)), xt.mul(now, scalar(momentum, old)))
    return convert(new, cx.out(n).dtype)
