"""Attention: the whole op, and what torch makes of it behind the dispatcher."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.broadcasting import broadcast_shapes
from xcc.frontends.shared.attention import masked, repeat_heads, scores, shared_heads, weighted
from xcc.frontends.shared.helpers import convert, dim_scalar, element, full, rank_of, scalar, slice_axis
from xcc.frontends.torch.context import Context, Number, Shape
from xcc.frontends.torch.graph import SizeSpec, TensorSpec
from xcc.frontends.torch.matmul import accumulated
from xcc.frontends.torch.random import dropped, survivors
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim


@dataclass(frozen=True)
class Call:
    """The operands of a call as [batch, heads, seq, dim], and what bends their scores."""

    q: Value
    k: Value
    v: Value
    mask: Value | None
    scale: float
    causal: bool
    factor: Value | None = None
    """What q is multiplied by already, where the scale is no number: a value of rank 0."""
    dropout: float = 0.0
    """The share of the weights that is left out: those that the random `words` say."""
    words: tuple[Value, Value] | None = None

    def output(self) -> Value:
        if not self.dropout:
            return xt.attention(self.q, self.k, self.v, self.mask, scale=self.scale, causal=self.causal)
        bent = self.scores()
        seen = xt.compare(bent, scalar(float("-inf"), bent), direction="ne")
        weights = xt.select(seen, xt.softmax(bent, axis=3), scalar(0, bent))
        v, kind = repeat_heads(self.v, shared_heads(self.q, self.k)), element(self.q)
        return convert(weighted(convert(self.dropped(weights), kind), v, element(bent)), kind)

    def with_sums(self) -> tuple[Value, Value]:
        """The output, and the log of the sum of exponentials of each row, [batch, heads, rows]."""
        whole = xt.attention_with_sums(self.q, self.k, self.v, self.mask, scale=self.scale, causal=self.causal)
        return (self.output() if self.dropout else whole[0]), whole[1]

    def dropped(self, weights: Value) -> Value:
        """The weights [batch, heads, rows, columns], or their gradients, after the dropout."""
        if self.words is None:
            return weights
        return dropped(weights, survivors(self.words, tuple(xt.shape_of(weights)), self.dropout), self.dropout)

    def scores(self) -> Value:
        """What the softmax is taken of, [batch, heads, rows, columns] in f32 at least; hidden ones are -inf."""
        q, k = self.q, self.k
        raw = scores(q, repeat_heads(k, shared_heads(q, k)), self.scale, accumulated(element(q)))
        mask = self.mask
        if mask is not None and element(mask) != "i1":
            mask = convert(mask, element(raw))
        bent = masked(raw, mask)
        return masked(bent, causal_mask(*xt.shape_of(bent)[2:])) if self.causal else bent


def causal_mask(rows: Dim, columns: Dim) -> Value:
    """i1 [rows, columns]: row i sees columns up to i."""
    row, column = (xt.iota(shape=(rows, columns), axis=a, dtype="i64") for a in (0, 1))
    return xt.compare(column, row, direction="le")


def call_of(cx: Context, mask: str) -> Call:
    """The node's operands; dims before the last three are one batch."""
    q, k, v = (cx.tensor(n) for n in ("query", "key", "value"))
    q, k, v = _same_batch(q, k, v, bool(cx.args.get("enable_gqa", True)))     # the kernels' own ops always allow it
    given = cx.optional(mask) if mask else None
    scale, factor = _scale(cx, q)
    q = q if factor is None else xt.mul(q, factor)
    if given is not None:
        given = _mask(given, q, k)
    p = float(cx.get("dropout_p", 0.0))
    return Call(_four(q), _four(k), _four(v), given, scale, bool(cx.get("is_causal", False)), factor, p,
                _words(cx) if p else None)


def _words(cx: Context) -> tuple[Value, Value]:
    """What the weights that are left out depend on; those of the forward op, where this is its gradient."""
    if "philox_seed" not in cx.args:
        return cx.random_words()
    given = [convert(xt.reshape(v, shape=(symbolic.product(xt.shape_of(v)),)), "i64")
             for v in (cx.tensor("philox_seed"), cx.tensor("philox_offset"))]
    both = given[0] if xt.shape_of(given[0]) == (2,) else xt.concatenate(*given, axis=0)
    first, second = (xt.reshape(slice_axis(both, 0, n, n + 1), shape=()) for n in (0, 1))
    return first, second


def _scale(cx: Context, q: Value) -> tuple[float, Value | None]:
    """The scale as a number, or 1 and as a value of rank 0."""
    scale, size = cx.get("scale"), xt.shape_of(q)[-1]
    if isinstance(scale, Number):
        return 1.0, convert(scale.value, element(q))
    if scale is not None:
        return float(scale), None
    if not isinstance(size, int):
        return 1.0, xt.rsqrt(dim_scalar(size, element(q)))
    return 1 / sqrt(max(size, 1)), None


