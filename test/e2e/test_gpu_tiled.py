"""Linalg kernels through configure, tile and distribution, run by the interpreter, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import test_tile as kernels

from xcc import symbolic
from xcc._mlir import ir
from xcc.dialects.xt.base import dims_from_attr
from xcc.interpreter.kernel import run_kernel
from xcc.passes.base import PassContext, parse_pass
from xcc.targets.nvptx.chip import chips
from xcc.targets.nvptx.pipeline import kernel_pipeline

RNG = np.random.default_rng(11)


def normal(*shape):
    return RNG.standard_normal(shape, np.float32)


def fresh(*shape):
    return np.full(shape, np.nan, np.float32)


def run(text, arrays, symbols=()):
    """Compiles the linalg kernel in `text` for sm_80 up to stage gpu and interprets it on `arrays`."""
    env = {f"d{i}": s for i, s in enumerate(symbols)}
    with ir.Context():
        module = ir.Module.parse(text)
        ctx = PassContext(chip=chips()["sm_80"])
        for p in ("configure{target=nvptx}", "tile"):
            parse_pass(p).run(module, ctx)
        kernel_pipeline().upto("gpu").run(module, ctx)
        for f in module.body.operations[0].regions[0].blocks[0].operations:
            a = f.operation.attributes
            dims = [[symbolic.evaluate(d, env) for d in dims_from_attr(x)] for name in ("xt.arg_dims", "xt.result_dims")
                    for x in a[name]]
            grid = symbolic.evaluate(symbolic.parse(a["xcc.grid"].value), env)
            run_kernel(module, a["sym_name"].value, (grid, 1, 1), (list(a["known_block_size"])[0], 1, 1),
                       [x.reshape(d) for x, d in zip(arrays, dims, strict=True)],
                       list(symbols), dynamic_shared=a["xcc.shared_bytes"].value)


@pytest.mark.parametrize("rows, columns", [(1, 1), (3, 7), (5, 1000), (9, 129)])
def test_softmax_of_any_size(rows, columns):
    x, out = normal(rows, columns) * 5, fresh(rows, columns)
    run(kernels.SOFTMAX, [x, out], [rows, columns])
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=3e-6, atol=1e-9)


@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
@pytest.mark.parametrize("rows, n, k", [(1, 1, 1), (14, 10, 7), (70, 100, 33)])
def test_matmul_with_bias_and_relu(rows, n, k, transposed):
    a, b, bias, out = normal(rows, k), normal(k, n), normal(n), fresh(rows, n)
    run(kernels.matmul(n, k, transposed), [
        np.ascontiguousarray(a.T if "a" in transposed else a), np.ascontiguousarray(b.T if "b" in transposed else b),
        bias, out], [rows])
    np.testing.assert_allclose(out, np.maximum(a.astype(np.float64) @ b + bias, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("h, w, c, o", [(9, 7, 16, 40), (2, 2, 5, 1)])
def test_padded_convolution(h, w, c, o):
    x, weights, out = normal(1, h, w, c), normal(3, 3, c, o), fresh(1, h, w, o)
    run(kernels.pad_then_conv(h, w, c, o), [x, weights, out])
    wide = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = sum(wide[:, a:a + h, b:b + w] @ weights[a, b] for a in range(3) for b in range(3))
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 37, 21), (3, 3, 100)])
def test_transpose(shape):
    x, out = normal(*shape), fresh(shape[0], shape[2], shape[1])
    run(kernels.transpose(shape), [x, out])
    np.testing.assert_array_equal(out, x.transpose(0, 2, 1))
