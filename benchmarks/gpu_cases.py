"""What benchmarks/gpu.py times: each case as an xt module, as a PyTorch function, and its floor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Case:
    """`build(xt, *values)` gives the result in the xt dialect, `torch(F, *tensors)` the same in PyTorch.

    flops and bytes are what must be done and moved. `dtype` is that of the result and, where `dtypes` does not say
    otherwise, of the inputs; integers are drawn from `low` up to `high`, each once where `distinct`. `host`: PyTorch
    waits for a size that depends on data, so that no graph holds it. `bare`: a case of the first inputs, timed too.
    """

    name: str
    shapes: Shapes
    dtype: str
    build: Callable[..., Any]
    torch: Callable[..., Any]
    flops: float = 0.0
    bytes: float = 0.0
    scale: float = 1.0
    dtypes: tuple[str, ...] = ()
    high: int = 1
    low: int = 0
    distinct: bool = False
    host: bool = False
    bare: Case | None = None

    @property
    def inputs(self) -> tuple[tuple[tuple[int, ...], str], ...]:
        """Shape and element type of each input."""
        return tuple(zip(self.shapes, self.dtypes or (self.dtype,) * len(self.shapes), strict=True))


SIZE = {"f16": 2, "bf16": 2, "f32": 4}


def matmul(m: int, n: int, k: int, dtype: str, a: str = "N", b: str = "N") -> Case:
    sa = (m, k) if a == "N" else (k, m)
    sb = (k, n) if b == "N" else (n, k)

    def build(xt: Any, x: Any, y: Any) -> Any:
        return xt.dot_general(x, y, lhs_contract=(1 if a == "N" else 0,), rhs_contract=(0 if b == "N" else 1,))

    def peer(_: Any, x: Any, y: Any) -> Any:
        return (x if a == "N" else x.T) @ (y if b == "N" else y.T)

    return Case(f"matmul {dtype} {m}x{n}x{k} {a}{b}", (sa, sb), dtype, build, peer, 2.0 * m * n * k,
                SIZE[dtype] * (m * k + k * n + m * n))


def epilogue(m: int, n: int, k: int, kind: str, dtype: str = "f16") -> Case:
    def build(xt: Any, x: Any, w: Any, bias: Any, *rest: Any) -> Any:
        y = xt.add(xt.dot_general(x, w, lhs_contract=(1,), rhs_contract=(1,)), bias)
        if kind == "gelu":
            return xt.gelu(y)
        zero = xt.constant(0.0, dtype=dtype)
        return xt.add(xt.maximum(y, zero), rest[0])

    def peer(f: Any, x: Any, w: Any, bias: Any, *rest: Any) -> Any:
        y = f.linear(x, w, bias)
        return f.gelu(y) if kind == "gelu" else f.relu(y) + rest[0]

    shapes: Shapes = ((m, k), (n, k), (n,))
    if kind != "gelu":
        shapes = (*shapes, (m, n))
    return Case(f"linear+bias+{kind} {dtype} {m}x{n}x{k}", shapes, dtype, build, peer, 2.0 * m * n * k,
                SIZE[dtype] * (m * k + k * n + m * n * len(shapes[2:])), 0.1, bare=matmul(m, n, k, dtype, "N", "T"))


def product_rows(m: int, n: int, k: int, kind: str) -> Case:
    """Rows of a product that are reduced: a softmax of them, or a layer norm behind bias and residual."""

    def build(xt: Any, x: Any, w: Any, bias: Any, *rest: Any) -> Any:
        y = xt.add(xt.dot_general(x, w, lhs_contract=(1,), rhs_contract=(1,)), bias)
        return xt.softmax(y, axis=-1) if kind == "softmax" else xt.layer_norm(xt.add(y, rest[0]), *rest[1:], axes=(1,))

    def peer(f: Any, x: Any, w: Any, bias: Any, *rest: Any) -> Any:
        y = f.linear(x, w, bias)
        return f.softmax(y, -1) if kind == "softmax" else f.layer_norm(y + rest[0], (n,), *rest[1:], 1e-5)

    shapes: Shapes = ((m, k), (n, k), (n,))
    if kind != "softmax":
        shapes = (*shapes, (m, n), (n,), (n,))
    return Case(f"linear+{kind} f16 {m}x{n}x{k}", shapes, "f16", build, peer, 2.0 * m * n * k,
                2.0 * (m * k + k * n + m * n * (1 if kind == "softmax" else 2)), 0.3)


def softmax(rows: int, columns: int) -> Case:
    return Case(f"softmax f16 {rows}x{columns}", ((rows, columns),), "f16", lambda xt, x: xt.softmax(x, axis=-1),
                lambda f, x: f.softmax(x, -1), bytes=4.0 * rows * columns)


def argmax(rows: int, columns: int) -> Case:
    return Case(f"argmax f16 {rows}x{columns}", ((rows, columns),), "i64",
                lambda xt, x: xt.arg_reduce(x, kind="argmax", axis=1), lambda f, x: x.argmax(-1),
                bytes=2.0 * rows * columns, dtypes=("f16",))


def layer_norm(rows: int, columns: int) -> Case:
    return Case(f"layernorm f16 {rows}x{columns}", ((rows, columns), (columns,), (columns,)), "f16",
                lambda xt, x, s, b: xt.layer_norm(x, s, b, axes=(1,), eps=1e-5),
                lambda f, x, s, b: f.layer_norm(x, (columns,), s, b, 1e-5), bytes=4.0 * rows * columns)


def rms_norm(rows: int, columns: int) -> Case:
    return Case(f"rmsnorm f16 {rows}x{columns}", ((rows, columns), (columns,)), "f16",
                lambda xt, x, s: xt.rms_norm(x, s, axes=(1,), eps=1e-5),
                lambda f, x, s: f.rms_norm(x, (columns,), s, 1e-5), bytes=4.0 * rows * columns)


def chain(rows: int, columns: int) -> Case:
    def build(xt: Any, x: Any, y: Any, b: Any) -> Any:
        z = xt.add(xt.mul(x, y), b)
        return xt.add(xt.mul(z, xt.sigmoid(z)), x)

    def peer(f: Any, x: Any, y: Any, b: Any) -> Any:
        return f.silu(x * y + b) + x

    return Case(f"pointwise f16 {rows}x{columns}", ((rows, columns), (rows, columns), (columns,)), "f16", build, peer,
                bytes=6.0 * rows * columns)


def attention(batch: int, heads: int, seq: int, dim: int, causal: bool, keys: int = 0, shared: int = 0) -> Case:
    """`shared` heads of keys and values, each for a group of the `heads` heads of queries; 0: as many."""
    keys, grouped = keys or seq, bool(shared)
    shared = shared or heads
    work = 4.0 * batch * heads * seq * keys * dim * (0.5 if causal else 1.0)
    shape, kv = (batch, heads, seq, dim), (batch, shared, keys, dim)
    name = f"attention f16 b{batch} h{heads}" + (f"/{shared}" if grouped else "") + f" s{seq}" \
        + (f" kv{keys}" if keys != seq else "") + f" d{dim}" + (" causal" if causal else "")
    return Case(name, (shape, kv, kv), "f16",
                lambda xt, q, k, v: xt.attention(q, k, v, scale=dim ** -0.5, causal=causal),
                lambda f, q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped), work,
                2.0 * batch * dim * (2 * heads * seq + 2 * shared * keys))


BYTES = {"low": -128, "high": 128}
STEP, DEVIATION = 1 / 128, 1 / 3    # of bytes as numbers; of the products of two, whose sums are to make 32 steps


def quantised(m: int, n: int, k: int) -> Case:
    """A product of bytes with scales, made bytes again; PyTorch has the product alone as an operator."""
    into = DEVIATION * k ** 0.5

    def build(xt: Any, x: Any, w: Any) -> Any:
        step = xt.constant(STEP, dtype="f32")
        y = xt.dot_general(xt.dequantize(x, step), xt.dequantize(w, step), lhs_contract=(1,), rhs_contract=(1,))
        return xt.quantize(y, xt.constant(into / 32, dtype="f32"), dtype="i8")

    def peer(_: Any, x: Any, w: Any) -> Any:
        import torch

        y = torch._int_mm(x, w.T) * (STEP * STEP * 32 / into)
        return y.round().clamp(-128, 127).to(torch.int8)

    return Case(f"quantised matmul i8 {m}x{n}x{k}", ((m, k), (n, k)), "i8", build, peer, 2.0 * m * n * k,
                1.0 * (m * k + k * n + m * n), **BYTES)


def quantised_conv(n: int, h: int, c: int, o: int, k: int) -> Case:
    """A convolution of bytes with scales, made bytes again; PyTorch, which has none on GPUs, multiplies f16."""
    pad, into = k // 2, DEVIATION * (c * k * k) ** 0.5

    def build(xt: Any, x: Any, w: Any) -> Any:
        step = xt.constant(STEP, dtype="f32")
        y = xt.convolution(xt.dequantize(x, step), xt.dequantize(w, step), low=(pad, pad), high=(pad, pad))
        return xt.quantize(y, xt.constant(into / 32, dtype="f32"), dtype="i8")

    def peer(f: Any, x: Any, w: Any) -> Any:
        import torch

        y = f.conv2d(x.half() * STEP, w.half() * STEP, padding=pad) * (32 / into)
        return y.round().clamp(-128, 127).to(torch.int8)

    return Case(f"quantised conv{k}x{k} i8 n{n} {h}x{h} {c}->{o}", ((n, c, h, h), (o, c, k, k)), "i8", build, peer,
                2.0 * n * h * h * c * o * k * k, 1.0 * (n * h * h * (c + o) + c * o * k * k), **BYTES)


def transpose(rows: int, columns: int) -> Case:
    return Case(f"transpose f16 {rows}x{columns}", ((rows, columns),), "f16",
                lambda xt, x: xt.transpose(x, perm=(1, 0)), lambda _, x: x.T.contiguous(), bytes=4.0 * rows * columns)


def conv(n: int, h: int, c: int, o: int, k: int) -> Case:
    pad = k // 2

    def build(xt: Any, x: Any, w: Any) -> Any:
        return xt.convolution(x, w, low=(pad, pad), high=(pad, pad))

    return Case(f"conv{k}x{k} f16 n{n} {h}x{h} {c}->{o}", ((n, c, h, h), (o, c, k, k)), "f16", build,
                lambda f, x, w: f.conv2d(x, w, padding=pad), 2.0 * n * h * h * c * o * k * k,
                2.0 * (n * h * h * (c + o) + c * o * k * k), 0.1)


CASES: tuple[Case, ...] = (
    chain(8192, 4096),
    layer_norm(8192, 4096),
    rms_norm(8192, 4096),
    *(softmax(4096, n) for n in (256, 1000, 1024, 4096, 12345, 16384)),
    transpose(8192, 4096),
    *(matmul(n, n, n, dtype, a, b) for dtype in ("f16", "bf16") for n in (1024, 2048, 4096, 8192)
      for a, b in ("NN", "NT", "TN", "TT")),
    matmul(4096, 4096, 4096, "f32"),
    matmul(1, 4096, 4096, "f16", "N", "T"),
    matmul(16, 4096, 4096, "f16", "N", "T"),
    matmul(1, 11008, 4096, "f16", "N", "T"),
    matmul(128, 11008, 4096, "f16", "N", "T"),
    matmul(333, 777, 1111, "f16", "N", "T"),
    *(matmul(512, n, k, "f16", "N", "T") for n, k in ((12288, 4096), (22016, 4096), (4096, 11008))),
    epilogue(4096, 4096, 4096, "gelu"),
    epilogue(4096, 4096, 4096, "relu+residual"),
    product_rows(65536, 64, 64, "softmax"),
    product_rows(32768, 256, 256, "residual+layernorm"),
    softmax(1, 128256),
    argmax(32, 128256),
    conv(32, 56, 64, 64, 3),
    conv(32, 14, 256, 256, 3),
    *(quantised(n, n, n) for n in (1024, 2048, 4096, 8192)),
    quantised(128, 4096, 4096),
    quantised_conv(32, 56, 64, 64, 3),
    quantised_conv(32, 14, 256, 256, 3),
    attention(4, 32, 4096, 128, True),
    attention(4, 32, 4096, 128, False),
    attention(1, 32, 16384, 128, True),
    attention(8, 32, 1, 128, False, 4096),
    attention(1, 32, 1, 128, False, 4096),
    attention(1, 32, 1, 128, False, 32768, 8),
)
