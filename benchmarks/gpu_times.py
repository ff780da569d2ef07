"""Times on a GPU, of several in turn: device events around one run each, with a cold L2 cache.

The cache is cold and without lines that some kernel asked to keep, so that times do not depend on what ran before:
Triton's and Inductor's kernels load what they read twice with ``eviction_policy="evict_last"``. Such lines outlast an
overwriting of the cache by plain copies, even of ten times its size: on an H100 an RMS norm of 8192x4096 f16 of xcc,
which gives no such hint, takes 48.5 us after such a copy, but 45.6 us when Inductor's kernel had read the same input
ahead of the copy. Inductor's own kernels gain in the same way when they are repeated: 49.0 us, and 50.7 without.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from xcc.runtime.gpu_profile import FLUSH_BYTES

__all__ = ["Timed", "in_turn", "own", "peer"]

Timed = Callable[[int], list[float]]    # seconds of as many runs

BLOCK = 2048
ROUNDS = 10
REPEATS = 10        # in a round; short kernels on an H100 take one of two times 2% apart: few runs pick one by chance
_memory: dict[int, Any] = {}


@triton.jit
def _read(data, never, size: tl.constexpr, policy: tl.constexpr):  # type: ignore[no-untyped-def]
    values = tl.load(data + tl.program_id(0) * size + tl.arange(0, size), eviction_policy=policy)
    if tl.sum(values, 0) != 0:      # the data are zeros
        tl.store(never, 1)


def peer(run: Callable[[], Any], host: bool = False) -> Timed:
    """Times a PyTorch function, as a graph where it needs no `host`."""
    flush = torch.empty((2, FLUSH_BYTES), dtype=torch.uint8, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    again = run
    if not host:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            run()
        again = graph.replay

    def times(repeats: int) -> list[float]:
        out = []
        for _ in range(repeats):
            _drop_kept_lines()
            flush[0].copy_(flush[1])
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            again()
            stop.record()
            stop.synchronize()
            out.append(start.elapsed_time(stop) * 1e-3)
        return out
    return times


def own(model: Any, inputs: dict[str, Any]) -> Timed:
    """Times a compiled model on these inputs."""
    model.run(inputs)
    return lambda repeats: model.device_times(inputs, repeats, before=_drop_kept_lines)


def in_turn(runs: dict[str, Timed]) -> dict[str, float]:
    """Median seconds of each, all of them in each round: the chip's clock is the same for them."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            times[name] += run(REPEATS)
    return {name: statistics.median(t) for name, t in times.items()}


def _drop_kept_lines() -> None:
    """Replaces the lines that are kept by others of that kind, then makes those the first to go, and waits for it."""
    device = torch.cuda.current_device()
    if device not in _memory:
        elements = max(2 * torch.cuda.get_device_properties(device).L2_cache_size, 64 << 20) // 4
        _memory[device] = torch.zeros(elements // BLOCK * BLOCK, dtype=torch.int32, device="cuda")
    data = _memory[device]
    for policy in ("evict_last", "evict_first"):
        _read[(data.numel() // BLOCK,)](data, data, BLOCK, policy)
    torch.cuda.synchronize()
