"""What models hold from run to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled import compare, compiled, on_chip
from update_programs import (
    ROW,
    inputs,
    on_device,
    program,
    put,
)

import xcc
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.weights import WeightStore


def counting() -> tuple[Any, WeightStore]:
    """A model that holds x0 (first 0, 1, 2, ...) and x1 (zeros): it puts a row into x0, and adds x0 to x1."""
    def body(c: Any, d: Any, row: Any, at: Any) -> Any:
        new = put(c, row, at)
        total = xt.add(d, new)
        return new, total, xt.reduce(total, kind="sum", axes=(0,), keepdims=False)

    weights = WeightStore()
    weights.add("first0", np.arange(6 * ROW, dtype=np.float32).reshape(6, ROW))
    weights.add("first1", np.zeros((6, ROW), np.float32))
    return program(body, 6, {0: 0, 1: 1}, (0, 1)), weights


@pytest.mark.parametrize("chip", ["", "sm_90a"])
def test_a_model_holds_its_state(chip: str, tmp_path: Path) -> None:
    module, weights = counting()
    with on_chip(chip):
        model = compiled(module, weights)
    assert [i.name for i in model.inputs] == ["x2", "x3"] and [o.name for o in model.outputs] == ["y2"]
    assert "first0" in model.artifact.weights and "first1" not in model.artifact.weights    # zeros take no place
    first = [np.arange(6 * ROW, dtype=np.float32).reshape(6, ROW), np.zeros((6, ROW), np.float32)]
    held = first
    for step in range(3):
        _, _, row, _ = inputs(6, step)
        *held, total = interpret(module, [*held, row, np.int64(step)], weights)
        compare(model(row, np.int64(step)), total)
        for name, want in zip(("x0", "x1"), held, strict=True):
            compare(model.state[name], want)
    model.state["x0"] = held[1]
    *held, total = interpret(module, [held[1], held[1], row, np.int64(0)], weights)
    compare(model(row, 0), total)
    model.reset()
    for name, want in zip(("x0", "x1"), first, strict=True):
        np.testing.assert_array_equal(model.state[name], want)


def test_an_artifact_has_the_first_state(tmp_path: Path) -> None:
    module, weights = counting()
    compiled(module, weights).save(tmp_path / "m.xcm")
    one, other = xcc.load(tmp_path / "m.xcm"), xcc.load(tmp_path / "m.xcm")
    one(np.ones((1, ROW), np.float32), 0)
    assert one.state["x0"][0, 0] == 1 and other.state["x0"][0, 0] == 0 and dict(other.state).keys() == {"x0", "x1"}
    one.state["x0"][...] = 7        # a copy
    assert one.state["x0"][0, 0] == 1
    for value, problem in ((np.zeros((6, ROW)), r"an array of f64\[6, 4\], the model holds x0: f32\[6, 4\]"),
                           (np.zeros((5, ROW), np.float32), r"an array of f32\[5, 4\]")):
        with pytest.raises(UserError, match=problem):
            one.state["x0"] = value
    with pytest.raises(UserError, match="the model holds no 'y'; it holds x0, x1"):
        one.state["y"]


@pytest.mark.gpu
def test_state_on_a_gpu() -> None:
    module, weights = counting()
    model = on_device(module, weights)
    held = [np.arange(6 * ROW, dtype=np.float32).reshape(6, ROW), np.zeros((6, ROW), np.float32)]
    for step in range(4):
        _, _, row, _ = inputs(6, step)
        *held, total = interpret(module, [*held, row, np.int64(step)], weights)
        compare(model(row, np.int64(step)), total)
    for name, want in zip(("x0", "x1"), held, strict=True):
        compare(model.state[name], want)
