"""One xt program for each GPU schedule, at a size that real models have and at a small one for the interpreter.

`compiled_kernels` compiles a case for an AMD chip, `faults` says what in its code is not as it must be, and
`difference` runs the small size in the interpreter against the ops' meaning in numpy.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import compiled as programs
import numpy as np

import xcc
from xcc._mlir import ir
from xcc.compiler import Compiled, compile_model
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.dialects.xt.types import numpy_dtype
from xcc.interpreter.executor import make_executor
from xcc.options import CompileOptions
from xcc.passes.shared.instruction_tables import instructions_of
from xcc.targets.amdgcn.chip import CHIPS
from xcc.targets.base import KernelBinary

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Of:
    """An input: element type, its sizes in the two variants, and the range of its values."""

    dtype: str
    full: tuple[int, ...]
    small: tuple[int, ...]
    low: float = -1.0
    high: float = 1.0

    def draw(self, rng: np.random.Generator) -> Array:
        kind = numpy_dtype(self.dtype)
        if self.dtype.startswith(("i", "ui")):
            return rng.integers(int(self.low), int(self.high), self.small).astype(kind)
        return rng.uniform(self.low, self.high, self.small).astype(kind)


@dataclass(frozen=True)
class Case:
    """A schedule's program.

    Attributes:
        body: builds the result from the inputs, in the xt dialect.
        product: the element type that its contractions multiply; "" for schedules without one.
        precision: as in CompileOptions.
    """

    name: str
    body: Callable[..., Any]
    inputs: tuple[Of, ...]
    product: str = ""
    precision: str = ""

    def expects_matrix(self, chip: str) -> bool:
        """Whether the chip has an instruction that multiplies what this case multiplies; f8 may go as f16."""
        lossy = self.precision == "tf32"
        types = {i.types[0] for i in instructions_of(CHIPS[chip]) if i.exact or lossy}
        return self.product in types or self.product.startswith("f8")


def matmul(name: str, dtype: str, full: tuple[int, int, int], small: tuple[int, int, int], order: str = "NN",
           epilogue: Callable[..., Any] | None = None, more: Sequence[Of] = (), result: str | None = None,
           precision: str = "") -> Case:
    """(m, k) x (k, n), an operand transposed in memory where `order` says T."""
    sizes = []
    for m, n, k in (full, small):
        sizes.append(((m, k) if order[0] == "N" else (k, m), (k, n) if order[1] == "N" else (n, k)))
    inputs = tuple(Of(dtype, a, b, *((-9, 10) if dtype[0] in "iu" else (-1, 1)))
                   for a, b in zip(*sizes, strict=True))

    def body(a: Any, b: Any, *rest: Any) -> Any:
        y = xt.dot_general(a, b, lhs_contract=("NT".index(order[0]) ^ 1,), rhs_contract=("NT".index(order[1]),),
                           dtype=result)
        return epilogue(y, *rest) if epilogue else y

    return Case(name, body, (*inputs, *more), dtype, precision)


def convolution(name: str, image: tuple[int, ...], small: tuple[int, ...], outputs: tuple[int, int], window: int,
                groups: tuple[int, int] = (1, 1), stride: int = 1, dtype: str = "f16", product: bool = True) -> Case:
    """Images (n, c, h, w), `outputs` channels and `groups` at the two sizes."""
    def body(x: Any, w: Any) -> Any:
        inside, per_group = (ir.RankedTensorType(v.type).shape[1] for v in (x, w))
        pad = (window // 2,) * 2
        return xt.convolution(x, w, low=pad, high=pad, strides=(stride, stride), groups=inside // per_group)

    filters = [(o, s[1] // g, window, window) for s, o, g in zip((image, small), outputs, groups, strict=True)]
    return Case(name, body, (Of(dtype, image, small), Of(dtype, filters[0], filters[1])), dtype if product else "")


def attention(name: str, full: tuple[int, ...], small: tuple[int, ...], dtype: str = "f16", causal: bool = False,
              mask: str = "") -> Case:
    """Sizes: batch, heads, heads of keys, queries, keys, features. mask: its type; "i1" hides keys, others add."""
    queries, keys = (tuple((s[0], s[h], s[n], s[5]) for s in (full, small)) for h, n in ((1, 3), (2, 4)))
    masks = [(s[0], 1, s[3], s[4]) for s in (full, small)]

    def body(*inputs: Any) -> Any:
        return xt.attention(*inputs, causal=causal)

    more = (Of(mask, *masks, *((0, 2) if mask == "i1" else (-1, 1))),) if mask else ()
    return Case(name, body, (Of(dtype, *queries), Of(dtype, *keys), Of(dtype, *keys), *more), dtype)


def plain(name: str, body: Callable[..., Any], full: tuple[int, ...], small: tuple[int, ...], dtype: str = "f16"
          ) -> Case:
    """A schedule without a product, on one input."""
    return Case(name, body, (Of(dtype, full, small),))


def _window(kind: str, size: int, stride: int) -> Callable[[Any], Any]:
    edge = (0, 0, size // 2, size // 2)
    return lambda x: xt.reduce_window(x, kind=kind, window=(1, 1, size, size), strides=(1, 1, stride, stride),
                                      low=edge, high=edge)


def _twice(mode: str) -> Callable[[Any], Any]:
    def body(x: Any) -> Any:
        n, c, h, w = ir.RankedTensorType(x.type).shape
        return xt.resize(x, shape=(n, c, 2 * h, 2 * w), mode=mode)
    return body


def _silu_chain(x: Any, y: Any, b: Any) -> Any:
    z = xt.add(xt.mul(x, y), b)
    return xt.add(xt.mul(z, xt.sigmoid(z)), x)


BIG, ODD = (4096, 4096, 4096), (70, 90, 40)
CASES: tuple[Case, ...] = (
    *(matmul(f"matmul f16 {o}", "f16", BIG, ODD, o) for o in ("NN", "NT", "TN", "TT")),
    matmul("matmul f16 odd sizes", "f16", (333, 777, 1111), (37, 51, 43), "NT"),
    *(matmul(f"matmul {t} NT", t, BIG, ODD, "NT") for t in ("bf16", "f32")),
    matmul("matmul f32 NN", "f32", BIG, ODD),
    matmul("matmul tf32 NT", "f32", BIG, ODD, "NT", precision="tf32"),
    matmul("matmul i8 NT", "i8", BIG, ODD, "NT", result="i32"),
    *(matmul(f"matmul {t} NT", t, BIG, ODD, "NT", result="f32") for t in ("f8E4M3FN", "f8E5M2")),
    matmul("matmul f16 bias gelu", "f16", BIG, ODD, "NT", lambda y, b: xt.gelu(xt.add(y, b)),
           [Of("f16", (4096,), (90,))]),
    matmul("matmul f16 bias relu residual", "f16", BIG, ODD, "NT",
           lambda y, b, r: xt.add(xt.maximum(xt.add(y, b), xt.constant(0.0, dtype="f16")), r),
           [Of("f16", (4096,), (90,)), Of("f16", (4096, 4096), (70, 90))]),
    Case("matmul f16 one row", lambda a, b: xt.dot_general(a, b, lhs_contract=(1,), rhs_contract=(1,)),
         (Of("f16", (1, 4096), (1, 64)), Of("f16", (4096, 4096), (40, 64)))),
    matmul("matmul f16 16 rows", "f16", (16, 4096, 4096), (16, 40, 64), "NT"),
    matmul("matmul f16 split-K", "f16", (64, 64, 65536), (16, 16, 4096), "NT"),
    Case("matmul f16 batched", lambda a, b: xt.dot_general(a, b, lhs_batch=(0,), rhs_batch=(0,), lhs_contract=(2,),
                                                           rhs_contract=(1,)),
         (Of("f16", (64, 512, 64), (3, 33, 16)), Of("f16", (64, 64, 512), (3, 16, 40))), "f16"),
    Case("matmul f16 broadcast batch", lambda a, b: xt.dot_general(a, b, lhs_contract=(2,), rhs_contract=(0,)),
         (Of("f16", (8, 512, 1024), (2, 20, 32)), Of("f16", (1024, 1024), (32, 40))), "f16"),
    convolution("conv 3x3 f16", (8, 64, 56, 56), (1, 16, 9, 9), (64, 24), 3),
    convolution("conv 3x3 stride 2 f16", (8, 128, 56, 56), (1, 16, 9, 9), (256, 24), 3, stride=2),
    convolution("conv 1x1 f16", (8, 256, 14, 14), (1, 16, 7, 7), (1024, 24), 1),
    convolution("conv 7x7 first layer f16", (8, 3, 224, 224), (1, 3, 16, 16), (64, 16), 7, stride=2),
    convolution("conv 3x3 f32", (8, 64, 56, 56), (1, 16, 9, 9), (64, 24), 3, dtype="f32"),
    convolution("conv grouped f16", (8, 128, 28, 28), (1, 64, 6, 6), (128, 64), 3, (4, 2)),
    convolution("conv depthwise f16", (8, 256, 28, 28), (1, 24, 7, 7), (256, 24), 3, (256, 24), product=False),
    attention("attention f16 d64", (4, 16, 16, 1024, 1024, 64), (1, 2, 2, 40, 40, 64)),
    attention("attention f16 d128 causal", (4, 16, 16, 1024, 1024, 128), (1, 1, 1, 33, 33, 128), causal=True),
    attention("attention bf16 d128", (4, 16, 16, 1024, 1024, 128), (1, 1, 1, 20, 37, 128), "bf16"),
    attention("attention f16 d256", (1, 8, 8, 1024, 1024, 256), (1, 1, 1, 16, 20, 256)),
    attention("attention f16 grouped heads", (4, 32, 8, 512, 512, 64), (1, 4, 2, 20, 20, 32), causal=True),
    attention("attention f32 d64", (4, 16, 16, 512, 512, 64), (1, 1, 1, 33, 33, 64), "f32"),
    attention("attention f32 d128 causal", (1, 16, 16, 512, 512, 128), (1, 1, 1, 20, 20, 128), "f32", True),
    attention("decode f16 d128", (64, 32, 32, 1, 4096, 128), (2, 2, 2, 1, 70, 128)),
    attention("decode f16 d128, few heads", (1, 8, 8, 1, 4096, 128), (1, 1, 1, 1, 512, 128)),
    attention("decode f16 d128, grouped heads", (64, 32, 8, 1, 4096, 128), (2, 4, 2, 1, 70, 64)),
    *(plain(f"softmax {n}", lambda x: xt.softmax(x, axis=-1), (4096, n), (5, s))
      for n, s in ((256, 64), (1000, 100), (16384, 4096), (40000, 20000))),
    Case("layer norm", lambda x, s, b: xt.layer_norm(x, s, b, axes=(1,), eps=1e-5),
         (Of("f16", (8192, 4096), (5, 768)), Of("f16", (4096,), (768,)), Of("f16", (4096,), (768,)))),
    Case("rms norm", lambda x, s: xt.rms_norm(x, s, axes=(1,), eps=1e-5),
         (Of("f16", (8192, 4096), (5, 768)), Of("f16", (4096,), (768,)))),
    plain("row sums", lambda x: xt.reduce(x, kind="sum", axes=(1,)), (8192, 4096), (9, 500)),
    plain("row maxima, few long rows", lambda x: xt.reduce(x, kind="max", axes=(1,)), (8, 1 << 20), (2, 70000)),
    plain("column sums", lambda x: xt.reduce(x, kind="sum", axes=(0,)), (8192, 4096), (300, 90)),
    plain("full sum", lambda x: xt.reduce(x, kind="sum"), (8192, 4096), (90, 70)),
    plain("argmax", lambda x: xt.arg_reduce(x, kind="argmax", axis=1), (4096, 1000), (7, 100)),
    Case("pointwise chain", _silu_chain,
         (Of("f16", (8192, 4096), (33, 64)), Of("f16", (8192, 4096), (33, 64)), Of("f16", (4096,), (64,)))),
    plain("pointwise f32, odd rows", lambda x: xt.tanh(x), (4096, 1001), (9, 77), "f32"),
    plain("transpose", lambda x: xt.transpose(x, perm=(1, 0)), (8192, 4096), (45, 70)),
    plain("transpose of heads", lambda x: xt.transpose(x, perm=(0, 2, 1, 3)), (8, 512, 16, 64), (2, 9, 3, 16)),
    Case("gather", lambda x, i: xt.gather(x, i, axis=0),
         (Of("f16", (32000, 4096), (50, 64)), Of("i64", (512,), (9,), 0, 50))),
    Case("scatter", lambda x, i, u: xt.scatter_elements(x, i, u, axis=0, reduction="add"),
         (Of("f32", (4096, 256), (20, 8)), Of("i64", (512, 256), (7, 8), 0, 20), Of("f32", (512, 256), (7, 8)))),
    Case("scatter, last one wins", lambda x, i, u: xt.scatter_elements(x, i, u, axis=0),
         (Of("f32", (4096, 256), (20, 8)), Of("i64", (512, 256), (7, 8), 0, 20), Of("f32", (512, 256), (7, 8)))),
    Case("scatter of rows, sums", lambda x, i, u: xt.scatter_nd(x, i, u, reduction="add"),
         (Of("f16", (16384, 1024), (20, 8)), Of("i64", (2048, 1), (40, 1), 0, 20), Of("f16", (2048, 1024), (40, 8)))),
    plain("running sum of rows", lambda x: xt.cumulative(x, kind="sum", axis=1), (4096, 1024), (5, 70), "f32"),
    plain("running sum, few long rows", lambda x: xt.cumulative(x, kind="sum", axis=1), (4, 1 << 18), (1, 5000), "f32"),
    plain("sort", lambda x: xt.sort(x, axis=1), (1024, 1000), (3, 37), "f32"),
    plain("sort, few rows", lambda x: xt.sort(x, axis=1), (2, 4096), (1, 50), "f32"),
    plain("top-k", lambda x: xt.top_k(x, k=8, axis=1)[0], (1024, 1000), (3, 37), "f32"),
    plain("max pooling", _window("max", 3, 2), (8, 64, 112, 112), (1, 5, 9, 9)),
    plain("sum pooling", _window("sum", 3, 1), (8, 64, 56, 56), (1, 5, 9, 9)),
    plain("resize nearest", _twice("nearest"), (8, 64, 56, 56), (1, 3, 7, 5)),
    plain("resize linear", _twice("linear"), (8, 64, 56, 56), (1, 3, 7, 5)),
    attention("attention f16 d96, added mask", (2, 16, 16, 333, 333, 96), (1, 2, 2, 19, 37, 96), mask="f16"),
    attention("attention bf16 d160, boolean mask", (2, 16, 4, 333, 333, 160), (1, 2, 1, 19, 37, 160), "bf16",
              mask="i1"),
    attention("attention f64 d256", (2, 8, 8, 128, 128, 256), (1, 1, 1, 5, 9, 256), "f64"),
    attention("attention f16 d80, few tiles", (2, 8, 8, 512, 512, 80), (1, 1, 1, 33, 47, 80)),
)


def compiled_case(case: Case, chip: str, small: bool = False, cache: bool = True) -> Compiled:
    """The case compiled for `chip`, in this process; the small size with the IR that the interpreter runs."""
    types = [xt.TensorType(i.small if small else i.full, i.dtype) for i in case.inputs]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.mlir")
        path.write_text(str(programs.module_of(case.body, types)))
        options = CompileOptions(target="amdgcn", chip=chip, precision=case.precision, keep_ir=small, jobs=1,
                                 isolate=False, cache=cache)
        return compile_model(str(path), options)


def main_report(kernels: Sequence[KernelBinary]) -> dict[str, Any]:
    """The largest needs of a case's kernels, and the loop with the most matrix instructions."""
    reports: list[dict[str, Any]] = [dict(k.report) for k in kernels]
    loop = max(reports, key=lambda r: (r["loop_matrix"], r["loop_instructions"]))
    most = {k: max(r[k] for r in reports) for k in ("vgprs", "agprs", "shared_bytes", "scratch_bytes", "spills")}
    return loop | most | {"occupancy": min(r["occupancy"] for r in reports)}


