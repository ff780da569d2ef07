"""The cores of this machine."""

from __future__ import annotations

import os

__all__ = ["physical_cores"]


def physical_cores() -> int:
    """Cores that this process may use, hyperthreads of one core counted once."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    seen = set()
    for cpu in allowed:
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as f:
                seen.add(f.read().strip())
        except OSError:
            seen.add(str(cpu))
    return max(1, len(seen))
