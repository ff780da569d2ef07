"""Structure of imported modules: symbolic shapes, constants and weights, locations, control flow, functions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import xcc
from xcc.diagnostics import UserError
from xcc.dialects.xt.interpret import interpret
from xcc.frontends.onnx import registry
from xcc.frontends.onnx.functions import Functions, instantiate, with_defaults
from xcc.frontends.onnx.importer import load
from xcc.frontends.onnx.op_table import table

sys.path.insert(0, str(Path(__file__).parent))
from onnx_models import BOOL, FLOAT, INT64, i64, model, node, value


def text_of(m: Any, **options: Any) -> str:
    return str(load(m, **options)[0])


def result_type(m: Any, **options: Any) -> str:
    module, _ = load(m, **options)
    return str(module.body.operations[0].type.results[0])


def ops(m: Any, **options: Any) -> list[str]:
    module, _ = load(m, **options)
    block = module.body.operations[0].regions[0].blocks[0]
    return [op.operation.name.partition(".")[2] for op in block.operations]


def test_names_of_dims() -> None:
    m = model([node("Neg", ["x"], ["y"])], [value("x", ["batch size", None, "?", 3])], [value("y", None)])
    assert result_type(m) == 'tensor<?x?x?x3xf32, ["\'batch size\'", "x_dim1", "x_dim2", 3]>'


def test_dims_fixed_and_bounded() -> None:
    m = model([node("Neg", ["x"], ["y"])], [value("x", ["b", "s"])], [value("y", None)])
    assert result_type(m, dims={"b": 4, "s": 2}) == "tensor<4x2xf32>"
    assert "xt.dims = {s = [1, 64]}" in text_of(m, dims={"s": (1, 64)})


def shape_chain() -> Any:
    """Reshape to [batch, seq, 4, -1] the way exporters write it."""
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["b"]), node("Gather", ["s", "one"], ["n"]),
             node("Unsqueeze", ["b", "axis"], ["bu"]), node("Unsqueeze", ["n", "axis"], ["nu"]),
             node("Concat", ["bu", "nu", "four", "rest"], ["shape"], axis=0), node("Reshape", ["x", "shape"], ["y"])]
    return model(nodes, [value("x", ["batch", "seq", 32])], [value("y", None)],
                 initializers={"zero": np.array(0), "one": np.array(1), "axis": i64(0), "four": i64(4),
                               "rest": i64(-1)})


def test_shape_arithmetic_leaves_no_ops() -> None:
    assert result_type(shape_chain()) == 'tensor<?x?x4x8xf32, ["batch", "seq", 4, 8]>'
    assert ops(shape_chain()) == ["reshape", "return"]


@pytest.mark.parametrize(("op", "operand", "expected"), [
    ("Mul", i64(2), "2*n"), ("Add", i64(3), "n + 3"), ("Sub", i64(1), "n - 1"), ("Div", i64(2), "floordiv(n, 2)"),
    ("Max", i64(4), "max(4, n)"), ("Min", i64(4), "min(4, n)"), ("Mod", i64(2), "mod(n, 2)")])
def test_arithmetic_on_dims(op: str, operand: Any, expected: str) -> None:
    nodes = [node("Shape", ["x"], ["s"]), node(op, ["s", "c"], ["t"]),
             node("ConstantOfShape", ["t"], ["y"])]
    m = model(nodes, [value("x", ["n"])], [value("y", None)], initializers={"c": operand})
    assert result_type(m) == f'tensor<?xf32, ["{expected}"]>'


def test_sizes_through_floats() -> None:
    """Shape -> float -> * 2.5 -> floor -> int: a size as some exporters compute it for Resize."""
    nodes = [node("Shape", ["x"], ["s"]), node("Cast", ["s"], ["f"], to=FLOAT), node("Mul", ["f", "c"], ["g"]),
             node("Floor", ["g"], ["h"]), node("Cast", ["h"], ["t"], to=INT64), node("ConstantOfShape", ["t"], ["y"])]
    m = model(nodes, [value("x", ["n"])], [value("y", None)], initializers={"c": np.array([2.5], np.float32)})
    assert result_type(m) == 'tensor<?xf32, ["floordiv(5*n, 2)"]>'


@pytest.mark.parametrize(("size", "scale", "wanted"), [(80, 2.3, 184), (10, 0.7, 7), (7, 1.5, 10), (100, 1.1, 110)])
def test_sizes_by_scales(size: int, scale: float, wanted: int) -> None:
    """Of decimals that f32 holds a little too small or large; the same where the size is a symbol."""
    for dim in (size, "n"):
        m = model([node("Resize", ["x", "", "s"], ["y"], mode="nearest")], [value("x", [1, dim])],
                  [value("y", None)], initializers={"s": np.array([1, scale], np.float32)})
        module, weights = load(m)
        assert interpret(module, {"x": np.zeros((1, size), np.float32)}, weights)[0].shape == (1, wanted)


def test_slices_with_symbolic_ends() -> None:
    nodes = [node("Shape", ["x"], ["s"]), node("Sub", ["s", "one"], ["e"]), node("Slice", ["x", "one", "e"], ["y"])]
    m = model(nodes, [value("x", ["n"])], [value("y", None)], initializers={"one": i64(1)})
    assert result_type(m, dims={"n": (2, 100)}) == 'tensor<?xf32, ["n - 2"]>'
    module, weights = load(m, dims={"n": (2, 100)})
    x = np.arange(7, dtype=np.float32)
    np.testing.assert_array_equal(interpret(module, {"x": x}, weights)[0], x[1:6])


@pytest.mark.parametrize(("start", "end", "step"), [
    (0, 100, 1), (-3, 100, 1), (2, -1, 2), (-1, -100, -1), (5, 1, -2), (100, -100, -3), (3, 3, 1), (4, 2, 1)])
def test_slices_equal_numpy(start: int, end: int, step: int) -> None:
    m = model([node("Slice", ["x", "s", "e", "a", "t"], ["y"])], [value("x", [7])], [value("y", None)],
              initializers={"s": i64(start), "e": i64(end), "a": i64(0), "t": i64(step)})
    x = np.arange(7, dtype=np.float32)
    module, weights = load(m)
    np.testing.assert_array_equal(interpret(module, {"x": x}, weights)[0], x[start:end:step])


def test_known_conditions_leave_one_branch() -> None:
    then = helper.make_graph([node("Neg", ["x"], ["a"])], "t", [], [value("a", None)])
    other = helper.make_graph([node("Abs", ["x"], ["b"])], "e", [], [value("b", None)])
    nodes = [node("Shape", ["x"], ["s"]), node("Size", ["s"], ["r"]), node("Equal", ["r", "two"], ["q"]),
             node("If", ["q"], ["y"], then_branch=then, else_branch=other)]
    m = model(nodes, [value("x", ["n", 3])], [value("y", None)], initializers={"two": np.array(2)})
    assert ops(m) == ["neg", "return"]


def test_runtime_conditions_become_regions() -> None:
    then = helper.make_graph([node("Neg", ["x"], ["a"])], "t", [], [value("a", None)])
    other = helper.make_graph([node("Mul", ["x", "x"], ["a"])], "e", [], [value("a", None)])
    m = model([node("If", ["q"], ["y"], then_branch=then, else_branch=other)],
              [value("x", ["n"]), value("q", [], BOOL)], [value("y", None)])
    module, weights = load(m)
    x = np.array([1, 2, 3], np.float32)
    for q, want in ((True, -x), (False, x * x)):
        np.testing.assert_array_equal(interpret(module, {"x": x, "q": np.array(q)}, weights)[0], want)


def test_branches_of_different_rank_name_the_dim() -> None:
    then = helper.make_graph([node("Squeeze", ["x", "one"], ["a"])], "t", [], [value("a", None)])
    other = helper.make_graph([node("Identity", ["x"], ["b"])], "e", [], [value("b", None)])
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["d"]), node("Equal", ["d", "one"], ["q"]),
             node("If", ["q"], ["y"], then_branch=then, else_branch=other)]
    m = model(nodes, [value("x", ["n", "w"])], [value("y", None)], initializers={"one": i64(1)})
    with pytest.raises(UserError, match=r"the sizes w say which branch runs; --dim w=... leaves one\), and values must "
                                        "have one rank"):
        load(m)
    assert result_type(m, dims={"w": 1}) == 'tensor<?xf32, ["n"]>'


def ranks_by_width(*last: onnx.NodeProto) -> onnx.ModelProto:
    """h is x without its last dim where that is 1, else x; then come the nodes `last`."""
    then = helper.make_graph([node("Squeeze", ["x", "one"], ["a"])], "t", [], [value("a", None)])
    other = helper.make_graph([node("Identity", ["x"], ["b"])], "e", [], [value("b", None)])
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["d"]), node("Equal", ["d", "one"], ["q"]),
             node("If", ["q"], ["h"], name="pick", then_branch=then, else_branch=other), *last]
    return model(nodes, [value("x", ["n", "w"])], [value("y", None)], initializers={"one": i64(1), "zero": i64(0)})


def test_the_rest_of_a_graph_goes_into_branches_of_different_rank() -> None:
    m = ranks_by_width(node("ReduceSum", ["h"], ["r"], keepdims=0), node("Exp", ["r"], ["y"]))
    module, weights = load(m)
    for shape in ((3, 1), (2, 2)):
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        np.testing.assert_allclose(interpret(module, {"x": x}, weights)[0], np.exp(x.sum()), rtol=1e-6)


def test_a_branch_that_does_not_fit_is_an_error_of_runs_that_take_it() -> None:
    m = ranks_by_width(node("Transpose", ["h"], ["y"], name="turn", perm=[0]))
    module, weights = load(m)
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(interpret(module, {"x": x[:, None]}, weights)[0], x)
    with pytest.raises(UserError, match=r"node 'pick' \(If\): its else_branch \(the sizes w say .* does not fit: .*"
                                        r"node 'turn' \(Transpose\)"):
        interpret(module, {"x": np.zeros((3, 2), np.float32)}, weights)


def test_no_branch_fits() -> None:
    with pytest.raises(UserError, match=r"neither branch fits: .* node 'turn' \(Transpose\).*; .*node 'turn'"):
        load(ranks_by_width(node("Transpose", ["h"], ["y"], name="turn", perm=[2, 1, 0])))


def test_branches_of_different_sizes_give_a_symbol() -> None:
    then = helper.make_graph([node("Concat", ["x", "x"], ["a"], axis=0)], "t", [], [value("a", None)])
    other = helper.make_graph([node("Identity", ["x"], ["b"])], "e", [], [value("b", None)])
    m = model([node("If", ["q"], ["h"], then_branch=then, else_branch=other), node("Neg", ["h"], ["y"])],
              [value("x", ["n"]), value("q", [], BOOL)], [value("y", None)])
    assert result_type(m) == 'tensor<?xf32, ["h"]>'
    x = np.array([1, 2, 3], np.float32)
    compiled = xcc.compile(m)
    for q, want in ((True, [1, 2, 3, 1, 2, 3]), (False, [1, 2, 3])):
        np.testing.assert_array_equal(compiled.run({"x": x, "q": np.array(q)})["y"], -np.array(want, np.float32))


def test_small_constants_and_weights() -> None:
    m = model([node("Add", ["x", "c"], ["h"]), node("Mul", ["h", "w"], ["y"])], [value("x", [65])],
              [value("y", None)], initializers={"c": np.ones(1, np.float32), "w": np.arange(65, dtype=np.float32)})
    module, weights = load(m)
    assert list(weights) == ["w"] and str(module).count("xt.weight") == 1 and str(module).count("xt.constant") == 1


def test_locations_name_the_nodes() -> None:
    m = model([node("Neg", ["x"], ["h"], name="layer/neg"), node("Abs", ["h"], ["y"])], [value("x", [2])],
              [value("y", None)])
    text = load(m)[0].operation.get_asm(enable_debug_info=True)
    assert 'loc("layer/neg")' in text and 'loc("Abs#1")' in text


def test_local_functions_with_attributes() -> None:
    body = helper.make_node("LeakyRelu", ["a"], ["t"])
    body.attribute.add(name="alpha", ref_attr_name="slope", type=1)
    f = helper.make_function("local", "F", ["a"], ["b"], [body, node("Neg", ["t"], ["b"])],
                             [helper.make_opsetid("", 20)], attributes=["slope"])
    m = model([node("F", ["x"], ["h"], domain="local", slope=0.5), node("F", ["h"], ["y"], domain="local", slope=0.25)],
              [value("x", [2])], [value("y", None)], functions=[f])
    m.opset_import.append(helper.make_opsetid("local", 1))
    module, weights = load(m)
    out = interpret(module, {"x": np.array([-2, 3], np.float32)}, weights)[0]
    np.testing.assert_array_equal(out, np.array([-1, 0.75], np.float32))


def test_schema_bodies_have_the_defaults_of_attributes() -> None:
    call = with_defaults(node("AffineGrid", ["theta", "size"], ["grid"]), 20)
    body = Functions(model([], [], [])).schema_body(call, 20, [None, None])
    assert body is not None
    read = [n for n in body.node if any(a.ref_attr_name == "align_corners" for a in n.attribute)]
    assert read
    filled = {n.output[0]: n.attribute[0].i for n in instantiate(body, call, "") if n.output[0] == read[0].output[0]}
    assert filled == {read[0].output[0]: 0}


def test_counted_loops_become_scans() -> None:
    body = helper.make_graph([node("Identity", ["go"], ["on"]), node("Add", ["v", "v"], ["w"]),
                              node("Identity", ["w"], ["row"])], "body",
                             [value("i", [], INT64), value("go", [], BOOL), value("v", [2])],
                             [value("on", [], BOOL), value("w", [2]), value("row", [2])])
    m = model([node("Loop", ["m", "", "x"], ["last", "rows"], body=body)], [value("x", [2])],
              [value("last", None), value("rows", None)], initializers={"m": np.array(3)})
    assert "scan" in ops(m)
    module, weights = load(m)
    last, rows = interpret(module, {"x": np.array([1, 2], np.float32)}, weights)
    np.testing.assert_array_equal(last, [8, 16])
    np.testing.assert_array_equal(rows, [[2, 4], [4, 8], [8, 16]])


def test_fixed_inputs_are_constants() -> None:
    m = model([node("Reshape", ["x", "s"], ["y"])], [value("x", [6]), value("s", [2], INT64)],
              [value("y", [None, None])])
    assert result_type(m, fix={"s": i64(2, 3)}) == "tensor<2x3xf32>"
    assert result_type(m, fix={"s": [3, 2]}) == "tensor<3x2xf32>"


def test_fixed_inputs_fix_their_dims() -> None:
    m = model([node("Concat", ["x", "s"], ["y"], axis=0)], [value("x", ["n"]), value("s", ["n"])], [value("y", None)])
    module, weights = load(m, fix={"s": [1, 2.5]})
    np.testing.assert_array_equal(interpret(module, {"x": np.zeros(2, np.float32)}, weights)[0], [0, 0, 1, 2.5])


def test_the_newest_version_not_above_the_opset() -> None:
    old = registry.lookup("", "Softmax", 12)
    assert old is not registry.lookup("", "Softmax", 13) and old is registry.lookup("", "Softmax", 7)
    assert registry.lookup("", "NoSuchOp", 20) is None
    with pytest.raises(ValueError, match="two converters"):
        registry.onnx_op("Softmax", since=13)(lambda cx: None)


def test_the_table_of_ops_is_current() -> None:
    document = Path(__file__).resolve().parents[4] / "docs" / "onnx-ops.md"
    assert document.read_text() == table(), "run python -m xcc.frontends.onnx.op_table > docs/onnx-ops.md"


def test_half_precision_weights_keep_their_type() -> None:
    m = model([node("Cast", ["x"], ["h"], to=TensorProto.BFLOAT16), node("Cast", ["h"], ["y"], to=FLOAT)],
              [value("x", [2])], [value("y", None)])
    assert "bf16" in text_of(m)