def faults(case: Case, chip: str, kernels: Sequence[KernelBinary]) -> list[str]:
    """What in the code is not as it must be: scratch, spills, too much LDS, no matrix instruction in the inner loop."""
    out = []
    for k in kernels:
        r = dict(k.report)
        if r["scratch_bytes"] or r["spills"]:
            out.append(f"{k.name}: {r['scratch_bytes']} bytes of scratch, {r['spills']} spills")
        if int(r["shared_bytes"]) > CHIPS[chip].shared_bytes:
            out.append(f"{k.name}: {r['shared_bytes']} bytes of LDS")
    if case.expects_matrix(chip) and not main_report(kernels)["loop_matrix"]:
        out.append(f"no matrix instruction of {case.product} in any inner loop")
    return out


def run_small(case: Case, chip: str) -> None:
    """The small size in the interpreter; AssertionError where it differs from numpy by more than its type allows."""
    inputs = [i.draw(np.random.default_rng(7 + n)) for n, i in enumerate(case.inputs)]
    expected = interpret(programs.build(case.body, inputs), inputs)
    artifact = compiled_case(case, chip, small=True, cache=False).artifact
    assert artifact is not None
    model = xcc.Model(artifact)
    model._executor = make_executor(artifact.program, artifact.members, artifact.weights, artifact.manifest)
    outputs = model.run({f"x{n}": a for n, a in enumerate(inputs)})
    for got, want in zip(outputs.values(), expected, strict=True):
        programs.compare(got, want, 30.0 if case.precision == "tf32" else 2.0, case.name)
