"""Times on a GPU, of several in turn: device events around one run each, with a cold L2 cache.

The cache is cold and without lines that some kernel asked to keep (kept_lines.py), so that times do not depend on what
ran before.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch

from xcc.runtime.gpu_profile import FLUSH_BYTES

__all__ = ["Timed", "in_turn", "own", "peer"]

Timed = Callable[[int], list[float]]    # seconds of as many runs

ROUNDS = 10
REPEATS = 10        # in a round; short kernels on an H100 take one of two times 2% apart: few runs pick one by chance


def peer(run: Callable[[], Any], host: bool = False) -> Timed:
    """Times a PyTorch function, as a graph where it needs no `host`."""
    from kept_lines import drop_kept_lines

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
            drop_kept_lines()
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
    from kept_lines import drop_kept_lines

    model.run(inputs)
    return lambda repeats: model.device_times(inputs, repeats, before=drop_kept_lines)


def in_turn(runs: dict[str, Timed]) -> dict[str, float]:
    """Median seconds of each, all of them in each round: the chip's clock is the same for them."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            times[name] += run(REPEATS)
    return {name: statistics.median(t) for name, t in times.items()}
