"""Scans that GPUs do in parts, in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from compiled import check, filled, on_chip

from xcc.dialects import xt


@pytest.mark.parametrize(("kind", "reverse", "exclusive"), [("sum", False, False), ("sum", True, True),
                                                            ("max", False, True), ("min", True, False)])
def test_scans_along_rows(kind, reverse, exclusive):
    def scans(*values):
        return tuple(xt.cumulative(v, kind=kind, axis=1, reverse=reverse, exclusive=exclusive) for v in values)

    with on_chip("sm_80"):
        check(scans, filled((2, 300), "float32"), filled((3, 32), "float16", 1), filled((5, 17, 1), "float32", 2))


def test_scans_of_integers_and_infinities():
    x = filled((700,), "float32")
    x[100], x[650] = np.inf, -np.inf

    def scans(x, i):
        return xt.cumulative(x, kind="max", axis=0), xt.cumulative(i, kind="sum", axis=0), \
            xt.cumulative(i, kind="max", axis=0)

    with on_chip("gfx1100"):
        check(scans, x, filled((640,), "int32", 1))
