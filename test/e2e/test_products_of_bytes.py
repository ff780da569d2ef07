"""Products of bytes of all signs on GPUs: exact sums that wrap, in the interpreter, and on a GPU where there is one."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from compiled import build, check, compare, compiled, on_chip

import xcc
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.runtime.cuda_api import find_gpu

SIGNS = list(product(("i8", "ui8"), repeat=2))
CHIPS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
SIZES = ((16, 32, 64), (33, 65, 70), (1, 17, 31), (70, 127, 129), (64, 64, 33))     # rows, columns, terms
DEEP = 34000    # terms of a sum that passes 2^31


def extremes(kind: str, shape: tuple[int, ...], seed: int = 0) -> Any:
    """Bytes, most of them at the ends of their range."""
    low, high = (0, 255) if kind == "ui8" else (-128, 127)
    return np.random.default_rng(seed).choice([low, low + 1, 0, 1, high - 1, high, high], shape).astype(
        np.uint8 if kind == "ui8" else np.int8)


def times(order: str) -> Any:
    """The product of a: (m, k) and b: (k, n), or (n, k) where `order` is "NT"."""
    return lambda a, b: xt.dot_general(a, b, lhs_contract=(1,), rhs_contract=(int(order == "NT"),), dtype="i32")


def operands(kinds: tuple[str, str], sizes: tuple[int, int, int], order: str) -> list[Any]:
    m, n, k = sizes
    return [extremes(kinds[0], (m, k)), extremes(kinds[1], (n, k) if order == "NT" else (k, n), 1)]


@pytest.mark.parametrize("order", ["NT", "NN"])
@pytest.mark.parametrize("kinds", SIGNS, ids="x".join)
def test_signs(kinds: tuple[str, str], order: str) -> None:
    """Every chip meets one of the forms, and another of the sizes."""
    number = 2 * SIGNS.index(kinds) + (order == "NN")
    for n, chip in enumerate(CHIPS):
        if (3 * n + 2) % 8 == number:
            with on_chip(chip):
                check(times(order), *operands(kinds, SIZES[n % len(SIZES)], order))


@pytest.mark.parametrize("chip", ["sm_89", "sm_90a", "gfx942", "gfx1201"])
def test_quantised_f8(chip: str) -> None:
    """f8 with scales: exact products of what lies in memory, one factor a column."""
    rng = np.random.default_rng(0)
    kind = np.dtype(ml_dtypes.float8_e4m3fn)
    a, b, scale = (rng.standard_normal(s).astype(np.float32) for s in ((33, 70), (40, 70), (40,)))

    def body(a: Any, b: Any, scale: Any) -> Any:
        wide = xt.dequantize(a, xt.scalar(0.25, "f32")), xt.dequantize(b, scale, axis=0)
        return xt.dot_general(*wide, lhs_contract=(1,), rhs_contract=(1,))

    inputs = a.astype(kind), b.astype(kind), np.abs(scale)
    with on_chip(chip):
        model = compiled(build(body, inputs))
        got = model.run({f"x{i}": v for i, v in enumerate(inputs)})["y0"]
    compare(got, interpret(build(body, inputs), inputs)[0])
    code = "".join(bytes(v).decode() for n, v in model.artifact.members.items() if n.startswith("ir/"))
    assert any(i in code for i in ("xtg.mma", "nvgpu.mma.sync", "amdgpu.mfma", "amdgpu.wmma"))


@pytest.mark.gpu
@pytest.mark.skipif(find_gpu() is None, reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("order", ["NT", "NN"])
@pytest.mark.parametrize("kinds", SIGNS, ids="x".join)
def test_on_gpu(tmp_path: Any, kinds: tuple[str, str], order: str) -> None:
    for sizes in (*SIZES, (512, 384, 1024), (300, 777, 1111), (5, 9, DEEP)):
        inputs = operands(kinds, sizes, order)
        if sizes[2] == DEEP:
            inputs = [np.full_like(x, x.max()) for x in inputs]
        path = tmp_path / "product.mlir"
        path.write_text(str(build(times(order), inputs)))
        got = np.asarray(xcc.compile(path, target="nvptx").run({"x0": inputs[0], "x1": inputs[1]})["y0"])
        a, b = (x.astype(np.int64) for x in inputs)
        np.testing.assert_array_equal(got, (a @ (b.T if order == "NT" else b)).astype(np.int32))
