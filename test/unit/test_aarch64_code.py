"""Machine code for aarch64, disassembled: what its loops are made of, in the shared object of an artifact."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from llvmlite.binding import object_file
from onnx import TensorProto, helper, numpy_helper

import xcc

capstone = pytest.importorskip("capstone", reason="capstone disassembles")


def code(tmp_path: Path, chip: str) -> Counter[tuple[str, str]]:
    """Mnemonics and the arrangement of their first operand, of a product of f32 and one of bytes for `chip`."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal((256, 256), np.float32), "w"),
               numpy_helper.from_array(rng.integers(-128, 128, (256, 256)).astype(np.int8), "v")]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("MatMulInteger", ["a", "v"], ["b"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (64, 256)),
         helper.make_tensor_value_info("a", TensorProto.INT8, (64, 256))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
         helper.make_tensor_value_info("b", TensorProto.INT32, None)], weights)
    path = tmp_path / "m.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)],
                                       ir_version=9).SerializeToString())
    blob = bytes(xcc.compile(path, chip=chip).artifact.members["kernels/model.so"])
    reader = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    reader.skipdata = True
    found: Counter[tuple[str, str]] = Counter()
    for section in object_file.ObjectFileRef.from_data(blob).sections():
        if section.is_text():
            for _, _, mnemonic, operands in reader.disasm_lite(section.data(), section.address()):
                found[mnemonic, operands.split(",")[0].partition(".")[2]] += 1
    return found


def test_neon(tmp_path: Path) -> None:
    """Multiply-adds of four f32, dot products of sixteen bytes; none by one element, as a loop that is no vector's."""
    found = code(tmp_path, "neoverse-v1")
    assert found["fmla", "4s"] >= 28 and found["usdot", "4s"] >= 16
    assert found["fmadd", ""] == 0 and found["madd", ""] < 16
