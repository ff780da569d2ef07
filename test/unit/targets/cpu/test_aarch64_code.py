"""Machine code for aarch64, disassembled: what its loops are made of, in the shared object of an artifact."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from llvmlite.binding import object_file

import xcc

PRODUCTS = Path(__file__).parents[3] / "tools/Inputs/products.py"
capstone = pytest.importorskip("capstone", reason="capstone disassembles")


def code(tmp_path: Path, chip: str) -> Counter[tuple[str, str]]:
    """Mnemonics and the arrangement of their first operand, of a product of f32 and one of bytes for `chip`."""
    path = tmp_path / "products.onnx"
    subprocess.run([sys.executable, PRODUCTS, path], check=True)
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
