"""Right operands that are packed on the fly, against numpy: numbers are exact, so that any order of a sum is equal."""

from __future__ import annotations

import numpy as np
import pytest
import test_tile
from test_decisions import whole

from xcc.diagnostics import UserError
from xcc.passes.shared.packing import STACK
from xcc.targets.cpu.pipeline import DECISIONS

ACCESS = {"rows": "(k, n)", "turned": "(n, k)"}


def product(rows: int, steps: int, columns: int, form: str, config: str, block: str = "15, 64",
            symbolic: str = "") -> str:
    """x w, w read as `form` says; `symbolic`: which of m, k and n the code does not know."""
    m, k, n = ("?" if name in symbolic else str(size) for name, size in (("m", rows), ("k", steps), ("n", columns)))
    names = [f'"{d}"' if d in symbolic else str(size) for d, size in (("m", rows), ("k", steps), ("n", columns))]
    dims = {"rows": f"{k}x{n}", "turned": f"{n}x{k}"}[form]
    order = names[1:] if form == "rows" else names[:0:-1]
    x, w, y = f"tensor<{m}x{k}xf32>", f"tensor<{dims}xf32>", f"tensor<{m}x{n}xf32>"
    more = "".join(f", %{d}: index" for d in symbolic)
    listed = ", ".join(f'"{d}"' for d in symbolic)
    return f"""
func.func private @k(%x: {x}, %w: {w}{more}) -> {y} attributes {{xt.kernel, xt.symbols = [{listed}],
    xt.arg_dims = [[{names[0]}, {names[1]}], [{order[0]}, {order[1]}]], xt.result_dims = [[{names[0]}, {names[2]}]],
    xcc.config = {{block = array<i64: {block}>, vector = array<i64: 5, 32>, order = array<i64: 1, 0>,
    reduce = [array<i64: 1>], parallel = true, cpu = {{columns = true{config}}}}}}} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty({", ".join(f"%{d}" for d in symbolic if d != "k")}) : {y}
  %f = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %p = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> {ACCESS[form]}>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %w : {x}, {w}) outs(%f : {y}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    %s = arith.addf %o, %q : f32
    linalg.yield %s : f32
  }} -> {y}
  return %p : {y}
}}
"""


def check(text: str, sizes: list[tuple[int, int, int]], form: str, symbolic: str = "") -> None:
    library = test_tile.load(test_tile.tiled(text))
    for rows, steps, columns in sizes:
        x, w, out = whole(rows, steps), whole(steps, columns), test_tile.fresh(rows, columns)
        given = [{"m": rows, "k": steps, "n": columns}[d] for d in symbolic]
        test_tile.call(library, "k", x, w if form == "rows" else np.ascontiguousarray(w.T), out, *given)
        np.testing.assert_array_equal(out, x @ w, err_msg=str((rows, steps, columns)))


EDGES = [("rows", 30, 144, 128, ""), ("rows", 47, 144, 97, ", shares = 4 : i64, depth = 48 : i64"),
         ("rows", 16, 144, 33, ", shares = 2 : i64, depth = 48 : i64, staged = true"),
         ("rows", 5, 77, 65, ", shares = 2 : i64"), ("rows", 23, 24, 70, ", shares = 8 : i64"),
         ("turned", 47, 144, 97, ", shares = 2 : i64, depth = 48 : i64"), ("turned", 2, 77, 31, ", shares = 2 : i64")]


@pytest.mark.parametrize("form, rows, steps, columns, config", EDGES)
def test_edges(form: str, rows: int, steps: int, columns: int, config: str) -> None:
    """Tiles and chunks that end where they should, and one row or column further on; fewer tiles than shares; sums that
    are no lines of steps, nor whole turned tiles."""
    check(product(rows, steps, columns, form, config), [(rows, steps, columns)], form)


@pytest.mark.parametrize("form, block", [("rows", "20, 0"), ("turned", "0, 96")])
def test_sizes_known_in_the_run(form: str, block: str) -> None:
    sizes = [(m, 64, n) for m, n in ((1, 1), (5, 32), (6, 33), (15, 64), (16, 65), (40, 130), (0, 7))]
    check(product(16, 64, 64, form, ", shares = 2 : i64", block, "mn"), sizes, form, "mn")


@pytest.mark.parametrize("form, block", [("rows", "20, 0"), ("turned", "0, 96")])
def test_steps_known_in_the_run(form: str, block: str) -> None:
    """Sums of no, few and more steps than are turned at once; as many as there is room for, and one more."""
    sizes = [(7, k, 33) for k in (0, 1, 15, 16, 17, 100, STACK // 128, STACK // 128 + 1)] + [(5, 40, 64), (1, 3, 5)]
    check(product(16, 64, 64, form, "", block, "mkn"), sizes, form, "mkn")


def test_what_cannot_be_packed() -> None:
    text = product(16, 64, 64, "rows", "", symbolic="").replace("affine_map<(m, n, k) -> (k, n)>",
                                                                "affine_map<(m, n, k) -> (k, n floordiv 2 + n mod 2)>")
    with pytest.raises(UserError, match="packed columns"):
        test_tile.tiled(text, DECISIONS)
