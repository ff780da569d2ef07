"""Gradients of attention, from its output and the logs of its sums."""

from __future__ import annotations

from dataclasses import dataclass

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.attention import repeat_heads, shared_heads, weighted
from xcc.frontends.shared.helpers import convert, element, scalar, slice_axis
from xcc.frontends.torch.attention import Call, call_of
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.matmul import accumulated
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim


@dataclass(frozen=True)
class Gradients:
    """Of the operands of a call; `scores` are those of what the softmax is taken of, where they are asked for."""

    q: Value
    k: Value
    v: Value
    scores: Value | None = None


def _wide(x: Value) -> Value:
    return convert(x, "f32") if element(x) in ("f16", "bf16") else x


def _turned(x: Value) -> Value:
    return xt.transpose(x, perm=(0, 1, 3, 2))


def _joined(x: Value, groups: Dim) -> Value:
    """The sum over the heads that share one."""
    if groups == 1:
        return x
    batch, heads, seq, dim = xt.shape_of(x)
    parts = xt.reshape(x, shape=(batch, symbolic.floordiv(heads, groups), groups, seq, dim))
    return xt.reduce(parts, kind="sum", axes=(2,))


def gradients(call: Call, grad: Value, out: Value, sums: Value, *, of_scores: bool) -> Gradients:
    """Of the operands of `call`, and `of_scores` where asked; `out` is its output, `sums` [batch, heads, rows]."""
    groups, wide = shared_heads(call.q, call.k), accumulated(element(call.q))
    sums, delta = convert(sums, wide), xt.reduce(xt.mul(_wide(grad), _wide(out)), kind="sum", axes=(3,))
    if call.dropout or of_scores:
        return _whole(call, grad, _row(sums), _row(delta))
    mask = [] if call.mask is None else [call.mask]
    given = (convert(grad, element(call.q)), call.q, call.k, call.v, sums, delta, *mask)
    dq = xt.attention_query_gradient(*given, scale=call.scale, causal=call.causal)
    dk, dv = xt.attention_key_gradients(*given, scale=call.scale, causal=call.causal)
    return Gradients(_times(call, convert(dq, wide)) if call.factor is not None else dq, _joined(dk, groups),
                     _joined(dv, groups))


def _whole(call: Call, grad: Value, sums: Value, delta: Value) -> Gradients:
    """P = exp(S - sums), dV = drop(P)^T dO, dS = P (drop(dO V^T) - delta), dQ = dS K scale, dK = dS^T Q scale.

    Of narrow floats the factors are narrow, P and dS too, and sums f32, as in FlashAttention's kernels.
    """
    kind, groups = element(call.q), shared_heads(call.q, call.k)
    wide = accumulated(kind)
    k, v = repeat_heads(call.k, groups), repeat_heads(call.v, groups)
    bent = call.scores()
    hidden = xt.compare(bent, scalar(float("-inf"), bent), direction="eq")
    p = convert(xt.select(hidden, scalar(0, bent), xt.exp(xt.sub(bent, sums))), kind)
    ds = xt.mul(_wide(p), xt.sub(call.dropped(weighted(grad, _turned(v), wide)), delta))
    scale, narrow = scalar(call.scale, ds), convert(ds, kind)
    dk = xt.mul(weighted(_turned(narrow), call.q, wide), scale)
    dv = weighted(_turned(call.dropped(p)), grad, wide)
    return Gradients(_times(call, xt.mul(weighted(narrow, k, wide), scale)), _joined(dk, groups), _joined(dv, groups),
                     ds)


def _times(call: Call, dq: Value) -> Value:
    """dq times what q was multiplied by already."""
    return dq if call.factor is None else xt.mul(dq, convert(call.factor, element(dq)))


def _row(x: Value) -> Value:
    return xt.reshape(x, shape=(*xt.shape_of(x), 1))


def _sums_of(cx: Context, call: Call) -> Value:
    """logsumexp as [batch, heads, rows], without the rows that a kernel has padded."""
    batch, heads, rows, _ = xt.shape_of(call.q)
    given = cx.tensor("logsumexp")
    if len(xt.shape_of(given)) == 3 and xt.shape_of(given)[2] != rows:
        given = slice_axis(given, 2, 0, rows)
    return xt.reshape(given, shape=(batch, heads, rows))


@aten("_scaled_dot_product_flash_attention_for_cpu_backward", "_scaled_dot_product_flash_attention_backward",
      "_scaled_dot_product_efficient_attention_backward", "_scaled_dot_product_cudnn_attention_backward",
      "_scaled_dot_product_fused_attention_overrideable_backward")
def attention_backward(cx: Context) -> tuple[Value | None, ...]:
    """The gradients of query, key and value, and of the mask where the op gives it."""
    call = call_of(cx, next((n for n in ("attn_mask", "attn_bias") if n in cx.args), ""))
    grad = cx.tensor(next(n for n in ("grad_out", "grad_out_") if n in cx.args))
    masked = len(cx.node.results) > 3 and cx.node.results[3] is not None and cx.wants(3)
    made = gradients(call, grad, cx.tensor("out"), _sums_of(cx, call), of_scores=masked)
    out = [convert(v, cx.out(n).dtype) for n, v in enumerate((made.q, made.k, made.v))]
    if not masked or made.scores is None:
        return (*out, *[None] * (len(cx.node.results) - 3))
    return *out, _mask_gradient(cx, made.scores)


def _mask_gradient(cx: Context, scores: Value) -> Value:
    """The gradient of the scores, summed over the dims along which the mask was stretched."""
    wanted = cx.out(3)
    shape = tuple(xt.shape_of(scores))
    padded = (*[1] * (4 - len(wanted.shape)), *wanted.shape)
    axes = tuple(i for i, (d, own) in enumerate(zip(shape, padded, strict=True)) if own == 1 and d != 1)
    total = xt.reduce(scores, kind="sum", axes=axes, keepdims=True) if axes else scores
    return convert(xt.reshape(total, shape=wanted.shape), wanted.dtype)
