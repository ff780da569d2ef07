"""Inputs that outputs update: what the caller gives for them must be memory to write to, shared by no other input."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from xcc.diagnostics import UserError
from xcc.runtime.large_pages import address_of
from xcc.runtime.program import DTYPE_BYTES, Program

__all__ = ["UpdatedInputs"]


class UpdatedInputs:
    """Of `program`: which outputs take the place of which inputs."""

    def __init__(self, program: Program) -> None:
        places = {b: n for n, b in enumerate(program.inputs)}
        self.outputs = {program.outputs.index(output): places[source] for output, source in program.updates}
        self._inputs = [program.buffers[i] for i in program.inputs]

    def __bool__(self) -> bool:
        return bool(self.outputs)

    def check(self, values: Sequence[Any], arrays: list[Any], number: int) -> None:
        """UserError where an updated input of `values`, seen as that of `arrays`, cannot be written in place by a model
        on GPU `number`.

        Another input that shares memory with one is copied in `arrays`: it is read as it was when the run began.
        """
        for n in self.outputs.values():
            problem = _problem(values[n], arrays[n], number)
            if problem:
                raise UserError(f"input '{self._inputs[n].name}' is updated in place, and {problem}")
        self._keep_apart(arrays)

    def copies(self, arrays: Sequence[Any]) -> list[Any]:
        """`arrays`, those on the host that a run would write into copied."""
        updated = self.outputs.values()
        return [a.copy() if n in updated and isinstance(a, np.ndarray) else a for n, a in enumerate(arrays)]

    def _keep_apart(self, arrays: list[Any]) -> None:
        updated = sorted((*self._span(n, arrays[n]), n) for n in self.outputs.values())
        for (_, end, n), (begin, _, other) in pairwise(updated):
            if begin < end:
                names = " and ".join(f"'{self._inputs[i].name}'" for i in sorted((n, other)))
                raise UserError(f"inputs {names} are updated in place, and share memory")
        ends = [end for _, end, _ in updated]
        for n in set(range(len(arrays))) - set(self.outputs.values()):
            begin, end = self._span(n, arrays[n])
            first = bisect_right(ends, begin)       # the first that ends behind its beginning
            if first < len(updated) and updated[first][0] < end:
                arrays[n] = arrays[n].copy() if isinstance(arrays[n], np.ndarray) else replace(arrays[n], shared=True)

    def _span(self, n: int, array: Any) -> tuple[int, int]:
        """Where the memory of an array begins and ends."""
        begin = address_of(array) if isinstance(array, np.ndarray) else int(array.pointer)
        return begin, begin + prod(array.shape) * DTYPE_BYTES[self._inputs[n].dtype]


def _problem(value: Any, array: Any, number: int) -> str:
    """Why what is written into `array` would not be in the caller's `value`; "" where it is."""
    if array is value and not array.flags.writeable:
        return "the array is read-only"
    if isinstance(value, np.ndarray):
        return "" if array is value else "the array is not contiguous (row-major): give np.ascontiguousarray(it)"
    if not hasattr(value, "__dlpack__"):
        return f"a {type(value).__name__} cannot be: give an array"
    if not isinstance(array, np.ndarray):
        return "" if array.device_id == number else f"the array is on GPU {array.device_id}, the model on {number}"
    copied = array.size and array.flags.owndata
    return "the array is not contiguous (row-major), or on another device" if copied else ""
