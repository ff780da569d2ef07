"""Replaces lines of the L2 cache that kernels asked to keep; needs Triton.

Triton's and Inductor's kernels load what they read twice with ``eviction_policy="evict_last"``. Such lines outlast an
overwriting of the cache by plain copies, even of ten times its size: on an H100 an RMS norm of 8192x4096 f16 of xcc,
which gives no such hint, takes 48.5 us after such a copy, but 45.6 us when Inductor's kernel had read the same input
ahead of the copy. Inductor's own kernels gain in the same way when they are repeated: 49.0 us, and 50.7 without.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["drop_kept_lines"]

BLOCK = 2048
_memory: dict[int, Any] = {}


@triton.jit
def _read(data, never, size: tl.constexpr, policy: tl.constexpr):  # type: ignore[no-untyped-def]
    values = tl.load(data + tl.program_id(0) * size + tl.arange(0, size), eviction_policy=policy)
    if tl.sum(values, 0) != 0:      # the data are zeros
        tl.store(never, 1)


def drop_kept_lines() -> None:
    """Replaces the lines that are kept by others of that kind, then makes those the first to go, and waits for it."""
    device = torch.cuda.current_device()
    if device not in _memory:
        elements = max(2 * torch.cuda.get_device_properties(device).L2_cache_size, 64 << 20) // 4
        _memory[device] = torch.zeros(elements // BLOCK * BLOCK, dtype=torch.int32, device="cuda")
    data = _memory[device]
    for policy in ("evict_last", "evict_first"):
        _read[(data.numel() // BLOCK,)](data, data, BLOCK, policy)
    torch.cuda.synchronize()
