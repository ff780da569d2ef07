"""Linalg kernels through configure, tile and the CPU code generator, against numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from cpu_kernels import call, load

from xcc.context import parse_module, shared_context
from xcc.passes.base import PassContext, get_pass
from xcc.passes.linalg.configure import Configure
from xcc.targets.cpu import chip as cpu_chip
from xcc.targets.cpu.pipeline import DECISIONS

RNG = np.random.default_rng(7)


def tiled(text: str, decisions: Sequence[str] = DECISIONS) -> str:
    module = parse_module(text, shared_context(), "test")
    ctx = PassContext(chip=cpu_chip.host())
    Configure(target="cpu").run(module, ctx)
    for name in (*decisions, "tile"):
        get_pass(name)().run(module, ctx)
    assert module.operation.verify()
    return str(module)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, np.float32)


def fresh(*shape: int) -> np.ndarray:
    return np.full(shape, np.nan, np.float32)


SOFTMAX = """
#m = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>
func.func private @k(%x: tensor<?x?xf32>, %d0: index, %d1: index) -> tensor<?x?xf32> attributes {xt.kernel,
    xt.symbols = ["d0", "d1"], xt.arg_dims = [["d0", "d1"]], xt.result_dims = [["d0", "d1"]]} {
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty(%d0) : tensor<?xf32>
  %e2 = tensor.empty(%d0, %d1) : tensor<?x?xf32>
  %f = linalg.fill ins(%ninf : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %mx = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %ex = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mx : tensor<?x?xf32>, tensor<?xf32>) outs(%e2 : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    %t = math.exp %s : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %g = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#m, #r], iterator_types = ["parallel", "reduction"]}
      ins(%ex : tensor<?x?xf32>) outs(%g : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#m, #r, #m], iterator_types = ["parallel", "parallel"]}
      ins(%ex, %sum : tensor<?x?xf32>, tensor<?xf32>) outs(%e2 : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.divf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
"""


def test_softmax_of_any_size():
    library = load(tiled(SOFTMAX))
    for rows, columns in ((1, 1), (3, 7), (13, 64), (5, 1000), (300, 129)):
        x, out = normal(rows, columns) * 5, fresh(rows, columns)
        call(library, "k", x, out, rows, columns)
        e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=2e-6, atol=1e-9)


def test_softmax_keeps_the_exponentials_in_the_result():
    text, few = tiled(SOFTMAX).split("@k_few")
    assert "park" in text and "park" not in few     # which has short rows
    assert text.count("math.exp") == 2   # full tiles and the rest, in the sum's loop only


def matmul(n: int, k: int, transposed: str = "") -> str:
    a = "(d2, d0)" if "a" in transposed else "(d0, d2)"
    b = "(d1, d2)" if "b" in transposed else "(d2, d1)"
    ta = f"{k}x?" if "a" in transposed else f"?x{k}"
    tb = f"{n}x{k}" if "b" in transposed else f"{k}x{n}"
    da = f'[{k}, "d0"]' if "a" in transposed else f'["d0", {k}]'
    db = f"[{n}, {k}]" if "b" in transposed else f"[{k}, {n}]"
    return f"""
func.func private @k(%a: tensor<{ta}xf32>, %b: tensor<{tb}xf32>, %bias: tensor<{n}xf32>, %d0: index)
    -> tensor<?x{n}xf32> attributes {{xt.kernel, xt.symbols = ["d0"], xt.arg_dims = [{da}, {db}, [{n}]],
    xt.result_dims = [["d0", {n}]]}} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%d0) : tensor<?x{n}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>
  %mm = linalg.generic {{indexing_maps = [affine_map<(d0, d1, d2) -> {a}>, affine_map<(d0, d1, d2) -> {b}>,
      affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%a, %b : tensor<{ta}xf32>, tensor<{tb}xf32>) outs(%f : tensor<?x{n}xf32>) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %p, %o : f32
    linalg.yield %s : f32
  }} -> tensor<?x{n}xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>,
      affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}}
      ins(%mm, %bias : tensor<?x{n}xf32>, tensor<{n}xf32>) outs(%e : tensor<?x{n}xf32>) {{
  ^bb0(%x: f32, %c: f32, %o: f32):
    %s = arith.addf %x, %c : f32
    %z = arith.maximumf %s, %zero : f32
    linalg.yield %z : f32
  }} -> tensor<?x{n}xf32>
  return %y : tensor<?x{n}xf32>
}}
"""


@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
@pytest.mark.parametrize("n, k", [(1, 1), (10, 7), (32, 64), (100, 33)])
def test_matmul_with_bias_and_relu(n, k, transposed):
    library = load(tiled(matmul(n, k, transposed)))
    for rows in (1, 2, 14, 29):
        a, b, bias, out = normal(rows, k), normal(k, n), normal(n), fresh(rows, n)
        call(library, "k", np.ascontiguousarray(a.T if "a" in transposed else a),
             np.ascontiguousarray(b.T if "b" in transposed else b), bias, out, rows)
        want = np.maximum(a.astype(np.float64) @ b + bias, 0)
        np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


def pad_then_conv(h: int, w: int, c: int, o: int) -> str:
    return f"""
