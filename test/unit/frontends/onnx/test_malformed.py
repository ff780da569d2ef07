"""Damaged, hostile and unsupported models give one located line, never another exception."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from xcc.diagnostics import UserError
from xcc.frontends.onnx.importer import load

sys.path.insert(0, str(Path(__file__).parent))
from onnx_models import INT64, model, node, value


def small() -> onnx.ModelProto:
    w = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    return model([node("MatMul", ["x", "w"], ["h"], name="mm"), node("Relu", ["h"], ["y"])], [value("x", ["n", 8])],
                 [value("y", ["n", 16])], initializers={"w": w})


def message(source: object, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        load(source, **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text and len(text) < 1500
    return text


def test_missing_file(tmp_path: Path) -> None:
    assert "cannot read" in message(tmp_path / "none.onnx")
    assert "cannot read" in message(tmp_path)


@pytest.mark.parametrize("keep", [0, 1, 10, 50, 200])
def test_truncated(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(small().SerializeToString()[:keep])
    assert message(path).startswith("cut.onnx: ")


def test_random_bytes(tmp_path: Path) -> None:
    path = tmp_path / "noise.onnx"
    path.write_bytes(random.Random(1).randbytes(1000))
    assert message(path).startswith("noise.onnx: ")


@pytest.mark.parametrize("seed", range(60))
def test_bit_flips_never_crash(tmp_path: Path, seed: int) -> None:
    data = bytearray(small().SerializeToString())
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 8)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path = tmp_path / "flipped.onnx"
    path.write_bytes(data)
    try:
        load(path)
    except UserError as e:
        assert "\n" not in str(e)


def test_missing_operand_and_cycle() -> None:
    assert "operand 'b' is not made by an earlier node" in message(
        model([node("Add", ["x", "b"], ["y"], name="sum")], [value("x", [2])], [value("y", [2])]))
    text = message(model([node("Add", ["x", "q"], ["p"], name="first"), node("Neg", ["p"], ["q"])], [value("x", [2])],
                         [value("q", [2])]))
    assert "node 'first' (Add)" in text and "a cycle" in text


def test_missing_output_and_repeated_name() -> None:
    assert "no node makes the output 'z'" in message(model([node("Neg", ["x"], ["y"])], [value("x", [2])],
                                                           [value("z", [2])]))
    assert "two values are called 'y'" in message(
        model([node("Neg", ["x"], ["y"]), node("Abs", ["x"], ["y"])], [value("x", [2])], [value("y", [2])]))


def test_shapes_and_types_that_do_not_fit() -> None:
    text = message(model([node("MatMul", ["x", "y"], ["z"], name="mm")], [value("x", [2, 3]), value("y", [4, 5])],
                         [value("z", [2, 5])]))
    assert "node 'mm' (MatMul)" in text and "[2, 3]" in text and "[4, 5]" in text
    text = message(model([node("Add", ["x", "y"], ["z"], name="sum")],
                         [value("x", [2]), value("y", [2], TensorProto.INT32)], [value("z", [2])]))
    assert "f32" in text and "i32" in text


def test_attributes_that_do_not_fit() -> None:
    assert "axis 7 is out of range" in message(model([node("Softmax", ["x"], ["y"], axis=7)], [value("x", [2, 3])],
                                                     [value("y", [2, 3])]))
    assert "node 't' (Transpose)" in message(model([node("Transpose", ["x"], ["y"], name="t", perm=[0, 0])],
                                                   [value("x", [2, 3])], [value("y", [2, 3])]))


def test_attributes_that_must_be_there() -> None:
    m = model([node("Loop", ["n", "", "x"], ["y"], name="again")], [value("n", [], INT64), value("x", [3])],
              [value("y", None)])
    assert "node 'again' (Loop): needs the attribute 'body'" in message(m)


def test_attributes_of_another_type() -> None:
    m = model([node("Softmax", ["x"], ["y"], axis=1.5)], [value("x", [2, 3])], [value("y", [2, 3])])
    assert "its attribute 'axis' is of type float, not int" in message(m)
    m = model([node("MaxPool", ["x"], ["y"], kernel_shape=[2], strides=[0])], [value("x", [1, 2, 3])],
              [value("y", None)])
    assert "strides [0] and dilations [1] must be 1 or more" in message(m)


def test_unsupported_ops_come_in_one_message() -> None:
    nodes = [node("StringConcat", ["x", "x"], ["a"], name="s1"), node("Mystery", ["x"], ["b"], name="m1"),
             node("Mystery", ["x"], ["c"], name="m2"), node("ReorderInput", ["x"], ["d"], domain="com.microsoft.nchwc")]
    text = message(model(nodes, [value("x", [2])], [value("c", [2])]))
    assert "3 unsupported ops" in text and "'m1', 'm2'" in text and "strings" in text
    assert "com.microsoft.nchwc.ReorderInput (opset 1, in the layout that onnxruntime chose" in text


def test_unsupported_opset_and_types() -> None:
    assert "opset 99" in message(model([node("Neg", ["x"], ["y"])], [value("x", [2])], [value("y", [2])], opset=99))
    assert "STRING" in message(model([node("Identity", ["x"], ["y"])], [value("x", [2], TensorProto.STRING)],
                                     [value("y", [2], TensorProto.STRING)]))


def test_opset_given_twice() -> None:
    """As one version it is as good as once."""
    m = small()
    m.opset_import.append(helper.make_opsetid("ai.onnx", 20))
    load(m)
    m.opset_import.append(helper.make_opsetid("", 19))
    assert "opset of domain '' is given twice, as 20 and 19" in message(m)


def external(folder: Path, location: str, **entries: str) -> Path:
    tensor = numpy_helper.from_array(np.zeros((100,), np.float32), "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=text)
    graph = helper.make_graph([node("Add", ["x", "w"], ["y"])], "g", [value("x", [100])], [value("y", [100])], [tensor])
    path = folder / "m.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString())
    return path


@pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd", "a/../../w.bin", "..\\w.bin", ""])
def test_external_data_outside_the_folder(tmp_path: Path, location: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(400))
    text = message(external(inner, location))
    assert "leaves the model's folder" in text or "without a location" in text


def test_external_data_through_a_symlink(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(400))
    os.symlink(tmp_path / "w.bin", inner / "link.bin")
    assert "leaves the model's folder" in message(external(inner, "link.bin"))


def test_external_data_missing_short_or_malformed(tmp_path: Path) -> None:
    assert "missing" in message(external(tmp_path, "w.bin"))
    (tmp_path / "w.bin").write_bytes(bytes(100))
    assert "needs 400 bytes" in message(external(tmp_path, "w.bin"))
    (tmp_path / "w.bin").write_bytes(bytes(500))
    assert "needs 400 bytes" in message(external(tmp_path, "w.bin", offset="200"))
    assert "needs 400 bytes" in message(external(tmp_path, "w.bin", offset="-8"))
    assert "malformed" in message(external(tmp_path, "w.bin", offset="many"))


def test_external_data_is_mapped(tmp_path: Path) -> None:
    data = np.arange(100, dtype=np.float32)
    (tmp_path / "w.bin").write_bytes(bytes(4) + data.tobytes())
    _, weights = load(external(tmp_path, "w.bin", offset="4"))
    (name,) = weights
    np.testing.assert_array_equal(weights[name], data)
    assert not weights[name].flags.writeable and not weights[name].flags.owndata


def test_options_that_do_not_fit() -> None:
    assert "no input has a dimension 'm'" in message(small(), dims={"m": 4})
    assert "bounds" in message(small(), dims={"n": (4, 2)})
    assert "no input 'q' to fix" in message(small(), fix={"q": np.zeros(1)})


@pytest.mark.parametrize(("fix", "options", "what"), [
    (1.5, {}, "its type is i64"), ([2 ** 70], {}, "input 's' cannot be fixed to"), ([[1], [1, 2]], {}, "inhomogeneous"),
    ([[1, 2]], {}, "a value of shape [1, 2]: it is [n]"), ([1, 2], {"dims": {"n": 3}}, "it is [3]"),
    ([1, 2], {"dims": {"n": (3, 4)}}, "it is [n]")])
def test_fixed_values_that_do_not_fit(fix: Any, options: Any, what: str) -> None:
    m = model([node("Add", ["x", "s"], ["y"])], [value(n, ["n"], TensorProto.INT64) for n in "xs"], [value("y", None)])
    assert what in message(m, fix={"s": fix}, **options)


def test_shape_that_only_a_run_can_tell() -> None:
    text = message(model([node("Reshape", ["x", "s"], ["y"], name="r")],
                         [value("x", [6]), value("s", ["n"], TensorProto.INT64)], [value("y", [None, None])]))
    assert "node 'r' (Reshape)" in text and "fix the value of 's'" in text


def test_function_that_calls_itself() -> None:
    f = helper.make_function("local", "F", ["a"], ["b"], [node("F", ["a"], ["b"], domain="local")],
                             [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)])
    m = model([node("F", ["x"], ["y"], domain="local")], [value("x", [2])], [value("y", [2])], functions=[f])
    m.opset_import.append(helper.make_opsetid("local", 1))
    assert "calls itself" in message(m)


def test_negative_dims_of_an_initializer() -> None:
    m = small()
    m.graph.initializer[0].dims[0] = -8
    assert "initializer 'w'" in message(m)
    m.graph.initializer[0].dims[0] = 1 << 40
    assert "initializer 'w'" in message(m)


def test_unsupported_inside_a_branch() -> None:
    branch = helper.make_graph([node("Mystery", ["x"], ["b"], name="deep")], "t", [], [value("b", [2])])
    other = helper.make_graph([node("Neg", ["x"], ["c"])], "e", [], [value("c", [2])])
    text = message(model([node("If", ["q"], ["y"], then_branch=branch, else_branch=other)],
                         [value("x", [2]), value("q", [], TensorProto.BOOL)], [value("y", [2])]))
    assert "Mystery" in text and "'deep'" in text