def _same_batch(q: Value, k: Value, v: Value, grouped: bool) -> tuple[Value, ...]:
    """Dims before the sequence stretched to each other; heads stay where k and v may have fewer."""
    own = 3 if grouped else 2
    shapes = [tuple(xt.shape_of(x)) for x in (q, k, v)]
    lead: Shape = shapes[0][:-own]
    for s in shapes[1:]:
        lead = broadcast_shapes(lead, s[:-own])
    return tuple(x if s[:-own] == lead else xt.broadcast(x, shape=(*lead, *s[-own:]))
                 for x, s in zip((q, k, v), shapes, strict=True))


def _four(x: Value) -> Value:
    """x with a batch and a head dim."""
    shape = tuple(xt.shape_of(x))
    if len(shape) == 4:
        return x
    if len(shape) < 4:
        missing = 4 - len(shape)
        return xt.reshape(x, shape=(*shape[:-2], *[1] * missing, *shape[-2:]))
    return xt.reshape(x, shape=(symbolic.product(shape[:-3]), *shape[-3:]))


def _mask(mask: Value, q: Value, k: Value) -> Value:
    """The mask with dims as those of the scores; a float of another type than q's is f32."""
    if element(mask) not in ("i1", element(q)):
        mask = convert(mask, "f32" if element(q) != "f64" else "f64")
    rank = rank_of(q)
    shape = tuple(xt.shape_of(mask))
    mask = xt.reshape(mask, shape=(*[1] * (rank - len(shape)), *shape)) if len(shape) < rank else mask
    if rank > 4:
        mask = xt.broadcast(mask, shape=(*xt.shape_of(q)[:-3], *xt.shape_of(mask)[-3:]))
    return _four(mask)


@aten("scaled_dot_product_attention")
def attention(cx: Context) -> Value:
    """softmax(query key^T * scale + mask) value; rows that see nothing are 0."""
    call = call_of(cx, "attn_mask")
    return xt.reshape(call.output(), shape=cx.out().shape)


_MASKS = {"_scaled_dot_product_flash_attention_for_cpu": "attn_mask", "_scaled_dot_product_flash_attention": "",
          "_scaled_dot_product_attention_math_for_mps": "attn_mask"}


@aten("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
      "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
      "_scaled_dot_product_fused_attention_overrideable")
def attention_with_sums(cx: Context) -> tuple[Value | Dim | None, ...]:
    """output, log of the sums of exponentials, sizes, and what the gradient draws the same random numbers from."""
    call = call_of(cx, _MASKS.get(cx.node.op.split(".")[1], "attn_bias"))
    out, sums = call.with_sums() if cx.wants(1) else (call.output(), None)
    out = xt.reshape(out, shape=cx.out().shape)
    sums = None if sums is None else _as_torch(cx, sums)
    sizes = iter((xt.shape_of(call.q)[2], xt.shape_of(call.k)[2]))
    made = _random_state(cx, call.words) if call.words is not None else {}
    return out, sums, *(made[n] if n in made else _rest(cx, n, sizes) for n in range(2, len(cx.node.results)))


_STATES = {"_scaled_dot_product_flash_attention": (6,), "_scaled_dot_product_efficient_attention": (2, 3),
           "_scaled_dot_product_cudnn_attention": (6, 7), "_scaled_dot_product_fused_attention_overrideable": (6, 7)}
"""Which results hold the seed and the offset, or both."""


def _random_state(cx: Context, drawn: tuple[Value, Value]) -> dict[int, Value]:
    """The words of the random numbers as results; an op that has none cannot say its gradient which it drew."""
    places = _STATES.get(cx.node.op.split(".")[1])
    if places is None:
        cx.fail("this kernel of attention has no dropout in torch: call scaled_dot_product_attention")
    words = [xt.reshape(w, shape=(1,)) for w in drawn]
    values = words if len(places) == 2 else [xt.concatenate(*words, axis=0)]
    return {n: convert(xt.reshape(v, shape=cx.out(n).shape), cx.out(n).dtype)
            for n, v in zip(places, values, strict=True)}


def _as_torch(cx: Context, sums: Value) -> Value:
    """[batch, heads, rows], in the shape that torch's kernel has: rows padded, or with a dim of 1."""
    kind = cx.out(1)
    rows, wanted = xt.shape_of(sums)[2], kind.shape[:3][2]
    sums = convert(sums, kind.dtype)
    if wanted != rows:
        sums = xt.pad(sums, low=(0, 0, 0), high=(0, 0, wanted - rows), value=0.0)
    return xt.reshape(sums, shape=kind.shape)


def _rest(cx: Context, n: int, sizes: Iterator[Dim]) -> Value | Dim | None:
    spec = cx.node.results[n]
    if isinstance(spec, TensorSpec):
        return full(cx.out(n).shape, 0, cx.out(n).dtype)
    return next(sizes) if isinstance(spec, SizeSpec) else None
