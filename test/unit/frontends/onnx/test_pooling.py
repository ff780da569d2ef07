"""How many windows a pool has when the last, or the only one, does not fit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xcc.dialects.xt.interpret import interpret
from xcc.frontends.onnx.importer import load

sys.path.insert(0, str(Path(__file__).parent))
from onnx_models import model, node, value


def pool(op: str, size: int | str, **attributes: Any) -> Any:
    return model([node(op, ["x"], ["y"], **attributes)], [value("x", [1, 1, size])], [value("y", None)])


@pytest.mark.parametrize(("op", "kernel", "stride", "size", "want"), [
    ("MaxPool", 2, 2, 1, [1]), ("MaxPool", 2, 2, 2, [2]), ("MaxPool", 2, 2, 3, [2]), ("MaxPool", 3, 3, 1, [1]),
    ("MaxPool", 3, 2, 1, []), ("MaxPool", 3, 2, 2, [2]), ("MaxPool", 2, 1, 1, []), ("MaxPool", 4, 2, 3, [3]),
    ("AveragePool", 2, 2, 1, [1]), ("AveragePool", 3, 3, 2, [1.5]), ("LpPool", 3, 3, 2, [5 ** 0.5])])
@pytest.mark.parametrize("free", [False, True])
def test_less_than_a_stride_may_be_missing(op: str, kernel: int, stride: int, size: int, want: list[float],
                                           free: bool) -> None:
    """What onnxruntime gives: windows are counted with a division that rounds towards zero."""
    module, weights = load(pool(op, "n" if free else size, kernel_shape=[kernel], strides=[stride]))
    x = np.arange(1, size + 1, dtype=np.float32).reshape(1, 1, size)
    got = interpret(module, {"x": x}, weights)[0]
    np.testing.assert_allclose(got, np.array(want, np.float32).reshape(1, 1, -1), rtol=1e-6)


@pytest.mark.parametrize(("attributes", "bounds", "size"), [
    ({"kernel_shape": [2], "strides": [2]}, (1, 64), "floordiv(max(2, n), 2)"),
    ({"kernel_shape": [2], "strides": [2]}, (2, 64), "floordiv(n, 2)"),
    ({"kernel_shape": [3], "strides": [2], "pads": [1, 1]}, (1, 64), "floordiv(n + 1, 2)"),
    ({"kernel_shape": [2]}, (1, 64), "n - 1")])
def test_sizes_stay_simple_where_the_window_fits(attributes: Any, bounds: tuple[int, int], size: str) -> None:
    module, _ = load(pool("MaxPool", "n", **attributes), dims={"n": bounds})
    assert str(module.body.operations[0].type.results[0]) == f'tensor<1x1x?xf32, [1, 1, "{size}"]>'
