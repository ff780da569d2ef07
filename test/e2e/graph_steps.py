"""Random graphs: sizes, inputs and a number of random steps."""

from __future__ import annotations

from typing import Any

import graph_bytes  # noqa: F401  (these register their steps)
import graph_movement  # noqa: F401
import graph_pointwise  # noqa: F401
import graph_products  # noqa: F401
import graph_reductions  # noqa: F401
import numpy as np
from graph_builder import Builder
from graph_step import F32, STEPS

__all__ = ["random_graph"]


def random_graph(seed: int, limit: int = 20000, most: int = 25, noise: float = 2e-6) -> Builder:
    """A graph of one to some `most` steps."""
    rng = np.random.default_rng(seed)
    b = Builder(rng, {"n": (5, 9), "m": (7, 2)}, limit, noise)
    sizes: list[Any] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 31, 32, 33] if limit > 5000 else [1, 2, 3, 4, 5, 7, 8]
    symbolic = b.chance(0.4)
    for i in range(b.int(1, 3)):
        rank = b.pick([1, 2, 2, 3, 3, 4, 4])
        dims = [b.pick(["n", "m"]) if symbolic and b.chance(0.4) else b.pick(sizes) for _ in range(rank)]
        if b.inputs and b.chance(0.5):
            dims = list(b.inputs[0][1])
        dtype = b.pick([F32] * 6 + [np.float16, np.int32, np.int64, np.uint8, np.int8, bool]) if i else F32
        if np.prod([d if isinstance(d, int) else 9 for d in dims]) <= limit:
            b.input(dims, dtype)
    if not b.inputs:
        b.input([3, "n", 4] if symbolic else [2, 3, 4], F32)
    names = list(STEPS)
    weights = np.array([STEPS[n][0] for n in names])
    weights = weights * rng.choice([0.2, 1.0, 3.0], len(names))      # each graph has its favourites
    weights /= weights.sum()
    for _ in range(b.int(1, most) + 1):
        STEPS[names[int(rng.choice(len(names), p=weights))]][1](b)
    return b
