"""Scans that GPUs do in parts, in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from compiled import check, compiled, filled, module_of, on_chip

from xcc import symbolic
from xcc.dialects import xt


@pytest.mark.parametrize(("kind", "reverse", "exclusive"), [("sum", False, False), ("sum", True, True),
                                                            ("max", False, True), ("min", True, False),
                                                            ("logsumexp", False, False), ("logsumexp", True, True)])
def test_scans_along_rows(kind, reverse, exclusive):
    def scans(*values):
        return tuple(xt.cumulative(v, kind=kind, axis=1, reverse=reverse, exclusive=exclusive) for v in values)

    with on_chip("sm_80"):
        check(scans, filled((2, 300), "float32"), filled((3, 32), "float16", 1), filled((5, 17, 1), "float32", 2))


@pytest.mark.parametrize(("chip", "dynamic", "kind", "reverse", "exclusive"), [
    ("sm_90a", False, "sum", False, False), ("gfx1100", True, "max", True, True),
    ("gfx942", False, "sum", True, False)])
def test_scans_along_columns(chip, dynamic, kind, reverse, exclusive):
    def scans(*values):
        return tuple(xt.cumulative(v, kind=kind, axis=1, reverse=reverse, exclusive=exclusive) for v in values)

    with on_chip(chip):
        check(scans, filled((2, 300, 20), "float32"), filled((1, 140, 70), "float16", 1),
              filled((3, 17, 3), "int32", 2), dynamic=dynamic)


@pytest.mark.parametrize(("chip", "dynamic"), [("sm_80", True), ("gfx942", False)])
def test_rows_longer_than_a_workgroup_takes_at_once(chip, dynamic):
    def scans(x, y, z):
        return (xt.cumulative(x, kind="sum", axis=1, reverse=True), xt.cumulative(y, kind="sum", axis=0),
                xt.cumulative(z, kind="prod", axis=0, exclusive=True), xt.scan_rows(x, kind="max"))

    with on_chip(chip):
        check(scans, filled((3, 9001), "float32"), filled((5000,), "float16", 1), filled((4200,), "int32", 2) | 1,
              dynamic=dynamic)


@pytest.mark.parametrize(("chip", "dynamic"), [("sm_90a", False), ("gfx942", True)])
def test_logarithms_of_sums_in_parts(chip, dynamic):
    """What is far below the row's maximum counts ahead of it; a part of nothing but -inf is neutral."""
    rows, columns = filled((2, 9001), "float32", 0, -80, 80), filled((1, 300, 3), "float16", 1)
    rows[0] = np.sort(rows[0])
    rows[1, 4096:8192], columns[0, :, 2] = -np.inf, -np.inf
    rows[1, 9000] = np.inf
    with on_chip(chip):
        check(lambda x, y: (xt.cumulative(x, kind="logsumexp", axis=1), xt.cumulative(y, kind="logsumexp", axis=1)),
              rows, columns, dynamic=dynamic)


def test_places_of_what_is_chosen_of_any_size():
    module = module_of(lambda x, c: (xt.nonzero(x, symbol="k"), xt.compress(x, c, axis=0, symbol="j")),
                       [xt.TensorType((symbolic.sym("n"), 3), "f32"), xt.TensorType((symbolic.sym("n"),), "i1")])
    with on_chip("sm_80"):
        model = compiled(module)
    for n in (5, 0, 1, 1700):
        x, c = filled((n, 3), "float32").round(), filled((n,), "bool", 1)
        found, kept = model(x, c)
        np.testing.assert_array_equal(found, np.array(np.nonzero(x)))
        np.testing.assert_array_equal(kept, x[c])


def test_scans_of_integers_and_infinities():
    x = filled((700,), "float32")
    x[100], x[650] = np.inf, -np.inf

    def scans(x, i):
        return xt.cumulative(x, kind="max", axis=0), xt.cumulative(i, kind="sum", axis=0), \
            xt.cumulative(i, kind="max", axis=0)

    with on_chip("gfx1100"):
        check(scans, x, filled((640,), "int32", 1))


@pytest.mark.parametrize(("kind", "dynamic", "in_order"), [("float32", False, True), ("int64", True, False)])
def test_distinct_elements(kind, dynamic, in_order):
    x = (filled((20, 9), kind) * 3).round()
    if kind == "float32":
        x[::4, ::5], x[1::5, 2] = np.nan, -0.0

    with on_chip("sm_80"):
        check(lambda x: xt.unique(x, symbol="k", sorted=in_order), x, dynamic=dynamic)


def test_sums_of_unknown_length():
    """Few results of a product: as many workgroups as there are cores add up runs of steps, whatever their number."""
    k = symbolic.sym("k")
    types = [xt.TensorType((k, 72), "f16"), xt.TensorType((k, 40), "f16"), xt.TensorType((40,), "f32")]
    module = module_of(lambda x, y, z: xt.add(
        xt.dot_general(x, y, lhs_contract=(0,), rhs_contract=(0,), dtype="f32"), z), types)
    with on_chip("sm_90a"):
        model = compiled(module)
    for n in (0, 1, 300):
        x, y, z = (filled(s, "float32", i).round().astype(t) for i, (s, t) in enumerate((
            ((n, 72), "float16"), ((n, 40), "float16"), ((40,), "float32"))))
        np.testing.assert_array_equal(model(x, y, z), x.astype(np.float32).T @ y.astype(np.float32) + z)
