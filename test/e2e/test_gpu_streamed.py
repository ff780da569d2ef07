"""Kernels whose arguments are large enough for hints to the L2 cache: their code, and on a GPU what they compute."""

from __future__ import annotations

import numpy as np
import pytest

import xcc
from xcc.facade import compile_to_artifact
from xcc.options import CompileOptions
from xcc.runtime.cuda_api import find_gpu

ml_dtypes = pytest.importorskip("ml_dtypes")

TYPES = {"f16": (np.float16, 2e-3), "bf16": (ml_dtypes.bfloat16, 1e-2), "f32": (np.float32, 1e-5)}


def gated(t):
    """(x * g) * sigmoid(x), both inputs read once."""
    return f"""func.func @main(%x: {t} {{xt.name = "x"}}, %g: {t} {{xt.name = "g"}}) -> ({t} {{xt.name = "y"}}) {{
        %s = "xt.sigmoid"(%x) : ({t}) -> {t}
        %p = "xt.mul"(%x, %g) : ({t}, {t}) -> {t}
        %y = "xt.mul"(%p, %s) : ({t}, {t}) -> {t}
        return %y : {t} }}"""


def softmax(t):
    return f"""func.func @main(%x: {t} {{xt.name = "x"}}) -> ({t} {{xt.name = "y"}}) {{
        %y = "xt.softmax"(%x) {{axis = 1 : i64}} : ({t}) -> {t}
        return %y : {t} }}"""


def expected(make, x, g):
    if make is gated:
        return x * g / (1 + np.exp(-x))
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def written(tmp_path, make, element, rows, columns):
    path = tmp_path / "model.mlir"
    path.write_text(make(f"tensor<{rows}x{columns}x{element}>"))
    return str(path)


CASES = [(make, element, rows, columns) for make in (gated, softmax)
         for element, rows, columns in (("f16", 4096, 1024), ("bf16", 4097, 2048), ("f32", 2048, 1024))]


@pytest.mark.parametrize(("make", "element", "rows", "columns"), CASES)
def test_code(tmp_path, make, element, rows, columns):
    """A release for each hint, and neither where a chip is not known to gain."""
    path = written(tmp_path, make, element, rows, columns)
    for chip, hints in (("sm_90a", True), ("sm_80", False)):
        artifact = compile_to_artifact(path, CompileOptions.make("nvptx,code=ptx", chip=chip))
        code = b"".join(bytes(v) for n, v in artifact.members.items() if n.endswith(".ptx")).decode()
        assert (code.count("L2::cache_hint.v4") > 0) == hints
        assert code.count("L2::cache_hint.v4") == code.count("applypriority")


@pytest.mark.parametrize("element", TYPES)
def test_small_arrays_have_none(tmp_path, element):
    path = written(tmp_path, gated, element, 256, 1024)
    artifact = compile_to_artifact(path, CompileOptions.make("nvptx,code=ptx", chip="sm_90a"))
    assert not any(b"cache_hint" in bytes(v) for n, v in artifact.members.items() if n.endswith(".ptx"))


@pytest.mark.gpu
@pytest.mark.skipif(find_gpu() is None, reason="needs an NVIDIA GPU")
@pytest.mark.parametrize(("make", "element", "rows", "columns"), CASES)
def test_on_gpu(tmp_path, make, element, rows, columns):
    dtype, tolerance = TYPES[element]
    rng = np.random.default_rng()
    arrays = {n: rng.standard_normal((rows, columns)).astype(dtype) for n in ("x", "g")[:2 if make is gated else 1]}
    model = xcc.compile(written(tmp_path, make, element, rows, columns), target="nvptx")
    want = expected(make, *[a.astype(np.float64) for a in arrays.values()], *[None] * (2 - len(arrays)))
    for _ in range(2):
        got = np.asarray(model.run(arrays)["y"]).astype(np.float64)
        assert np.abs(got - want).max() < tolerance * np.abs(want).max()
