"""Float constants in LLVM IR text."""

import numpy as np
import pytest

from xcc.targets.llvm_text import portable


@pytest.mark.parametrize("line, expected", [
    ("store float 1.000000e-01, ptr %0", "store float 0x3FB99999A0000000, ptr %0"),
    ("%1 = fmul float %0, f0xC0490FDB", "%1 = fmul float %0, 0xC00921FB60000000"),
    ("%1 = fadd <4 x half> %0, splat (half +inf)", "%1 = fadd <4 x half> %0, splat (half 0xH7C00)"),
    ("ret bfloat 1.000980e-01", "ret bfloat 0xR3DCD"),
    ("ret double -qnan", "ret double 0xFFF8000000000000"),
    ("%1 = phi float [ -inf, %2 ], [ %3, %4 ]", "%1 = phi float [ 0xFFF0000000000000, %2 ], [ %3, %4 ]"),
    ('source_filename = "a1.5.inf"', 'source_filename = "a1.5.inf"'),
])
def test_constant(line, expected):
    assert portable(line) == expected


def test_bfloat_rounds_to_even():
    import ml_dtypes

    for value in (1.00390625, 1.01171875, 3.0e38, 1e-40):
        raw = int(np.array(value, np.float32).astype(ml_dtypes.bfloat16).view(np.uint16))
        assert portable(f"ret bfloat {value:e}") == f"ret bfloat 0xR{raw:04X}"
