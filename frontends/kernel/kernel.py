"""``@xcc.kernel``: functions of Python that run once for each place of a grid."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from typing import Any

from xcc.diagnostics import UserError, listed
from xcc.frontends.kernel.arguments import bind, host_array, is_array, parameters_of
from xcc.frontends.kernel.eager import NumpyMachine
from xcc.frontends.kernel.machine import running, running_on
from xcc.frontends.kernel.specialise import Constant, Specialisation, difference, kinds_of, trace_program
from xcc.frontends.kernel.types import DTYPES, dtype_of
from xcc.frontends.kernel.view import View

__all__ = ["Kernel", "kernel"]

MODES = ("eager", "check")


class Kernel:
    """A function with ``@xcc.kernel``; ``k[grid](arguments)`` runs it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = function.__name__
        self.parameters = parameters_of(function)
        self._forms: dict[Any, Specialisation] = {}

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join(p.name for p in self.parameters)})>"

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """What launches the kernel on a grid: one to three numbers, or a function of the arguments by name."""
        return functools.partial(self._launch, grid)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """In another kernel: the function."""
        if running():
            return self.function(*arguments, **named)
        raise UserError(f"kernel '{self.name}' needs a grid: {self.name}[(instances,)](arguments)")

    def _launch(self, grid: Any, *arguments: Any, **named: Any) -> None:
        values = bind(self.name, self.parameters, arguments, named)
        sizes = self._grid(grid, values)
        mode = os.environ.get("XCC_KERNEL", "")
        if mode not in MODES:
            raise UserError(f"XCC_KERNEL is '{mode}': it can be {listed(MODES)}")
        try:
            if mode == "eager":
                self._run_eagerly(sizes, values)
            else:
                self._check(sizes, values)
        except UserError as e:
            raise e.with_traceback(None) from None

    @property
    def specialisations(self) -> list[Specialisation]:
        """The forms in which the kernel was compiled, each with the reason for it."""
        return list(self._forms.values())

    def _form(self, values: list[Any]) -> Specialisation:
        """The form for these arguments, traced where there is none; arrays are numpy's."""
        kinds = kinds_of(self.parameters, values)
        try:
            form = self._forms.get(kinds)
        except TypeError:
            given = ", ".join(repr(k.value) for k in kinds if isinstance(k, Constant))
            raise UserError(f"kernel '{self.name}': constants are compared, which {given} cannot be") from None
        if form is None:
            named = dict(zip((p.name for p in self.parameters), kinds, strict=True))
            form = Specialisation(self.name, named, difference(named, self.specialisations))
            form.program = trace_program(self.function, self.name, named)
            self._forms[kinds] = form
        return form

    def _check(self, grid: tuple[int, ...], values: list[Any]) -> None:
        from xcc.frontends.kernel.check import check

        given = [host_array(p.name, v) if not p.constant and is_array(v) else v
                 for p, v in zip(self.parameters, values, strict=True)]
        form = self._form(given)
        check(form.program, {n: v for (n, k), v in zip(form.kinds.items(), given, strict=True)
                             if not isinstance(k, Constant)}, grid)

    def _grid(self, grid: Any, values: list[Any]) -> tuple[int, ...]:
        if callable(grid):
            grid = grid({p.name: v for p, v in zip(self.parameters, values, strict=True)})
        sizes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        if not 1 <= len(sizes) <= 3 or any(not hasattr(n, "__index__") or n < 0 for n in sizes):
            raise UserError(f"kernel '{self.name}': the grid {grid!r} is not one to three numbers of 0 or more")
        return tuple(int(n) for n in sizes)

    def _run_eagerly(self, grid: tuple[int, ...], values: list[Any]) -> None:
        given = [self._eager(p.name, p.constant, v) for p, v in zip(self.parameters, values, strict=True)]
        for place in itertools.product(*(range(n) for n in reversed(grid))):
            with running_on(NumpyMachine(place[::-1], grid)):
                self.function(*given)

    @staticmethod
    def _eager(name: str, constant: bool, value: Any) -> Any:
        if constant or not is_array(value):
            return value
        array = host_array(name, value)
        return View(name, dtype_of(array.dtype) or DTYPES["f32"], array.ndim, array)


def kernel(function: Callable[..., Any]) -> Kernel:
    """Makes a kernel of a function, which reads blocks of arrays, computes and writes, once for each place of a grid.

    ::

        @xcc.kernel
        def add(x, y, z, BLOCK: xcc.constexpr):
            at = xcc.program_id(0) * BLOCK
            z.store(at, x.tile(at, BLOCK, other=0) + y.tile(at, BLOCK, other=0))

        add[(xcc.cdiv(n, 1024),)](x, y, z, BLOCK=1024)
    """
    return Kernel(function)
