"""Long sums in f32 stay near those in f64, wherever the summed dims are and whether their sizes are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import xcc
from xcc import symbolic
from xcc.passes.linalg.evaluate.blocked_sums import blocks_of

BOUND = 4e-7        # of the sum of absolute values: seven roundings
CASES: dict[str, tuple[list[onnx.NodeProto], Sequence[tuple[int, ...]], Callable[..., np.ndarray]]] = {
    "first": ([helper.make_node("ReduceSum", ["a", "zero"], ["y"], keepdims=0)], [(60_013, 7)],
              lambda a: a.sum(0)),
    "middle": ([helper.make_node("ReduceSum", ["a", "one"], ["y"], keepdims=0)], [(3, 20_011, 5)],
               lambda a: a.sum(1)),
    "around": ([helper.make_node("ReduceMean", ["a", "around"], ["y"], keepdims=0)], [(9000, 3, 5)],
               lambda a: a.mean((0, 2))),
    "squares": ([helper.make_node("ReduceSumSquare", ["a", "zero"], ["y"], keepdims=0)], [(40_009, 3)],
                lambda a: (a * a).sum(0)),
    "product": ([helper.make_node("MatMul", ["a", "b"], ["y"])], [(5, 30_011), (30_011, 33)], lambda a, b: a @ b),
    "gram": ([helper.make_node("Transpose", ["a"], ["t"]), helper.make_node("MatMul", ["t", "b"], ["y"])],
             [(30_011, 3), (30_011, 2)], lambda a, b: a.T @ b),
    "running": ([helper.make_node("CumSum", ["a", "axis"], ["y"])], [(30_011, 3)], lambda a: a.cumsum(0)),
}
AXES = {"zero": [0], "one": [1], "around": [0, 2]}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_errors(case: str, known: bool) -> None:
    """Numbers of one sign, whose running sums grow all the way."""
    nodes, shapes, wanted = CASES[case]
    rng = np.random.default_rng(5)
    arrays = {name: rng.random(shape, np.float32) + 0.5 for name, shape in zip("ab", shapes, strict=False)}
    inputs = [helper.make_tensor_value_info(
        name, TensorProto.FLOAT, a.shape if known else [f"{d}" if d < 1000 else f"n{d}" for d in a.shape])
        for name, a in arrays.items()]
    axes = [helper.make_tensor(name, TensorProto.INT64, [len(v)], v) for name, v in AXES.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [*axes, helper.make_tensor("axis", TensorProto.INT64, [], [0])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    exact = wanted(*(a.astype(np.float64) for a in arrays.values()))
    found = xcc.compile(model, threads=1).run(arrays)["y"]
    assert np.max(np.abs(found - exact) / exact) < BOUND


@pytest.mark.parametrize("sizes, lanes", [
    ((100_000_007,), 1), ((2049,), 1), ((2048,), 1), ((300, 70_001), 16), ((3000, 3, 3), 1), ((7, 5, 100_000), 8)])
def test_blocks(sizes: tuple[int, ...], lanes: int) -> None:
    """No accumulator takes more than twice as many numbers as asked for, and the blocks of a loop nest."""
    loops = list(range(len(sizes)))
    plan = dict.fromkeys(loops, 1) | {loops[-1]: lanes}
    found = blocks_of(loops, dict(enumerate(sizes)), plan, 512, product=True)
    taken = 1
    for p in reversed(loops):
        steps, each = -(-sizes[p] // plan[p]), 1
        for level in found.get(p, ()):
            assert level % each == 0
            assert taken * (level // each) <= 512 or level == each
            taken, each = 1, level
        taken *= -(-steps // each)
    assert taken <= 1024
    assert bool(found) == (prod(sizes) > 1024 * lanes)


@pytest.mark.parametrize("channels, width", [(3, 1), (40_000, 3), (7, 5000), (5, 0)])
def test_blocks_of_products_of_unknown_sizes(channels: int, width: int) -> None:
    """The outer loop alone is cut, into blocks that take so many numbers, or a step of what is inside."""
    c, k = symbolic.sym("c"), symbolic.sym("k")
    found = blocks_of([0, 1], {0: c, 1: k}, {0: 1, 1: 1}, 512, product=True)
    first, second = (symbolic.evaluate(level, {"c": channels, "k": width}) for level in found.pop(0))
    assert not found and first >= 1 and second == 512 * first
    assert first == 1 or first * width <= 512
    assert set(blocks_of([0, 1], {0: c, 1: k}, {0: 1, 1: 1}, 512, product=False)) == {0, 1}


def test_errors_of_a_convolution_whose_sizes_are_unknown() -> None:
    rng = np.random.default_rng(5)
    arrays = {"x": rng.random((1, 30_011, 4), np.float32) + 0.5, "w": rng.random((3, 30_011, 3), np.float32) + 0.5}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1 if d == 1 else f"{name}{d}" for d in a.shape])
              for name, a in arrays.items()]
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "g", inputs,
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    windows = np.lib.stride_tricks.sliding_window_view(arrays["x"][0].astype(np.float64), 3, axis=1)
    exact = np.einsum("clk,ock->ol", windows, arrays["w"])[None]
    found = xcc.compile(model, threads=1).run(arrays)["y"]
    assert np.max(np.abs(found - exact) / exact) < BOUND
