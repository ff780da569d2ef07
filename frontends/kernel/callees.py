"""What a call in a kernel calls: functions of the user's are traced like the kernel itself."""

from __future__ import annotations

import builtins
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any

from xcc.frontends.kernel.functions import maximum, minimum
from xcc.frontends.kernel.machine import machine
from xcc.frontends.kernel.place import error
from xcc.frontends.kernel.tile import Tile, as_tile, convert, is_number
from xcc.frontends.kernel.types import NUMBER_INT

__all__ = ["DeviceRange", "callee"]

_XCC = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


class DeviceRange:
    """``range`` in a kernel: a loop over it is one of the program, not unrolled."""

    def __init__(self, first: Any, stop: Any = None, step: Any = 1) -> None:
        self._bounds = (0, first, step) if stop is None else (first, stop, step)
        for b in self._bounds:
            if (is_number(b) and isinstance(b, float)) or (isinstance(b, Tile) and (b.shape or not b.dtype.is_integer)):
                raise error(f"a range is bounded by integers, not by {b.type if isinstance(b, Tile) else b}")
        if is_number(step) and step == 0:
            raise error("the step is 0")
        self._down = is_number(step) and step < 0

    @property
    def known(self) -> bool:
        """Whether the bounds are numbers."""
        return all(not isinstance(b, Tile) for b in self._bounds)

    def bounds(self) -> tuple[Tile, Tile, Tile]:
        """Begin, end and step of the program's loop, which counts upwards: downwards it counts the turns."""
        first, stop, step = self._bounds
        bounds = (0, (first - stop - step - 1) // -step, 1) if self._down else self._bounds
        low, high, by = (convert(as_tile(b), NUMBER_INT.dtype) for b in bounds)
        return low, high, by

    def element(self, counter: Tile) -> Tile:
        """The range's element where the loop's counter is `counter`."""
        return self._bounds[0] + counter * self._bounds[2] if self._down else counter

    def __reversed__(self) -> DeviceRange:
        first, stop, step = self._bounds
        if not is_number(step):
            raise error("the step of a range that is gone through from its end is to be known when the kernel is "
                        "compiled")
        turns = (stop - first + step - (-1 if self._down else 1)) // step
        return DeviceRange(first + (maximum(turns, 0) - 1) * step, first - step, -step)

    def __iter__(self) -> Iterator[int]:
        if not self.known:
            raise error("how long this range is is known when the kernel runs: go through it with a for statement")
        return iter(range(*self._bounds))

    def __len__(self) -> int:
        return len(list(iter(self)))


def callee(function: Any) -> Any:
    """What is called in place of `function`."""
    own = _OWN.get(function) if isinstance(function, type) or inspect.isbuiltin(function) else None
    if own is not None:
        return own
    if isinstance(function, MethodType) and _is_users(function.__func__):
        return MethodType(traced(function.__func__), function.__self__)
    inner = getattr(function, "function", None)     # of a kernel
    if isinstance(inner, FunctionType) and hasattr(function, "parameters"):
        function = inner
    return traced(function) if _is_users(function) else function


def traced(function: Any) -> Any:
    """A function of the user's with its control flow as calls."""
    from xcc.frontends.kernel import control
    from xcc.frontends.kernel.transform import RUNTIME, transformed

    return function if RUNTIME in function.__code__.co_freevars else transformed(function, control)


def _is_users(function: Any) -> bool:
    """Whether it is written in Python, and neither xcc's nor of a library."""
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
        return False
    code = function.__code__
    top = (function.__module__ or "").split(".")[0]
    return not (code.co_filename.startswith(_XCC + os.sep + "frontends") or "site-packages" in code.co_filename
                or top in sys.stdlib_module_names or code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE))


def _extreme(own: Callable[..., Any], of_two: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def apply(*values: Any, **named: Any) -> Any:
        if len(values) > 1 and any(isinstance(v, Tile) for v in values):
            return functools.reduce(of_two, values)
        return own(*values, **named)

    return apply


def _print(*values: Any, **named: Any) -> None:
    """``print``: of tiles when the kernel runs, else when it is compiled."""
    if not any(isinstance(v, Tile) for v in values):
        builtins.print(*values, **named)
        return
    label = " ".join(str(v) for v in values if not isinstance(v, Tile))
    for v in values:
        if isinstance(v, Tile):
            machine().show(label, v)


_OWN: dict[Any, Any] = {range: DeviceRange, builtins.print: _print, builtins.min: _extreme(builtins.min, minimum),
                        builtins.max: _extreme(builtins.max, maximum)}
