"""A kernel written in Python: run on this CPU, looked at stage by stage, compiled for two GPUs, and a race in it found.

    python demo/softmax.py
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from pathlib import Path

import numpy as np

import xcc


@xcc.kernel(types={"x": "f32[m, n]", "y": "f32[m, n]"}, grid=lambda a: (a["x"].shape[0],))
def softmax(x, y, BLOCK: xcc.constexpr = 1024):
    """A row an instance. What of a block lies outside reads `other`, and is not written."""
    row = xcc.program_id(0)
    t = x.tile((row, 0), (1, BLOCK), other=-math.inf)
    e = xcc.exp(t - t.max(axis=1, keepdims=True))
    y.store((row, 0), e / e.sum(axis=1, keepdims=True))


@xcc.kernel
def racing(x, y, BLOCK: xcc.constexpr = 1024):
    """The same with a slip in its last line: all instances write the first row."""
    row = xcc.program_id(0)
    t = x.tile((row, 0), (1, BLOCK), other=-math.inf)
    e = xcc.exp(t - t.max(axis=1, keepdims=True))
    y.store((0, 0), e / e.sum(axis=1, keepdims=True))


def main() -> None:
    x = np.random.default_rng(0).standard_normal((1000, 700), np.float32)
    y = xcc.empty(x.shape)
    begin = time.perf_counter()
    softmax(x, y)
    first = time.perf_counter()
    softmax(x, y)
    again = time.perf_counter()
    e = np.exp(x - x.max(1, keepdims=True))
    print(f"softmax of {x.shape} on this CPU: {first - begin:.2f} s compiled and run, {(again - first) * 1e6:.0f} us "
          f"run again, largest difference from numpy {np.abs(y - e / e.sum(1, keepdims=True)).max():.1e}\n")

    stages = softmax.stages()
    print(stages["program"])
    print("stages behind it: " + ", ".join(f"{n} ({len(t.splitlines())} lines)" for n, t in stages.items()
                                           if n != "program") + "\n")

    for target, chip in (("nvptx", "sm_90a"), ("amdgcn", "gfx942")):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "softmax.xcm")
            size = softmax.compile(target, chip).save(path)
        print(f"compiled for {chip}: {size / 1000:.0f} kB")

    os.environ["XCC_KERNEL"] = "check"
    softmax[(4,)](x[:4], y[:4])
    print("\nchecked: nothing is wrong with softmax, and with racing:")
    try:
        racing[(4,)](x[:4], y[:4])
    except xcc.UserError as found:
        print(found)


if __name__ == "__main__":
    main()
