"""Integer inputs whose values are sizes: which elements become symbols, what they fold to, and what stays an error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xcc.diagnostics import UserError
from xcc.dialects.xt.interpret import interpret
from xcc.frontends.onnx.context import RuntimeShape
from xcc.frontends.onnx.importer import load

sys.path.insert(0, str(Path(__file__).parent))
from onnx_models import BOOL, FLOAT, INT64, i64, model, node, value

INT32 = 6


def main_of(m: Any, **options: Any) -> Any:
    module, _ = load(m, **options)
    return module, module.body.operations[0]


def result_type(m: Any, **options: Any) -> str:
    module, main = main_of(m, **options)        # `main` lives as long as `module`
    return str(main.type.results[0])


def filled(nodes: Any = (), inputs: Any = None, constants: Any = None, wanted: str = "s") -> Any:
    """ConstantOfShape of what `nodes` make of the input s: i64[2]."""
    return model([*nodes, node("ConstantOfShape", [wanted], ["y"])], inputs or [value("s", [2], INT64)],
                 [value("y", None)], initializers=constants)


def test_elements_are_symbols() -> None:
    module, main = main_of(filled())
    assert str(main.type.results[0]) == 'tensor<?x?xf32, ["s_0", "s_1"]>'
    assert 'xt.name = "s", xt.values = ["s_0", "s_1"]' in str(main.attributes["arg_attrs"])
    assert interpret(module, {"s": i64(2, 0)})[0].shape == (2, 0)


def test_scalars_have_the_name_of_their_input() -> None:
    m = model([node("Range", ["zero", "n", "one"], ["y"])], [value("n", [], INT32)], [value("y", None)],
              initializers={"zero": np.array(0, np.int32), "one": np.array(1, np.int32)})
    assert result_type(m) == 'tensor<?xi32, ["n"]>'


def test_names_that_dims_have() -> None:
    m = model([node("TopK", ["x", "k"], ["y", "i"])], [value("x", ["k_0"]), value("k", [1], INT64)],
              [value("y", None), value("i", None)])
    assert result_type(m) == 'tensor<?xf32, ["k_0_value"]>'


def test_inputs_that_no_size_needs_are_data() -> None:
    m = model([node("Add", ["x", "s"], ["y"])], [value("x", [2], INT64), value("s", [2], INT64)], [value("y", None)])
    assert "xt.values" not in str(main_of(m)[0])
    assert 'xt.values = ["s_0", "s_1"]' in str(main_of(m, dims={"s_0": (1, 4)})[0])


def test_options_bound_and_fix_elements() -> None:
    module, main = main_of(filled(), dims={"s_0": 3, "s_1": (1, 64)})
    assert str(main.type.results[0]) == 'tensor<3x?xf32, [3, "s_1"]>'
    assert "xt.dims = {s_0 = [3, 3], s_1 = [1, 64]}" in str(module)


def test_a_fixed_input_has_no_symbols() -> None:
    assert result_type(filled(), fix={"s": [4, 5]}) == "tensor<4x5xf32>"


ARITHMETIC = [
    ([node("Add", ["s", "two"], ["w"])], '["s_0 + 2", "s_1 + 2"]'),
    ([node("Div", ["s", "two"], ["w"])], '["floordiv(s_0, 2)", "floordiv(s_1, 2)"]'),
    ([node("Max", ["s", "two"], ["w"])], '["max(2, s_0)", "max(2, s_1)"]'),
    ([node("Clip", ["s", "one", "two"], ["w"])], '["min(2, max(1, s_0))", "min(2, max(1, s_1))"]'),
    ([node("ReduceProd", ["s"], ["w"])], '["s_0*s_1"]'),
    ([node("Gather", ["s", "one"], ["t"]), node("Unsqueeze", ["t", "zero"], ["u"]),
      node("Concat", ["u", "pair", "s"], ["w"], axis=0)], '["s_1", 7, 9, "s_0", "s_1"]'),
    ([node("Cast", ["s"], ["f"], to=FLOAT), node("Mul", ["f", "half"], ["h"]), node("Cast", ["h"], ["w"], to=INT64)],
     '["floordiv(s_0, 2)", "floordiv(s_1, 2)"]'),
    ([node("Equal", ["s", "minus"], ["e"]), node("Where", ["e", "pair", "s"], ["w"])], '["s_0", "s_1"]')]


@pytest.mark.parametrize(("nodes", "dims"), ARITHMETIC)
def test_arithmetic(nodes: Any, dims: str) -> None:
    constants = {"two": np.array(2), "one": np.array(1), "zero": i64(0), "pair": i64(7, 9), "minus": i64(-1),
                 "half": np.float32(0.5)}
    kind = result_type(filled(nodes, constants=constants, wanted="w"))
    assert dims in kind


@pytest.mark.parametrize(("given", "low", "expected"), [((-7, 9), -8, (-3, 4)), ((7, 9), 0, (3, 4))])
def test_quotients_round_towards_zero(given: Any, low: int, expected: Any) -> None:
    m = model([node("Div", ["s", "two"], ["q"]), node("Identity", ["q"], ["y"])], [value("s", [2], INT64)],
              [value("y", None)], initializers={"two": np.array(2)})
    module, _ = load(m, dims={"s_0": (low, 9)})
    np.testing.assert_array_equal(interpret(module, {"s": i64(*given)})[0], expected)


REFUSED = [
    ([node("Unsqueeze", ["x", "s"], ["y"])], "operand 1 must be constant, but is ['s_0', 's_1']; fix the value of 's'"),
    ([node("ReduceSum", ["x", "s"], ["y"])], "operand 1 must be constant, but is ['s_0', 's_1']; fix the value of 's'"),
    ([node("Gather", ["s", "t"], ["k"]), node("Expand", ["x", "k"], ["y"])],
     "operand 1 ('k') decides a shape, but it is computed at run time and no symbolic value is known for it; "
     "give the most that it may be (--dim k_0=0..100, --dim k_1=0..100), or fix the value of 's', 't' (--fix s=..., "
     "fix={'s': ...})"),
    ([node("Sqrt", ["f"], ["k"]), node("Cast", ["k"], ["n"], to=INT64), node("Expand", ["x", "n"], ["y"])],
     "fix the value of 'f'"),
    ([node("NonZero", ["b"], ["k"]), node("Expand", ["x", "k"], ["y"])], "fix the value of 'b'"),
    ([node("Expand", ["x", "many"], ["y"])], "fix the value of 'many'"),
    ([node("Expand", ["x", "free"], ["y"])], "fix the value of 'free'")]


@pytest.mark.parametrize(("nodes", "what"), REFUSED)
def test_what_still_needs_a_fixed_value(nodes: Any, what: str) -> None:
    m = model(nodes, [value("x", [2, 1]), value("s", [2], INT64), value("t", [2], INT64), value("f", [2]),
                      value("b", [2], BOOL), value("many", [65], INT64), value("free", ["n"], INT64)],
              [value("y", [None])])
    with pytest.raises(UserError) as e:
        load(m)
    assert what in str(e.value) and nodes[-1].op_type in str(e.value)


def test_limits_make_counted_sizes() -> None:
    m = model([node("Gather", ["s", "t"], ["k"]), node("Expand", ["x", "k"], ["y"])],
              [value("x", [1]), value("s", [2], INT64), value("t", [2], INT64)], [value("y", None)])
    module, main = main_of(m, dims={"k_0": (0, 8), "k_1": (2, 4)})
    assert str(main.type.results[0]) == 'tensor<?x?xf32, ["k_0", "k_1"]>' and "xt.values" not in str(module)
    assert "xt.dims = {k_0 = [0, 8], k_1 = [2, 4]}" in str(module)
    given = {"x": np.ones(1, np.float32), "s": i64(5, 3)}
    assert interpret(module, {**given, "t": i64(0, 1)})[0].shape == (5, 3)
    with pytest.raises(UserError, match="node 'Expand#1' .* 'k_1' is not in 2..4"):
        interpret(module, {**given, "t": i64(1, 0)})


def test_bounds_that_do_not_increase() -> None:
    with pytest.raises(UserError, match="'s_0': .* is not a size, nor bounds in increasing order"):
        load(filled(), dims={"s_0": (4, 2)})
    with pytest.raises(UserError, match="no input has a dimension 's_2'"):
        load(filled(), dims={"s_2": 4})


def test_loops_keep_their_limit() -> None:
    """A loop with a limit of its own needs no values."""
    body = model([node("Add", ["v", "v"], ["w"]), node("Identity", ["go"], ["on"]), node("Identity", ["w"], ["row"])],
                 [value("i", [], INT64), value("go", [], BOOL), value("v", [2])],
                 [value("on", [], BOOL), value("w", [2]), value("row", [2])]).graph
    m = model([node("Loop", ["m", "", "x"], ["last", "rows"], body=body)], [value("x", [2]), value("m", [], INT64)],
              [value("last", None), value("rows", None)])
    module, main = main_of(m)
    assert 'tensor<?x2xf32, ["m", 2]>' in str(main.type)
    limited = main_of(m, dims={"rows_count": (0, 8)})
    assert "xt.values" not in str(limited[0])


def test_loops_that_are_unrolled_name_what_to_fix() -> None:
    """A carried value that grows in each step has no one shape, whatever symbol the number of steps is."""
    body = model([node("Concat", ["v", "v"], ["w"], axis=0), node("Identity", ["go"], ["on"])],
                 [value("i", [], INT64), value("go", [], BOOL), value("v", [None])],
                 [value("on", [], BOOL), value("w", [None])]).graph
    m = model([node("Loop", ["m", "", "x"], ["last"], body=body)], [value("x", [2]), value("m", [], INT64)],
              [value("last", None)])
    with pytest.raises(RuntimeShape, match="fix the value of 'm'") as e:
        load(m)
    assert e.value.inputs == ("m",)
    assert result_type(m, fix={"m": 2}) == "tensor<8xf32>"
