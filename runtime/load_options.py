"""What callers say when they load a model, and what is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime import dtypes
from xcc.runtime.executors import on_host
from xcc.runtime.program import Program

__all__ = ["gpu_number", "least_sizes", "memory_for", "thread_options", "zeros"]


class memory_for:       # a class: a run enters it, and a generator takes a microsecond
    """Too little memory is a UserError in here."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, MemoryError):
            raise UserError(f"the memory does not suffice for {self._what}: {error}") from None


def thread_options(target: str, threads: Any) -> dict[str, int]:
    """What the executor is told of the number of threads that was asked for; nothing for 0."""
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 0:
        raise UserError(f"threads is {threads!r}; give a number of threads, or 0 for one a core")
    if threads and not on_host(target):
        raise UserError(f"threads is for models on CPUs, this one is for '{target}'")
    return {"threads": threads} if threads else {}


def gpu_number(target: str, device: Any) -> int | None:
    """The number of the GPU that was asked for."""
    if device is None:
        return None
    if not isinstance(device, int) or isinstance(device, bool) or device < 0:
        raise UserError(f"device is {device!r}; give the number of a GPU, from 0 on")
    if on_host(target):
        raise UserError(f"device is for models on GPUs, this one is for '{target}'")
    return device


def least_sizes(program: Program, dims: Mapping[str, int] | None) -> dict[str, int]:
    """Values of the symbols of `program`: those of `dims`, else 1, or the least of the bounds."""
    bounds = program.bounds
    least = {s: min(max(1, bounds[s][0]), bounds[s][1]) if s in bounds else 1 for s in program.symbols}
    if dims is None:
        return least
    if not isinstance(dims, Mapping):
        raise UserError(f"dims is {dims!r}; give a dict by name")
    unknown = [name for name in dims if name not in program.symbols]
    if unknown:
        raise UserError(f"dims: the model has no symbolic dim '{unknown[0]}'; it has "
                        f"{', '.join(program.symbols) or 'none'}")
    return least | dict(dims)


def zeros(program: Program, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Inputs, by name, for symbols of these values: zeros, but for elements that are symbols."""
    inputs = {b.name: np.zeros([symbolic.evaluate(d, sizes) for d in b.shape], dtypes.numpy_dtype(b.dtype))
              for b in (program.buffers[i] for i in program.inputs)}
    for v in program.values:
        inputs[program.buffers[v.source].name].reshape(-1)[v.index] = sizes[v.name]
    return inputs
