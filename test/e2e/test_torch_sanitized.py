"""No kernel of compiled models touches memory that is not its own, as compute-sanitizer sees it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SANITIZER = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available() or not Path(SANITIZER).exists(),
                    reason="needs an NVIDIA GPU and compute-sanitizer")
def test_no_errors() -> None:
    environment = os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "XCC_POISON": "0"}
    command = [SANITIZER, "--error-exitcode", "9", sys.executable, str(Path(__file__).with_name("torch_sanitized.py"))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
