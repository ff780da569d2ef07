"""Attention, rotary embedding and gelu."""

import math

import numpy as np

from xcc.dialects.xt.broadcasting import broadcast_shapes, merge_dim, same_dtype, shape_text
from xcc.dialects.xt.elementary import erf, exp, tanh
from xcc.dialects.xt.fields import boolean, dims, number, operand, optional, text
from xcc.dialects.xt.norm import check_float
from xcc.dialects.xt.numeric import Array, in_float
from xcc.dialects.xt.op import Attrs, InferError, XtOp, same_dims
from xcc.dialects.xt.products import matmul
from xcc.dialects.xt.shape import static_dims
from xcc.dialects.xt.types import TensorType
from xcc.symbolic import floordiv


class _Scores(Attrs):
    """What both ops share."""

    q = operand()
    k = operand()
    v = operand()
    mask = optional()
    scale = number(0.0)
    causal = boolean(False)
    access = "composite"

    def normalize(a: Attrs, q: TensorType, k: TensorType, v: TensorType, mask: TensorType | None) -> None:
        if a.scale == 0:
            size = q.shape[-1]
            if not isinstance(size, int):
                raise InferError("scale is needed when the head size is symbolic")
            a.scale = 1 / math.sqrt(size)


def _masked(s: Array, mask: Array | None) -> Array:
    if mask is None:
        return s
    return np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask.astype(s.dtype)


class Attention(_Scores, XtOp, name="attention"):
    """softmax(softcap(q k^T * scale) + mask) v on [batch, heads, seq, dim].

    k and v may have fewer heads (grouped query): head h of q reads head h // (q heads / k heads). `mask` broadcasts
    to [batch, heads, q seq, k seq]: i1 keeps where true, a float (of q's type or f32) is added. `causal` lets query i
    see keys up to i + causal_offset. softcap c > 0 maps s to c*tanh(s/c). `scale` 0 means 1/sqrt(dim). A row with no
    visible key gives 0, or NaN with `nan_rows`, as a softmax does.
    """

    causal_offset = dims((0,))
    softcap = number(0.0)
    nan_rows = boolean(False)

    def infer(a: Attrs, q: TensorType, k: TensorType, v: TensorType, mask: TensorType | None) -> TensorType:
        same_dtype(check_float(q), k, v)
        if not q.rank == k.rank == v.rank == 4:
            raise InferError("q, k and v have rank 4")
        pairs = [(q.shape[0], k.shape[0]), (q.shape[3], k.shape[3]), *zip(k.shape[:3], v.shape[:3], strict=True)]
        for m, n in pairs:
            if merge_dim(m, n) is None:
                raise InferError(f"dims {m} and {n} do not fit")
        heads, shared = q.shape[1], k.shape[1]
        if isinstance(heads, int) and isinstance(shared, int) and (shared == 0 or heads % shared):
            raise InferError(f"{heads} query heads do not divide into {shared} key heads")
        if mask is not None:
            scores = (*q.shape[:3], k.shape[2])
            if mask.dtype not in ("i1", "f32", q.dtype):
                raise InferError(f"the mask is {mask.dtype}, not i1, f32 or {q.dtype}")
            if not all(map(same_dims, broadcast_shapes(scores, mask.shape), scores)) or mask.rank > 4:
                raise InferError(f"the mask {shape_text(mask.shape)} does not broadcast to {shape_text(scores)}")
        return q.with_shape([*q.shape[:3], v.shape[3]])

    def evaluate(a: Attrs, q: Array, k: Array, v: Array, mask: Array | None) -> Array:
        visible = np.ones((q.shape[2], k.shape[2]), bool)
        if a.causal:
            (offset,) = static_dims(a.causal_offset, "causal_offset")
            visible = np.tril(visible, offset)

        def f(q: Array, k: Array, v: Array) -> Array:
            repeat = q.shape[1] // max(k.shape[1], 1)
            k, v = np.repeat(k, repeat, 1), np.repeat(v, repeat, 1)
            s = matmul(q, np.swapaxes(k, 2, 3)) * a.scale
            s = a.softcap * tanh(s / a.softcap) if a.softcap else s
            s = np.where(visible, _masked(s, mask), -np.inf)
            top = s.max(-1, keepdims=True, initial=-np.inf)
            e = exp(s - np.where(np.isneginf(top), 0, top))
            total = e.sum(-1, keepdims=True)
            return matmul(e / (total if a.nan_rows else np.where(total == 0, 1, total)), v)

        return in_float(f, q, k, v)


