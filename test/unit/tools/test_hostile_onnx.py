"""Damaged and hostile .onnx files: every one is a UserError with one line, or imports as something valid."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from xcc.diagnostics import UserError
from xcc.driver.sources import load_source
from xcc.options import CompileOptions
from xcc.tools import xcc_cli


def small(**initializers: Any) -> onnx.ModelProto:
    w = numpy_helper.from_array(np.ones((4, 3), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"], name="first"),
         helper.make_node("Relu", ["h"], ["y"], name="second")],
        "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def one_line(data: bytes | onnx.ModelProto, folder: Path) -> str:
    """The error of importing `data`; "" when it imports. Anything but a UserError fails the test."""
    path = folder / "m.onnx"
    path.write_bytes(data if isinstance(data, bytes) else data.SerializeToString())
    try:
        load_source(path, CompileOptions())
    except UserError as e:
        return str(e)
    return ""


def test_truncated(tmp_path: Path) -> None:
    data = small().SerializeToString()
    refused = [bool(one_line(data[:size], tmp_path)) for size in range(0, len(data), 7)]
    assert refused[0]
    assert sum(refused) > 0.8 * len(refused)


def test_bit_flips(tmp_path: Path) -> None:
    data = bytearray(small().SerializeToString())
    rng = random.Random(3)
    refused = 0
    for _ in range(300):
        at, bit = rng.randrange(len(data)), 1 << rng.randrange(8)
        data[at] ^= bit
        refused += bool(one_line(bytes(data), tmp_path))
        data[at] ^= bit
    assert refused > 50


def test_noise(tmp_path: Path) -> None:
    rng = random.Random(5)
    for size in (0, 1, 10, 1000):
        assert one_line(rng.randbytes(size), tmp_path)
    assert one_line(b"\x08\x07" * 1000, tmp_path)


def external(location: str, **entries: str) -> onnx.ModelProto:
    model = small()
    w = model.graph.initializer[0]
    w.ClearField("raw_data")
    w.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        w.external_data.add(key=key, value=value)
    return model


@pytest.mark.parametrize(("location", "entries"), [
    ("absent.bin", {}), ("../outside.bin", {}), ("/etc/passwd", {}), ("a/../../outside.bin", {}), (".", {}), ("", {}),
    ("w.bin", {"offset": "100"}), ("w.bin", {"offset": "-4"}), ("w.bin", {"offset": "many"}),
    ("w.bin", {"length": "9999"}), ("w.bin", {"length": "4"}), ("link.bin", {}),
])
def test_external_data(tmp_path: Path, location: str, entries: dict[str, str]) -> None:
    inside = tmp_path / "model"
    inside.mkdir()
    (tmp_path / "outside.bin").write_bytes(bytes(48))
    (inside / "w.bin").write_bytes(bytes(48))
    (inside / "link.bin").symlink_to(tmp_path / "outside.bin")
    message = one_line(external(location, **entries), inside)
    assert "w" in message
    assert "\n" not in message


def test_external_data_that_is_fine(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(np.arange(12, dtype=np.float32).tobytes())
    assert one_line(external("w.bin"), tmp_path) == ""


def broken(change: Any) -> onnx.ModelProto:
    model = small()
    change(model)
    return model


@pytest.mark.parametrize(("change", "what"), [
    (lambda m: setattr(m.graph.node[0], "op_type", "NoSuchOp"), "NoSuchOp"),
    (lambda m: m.graph.node[0].input.__setitem__(1, "nowhere"), "nowhere"),
    (lambda m: m.graph.output[0].__setattr__("name", "nothing"), "nothing"),
    (lambda m: m.graph.initializer[0].dims.__setitem__(0, 5), "w"),
    (lambda m: m.graph.initializer[0].dims.__setitem__(0, -1), "w"),
    (lambda m: setattr(m.graph.initializer[0], "data_type", 99), "w"),
    (lambda m: m.opset_import[0].__setattr__("version", 999), "999"),
    (lambda m: m.graph.node.append(m.graph.node[0]), "h"),
    (lambda m: m.graph.node[1].attribute.append(helper.make_attribute("x", 1)), ""),
    (lambda m: m.graph.node[0].input.pop(), "MatMul"),
    (lambda m: m.graph.input.pop(), "x"),
    (lambda m: m.graph.input[0].type.tensor_type.shape.dim[0].__setattr__("dim_value", 1 << 62), "'x' of float32[46"),
])
def test_malformed_graphs(tmp_path: Path, change: Any, what: str) -> None:
    message = one_line(broken(change), tmp_path)
    assert what in message
    if what:
        assert message


def test_all_unsupported_ops_in_one_message(tmp_path: Path) -> None:
    model = small()
    for i in range(3):
        model.graph.node.append(helper.make_node(f"Mystery{i % 2}", ["y"], [f"z{i}"], name=f"odd{i}", domain="my.ops"))
    message = one_line(model, tmp_path)
    for word in ("Mystery0", "Mystery1", "odd0", "odd1", "odd2"):
        assert word in message


@pytest.mark.parametrize("data", [small().SerializeToString()[:60], broken(
    lambda m: setattr(m.graph.node[0], "op_type", "No\nSuch\rOp")).SerializeToString()], ids=["cut", "line breaks"])
def test_the_command_line_says_it_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(data)
    assert xcc_cli.main([str(tmp_path / "m.onnx")]) == 1
    err = capsys.readouterr().err
    assert err.startswith("xcc: error: ")
    assert len(err.splitlines()) == 1


def test_known_sizes_in_large_values(tmp_path: Path) -> None:
    """Values made of sizes are followed at import while they are small: these have 2^40 and 2^24 elements."""
    nodes, x = [helper.make_node("Shape", ["x"], ["y"])], "y"
    for i in range(40):
        nodes.append(helper.make_node("Concat", [x, x], [f"c{i}"], axis=0))
        x = f"c{i}"
    nodes += [helper.make_node("Gather", [x, "zero"], ["doubled"], axis=0),
              helper.make_node("Expand", ["y", "many"], ["wide"])]
    constants = [numpy_helper.from_array(np.array([n]), name) for name, n in (("zero", 0), ("many", 1 << 24))]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info(name, TensorProto.INT64, [None]) for name in ("doubled", "wide")], constants)
    assert one_line(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path) == ""
