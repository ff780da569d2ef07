"""Products in blocks of their depth, with rows copied together, against numpy."""

import numpy as np
import pytest
import test_tile

from xcc.diagnostics import UserError


def product(rows, depth, columns, config, width=0):
    """relu(x w) with w in panels of 32 columns; chunks of 15 rows and `width` columns (0: all)."""
    panels = -(-columns // 32)
    x, w, y = f"tensor<{rows}x{depth}xf32>", f"tensor<{panels}x{depth}x32xf32>", f"tensor<{rows}x{columns}xf32>"
    return f"""
#m = affine_map<(m, n) -> (m, n)>
func.func private @k(%x: {x}, %w: {w}) -> {y} attributes {{xt.kernel, xt.symbols = [],
    xt.arg_dims = [[{rows}, {depth}], [{panels}, {depth}, 32]], xt.result_dims = [[{rows}, {columns}]],
    xcc.config = {{block = array<i64: 15, {width}>, vector = array<i64: 5, 32>, order = array<i64: 1, 0>,
    chunks = array<i64: 0, 1>, reduce = [array<i64: 1>], parallel = true, cpu = {{{config}}}}}}} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {y}
  %f = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %p = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}} ins(%x, %w : {x}, {w}) outs(%f : {y}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    %s = arith.addf %o, %q : f32
    linalg.yield %s : f32
  }} -> {y}
  %r = linalg.generic {{indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}}
      ins(%p : {y}) outs(%e : {y}) {{
  ^bb0(%a: f32, %o: f32):
    %q = arith.maximumf %a, %zero : f32
    linalg.yield %q : f32
  }} -> {y}
  return %r : {y}
}}
"""


CONFIGS = ("depth = 48 : i64", "staged = true", "depth = 48 : i64, staged = true, shares = 2 : i64",
           "depth = 96 : i64, prefetch = 8 : i64")


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("rows, columns", [(32, 64), (47, 70), (3, 33)])
def test_numbers(config, rows, columns):
    """Rows and columns that fill the last chunk and tile, and that do not."""
    check(test_tile.load(test_tile.tiled(product(rows, 192, columns, config))), rows, columns)


def check(library, rows, columns):
    x, w, out = test_tile.normal(rows, 192), test_tile.normal(192, columns), test_tile.fresh(rows, columns)
    panels = -(-columns // 32)
    packed = np.zeros((192, panels * 32), np.float32)
    packed[:, :columns] = w
    packed = np.ascontiguousarray(packed.reshape(192, panels, 32).transpose(1, 0, 2))
    test_tile.call(library, "k", x, packed, out)
    wanted = np.maximum(x.astype(np.float64) @ w, 0)
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5)


def few_rows(text, rows, columns):
    """The program with the right operand as it lies, along whose rows 64 columns of a chunk go; one tile of rows."""
    panels = -(-columns // 32)
    return text.replace(f"tensor<{panels}x192x32xf32>", f"tensor<192x{columns}xf32>").replace(
        f"[{panels}, 192, 32]", f"[192, {columns}]").replace("(n floordiv 32, k, n mod 32)", "(k, n)").replace(
        "array<i64: 15, 64>, vector = array<i64: 5, 32>", f"array<i64: {rows}, 64>, vector = array<i64: {rows}, 32>")


@pytest.mark.parametrize("rows, columns", [(2, 64), (8, 97), (3, 33)])
def test_few_rows(rows, columns):
    text = few_rows(product(rows, 192, columns, "depth = 24 : i64", width=64), rows, columns)
    assert f"tensor<192x{columns}xf32>" in text and f"block = array<i64: {rows}, 64>" in text
    x, w, out = test_tile.normal(rows, 192), test_tile.normal(192, columns), test_tile.fresh(rows, columns)
    test_tile.call(test_tile.load(test_tile.tiled(text)), "k", x, w, out)
    np.testing.assert_allclose(out, np.maximum(x.astype(np.float64) @ w, 0), rtol=1e-5, atol=1e-5)


IN_PARTS = ("staged = true", "depth = 48 : i64, staged = true, shares = 2 : i64", "prefetch = 8 : i64")
SIZES = ((60, 128), (32, 64), (47, 70), (3, 33), (75, 97))


@pytest.mark.parametrize("parts, config, rows, columns", [
    (parts, IN_PARTS[(n + parts) % 3], *size) for n, size in enumerate(SIZES) for parts in (1, 2, 3)])
def test_parts(parts, config, rows, columns):
    """Parts of as many chunks, parts with one chunk less, parts without any; a last chunk of fewer columns."""
    text = product(rows, 192, columns, f"{config}, parts = {parts} : i64", width=64)
    check(test_tile.load(test_tile.tiled(text)), rows, columns)


@pytest.mark.parametrize("config, what", [("depth = 50 : i64", "depth 50"),
                                          ("depth = 24 : i64, staged = true", "packed rows"),
                                          ("parts = 2 : i64", "parts 2")])
def test_what_cannot_be(config, what):
    with pytest.raises(UserError, match=what):
        test_tile.tiled(product(32, 192, 64, config))
