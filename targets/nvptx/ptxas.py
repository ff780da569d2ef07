"""Where NVIDIA's assembler is."""

from __future__ import annotations

import importlib.util
import shutil
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def find_ptxas() -> str | None:
    """ptxas on PATH, or of the wheel nvidia-cuda-nvcc."""
    found = shutil.which("ptxas")
    if found is None:
        spec = importlib.util.find_spec("nvidia") if importlib.util.find_spec("nvidia") else None
        for root in (spec.submodule_search_locations or []) if spec else []:
            for path in sorted(Path(root).glob("*/bin/ptxas")):
                return str(path)
    return found
