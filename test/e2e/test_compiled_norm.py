"""Softmax, norms, attention, rotary embedding and gelu compiled for the CPU, over shapes and types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import BF16, FLOATS, SIZES, arrays, check, examples, filled, shapes
from hypothesis import given
from hypothesis import strategies as st

from xcc.dialects import xt

F32 = np.dtype(np.float32)
SIDES = st.sampled_from([1, 1, 2, 3, 5, 7, 16, 17, 33])


@given(st.data())
@examples(10)
def test_softmax(data: Any) -> None:
    """Any axis; rows of one element, no rows, no elements."""
    x = data.draw(arrays(shapes((1, 4)), FLOATS, -20, 20))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    op = data.draw(st.sampled_from([xt.softmax, xt.log_softmax]))
    check(lambda v: op(v, axis=axis), x, dynamic=data.draw(st.booleans()), tolerance=4)


@pytest.mark.parametrize("shape", [(70, 64), (3, 37, 128), (2, 3, 9, 40)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_softmax_of_short_rows(shape: tuple[int, ...], dynamic: bool) -> None:
    """Rows that stay in registers, whose maxima a chunk makes first; chunks not filled by rows, masked elements."""
    x = filled(shape, F32, 0, -20, 20)
    x[..., 1::3] = -np.inf
    check(lambda v: xt.softmax(v, axis=-1), x, dynamic=dynamic, tolerance=4)
    scale = filled(shape[-1:], F32, 1, 0, 2)
    check(lambda v, s: xt.softmax(xt.mul(v, s), axis=-1), filled(shape, F32, 2, -9, 9), scale, dynamic=dynamic,
          tolerance=4)


@given(st.data())
@examples(14)
def test_layer_and_rms_norm(data: Any) -> None:
    """Several axes, scale and bias that broadcast or are absent."""
    x = data.draw(arrays(shapes((1, 4), SIZES.filter(bool)), FLOATS))
    axes = data.draw(st.lists(st.integers(-x.ndim, x.ndim - 1), min_size=1, max_size=x.ndim))
    kind = data.draw(st.sampled_from(["layer_norm", "rms_norm"]))
    rest = [_factor(data, x, seed) for seed in range(data.draw(st.integers(0, 2 if kind == "layer_norm" else 1)))]
    check(lambda v, *r: getattr(xt, kind)(v, *r, axes=axes, eps=0.01), x, *rest, dynamic=data.draw(st.booleans()),
          tolerance=8)


def _factor(data: Any, x: Any, seed: int) -> Any:
    """An array that broadcasts to x."""
    kept = [1 if data.draw(st.integers(0, 2)) == 0 else n for n in x.shape]
    return filled(kept[data.draw(st.integers(0, len(kept))):], x.dtype, seed, -1, 1)


@given(st.data())
@examples(10)
def test_rows_of_several_dims(data: Any) -> None:
    """Softmax and norms over all but the first dim, or over all, which an operand that lacks a dim keeps apart."""
    shape = (data.draw(st.sampled_from([1, 3])), data.draw(st.sampled_from([1, 5, 37, 70])),
             data.draw(st.sampled_from([1, 7, 33, 64, 100])))
    axes, dear = data.draw(st.sampled_from([[1, 2], [0, 1, 2]])), data.draw(st.booleans())
    x = filled(shape, F32, 0, -9, 9)
    scale = filled(data.draw(st.sampled_from([shape[2:], (*shape[1:2], 1), (shape[0], 1, 1), shape])), F32, 1, -1, 1)

    def body(v: Any, s: Any) -> Any:
        if dear:
            e = xt.exp(xt.sub(v, xt.reduce(v, kind="max", axes=axes, keepdims=True)))
            return xt.mul(xt.div(e, xt.reduce(e, kind="sum", axes=axes, keepdims=True)), s)
        d = xt.sub(v, xt.reduce(v, kind="max", axes=axes, keepdims=True))
        total = xt.reduce(xt.mul(d, d), kind="sum", axes=axes, keepdims=True)
        return xt.mul(xt.div(d, xt.add(total, xt.constant(np.float32(1)))), s)

    check(body, x, scale, dynamic=data.draw(st.booleans()), tolerance=4)


@given(st.data())
@examples(12)
def test_rows_and_what_is_said_of_each(data: Any) -> None:
    """A norm or softmax, and its mean, deviation, maximum or sum as results of their own, as training saves them."""
    shape = data.draw(st.sampled_from([(1, 70, 256), (3, 37, 128), (5, 300), (2, 3, 1000), (70, 1, 16), (0, 64),
                                       (9, 0)]))
    axis, each = data.draw(st.sampled_from([-1, -1, -1, 0])), st.sampled_from(["mean", "inverse", "max", "log"])
    said = data.draw(st.lists(each, min_size=1, max_size=3, unique=True))
    kind, dtype = data.draw(st.sampled_from(["norm", "softmax", "rows"])), data.draw(st.sampled_from(FLOATS[:4]))
    if not shape[axis]:
        said, kind = ["sum"], "rows"

    def body(v: Any) -> Any:
        n = xt.constant(np.asarray(shape[axis] or 1, dtype))
        total = xt.reduce(v, kind="sum", axes=(axis,), keepdims=True)
        d = xt.sub(v, xt.div(total, n))
        square = xt.div(xt.reduce(xt.mul(d, d), kind="sum", axes=(axis,), keepdims=True), n)
        most = xt.reduce(v, kind="max", axes=(axis,), keepdims=True) if shape[axis] else total
        rest = {"mean": xt.div(total, n), "inverse": xt.rsqrt(xt.add(square, xt.constant(np.asarray(0.1, dtype)))),
                "max": most, "sum": total, "log": xt.log(xt.reduce(xt.exp(xt.sub(v, most)), kind="sum", axes=(axis,)))}
        whole = {"norm": lambda: xt.mul(d, rest["inverse"]), "softmax": lambda: xt.softmax(v, axis=axis),
                 "rows": lambda: xt.exp(v)}[kind]()
        return whole, *(rest[name] for name in said)

    check(body, filled(shape, dtype), dynamic=data.draw(st.booleans()), tolerance=8)


@given(st.data())
@examples(10)
def test_group_norm(data: Any) -> None:
    groups, width = data.draw(st.sampled_from([1, 2, 3, 7])), data.draw(st.sampled_from([1, 2, 5]))
    batch, spatial = data.draw(st.sampled_from([0, 1, 2])), data.draw(shapes((0, 3), SIZES.filter(bool), 1 << 10))
    dtype = data.draw(st.sampled_from(FLOATS))
    channels = groups * width
    axis = data.draw(st.sampled_from([1, len(spatial) + 1]))
    x = filled((batch, channels, *spatial) if axis == 1 else (batch, *spatial, channels), dtype)
    rest = [filled((channels,), dtype, i + 1) for i in range(data.draw(st.integers(0, 2)))]
    check(lambda v, *r: xt.group_norm(v, *r, groups=groups, eps=0.01, axis=axis), x, *rest,
          dynamic=data.draw(st.booleans()), tolerance=8)


@given(st.data())
@examples(6)
def test_lrn(data: Any) -> None:
    x = data.draw(arrays(shapes((2, 4), SIZES.filter(bool), 1 << 12), FLOATS))
    size, beta = data.draw(st.integers(1, 7)), data.draw(st.sampled_from([0.5, 0.75, 2.0]))
    check(lambda v: xt.lrn(v, size=size, alpha=0.1, beta=beta, bias=1.0), x, tolerance=4)


@given(st.data())
@examples(24)
def test_attention(data: Any) -> None:
    """Grouped heads, masks of every broadcast shape and both types, causal with an offset, softcap."""
    batch, shared, repeat = (data.draw(st.sampled_from([1, 1, 2, 3])) for _ in range(3))
    queries, keys, depth, width = (data.draw(SIDES) for _ in range(4))
    dtype = data.draw(st.sampled_from([F32, F32, np.dtype(np.float16), BF16]))
    heads = shared * repeat
    inputs = [filled(s, dtype, i, -1, 1) for i, s in enumerate(
        [(batch, heads, queries, depth), (batch, shared, keys, depth), (batch, shared, keys, width)])]
    mask = data.draw(st.sampled_from(["", "", "i1", "float"]))
    if mask:
        full = [1 if data.draw(st.booleans()) else n for n in (batch, heads, queries, keys)]
        kept = full[data.draw(st.integers(0, 2)):]
        inputs.append(filled(kept, bool if mask == "i1" else dtype, 3))
    options = {"causal": data.draw(st.booleans()), "causal_offset": (data.draw(st.sampled_from([0, 0, 1, -2, 30])),),
               "softcap": data.draw(st.sampled_from([0.0, 0.0, 2.0])), "scale": data.draw(st.sampled_from([0.0, 0.5]))}
    check(lambda *v: xt.attention(*v, **options), *inputs, dynamic=options["scale"] != 0 and data.draw(st.booleans()),
          tolerance=4)


def test_half_attention_with_pairs_of_features() -> None:
    """Products of pairs of f16 elements have no instruction of their own on CPUs; those of bf16 have one."""
    for dtype in (np.dtype(np.float16), BF16):
        q, k, v = (filled(s, dtype, i, -1, 1) for i, s in enumerate([(1, 3, 33, 2), (1, 3, 3, 2), (1, 3, 3, 33)]))
        check(lambda *x: xt.attention(*x), q, k, v, tolerance=4)
        check(lambda *x: xt.attention(*x), q[:, :, :1], k, v, tolerance=4)     # one row: by f32


@given(st.data())
@examples(8)
def test_rotary(data: Any) -> None:
    dtype = data.draw(st.sampled_from(FLOATS))
    shape = (*data.draw(shapes((1, 3), SIDES, 1 << 9)), 2 * data.draw(SIDES))
    half = (*shape[:-1], shape[-1] // 2)
    inner = [1 if data.draw(st.integers(0, 2)) == 0 else n for n in half]
    angle = filled(inner[data.draw(st.integers(0, len(inner) - 1)):], np.float64, 1)
    interleaved = data.draw(st.booleans())
    check(lambda x, c, s: xt.rotary(x, c, s, interleaved=interleaved), filled(shape, dtype),
          np.cos(angle).astype(dtype), np.sin(angle).astype(dtype))


@given(st.data())
@examples(4)
def test_gelu(data: Any) -> None:
    x, kind = data.draw(arrays(shapes(), FLOATS)), data.draw(st.sampled_from(["none", "tanh"]))
    check(lambda v: xt.gelu(v, approximate=kind), x, dynamic=data.draw(st.booleans()))
