"""Programs with symbolic dims: compiled once, run at several sizes, 0, 1 and primes among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from compiled import compare, compiled, examples, fenced, filled, module_of
from hypothesis import given
from hypothesis import strategies as st

from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.symbolic import evaluate, floordiv, sym

F32 = np.dtype(np.float32)
N, M = sym("n"), sym("m")
Shape = tuple[Any, ...]


def x(*shape: Any, dtype: Any = F32) -> tuple[Shape, Any]:
    return shape, np.dtype(dtype)


def times(a: Any, w: Any) -> Any:
    return xt.dot_general(a, w, lhs_contract=[a.type.rank - 1], rhs_contract=[0])


def layers(a: Any, w: Any, v: Any) -> Any:
    """What a transformer's block does to rows."""
    y = xt.layer_norm(a, axes=[-1])
    y = xt.add(a, times(xt.gelu(times(y, w)), v))
    return y, xt.softmax(y, axis=-1)


def joined(a: Any, b: Any) -> Any:
    y = xt.concatenate(a, xt.reverse(b, axes=[0]), a, axis=0)
    return xt.slice(y, starts=(N, 0), limits=(N + M, 5)), xt.transpose(y)


def side_by_side(a: Any, b: Any, c: Any) -> Any:
    """Pieces of rows, of any length and of none, and rows that go around."""
    y = xt.concatenate(a, xt.tanh(b), c, axis=1)
    return y, xt.pad(y, low=(0, 9), high=(0, 8), mode="wrap"), xt.pad(y, low=(0, 5), high=(0, 4), mode="reflect")


def beyond(a: Any, b: Any) -> Any:
    """Columns that go around, several times where they are short."""
    y = xt.concatenate(a, b, axis=0)
    return tuple(xt.pad(y, low=(3, 0), high=(4, 0), mode=mode) for mode in ("wrap", "reflect"))


def pairs(a: Any) -> Any:
    """Columns of rows of three, others of them beside each other."""
    first, second, third = (xt.slice(a, starts=(0, 0, i), limits=(N, M, i + 1)) for i in range(3))
    return xt.concatenate(xt.mul(first, third), xt.sub(second, first), axis=2)


def windows(a: Any, w: Any) -> Any:
    y = xt.maximum(xt.convolution(a, w, low=(1, 1), high=(1, 1), strides=(2, 2)), xt.scalar(0.0, "f32"))
    return y, xt.reduce_window(y, kind="max", window=(1, 1, 3, 3), strides=(1, 1, 2, 2), low=(0, 0, 1, 1),
                               high=(0, 0, 1, 1))


def bytes_less_points(a: Any, b: Any, p: Any) -> Any:
    """Sums, as long as a size says, of bytes less zero points on both sides."""
    left, right, point = (xt.convert(v, dtype="i32") for v in (a, b, p))
    return times(xt.sub(left, point), xt.sub(right, xt.scalar(3, "i32")))


