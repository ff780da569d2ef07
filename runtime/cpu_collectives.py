"""Collectives of a CPU model: what its native code calls."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from xcc.runtime.collectives import Communicate
from xcc.runtime.dtypes import numpy_dtype
from xcc.runtime.program import Collective, Program

__all__ = ["FAILED", "CollectiveCalls"]

FAILED = -1         # status of a function whose collective failed
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


class CollectiveCalls:
    """Executes the collectives of `program`, by their places among `statements`, for the code in `library`.

    `ranks`: how many ranks the group of each has.
    """

    def __init__(self, program: Program, statements: Sequence[Collective], communicate: Communicate,
                 ranks: Sequence[int], library: Any) -> None:
        calls = [(s, numpy_dtype(program.buffers[s.source].dtype), n) for s, n in zip(statements, ranks, strict=True)]
        errors: list[BaseException] = []

        def call(n: int, source: int, target: int, size: int) -> int:
            s, dtype, count = calls[n]
            written = size * count if s.kind == "all_gather" else size // count if s.kind == "reduce_scatter" else size
            try:
                communicate(s, _array(source, size, dtype), _array(target, written, dtype))
            except BaseException as e:      # native code cannot pass it on
                errors.append(e)
                return FAILED
            return 0

        self._errors = errors
        self._function = _FUNCTION(call)    # nothing that it holds refers back to it
        variable = ctypes.c_void_p.in_dll(library, "xcc_communicate")
        variable.value = ctypes.c_void_p.from_buffer(self._function).value

    def failure(self) -> BaseException:
        """What the collective that failed raised."""
        return self._errors.pop()


def _array(address: int, size: int, dtype: Any) -> np.ndarray[Any, Any]:
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(memory, dtype) if size else np.empty(0, dtype)
