"""The table of what each compiled kernel needs of its chip, which ``xcc -v`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xcc.targets.base import KernelBinary

__all__ = ["kernel_table"]

_COLUMNS = {"registers": "registers", "vgprs": "VGPRs", "agprs": "AGPRs", "sgprs": "SGPRs", "spills": "spills",
            "sgpr_spills": "SGPR spills", "stack": "stack", "scratch_bytes": "scratch", "occupancy": "waves/SIMD",
            "loop_instructions": "loop", "loop_matrix": "matrix", "matrix_share": "share"}
"""Entries of a report by key, and their titles, in order."""


def kernel_table(kernels: Sequence[KernelBinary]) -> list[str]:
    """Lines: a head and one line a kernel, in columns. Columns that no kernel has an entry for are left out.

    code: bytes of the kernel's file. launches: device functions. threads, shared: of a workgroup, the most of any
    launch, shared memory in bytes. The others are the code generator's: see docs/gpu.md.
    """
    if not kernels:
        return []
    reports: list[dict[str, Any]] = [dict(k.report) for k in kernels]
    keys = [key for key in _COLUMNS if any(key in r for r in reports)]
    rows = [("kernel", "code", "launches", "threads", "shared", *(_COLUMNS[key] for key in keys))]
    for kernel, report in zip(kernels, reports, strict=True):
        threads = max((_product(launch.block) for launch in kernel.launches), default=1)
        shared = max([int(report.get("shared_bytes", 0)), *(launch.shared_bytes for launch in kernel.launches)])
        rows.append((kernel.name, str(len(kernel.blob)), str(len(kernel.launches)), str(threads), str(shared),
                     *(_text(key, report) for key in keys)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.rjust(w) if i else cell.ljust(w)
                      for i, (cell, w) in enumerate(zip(row, widths, strict=True))) for row in rows]


def _product(sizes: Sequence[int]) -> int:
    n = 1
    for s in sizes:
        n *= s
    return n


def _text(key: str, report: dict[str, Any]) -> str:
    if key not in report:
        return "-"
    return f"{report[key]:.0%}" if key == "matrix_share" else str(report[key])
