"""What the importer makes of arithmetic on sizes: symbols stay, windows that fit tell signs, messages name the dims."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.dialects.xt.interpret import interpret
from xcc.frontends.onnx.importer import load

sys.path.insert(0, str(Path(__file__).parent))
from onnx_models import i64, model, node, value

NUMBERS = {"zero": np.array(0), "one": np.array(1), "two": np.array(2), "three": np.array(3), "five": np.array(5),
           "w": np.ones((1, 1, 3), np.float32)}


def sized(*nodes: Any) -> Any:
    """A range as long as the value k that `nodes` make of the size n, beside their value c, if any."""
    made = [o for op in nodes for o in op.output]
    outputs = [value(o, None) for o in ("c",) if o in made]
    head = [node("Shape", ["x"], ["s"], start=2), node("Squeeze", ["s"], ["n"])]
    return model([*head, *nodes, node("Range", ["zero", "k", "one"], ["y"])], [value("x", ["b", 1, "n"])],
                 [*outputs, value("y", None, TensorProto.INT64)], initializers=NUMBERS)


def result(m: Any, **options: Any) -> str:
    module, _ = load(m, **options)
    return str(module.body.operations[0].type.results[len(m.graph.output) - 1])


def chain() -> list[Any]:
    return [node("Sub", ["n", "three"], ["a"]), node("Div", ["a", "two"], ["d"]), node("Add", ["d", "one"], ["k"])]


def test_division_of_what_may_be_negative() -> None:
    assert result(sized(*chain())) == 'tensor<?xi64, ["truncdiv(n - 3, 2) + 1"]>'
    assert result(sized(*chain()), dims={"n": (3, 64)}) == 'tensor<?xi64, ["floordiv(n + 1, 2) - 1"]>'


def test_windows_that_fit_tell_signs() -> None:
    """The size is that of the convolution; a run compares what both rely on."""
    m = sized(node("Conv", ["x", "w"], ["c"], strides=[2]), *chain())
    assert result(m) == 'tensor<?xi64, ["floordiv(n + 1, 2) - 1"]>'
    assert '"xtv.require"() {equal = ["n - 3", "max(0, n - 3)"]' in str(load(m)[0])


@pytest.mark.parametrize("steps", [5, 500])
def test_chains_that_double(steps: int) -> None:
    """Each value is there twice in the next: past some length a run computes them, and the message names the dim."""
    nodes, last = [], "n"
    for i in range(steps):
        nodes += [node("Div", [last, "two"], [f"h{i}"]), node("Sub", [last, f"h{i}"], [f"t{i}"])]
        last = f"t{i}"
    m = sized(*nodes, node("Identity", [last], ["k"]))
    if steps < 10:
        assert result(m).startswith("tensor<?xi64")
        return
    with pytest.raises(UserError, match=r"bound or fix the sizes that it is computed from \(--dim n=LOW\.\.HIGH\)"):
        load(m)


def test_long_chains() -> None:
    nodes, last = [], "n"
    for i in range(250):
        nodes += [node("Sub", [last, "five"], [f"h{i}"]), node("Div", [f"h{i}", "two"], [f"t{i}"])]
        last = f"t{i}"
    text = str(load(model([node("Shape", ["x"], ["s"], start=2), node("Squeeze", ["s"], ["n"]), *nodes,
                           node("Identity", [last], ["y"])], [value("x", ["b", 1, "n"])],
                          [value("y", None, TensorProto.INT64)], initializers={**NUMBERS, "u": i64(0)}))[0])
    assert len(text) < 200000


@pytest.mark.parametrize("size", [1, 6, 9, 20])
def test_quotients_rounded_towards_zero_as_exported(size: int) -> None:
    """PyTorch's exporter writes ``Floor(Abs(q)) * Sign(q)`` of a float quotient: here a pooling's places."""
    places = [node("Cast", ["n"], ["f"], to=TensorProto.FLOAT), node("Mul", ["steps", "f"], ["m"]),
              node("Div", ["m", "seven"], ["q"]), node("Abs", ["q"], ["a"]), node("Floor", ["a"], ["d"]),
              node("Sign", ["q"], ["g"]), node("Mul", ["d", "g"], ["t"]),
              node("Cast", ["t"], ["i"], to=TensorProto.INT64), node("Gather", ["x", "i"], ["y"], axis=2),
              node("Sqrt", ["q"], ["r"])]
    head = [node("Shape", ["x"], ["s"], start=2), node("Squeeze", ["s"], ["n"])]
    steps = np.arange(7, dtype=np.float32)
    m = model([*head, *places], [value("x", ["b", 1, "n"])], [value("y", None), value("r", None)],
              initializers={"steps": steps, "seven": np.array(7, np.float32)})
    x = np.random.default_rng(size).standard_normal((2, 1, size)).astype(np.float32)
    with ir.Context():
        module, weights = load(m)
        y, r = interpret(module, {"x": x}, weights)
    np.testing.assert_array_equal(y, x[:, :, np.arange(7) * size // 7])
    np.testing.assert_allclose(r, np.sqrt(steps * size / 7), rtol=1e-6)
