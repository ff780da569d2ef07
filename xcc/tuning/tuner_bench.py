"""The process in which the tuner runs variants of a kernel: one that crashes loses its place and nothing else."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from xcc.diagnostics import XccError
from xcc.runtime.dtypes import numpy_dtype
from xcc.targets.base import KernelBinary
from xcc.targets.folders import part

__all__ = ["Bench", "Measured", "Subject", "random_array"]


@dataclass(frozen=True)
class Subject:
    """The buffers of a kernel: (shape, dtype) of inputs, then of outputs, and the symbols' values in order."""

    inputs: tuple[tuple[tuple[int, ...], str], ...]
    outputs: tuple[tuple[tuple[int, ...], str], ...]
    symbols: tuple[int, ...]


@dataclass(frozen=True)
class Measured:
    """Seconds of one run, and the outputs for the comparison with the default schedule's."""

    seconds: float
    outputs: tuple[Any, ...]


def random_array(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Any:
    """Values that keep sums finite; integers stay small, so that they are valid indices of most tables."""
    kind = numpy_dtype(dtype)
    if kind.kind in "iub":
        return rng.integers(0, 2, shape).astype(kind)
    return (rng.standard_normal(shape) * 0.5).astype(kind)


class Bench:
    """Runs variants through ``measure.py`` of `target`; its process starts again when one takes it down."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.pool: ProcessPoolExecutor | None = None

    def seconds(self, base: KernelBinary, variant: KernelBinary, subject: Subject, seconds: float) -> float | None:
        """Seconds of one run of `variant`; None when it fails or computes something else than `base`."""
        if self.pool is None:
            self.pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        try:
            done = self.pool.submit(_seconds, self.target, base, variant, subject, seconds)
            return done.result(timeout=60 + 4 * seconds)
        except (BrokenProcessPool, TimeoutError, RuntimeError, OSError, XccError):
            self.close()
            return None

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)
            self.pool = None


_wanted: tuple[Subject, KernelBinary, tuple[Any, ...]] | None = None
"""In the process: the outputs of the last base."""


def _seconds(target: str, base: KernelBinary, variant: KernelBinary, subject: Subject, seconds: float) -> float | None:
    global _wanted
    measure = part(target, "measure").measure
    if _wanted is None or _wanted[:2] != (subject, base):
        _wanted = (subject, base, measure(base, subject, 0.0).outputs)
    measured: Measured = measure(variant, subject, seconds)
    return measured.seconds if agree(_wanted[2], measured.outputs) else None


def agree(wanted: tuple[Any, ...], found: tuple[Any, ...]) -> bool:
    """Integers equal, floats close to the largest value."""
    for x, y in zip(wanted, found, strict=True):
        if x.dtype.kind in "iub":
            if not np.array_equal(x, y):
                return False
            continue
        wide_x, wide_y = x.astype(np.float32), y.astype(np.float32)
        scale = float(np.abs(wide_x).max(initial=0.0))
        narrow = x.dtype.itemsize < 4
        if not np.allclose(wide_x, wide_y, rtol=0, atol=(2e-2 if narrow else 1e-4) * max(scale, 1e-30)):
            return False
    return True
