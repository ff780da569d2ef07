"""Diagonals in Einsum: letters that an operand repeats."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from xcc.dialects.xt.interpret import interpret
from xcc.frontends.onnx.importer import load

sys.path.insert(0, str(Path(__file__).parent))
from onnx_models import model, node, value


@pytest.mark.parametrize("equation", ["bii->bi", "ibi->ib", "iii->i", "iib->b", "bii->b", "iij->ji"])
@pytest.mark.parametrize("free", [False, True])
def test_diagonals_are_read_alone(equation: str, free: bool) -> None:
    """No other element is read, multiplied or summed."""
    letters = equation.partition("->")[0]
    sizes = [3 if letters.count(c) > 1 else 2 for c in letters]
    shape = [{3: "n", 2: 2}[n] if free else n for n in sizes]
    module, weights = load(model([node("Einsum", ["x"], ["y"], equation=equation)], [value("x", shape)],
                                 [value("y", None)]))
    assert str(module).count("xt.gather_elements") == max(map(letters.count, letters)) - 1
    assert "xt.select" not in str(module) and "xt.mul" not in str(module)
    x = np.random.default_rng(0).standard_normal(sizes).astype(np.float32)
    np.testing.assert_allclose(interpret(module, {"x": x}, weights)[0], np.einsum(equation, x), rtol=1e-6)
