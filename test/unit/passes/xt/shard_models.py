"""Programs that tests of sharding split: transformers, convolutions, experts, control flow, quantised products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xcc.dialects import xt
from xcc.weights import WeightStore

F = xt.TensorType
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


class Weights:
    """Weights drawn as they are asked for; their names count up."""

    def __init__(self, seed: int = 0) -> None:
        self.store, self.rng = WeightStore(), np.random.default_rng(seed)

    def __call__(self, *shape: int, name: str = "w") -> Any:
        value = (self.rng.standard_normal(shape) / max(shape[0], 1) ** 0.5).astype(np.float32)
        return xt.weight(self.store.add(name, value), shape, "f32")


def linear(w: Weights, x: Any, n: int, name: str = "w") -> Any:
    t = F.of(x)
    y = xt.dot_general(x, w(int(t.shape[-1]), n, name=name), lhs_contract=(t.rank - 1,), rhs_contract=(0,))
    return xt.add(y, w(n, name=f"{name}.bias"))


def norm(w: Weights, x: Any) -> Any:
    n = int(F.of(x).shape[-1])
    return xt.layer_norm(x, w(n, name="norm"), w(n, name="norm"), axes=(-1,))


def attend(w: Weights, x: Any, heads: int, shared: int, fused: bool = False) -> Any:
    """x [b, s, h]; `fused`: q, k and v of one matrix."""
    b, s, width = F.of(x).shape
    size = int(width) // heads
    if fused:
        a = linear(w, x, 3 * int(width), "qkv")
        parts = [xt.slice_(a, starts=(0, 0, i * int(width)), limits=(b, s, (i + 1) * int(width))) for i in range(3)]
        shared = heads
    else:
        parts = [linear(w, x, n * size, name) for n, name in ((heads, "q"), (shared, "k"), (shared, "v"))]
    q, k, v = (xt.transpose(xt.reshape(p, shape=(b, s, n, size)), perm=(0, 2, 1, 3))
               for p, n in zip(parts, (heads, shared, shared), strict=True))
    y = xt.transpose(xt.attention(q, k, v, causal=True), perm=(0, 2, 1, 3))
    return linear(w, xt.reshape(y, shape=(b, s, width)), int(width), "o")


def transformer(w: Weights, layers: int = 2, fused: bool = False, shared: int = 12) -> Callable[[Any], Any]:
    def build(x: Any) -> Any:
        width = int(F.of(x).shape[-1])
        for _ in range(layers):
            x = xt.add(x, attend(w, norm(w, x), 12, shared, fused))
            x = xt.add(x, linear(w, xt.gelu(linear(w, norm(w, x), 4 * width, "up")), width, "down"))
        return norm(w, x)

    return build


def counts(names: list[str]) -> dict[str, int]:
    return {c: names.count(c) for c in COLLECTIVES if c in names}


def convnet(w: Weights) -> Callable[[Any], Any]:
    def build(x: Any) -> Any:
        for n, groups in ((24, 1), (24, 24), (48, 1), (48, 12)):
            c = int(F.of(x).shape[1])
            x = xt.convolution(x, w(n, c // groups, 3, 3), low=(1, 1), high=(1, 1), groups=groups)
            x = xt.group_norm(x, w(n), w(n), groups=12)
            x = xt.maximum(x, xt.scalar(0, "f32"))
        x = xt.reduce_window(x, kind="max", window=(1, 1, 2, 2), strides=(1, 1, 2, 2))
        x = xt.reduce(x, kind="sum", axes=(2, 3))
        return linear(w, x, 10)

    return build


def recurrent(w: Weights) -> Callable[[Any], Any]:
    def build(x: Any) -> Any:
        h = xt.lstm(x, w(1, 96, 24), w(1, 96, 24), w(1, 192))[0]
        h = xt.reshape(h, shape=(5, 4, 24))
        return xt.softmax(linear(w, h, 24), axis=-1)

    return build


def experts(w: Weights) -> Callable[[Any], Any]:
    """All experts compute, their results are weighted: the sum over experts is one of partial results."""
    def build(x: Any) -> Any:
        gates = xt.softmax(linear(w, x, 12), axis=-1)
        h = xt.dot_general(x, w(12, 24, 48), lhs_contract=(1,), rhs_contract=(1,))      # [n, e, f]
        h = xt.maximum(h, xt.scalar(0, "f32"))
        h = xt.mul(h, xt.reshape(gates, shape=(8, 12, 1)))
        return xt.dot_general(h, w(12, 48, 24), lhs_contract=(1, 2), rhs_contract=(0, 1))

    return build


def embedding(w: Weights) -> Callable[[Any], Any]:
    def build(n: Any) -> Any:
        table = w(50, 24, name="table")
        x = xt.add(xt.gather(table, n), xt.reshape(w(5, 24), shape=(1, 5, 24)))
        x = xt.concatenate(x, xt.reverse(x, axes=(1,)), axis=2)
        return xt.dot_general(linear(w, x, 24), table, lhs_contract=(2,), rhs_contract=(1,))

    return build


def control(w: Weights) -> Callable[[Any], Any]:
    def build(x: Any) -> Any:
        h = linear(w, x, 24)
        (h,) = xt.while_([h], lambda h: xt.compare(xt.reduce(h, kind="max"), xt.scalar(4, "f32"), direction="lt"),
                         lambda h: (xt.add(h, xt.exp(linear(w, xt.sigmoid(h), 24))),))
        _, ys = xt.scan([xt.reduce(h, kind="sum", axes=(0,))], [h],
                        lambda c, s: ((xt.add(c[0], xt.mul(s[0], s[0])),), (xt.sub(s[0], c[0]),)))
        return linear(w, ys, 48)

    return build


def quantised(w: Weights) -> Callable[[Any], Any]:
    def build(x: Any) -> Any:
        codes = w.store.add("codes", np.random.default_rng(3).integers(-8, 8, (24, 48)).astype(np.int8))
        scales = xt.weight(w.store.add("scales", np.full((24, 6), 0.1, np.float32)), (24, 6), "f32")
        matrix = xt.dequantize(xt.weight(codes, (24, 48), "i8"), scales, axis=1, block=8)
        return linear(w, xt.gelu(xt.dot_general(x, matrix, lhs_contract=(1,), rhs_contract=(0,))), 24)

    return build


MODELS: dict[str, tuple[Callable[[Weights], Callable[..., Any]], Any]] = {
    "convnet": (convnet, np.zeros((2, 12, 8, 8), np.float32)),
    "recurrent": (recurrent, np.zeros((5, 4, 24), np.float32)),
    "experts": (experts, np.zeros((8, 24), np.float32)),
    "embedding": (embedding, np.zeros((2, 5), np.int64)),
    "control": (control, np.zeros((8, 24), np.float32)),
    "quantised": (quantised, np.zeros((6, 24), np.float32)),
}