class AttentionWithSums(_Scores, XtOp, name="attention_with_sums"):
    """Attention, and for each query the log of the sum of its scores' exponentials, which its gradient reads.

    `sums` [batch, heads, q seq] is f32 at least, -inf where a query sees no key. Operands and attributes are those of
    `attention`.
    """

    result_names = ("out", "sums")

    def infer(a: Attrs, q: TensorType, k: TensorType, v: TensorType,
              mask: TensorType | None) -> tuple[TensorType, TensorType]:
        out = Attention.infer(a, q, k, v, mask)
        return out, TensorType(out.shape[:3], "f64" if q.dtype == "f64" else "f32")

    def evaluate(a: Attrs, q: Array, k: Array, v: Array, mask: Array | None) -> tuple[Array, Array]:
        plain = Attrs(**vars(a), causal_offset=(0,), softcap=0.0, nan_rows=False)
        wide = q.astype(np.promote_types(q.dtype, np.float32)) if q.dtype != np.float64 else q
        s = matmul(wide, np.swapaxes(np.repeat(k, q.shape[1] // max(k.shape[1], 1), 1), 2, 3).astype(wide.dtype))
        s = _masked(s * wide.dtype.type(a.scale), mask)
        s = np.where(np.tril(np.ones(s.shape[2:], bool)), s, -np.inf) if a.causal else s
        top = s.max(-1, keepdims=True, initial=-np.inf)
        top = np.where(np.isneginf(top), 0, top)
        with np.errstate(divide="ignore"):
            sums = np.log(exp(s - top).sum(-1)) + top[..., 0]
        return Attention.evaluate(plain, q, k, v, mask), sums.astype(wide.dtype)


class _Gradient(Attrs):
    """What both ops of attention's gradient share."""

    grad = operand()
    q = operand()
    k = operand()
    v = operand()
    sums = operand()
    delta = operand()
    mask = optional()
    scale = number(0.0)
    causal = boolean(False)
    access = "composite"

    def normalize(a: Attrs, grad: TensorType, q: TensorType, k: TensorType, v: TensorType, sums: TensorType,
                  delta: TensorType, mask: TensorType | None) -> None:
        _Scores.normalize(a, q, k, v, mask)


def _check_gradient(a: Attrs, grad: TensorType, q: TensorType, k: TensorType, v: TensorType, sums: TensorType,
                    delta: TensorType, mask: TensorType | None) -> None:
    out, rows = AttentionWithSums.infer(a, q, k, v, mask)
    for name, given, wanted in (("grad", grad, out), ("sums", sums, rows), ("delta", delta, rows)):
        if given.dtype != wanted.dtype or given.rank != wanted.rank \
                or any(merge_dim(m, n) is None for m, n in zip(given.shape, wanted.shape, strict=True)):
            raise InferError(f"{name} is {given}, not {wanted}")


def _weights_and_gradients(a: Attrs, grad: Array, q: Array, k: Array, v: Array, sums: Array, delta: Array,
                           mask: Array | None) -> tuple[Array, Array]:
    """The weights P, and the gradient P (grad v^T - delta) of the scores, of operands in one type."""
    s = _masked(matmul(q, np.swapaxes(k, 2, 3)) * a.scale, mask)
    s = np.where(np.tril(np.ones(s.shape[2:], bool)), s, -np.inf) if a.causal else s
    p = exp(s - np.where(np.isneginf(sums), 0, sums)[..., None])
    return p, p * (matmul(grad, np.swapaxes(v, 2, 3)) - delta[..., None])


def _alike(grad: Array, q: Array, k: Array, v: Array, sums: Array) -> list[Array]:
    """The first four in the type of `sums`, keys and values with the heads of q."""
    repeat = q.shape[1] // max(k.shape[1], 1)
    return [x.astype(sums.dtype) for x in (grad, q, np.repeat(k, repeat, 1), np.repeat(v, repeat, 1))]


class AttentionQueryGradient(_Gradient, XtOp, name="attention_query_gradient"):
    """The gradient of attention's queries: S k * scale with S = P (grad v^T - delta).

    P are attention's weights, exp(scores - sums). `grad` is the gradient of its output, `sums` what
    `attention_with_sums` gives, `delta` the sums over the last dim of grad times output, of the shape and type of
    `sums`. The other operands and attributes are those of `attention_with_sums`.
    """

    def infer(a: Attrs, grad: TensorType, q: TensorType, k: TensorType, v: TensorType, sums: TensorType,
              delta: TensorType, mask: TensorType | None) -> TensorType:
        _check_gradient(a, grad, q, k, v, sums, delta, mask)
        return q

    def evaluate(a: Attrs, grad: Array, q: Array, k: Array, v: Array, sums: Array, delta: Array,
                 mask: Array | None) -> Array:
        grad, wide, k, v = _alike(grad, q, k, v, sums)
        ds = _weights_and_gradients(a, grad, wide, k, v, sums, delta, mask)[1]
        return (matmul(ds, k) * a.scale).astype(q.dtype)


class AttentionKeyGradients(_Gradient, XtOp, name="attention_key_gradients"):
    """The gradients of attention's keys and values for each head of q: S^T q * scale and P^T grad, with S and P as in
    `attention_query_gradient`, whose operands and attributes these are.

    Where heads of q share those of k and v, whose gradients are then sums over them, the results have the type of
    `sums`, else that of k.
    """

    result_names = ("dk", "dv")

    def infer(a: Attrs, grad: TensorType, q: TensorType, k: TensorType, v: TensorType, sums: TensorType,
              delta: TensorType, mask: TensorType | None) -> tuple[TensorType, TensorType]:
        _check_gradient(a, grad, q, k, v, sums, delta, mask)
        kind = k.dtype if same_dims(q.shape[1], k.shape[1]) else sums.dtype
        dk, dv = (TensorType((*q.shape[:2], *x.shape[2:]), kind) for x in (k, v))
        return dk, dv

    def evaluate(a: Attrs, grad: Array, q: Array, k: Array, v: Array, sums: Array, delta: Array,
                 mask: Array | None) -> tuple[Array, Array]:
        kind = k.dtype if q.shape[1] == k.shape[1] else sums.dtype
        grad, q, k, v = _alike(grad, q, k, v, sums)
        p, ds = (np.swapaxes(x, 2, 3) for x in _weights_and_gradients(a, grad, q, k, v, sums, delta, mask))
        return (matmul(ds, q) * a.scale).astype(kind), matmul(p, grad).astype(kind)


class Rotary(XtOp, name="rotary"):
    """Rotates pairs of the last dim of x by angles given as cos and sin, which broadcast to x[..., :dim/2].

    Pair i is (i, i + dim/2), or (2i, 2i + 1) when `interleaved`: (a, b) -> (a cos - b sin, b cos + a sin).
    """

    x = operand()
    cos = operand()
    sin = operand()
    interleaved = boolean(False)
    access = "composite"

    def infer(a: Attrs, x: TensorType, cos: TensorType, sin: TensorType) -> TensorType:
        same_dtype(check_float(x), cos, sin)
        half = (*x.shape[:-1], floordiv(x.shape[-1], 2))
        for t in (cos, sin):
            if t.rank > x.rank or not all(map(same_dims, broadcast_shapes(half, t.shape), half)):
                raise InferError(f"{shape_text(t.shape)} does not broadcast to {shape_text(half)}")
        return x

    def evaluate(a: Attrs, x: Array, cos: Array, sin: Array) -> Array:
        def f(x: Array, c: Array, s: Array) -> Array:
            half = x.shape[-1] // 2
            first, second = (x[..., ::2], x[..., 1::2]) if a.interleaved else (x[..., :half], x[..., half:])
            parts = [first * c - second * s, second * c + first * s]
            return np.stack(parts, -1).reshape(x.shape) if a.interleaved else np.concatenate(parts, -1)

        return in_float(f, x, cos, sin)


class Gelu(XtOp, name="gelu"):
    """x/2 * (1 + erf(x/sqrt(2))), or with `approximate` = tanh x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))."""

    x = operand()
    approximate = text("none", ("none", "tanh"))
    access = "composite"

    def infer(a: Attrs, x: TensorType) -> TensorType:
        return check_float(x)

    def evaluate(a: Attrs, x: Array) -> Array:
        if a.approximate == "tanh":
            return in_float(lambda v: v / 2 * (1 + tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * (v * v * v)))), x)
        return in_float(lambda v: v / 2 * (1 + erf(v / math.sqrt(2))), x)
