"""Nodes whose dims all may be free, against onnxruntime: ranks decide what some of these are. What must be a number is
named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_graphs import check, compiled, ints, model_of, node, numbers, scalar

from xcc.diagnostics import UserError

NODES = {
    "InstanceNormalization": (node("InstanceNormalization", "a b c", "y"), numbers(2, 5, 3, 4), numbers(5), numbers(5)),
    "GridSample": (node("GridSample", "a b", "y"), numbers(2, 3, 5, 4), numbers(2, 3, 6, 2)),
    "ScatterND": (node("ScatterND", "a b c", "y", reduction="add"), numbers(6, 3, 2), ints(3, 0, 3, 1).reshape(2, 2),
                  numbers(2, 2)),
    "DFT": (node("DFT", "a - c", "y", onesided=1), numbers(3, 7, 1), None, scalar(1)),
    "STFT": (node("STFT", "a b c", "y", onesided=1), numbers(2, 50), scalar(7), numbers(12)),
}


@pytest.mark.parametrize("name", NODES)
def test_all_dims_free(name: str) -> None:
    made, *arrays = NODES[name]
    inputs = {n: a for n, a in zip("abc", arrays, strict=False) if a is not None and a.ndim}
    constants = {n: a for n, a in zip("abc", arrays, strict=False) if a is not None and not a.ndim}
    free = {n: [f"{n}{d}" if name != "DFT" or d < 2 else size for d, size in enumerate(a.shape)]
            for n, a in inputs.items()}
    check([made], inputs, "y", constants, dims=free, opset=20)


def test_another_number_is_an_error_of_the_run() -> None:
    made, x, grid = NODES["GridSample"]
    inputs = {"a": x, "b": grid}
    model = compiled(model_of([made], inputs, "y", dims={"b": [2, 3, 6, "k"]}, opset=20))
    wrong: dict[str, Any] = {"a": x, "b": np.zeros((2, 3, 6, 3), np.float32)}
    with pytest.raises(UserError, match="'k' is 3"):
        model.run(wrong)


def test_what_must_be_a_number_is_named() -> None:
    with pytest.raises(UserError, match="the last dim, 'n', must be a number up to 16"):
        compiled(model_of([node("Det", "a", "y")], {"a": numbers(2, 3, 3)}, "y", dims={"a": [2, "n", "n"]}))
