"""Launches like the one before, as Python code written out for their arguments: what to look at, and what to start.

Loops over arguments, keys to look up and functions for what devices do differently take longer than the driver does.
With an array of torch's, a constant and a number, on a CPU:

    def repeat(grid, values):
        [a0, a1, a2] = values
        if type(grid) is not kind or grid != sizes or type(a0) is not type0 or ...: return False
        p0 = a0.data_ptr()
        n2 = bits2(a2)
        with lock: function(p0, s0, n2)
        return True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, Protocol

import numpy as np

__all__ = ["Read", "Repeat", "Repeats", "Tensor", "never"]

Repeat = Callable[[object, Sequence[object]], bool]
Read = Callable[[Any], int]
"""What gives the code's number for an argument: an address, or the bits of a number."""


class Tensor(Protocol):
    """What is asked of torch's tensors."""

    dtype: object
    shape: tuple[int, ...]

    def stride(self) -> tuple[int, ...]: ...

    def is_contiguous(self) -> bool: ...

    def get_device(self) -> int: ...


def never(_grid: object, _values: Sequence[object]) -> bool:
    """Repeats nothing."""
    return False


class Repeats:
    """What tells the arguments of launches that are like one on `grid` with `count` arguments. `addresses` has the
    expressions of arrays' addresses, `numbers` those of numbers' bits by argument."""

    def __init__(self, grid: object, count: int) -> None:
        self._tests = ["type(grid) is not kind", "grid != sizes"]       # what is not to be true
        self._names: dict[str, object] = {"kind": type(grid), "sizes": grid}
        self._values = ", ".join(f"a{n}" for n in range(count))
        self._lines: list[str] = []
        self.addresses: list[str] = []
        self.numbers: dict[int, str] = {}

    def array(self, n: int, value: np.ndarray[Any, Any] | Tensor, read: Read | None, written: bool) -> None:
        """Argument `n`, an array of numpy or torch. `read` gives its address, None: nobody asks for it."""
        self._test(n, "type(a{n}) is not type{n}", "a{n}.dtype != dtype{n}", "a{n}.shape != shape{n}",
                   type=type(value), dtype=value.dtype, shape=tuple(value.shape))
        if isinstance(value, np.ndarray):
            self._test(n, "a{n}.strides != strides{n}", strides=value.strides)
            if written:
                self._test(n, "not a{n}.flags.writeable")
        elif value.is_contiguous():
            self._test(n, "not a{n}.is_contiguous()", "a{n}.get_device() != device{n}", device=value.get_device())
        else:
            self._test(n, "a{n}.stride() != strides{n}", "a{n}.get_device() != device{n}", strides=value.stride(),
                       device=value.get_device())
        if read is not None:
            self._names[f"read{n}"] = read
            self._lines.append(f"p{n} = " + (f"a{n}.data_ptr()" if hasattr(value, "data_ptr") else f"read{n}(a{n})"))
            self.addresses.append(f"p{n}")

    def number(self, n: int, value: object, bits: Read) -> None:
        """Argument `n`, a number, of which the code takes `bits`."""
        self._test(n, "type(a{n}) is not type{n}", type=type(value), bits=bits)
        self._lines.append(f"n{n} = bits{n}(a{n})")
        self.numbers[n] = f"n{n}"

    def constant(self, n: int, value: object) -> None:
        """Argument `n`, which the code was compiled for."""
        self._test(n, "a{n} is not value{n} and (type(a{n}) is not type{n} or a{n} != value{n})",
                   type=type(value), value=value)

    def repeat(self, start: Sequence[str], names: Mapping[str, object]) -> Repeat:
        """The code; `start`: the lines that start the launch and return True, `names`: what they name."""
        space: dict[str, Any] = {**self._names, **names}
        exec(_compiled("\n    ".join(["def repeat(grid, values):", f"[{self._values}] = values",
                                      f"if {' or '.join(self._tests)}: return False", *self._lines, *start])), space)
        made: Repeat = space.pop("repeat")      # else it and its names would be a cycle, and what they hold would stay
        return made

    def _test(self, n: int, *tests: str, **names: object) -> None:
        self._tests += [test.format(n=n) for test in tests]
        self._names |= {f"{name}{n}": value for name, value in names.items()}


@lru_cache(256)
def _compiled(code: str) -> CodeType:
    return compile(code, "<xcc repeat>", "exec")