func.func private @k(%x: tensor<1x{h}x{w}x{c}xf32>, %w: tensor<3x3x{c}x{o}xf32>) -> tensor<1x{h}x{w}x{o}xf32>
    attributes {{xt.kernel, xt.symbols = [], xt.arg_dims = [[1, {h}, {w}, {c}], [3, 3, {c}, {o}]],
    xt.result_dims = [[1, {h}, {w}, {o}]]}} {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h1 = arith.constant {h - 1} : index
  %w1 = arith.constant {w - 1} : index
  %ep = tensor.empty() : tensor<1x{h + 2}x{w + 2}x{c}xf32>
  %pad = linalg.generic {{indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      outs(%ep : tensor<1x{h + 2}x{w + 2}x{c}xf32>) {{
  ^bb0(%o: f32):
    %n = linalg.index 0 : index
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %ch = linalg.index 3 : index
    %i1 = arith.subi %i, %c1 : index
    %j1 = arith.subi %j, %c1 : index
    %i2 = arith.maxsi %i1, %c0 : index
    %i3 = arith.minsi %i2, %h1 : index
    %j2 = arith.maxsi %j1, %c0 : index
    %j3 = arith.minsi %j2, %w1 : index
    %v = tensor.extract %x[%n, %i3, %j3, %ch] : tensor<1x{h}x{w}x{c}xf32>
    %p = arith.cmpi eq, %i1, %i3 : index
    %q = arith.cmpi eq, %j1, %j3 : index
    %in = arith.andi %p, %q : i1
    %s = arith.select %in, %v, %zero : f32
    linalg.yield %s : f32
  }} -> tensor<1x{h + 2}x{w + 2}x{c}xf32>
  %e = tensor.empty() : tensor<1x{h}x{w}x{o}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x{h}x{w}x{o}xf32>) -> tensor<1x{h}x{w}x{o}xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(n, h, w, o, a, b, c) -> (n, h + a, w + b, c)>,
      affine_map<(n, h, w, o, a, b, c) -> (a, b, c, o)>, affine_map<(n, h, w, o, a, b, c) -> (n, h, w, o)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}}
      ins(%pad, %w : tensor<1x{h + 2}x{w + 2}x{c}xf32>, tensor<3x3x{c}x{o}xf32>)
      outs(%f : tensor<1x{h}x{w}x{o}xf32>) {{
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %m, %acc : f32
    linalg.yield %s : f32
  }} -> tensor<1x{h}x{w}x{o}xf32>
  return %y : tensor<1x{h}x{w}x{o}xf32>
}}
"""


@pytest.mark.parametrize("h, w, c, o", [(9, 7, 16, 40), (5, 29, 3, 32), (2, 2, 5, 1)])
def test_padded_convolution(h, w, c, o):
    x, weights, out = normal(1, h, w, c), normal(3, 3, c, o), fresh(1, h, w, o)
    call(load(tiled(pad_then_conv(h, w, c, o))), "k", x, weights, out)
    wide = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = sum(wide[:, a:a + h, b:b + w] @ weights[a, b] for a in range(3) for b in range(3))
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


def transpose(shape: tuple[int, int, int], kind: str = "f32") -> str:
    a, b, c = shape
    return f"""
