"""Nodes that are not behind those that make their operands: the graph is the same, in any order."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from xcc._mlir import ir
from xcc.dialects.xt.interpret import interpret
from xcc.frontends.onnx.importer import load
from xcc.frontends.onnx.node_order import operands_first

sys.path.insert(0, str(Path(__file__).parent))
from onnx_models import model, node, value


def branch(name: str, read: str, op: str) -> onnx.GraphProto:
    """A body that reads a name of the graph around it."""
    return helper.make_graph([node(op, [read], [f"{name}_out"])], name, [], [value(f"{name}_out", [2, "n"])])


def nodes() -> list[onnx.NodeProto]:
    given = [node("Neg", ["x"], ["a"], name="a"), node("Exp", ["a"], ["b"], name="b"),
             node("Add", ["a", "b"], ["c"], name="c"), node("ReduceSum", ["c"], ["s"], name="s", keepdims=0),
             node("Greater", ["s", "zero"], ["positive"], name="positive"),
             node("If", ["positive"], ["d"], name="d", then_branch=branch("yes", "b", "Neg"),
                  else_branch=branch("no", "c", "Abs")),
             node("Mul", ["d", "x"], ["y"], name="y")]
    return given


@pytest.mark.parametrize("seed", range(4))
def test_any_order_means_the_same(seed: int) -> None:
    shuffled = nodes()
    random.Random(seed).shuffle(shuffled)
    made = model(shuffled, [value("x", [2, "n"])], [value("y", [2, "n"])],
                 initializers={"zero": np.zeros((), np.float32)})
    x = np.random.default_rng(seed).standard_normal((2, 5)).astype(np.float32)
    with ir.Context():
        module, weights = load(made)
        (y,) = interpret(module, {"x": x}, weights)
    c = np.exp(-x) - x
    np.testing.assert_allclose(y, (-np.exp(-x) if c.sum() > 0 else np.abs(c)) * x, rtol=1e-5)


def test_the_order_of_the_file_is_kept_where_it_can_be() -> None:
    given = nodes()
    assert operands_first(given) is given
    late = [given[n] for n in (0, 2, 3, 1, 4, 6, 5)]
    assert [n.name for n in operands_first(late)] == ["a", "b", "c", "s", "positive", "d", "y"]


def test_a_cycle_keeps_its_order() -> None:
    cycle = [node("Add", ["x", "q"], ["p"], name="p"), node("Neg", ["p"], ["q"], name="q")]
    assert operands_first(cycle) is cycle
