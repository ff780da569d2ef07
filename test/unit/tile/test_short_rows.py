"""Rows that registers hold, whole ones and others, longer ones, and extrema of NaN, against numpy."""

import math
import warnings

import numpy as np
import pytest

from xcc import tile


@pytest.mark.parametrize("dtype, block", [("f32", 256), ("f32", 16), ("f64", 64), ("f16", 128), ("f32", 2048)])
def test_rows(dtype, block):
    """A softmax and the extrema of rows; whole rows, shorter ones and one with NaN."""
    def program(x, y, top, low):
        row = tile.program_id(0)
        t = x.tile((row, 0), (1, block), other=-math.inf).to("f32")
        e = tile.exp(t - t.max(axis=1, keepdims=True))
        y.store((row, 0), (e / e.sum(axis=1, keepdims=True)).to(dtype))
        top.store((row,), t.max(axis=1))
        low.store((row,), x.tile((row, 0), (1, block), other=math.inf).to("f32").min(axis=1))

    buffers = {"x": tile.BufferOf(dtype, (None, None)), "y": tile.BufferOf(dtype, (None, None)),
               "top": tile.BufferOf("f32", (None,)), "low": tile.BufferOf("f32", (None,))}
    made = tile.compile(tile.build("rows", buffers, program, grid=("rows",)), "cpu")
    kind = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[dtype]
    for columns in (block, block - 3):
        x = np.random.default_rng(0).standard_normal((5, columns)).astype(kind)
        x[1, 2] = x[3, 0] = x[4, columns - 1] = np.nan
        y, top, low = np.zeros_like(x), np.zeros(5, np.float32), np.zeros(5, np.float32)
        made.launch([x, y, top, low], (5,))
        wide = x.astype(np.float64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            e = np.exp(wide - wide.max(1, keepdims=True))
            np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=2e-3 if dtype == "f16" else 2e-6, atol=1e-6)
        np.testing.assert_array_equal(top, wide.max(1).astype(np.float32))
        np.testing.assert_array_equal(low, wide.min(1).astype(np.float32))


def test_known_sizes():
    """Rows of a size that the program knows, shorter than their tile."""
    text = """
    func.func @sums(%x: memref<3x50xf32> {tile.name = "x"}, %y: memref<?xf32> {tile.name = "y"})
        attributes {tile.grid = [3]} {
      %i = "tile.program_id"() {axis = 0 : i64} : () -> index
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f32
      %t = "tile.load"(%x, %zero, %i, %c0) {shape = [1, 64]} : (memref<3x50xf32>, f32, index, index) -> vector<1x64xf32>
      %s = "tile.reduce"(%t) {axes = [1], kind = "sum"} : (vector<1x64xf32>) -> vector<1xf32>
      "tile.store"(%s, %y, %i) : (vector<1xf32>, memref<?xf32>, index) -> ()
      return
    }"""
    x, y = np.random.default_rng(0).standard_normal((3, 50)).astype(np.float32), np.zeros(3, np.float32)
    tile.run(text, [x, y], "cpu")
    np.testing.assert_allclose(y, x.sum(1), rtol=1e-5)