func.func private @k(%x: tensor<{a}x{b}x{c}x{kind}>) -> tensor<{a}x{c}x{b}x{kind}> attributes {{xt.kernel,
    xt.symbols = [], xt.arg_dims = [[{a}, {b}, {c}]], xt.result_dims = [[{a}, {c}, {b}]]}} {{
  %e = tensor.empty() : tensor<{a}x{c}x{b}x{kind}>
  %y = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, k, j)>, affine_map<(i, j, k) -> (i, j, k)>],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%x : tensor<{a}x{b}x{c}x{kind}>) outs(%e : tensor<{a}x{c}x{b}x{kind}>) {{
  ^bb0(%p: {kind}, %o: {kind}):
    linalg.yield %p : {kind}
  }} -> tensor<{a}x{c}x{b}x{kind}>
  return %y : tensor<{a}x{c}x{b}x{kind}>
}}
"""


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 37, 21), (2, 16, 64), (3, 3, 100)])
def test_transpose(shape):
    x, out = normal(*shape), fresh(shape[0], shape[2], shape[1])
    call(load(tiled(transpose(shape))), "k", x, out)
    np.testing.assert_array_equal(out, x.transpose(0, 2, 1))


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int64])
def test_transpose_of_other_widths(kind):
    x, out = RNG.integers(-100, 100, (2, 33, 48)).astype(kind), np.zeros((2, 48, 33), kind)
    call(load(tiled(transpose(x.shape, f"i{8 * x.itemsize}"))), "k", x, out)
    np.testing.assert_array_equal(out, x.transpose(0, 2, 1))


def test_full_reduction():
    text = """
func.func private @k(%x: tensor<5x37x21xf32>) -> tensor<f32> attributes {xt.kernel, xt.symbols = [],
    xt.arg_dims = [[5, 37, 21]], xt.result_dims = [[]]} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %y = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> ()>],
      iterator_types = ["reduction", "reduction", "reduction"]} ins(%x : tensor<5x37x21xf32>) outs(%f : tensor<f32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.addf %p, %o : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}
"""
    x, out = normal(5, 37, 21), fresh(1)
    call(load(tiled(text)), "k", x, out)
    np.testing.assert_allclose(out[0], x.sum(dtype=np.float64), rtol=1e-5)


def test_rows_of_a_concatenation_are_read_in_order():
    """Pieces along the last dim, clamped as padding is: masked reads, no gather; the ends repeat outside."""
    text = """
func.func private @k(%x: tensor<5x24xf32>, %y: tensor<5x20xf32>) -> tensor<5x47xf32> attributes {xt.kernel,
    xt.symbols = [], xt.arg_dims = [[5, 24], [5, 20]], xt.result_dims = [[5, 47]]} {
  %c0 = arith.constant 0 : index
  %c23 = arith.constant 23 : index
  %c19 = arith.constant 19 : index
  %c24 = arith.constant 24 : index
  %e = tensor.empty() : tensor<5x47xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      outs(%e : tensor<5x47xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %a0 = arith.minsi %j, %c23 : index
    %a1 = arith.maxsi %a0, %c0 : index
    %a = tensor.extract %x[%i, %a1] : tensor<5x24xf32>
    %k = arith.subi %j, %c24 : index
    %b0 = arith.minsi %k, %c19 : index
    %b1 = arith.maxsi %b0, %c0 : index
    %b = tensor.extract %y[%i, %b1] : tensor<5x20xf32>
    %second = arith.cmpi sge, %j, %c24 : index
    %s = arith.select %second, %b, %a : f32
    linalg.yield %s : f32
  } -> tensor<5x47xf32>
  return %r : tensor<5x47xf32>
}
"""
    assert "vector.gather" not in tiled(text)
    x, y, out = normal(5, 24), normal(5, 20), fresh(5, 47)
    call(load(tiled(text)), "k", x, y, out)
    np.testing.assert_array_equal(out, np.concatenate([x, y, y[:, -1:], y[:, -1:], y[:, -1:]], 1))
