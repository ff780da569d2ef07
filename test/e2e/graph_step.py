"""The table of random steps: each adds a node or a few to a graph, or nothing where no value fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graph_builder import Builder, Value

Step = Callable[[Builder], Any]
STEPS: dict[str, tuple[float, Step]] = {}
F32 = np.float32


def step(weight: float = 1.0) -> Callable[[Step], Step]:
    def register(f: Step) -> Step:
        STEPS[f.__name__] = (weight, f)
        return f
    return register


def ints(b: Builder, *numbers: int) -> Value:
    return b.constant(list(numbers), np.int64)


def a_float(b: Builder, rank: int = 0, most: int = 5) -> Value | None:
    return b.value(lambda v: v.is_float and rank <= v.rank <= most)


def any_value(b: Builder, rank: int = 0) -> Value | None:
    return b.value(lambda v: v.rank >= rank)


def partner(b: Builder, x: Value) -> Value:
    """A value that broadcasts with `x`, or a constant."""
    def fits(v: Value) -> bool:
        if v.dtype != x.dtype:
            return False
        try:
            for i in (0, 2):
                np.broadcast_shapes(v.worlds[i].shape, x.worlds[i].shape)
            return True
        except ValueError:
            return False
    y = b.value(fits) if b.chance(0.65) else None
    if y is not None:
        return y
    first = b.int(0, x.rank)
    return b.weight(*[x.shape[i] if x.static(i) and b.chance(0.6) else 1 for i in range(first, x.rank)],
                    dtype=x.dtype)


def pads(b: Builder, n: int, most: int = 2) -> dict[str, Any]:
    if b.chance(0.15):
        return {"auto_pad": b.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])}
    return {"pads": [b.int(0, most) for _ in range(2 * n)]} if b.chance(0.7) else {}
