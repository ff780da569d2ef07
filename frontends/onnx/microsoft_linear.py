"""Layers of com.microsoft whose state is of one size for texts of any length: linear attention, causal convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.microsoft import MS
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, element, full, rank_of, scalar, slice_axis, unsqueeze

RULES = ("linear", "gated", "delta", "gated_delta")


@onnx_op("CausalConvWithState", domain=MS)
def causal_convolution(cx: Context) -> tuple[Value, Value]:
    """output [b, c, n], present_state: a convolution of each channel over past_state and input, whose end is the next
    one's past."""
    if cx.rank(0) != 3 or cx.attr("ndim", 1) != 1 or any(
            cx.attr(name, 0) for name in ("channels_last", "state_window", "state_update_capacity", "state_length")):
        cx.fail("sequences [batch, channels, length] are supported, with the state of the last step")
    x, weight, kind = cx[0], cx[1], cx.attr("activation", "none")
    batch, channels, length = cx.shape(0)
    taps, step = cx.shape(1)[2], int(cx.attr("dilation", 1))
    if not isinstance(taps, int):
        cx.fail(f"the number of taps, '{taps}', must be a number: fix it (--dim)")
    if kind not in ("none", "silu", "swish"):
        cx.fail(f"activation '{kind}' is not supported")
    span = (taps - 1) * step
    past = cx[3] if cx.has(3) else full((batch, channels, span), 0, element(x))
    whole = xt.concatenate(past, x, axis=2)
    out = None
    for n in range(taps):
        tap = xt.reshape(slice_axis(weight, 2, n, n + 1), shape=(channels, 1))
        part = xt.mul(slice_axis(whole, 2, n * step, n * step + length), tap)
        out = part if out is None else xt.add(out, part)
    assert out is not None
    out = xt.add(out, unsqueeze(cx[2], [1])) if cx.has(2) else out
    out = out if kind == "none" else xt.mul(out, xt.sigmoid(out))
    return out, slice_axis(whole, 2, length, length + span)


@onnx_op("LinearAttention", domain=MS)
def linear_attention(cx: Context) -> tuple[Value, Value]:
    """output [b, t, heads * dv], present_state [b, kv heads, dk, dv]: a step adds k v' to the state, which may decay
    first, or v less what the state has for k, by a rate; q reads it."""
    rule = cx.attr("update_rule", "gated_delta")
    if rule not in RULES or cx.attr("state_window", 0):
        cx.fail(f"update_rule '{rule}' and state_window are not supported" if rule not in RULES else
                "states of several steps (state_window) are not supported")
    heads, own = int(cx.attr("q_num_heads")), int(cx.attr("kv_num_heads"))
    q, k, v = (_by_head(cx[i], n) for i, n in ((0, heads), (1, own), (2, own)))
    batch, length, _, depth = xt.shape_of(k)
    dv = xt.shape_of(v)[3]
    if not isinstance(depth, int):
        cx.fail(f"the size of a head, '{depth}', must be a number: fix it (--dim)")
    q = xt.mul(q, scalar(cx.attr("scale", 0.0) or 1 / math.sqrt(depth), q))
    state = convert(cx[3], "f32") if cx.has(3) else full((batch, own, depth, dv), 0, "f32")
    decay = [xt.exp(_by_head(cx[4], own))] if rule.startswith("gated") else []
    rate = [_rates(convert(cx[5], "f32"))] if rule.endswith("delta") else []

    def step(carried: Sequence[Value], xs: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """q reads what there was and what is added apart: one pass over the state for all sums, one that changes it."""
        (state,), (q, k, v, *rest) = carried, xs
        state = xt.mul(state, unsqueeze(rest[0], [3])) if decay else state
        wide = unsqueeze(k, [3])
        if rate:
            v = xt.mul(xt.sub(v, xt.reduce(xt.mul(state, wide), kind="sum", axes=(2,))), rest[-1])
        added = _read(q, wide, heads, own)
        out = xt.add(_read(q, state, heads, own), xt.mul(added, _repeated(v, max(heads, own))))
        return [xt.add(state, xt.mul(wide, unsqueeze(v, [2])))], [out]

    state, out = xt.scan([state], [q, k, v, *decay, *rate], step, axes=[1] * (3 + len(decay) + len(rate)), out_axes=[1])
    out = xt.reshape(out, shape=(batch, length, max(heads, own) * dv))
    return convert(out, element(cx[0])), convert(state, element(cx[3]) if cx.has(3) else element(cx[0]))


def _by_head(x: Value, heads: int) -> Value:
    """[b, t, heads * n] as f32 [b, t, heads, n]."""
    batch, length, width = xt.shape_of(x)
    return convert(xt.reshape(x, shape=(batch, length, heads, width // heads)), "f32")


def _rates(x: Value) -> Value:
    """[b, t, heads, 1], or of one rate for all heads [b, t, 1, 1]."""
    return unsqueeze(x, [rank_of(x)])


def _read(q: Value, state: Value, heads: int, own: int) -> Value:
    """[b, heads, dv]: of each query [b, heads, dk] from its state [b, own, dk, dv]; several of one share the other."""
    batch, _, depth, dv = xt.shape_of(state)
    both = min(heads, own)
    q = xt.reshape(q, shape=(batch, both, heads // both, 1, depth, 1))
    state = xt.reshape(state, shape=(batch, both, 1, own // both, depth, dv))
    return xt.reshape(xt.reduce(xt.mul(q, state), kind="sum", axes=(4,)), shape=(batch, max(heads, own), dv))


def _repeated(x: Value, heads: int) -> Value:
    """[b, own, n] as [b, heads, n]: several heads share one."""
    batch, own, size = xt.shape_of(x)
    assert isinstance(own, int)
    if own == heads:
        return x
    wide = xt.broadcast(unsqueeze(x, [2]), shape=(batch, own, heads // own, size))
    return xt.reshape(wide, shape=(batch, heads, size))
