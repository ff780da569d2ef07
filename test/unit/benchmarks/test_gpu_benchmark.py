"""The command lines of the GPU benchmarks."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.mark.parametrize("name", ["gpu.py", "gpu_models.py"])
def test_help_without_triton(name):
    """Triton is there only with PyTorch for CUDA; help is there everywhere."""
    pytest.importorskip("torch")
    code = "import runpy, sys; sys.modules['triton'] = None; sys.argv = sys.argv[1:]; " \
           "sys.path.insert(0, sys.argv.pop(0)); "\
           "runpy.run_path(sys.argv[0], run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code, str(BENCHMARKS), str(BENCHMARKS / name), "--help"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {name}")
