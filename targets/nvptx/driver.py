"""Which NVIDIA chip this machine has."""

from __future__ import annotations

from functools import lru_cache

from xcc.targets.base import Chip
from xcc.targets.nvptx.chip import FALLBACK, chip_for_capability, chips


@lru_cache(maxsize=1)
def default_chip() -> Chip:
    """The GPU found, else sm_90a."""
    from xcc.runtime.cuda_api import find_gpu

    found = find_gpu()
    return chip_for_capability(*found) if found is not None else chips()[FALLBACK]
