"""The cores of this machine."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["physical_cores"]


def physical_cores() -> int:
    """Cores that this process may use, hyperthreads of one core counted once; no more than its cgroup has time for."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    seen = set()
    for cpu in allowed:
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as f:
                seen.add(f.read().strip())
        except OSError:
            seen.add(str(cpu))
    return max(1, min(len(seen), quota()))


def quota(groups: str = "/proc/self/cgroup", root: str = "/sys/fs/cgroup") -> int:
    """How many cores' time the control group of this process, or one above it, is given; a large number: no limit.

    A container with ``--cpus=2`` sees all cores of its machine: with a thread on each, all would wait for their time.
    """
    least = 1 << 30
    try:
        own = next(line.split("::", 1)[1].strip() for line in Path(groups).read_text().splitlines() if "::" in line)
    except (OSError, StopIteration):
        return least
    folder = Path(root, own.lstrip("/"))
    for place in (folder, *folder.parents):
        try:
            time, period = (place / "cpu.max").read_text().split()
            least = min(least, -(-int(time) // int(period)))
        except (OSError, ValueError, ZeroDivisionError):
            pass                # "max 100000": no limit here
        if place == Path(root):
            break
    return max(1, least)
