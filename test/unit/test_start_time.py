"""What a user waits for before anything happens is mostly imports: their number is bounded, which is the same on a fast
machine and on a slow one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import xcc

MODEL = """
func.func @main(%x: tensor<8xf32> {xt.name = "x"}) -> (tensor<8xf32> {xt.name = "y"}) {
  %0 = "xt.add"(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
HELP = "from xcc.tools import xcc_cli; xcc_cli.parser().format_help()"
LOAD = "import xcc.runtime, xcc; xcc.load(sys.argv[1]).executor"
LIST = "\nsys.stdout.write(json.dumps(sorted(sys.modules)))"
DEAR = {"onnx", "torch", "torch_mlir", "llvmlite", "onnxruntime", "scipy"}


def imported(code: str, *argv: str) -> set[str]:
    """The modules that `code` needs beyond those of a Python that has only started."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

    def modules(text: str) -> set[str]:
        done = subprocess.run([sys.executable, "-c", f"import json, sys\n{text}{LIST}", *argv], check=True,
                              capture_output=True, env=environment)
        return set(json.loads(done.stdout))

    return modules(code) - modules("")


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    (folder / "m.mlir").write_text(MODEL)
    model = xcc.compile(folder / "m.mlir")
    np.testing.assert_array_equal(model(np.ones(8, np.float32)), 2)
    model.save(folder / "m.xcm")
    return folder / "m.xcm"


def test_help() -> None:
    found = imported(HELP)
    assert not {name.split(".")[0] for name in found} & {*DEAR, "numpy"}
    assert len(found) < 100, found


def test_import_of_the_runtime_and_load(artifact: Path) -> None:
    found = imported(LOAD, str(artifact))
    assert not {name.split(".")[0] for name in found} & DEAR
    assert len({name for name in found if not name.startswith("numpy")}) < 150, found