CASES: dict[str, tuple[Callable[..., Any], list[tuple[Shape, Any]]]] = {
    "pointwise": (lambda a, b: xt.tanh(xt.add(xt.mul(a, b), a)), [x(N, M), x(M)]),
    "rows": (lambda a: (xt.softmax(a, axis=1), xt.reduce(a, kind="sum", axes=[1]), xt.reduce(a, kind="max", axes=[0])),
             [x(N, M)]),
    "everything reduced": (lambda a: xt.reduce(xt.exp(a), kind="sum", axes=[0, 1]), [x(N, M)]),
    "middle": (lambda a: xt.log_softmax(a, axis=1), [x(3, N, M)]),
    "product": (lambda a, b: xt.matmul(a, b), [x(N, 7), x(7, M)]),
    "inner product": (lambda a, b: xt.add(xt.matmul(a, b), xt.scalar(1.0, "f32")), [x(5, N), x(N, M)]),
    "batch product": (lambda a, b: xt.matmul(a, xt.transpose(b, perm=[0, 2, 1])), [x(N, M, 8), x(N, M, 8)]),
    "half": (lambda a, b: xt.matmul(a, b), [x(N, M, dtype=np.float16), x(M, 33, dtype=np.float16)]),
    "product of bytes": (bytes_less_points, [x(M, N, dtype=np.uint8), x(N, M, dtype=np.int8), x(dtype=np.uint8)]),
    "short columns": (lambda a: xt.transpose(a, perm=(3, 0, 2, 1)), [x(2, 3, N, M)]),
    "pairs": (pairs, [x(N, M, 3)]),
    "layers": (layers, [x(N, M, 16), x(16, 40), x(40, 16)]),
    "attention": (lambda q, k, v: xt.attention(q, k, v, causal=True, scale=0.3),
                  [x(1, 2, N, 8), x(1, 1, M, 8), x(1, 1, M, 8)]),
    "windows": (windows, [x(1, 3, N, M), x(8, 3, 3, 3)]),
    "depthwise": (lambda a, w: xt.convolution(a, w, groups=6, low=(2, 2), high=(2, 2)), [x(N, 6, M, 4), x(6, 1, 5, 5)]),
    "gather": (lambda a, i: xt.gather(a, i, axis=0), [x(9, N), x(M, dtype=np.int64)]),
    "scatter": (lambda a, i, u: xt.scatter_elements(a, i, u, axis=0, reduction="add"),
                [x(9, N), x(M, N, dtype=np.int64), x(M, N)]),
    "order": (lambda a: (*xt.sort(a, axis=0), xt.cumulative(a, kind="sum", axis=1)), [x(N, M)]),
    "best": (lambda a: (xt.top_k(a, k=1, axis=1)[1], xt.arg_reduce(a, kind="argmin", axis=1)), [x(N, 5, M)]),
    "every third": (lambda a: xt.cumulative(xt.exp(xt.slice(a, starts=(0, 0), limits=(N, M), strides=(1, 3))),
                                            kind="sum", axis=1), [x(N, M)]),
    "joined": (joined, [x(N, 5), x(M, 5)]),
    "beyond": (beyond, [x(N, M), x(1, M)]),
    "side by side": (side_by_side, [x(7, N), x(7, M), x(7, 6)]),
    "padded": (lambda a: xt.pad(a, low=(1, 0), high=(N, 2), value=3.0), [x(N, M)]),
    "resized": (lambda a: xt.resize(a, shape=(1, 2, 2 * N, floordiv(M, 2)), mode="linear", coordinate="asymmetric"),
                [x(1, 2, N, M)]),
    "cubic": (lambda a: xt.resize(a, shape=(1, 2, 2 * N, floordiv(M, 2)), mode="cubic", coordinate="align_corners"),
              [x(1, 2, N, M)]),
    "cubic at halves": (lambda a: xt.resize(a, shape=(2 * N, floordiv(M, 3)), mode="cubic", exclude_outside=True,
                                            coordinate="pytorch_half_pixel", scales=(2.0, 0.0)), [x(N, M)]),
    "narrowed": (lambda a: xt.resize(a, shape=(N, floordiv(2 * M, 5)), mode="linear", antialias=True,
                                     coordinate="half_pixel_symmetric", scales=(0.0, 0.4)), [x(N, M)]),
    "antialiased": (lambda a: xt.resize(a, shape=(floordiv(N + 2, 3), 2 * M), mode="linear", antialias=True,
                                        exclude_outside=True), [x(N, M)]),
    "antialiased cubic": (lambda a, b: (xt.resize(a, shape=(N, M), mode="cubic", antialias=True, cubic_coeff=-0.5,
                                                  exclude_outside=True), b), [x(16, M), x(N)]),
    "thirds": (lambda a: xt.resize(a, shape=(3 * N, M), mode="nearest", coordinate="asymmetric", nearest_mode="floor",
                                   scales=(3.0, 0.0)), [x(N, M)]),
    "counted": (lambda a: xt.nonzero(xt.compare(a, xt.scalar(0.0, "f32"), direction="gt"), symbol="k"), [x(N, M)]),
    "steps": (lambda s, a: xt.scan([s], [a], lambda c, y: ([xt.tanh(xt.add(c[0], y[0]))], [c[0]])), [x(M), x(N, M)]),
    "recurrent": (lambda a, w, r: xt.gru(a, w, r, None, None, None, direction="bidirectional"),
                  [x(N, M, 4), x(2, 9, 4), x(2, 9, 3)]),
}
SIZES = ((5, 7), (0, 3), (3, 0), (1, 1), (1, 17), (31, 2), (0, 0), (37, 64), (5, 7))


@pytest.mark.parametrize("name", CASES)
def test_sizes(name: str) -> None:
    """One compilation, all sizes; the first again at the end, as nothing may be left behind."""
    body, inputs = CASES[name]
    run_at(body, inputs, [{"n": n, "m": m} for n, m in SIZES])


def run_at(body: Callable[..., Any], inputs: list[tuple[Shape, Any]], sizes: list[Mapping[str, int]]) -> None:
    types = [xt.TensorType(shape, xt.dtype_name(dtype)) for shape, dtype in inputs]
    model, module = compiled(module_of(body, types)), module_of(body, types)
    for seed, size in enumerate(sizes):
        arrays = [_values(t, size, seed + i) for i, t in enumerate(types)]
        want = interpret(module, arrays)
        got = model.run({f"x{i}": fenced(a) for i, a in enumerate(arrays)})
        for g, w in zip(got.values(), want, strict=True):
            compare(g, w, 4, f"{size}: {g} is not {w}")


def _values(t: Any, sizes: Mapping[str, int], seed: int) -> Any:
    shape = [evaluate(d, sizes) for d in t.shape]
    if t.dtype == "i64":        # positions
        return np.random.default_rng(seed).integers(0, 9, shape)
    return filled(shape, xt.numpy_dtype(t.dtype), seed, -1, 1)


@given(st.data())
@examples(6)
def test_random_sizes(data: Any) -> None:
    """Other sizes of the same programs, bounds not declared."""
    body, inputs = CASES[data.draw(st.sampled_from(sorted(CASES)))]
    draw = st.sampled_from([0, 1, 1, 2, 3, 5, 8, 11, 16, 19, 33, 65])
    run_at(body, inputs, [{"n": data.draw(draw), "m": data.draw(draw)} for _ in range(6)])
