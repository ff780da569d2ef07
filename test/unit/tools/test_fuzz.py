"""Random damage to small models: every file imports, or is refused in one line of readable length that names it.

More of it: ``XCC_FUZZ=5000 pytest test/unit/tools/test_fuzz.py``.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import onnx
import pytest
from mutations import MODELS, damaged

from xcc.diagnostics import UserError
from xcc.driver.sources import load_source
from xcc.options import CompileOptions

ROUNDS = int(os.environ.get("XCC_FUZZ", "20"))


@pytest.mark.parametrize("name", MODELS)
def test_damaged_models(name: str, tmp_path: Path) -> None:
    path, model, refused = tmp_path / "m.onnx", MODELS[name](), 0
    for seed in range(ROUNDS):
        path.write_bytes(damaged(model, random.Random(f"{name} {seed}")))
        try:
            load_source(path, CompileOptions())
        except UserError as e:
            refused += 1
            assert "m.onnx" in str(e) and str(e).isprintable() and len(str(e)) < 2000, f"seed {seed}: {e}"
    assert refused > 0.3 * ROUNDS


@pytest.mark.parametrize("name", MODELS)
def test_the_models_are_fine_before(name: str, tmp_path: Path) -> None:
    onnx.checker.check_model(MODELS[name](), full_check=True)
    onnx.save(MODELS[name](), tmp_path / "m.onnx")
    load_source(tmp_path / "m.onnx", CompileOptions())
