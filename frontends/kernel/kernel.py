"""``@xcc.kernel``: functions of Python that run once for each place of a grid."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xcc.diagnostics import UserError, listed
from xcc.frontends.kernel.arguments import bind, called, described, host_array, is_array, parameters_of, rest_of
from xcc.frontends.kernel.declared import declared_sizes
from xcc.frontends.kernel.eager import NumpyMachine
from xcc.frontends.kernel.launching import REMEMBERED, Launch, found_as, known_as
from xcc.frontends.kernel.machine import no_result, running, running_on
from xcc.frontends.kernel.place import with_source
from xcc.frontends.kernel.repeating import Repeat, never
from xcc.frontends.kernel.specialise import (
    Constant,
    Specialisation,
    difference,
    is_small,
    kinds_of,
    named_sizes,
    trace_program,
)
from xcc.frontends.kernel.types import DTYPES, dtype_of
from xcc.frontends.kernel.view import View

if TYPE_CHECKING:
    from xcc.frontends.kernel.compiling import Stages
    from xcc.runtime.artifact import Artifact

__all__ = ["Kernel", "kernel"]

Grid = Callable[[dict[str, Any]], Any]
CONFIG = ("threads", "stages", "warpgroup", "persistent", "instances", "private", "resident")
MODES = ("eager", "check")
_VARIABLES: Mapping[str, str] = vars(os.environ)["_data"]
"""The environment as the system has it: to ask `os.environ` for one variable takes as long as the driver's launch."""
_MODE = os.environ.encodekey("XCC_KERNEL")


class Kernel:
    """A function with ``@xcc.kernel``; ``k[grid](arguments)`` runs it."""

    def __init__(self, function: Callable[..., Any], types: Mapping[str, str], grid: Grid | None,
                 config: Mapping[str, int], many: int | None = None) -> None:
        """`many`: how many arguments ``*xs`` has; None: as many as `types` names, without types each launch says it."""
        functools.update_wrapper(self, function)
        self.function, self.types, self.grid, self.config = function, types, grid, config
        for name in config:
            if name not in CONFIG:
                raise UserError(f"kernel '{function.__name__}': there is no '{name}' to choose: give {listed(CONFIG)}")
        self.name = function.__name__
        rest = rest_of(function)
        if rest is not None and many is None and types:
            many = next(n for n in itertools.count() if f"{rest[0]}_{n}" not in types)
        self._ahead = rest[1] if rest is not None and many is None else None     # of `*xs`, which launches decide about
        self._variants: dict[int, Kernel] = {}      # by how many `*xs` are
        self.parameters = parameters_of(function, many or 0)
        self._constant = [p.constant for p in self.parameters]
        self._forms: dict[Any, Specialisation] = {}
        self._launches: dict[Any, Launch] = {}
        self._repeat: Repeat = never        # of the launch before
        self._named: dict[Any, list[str]] = {}      # by what is given how: the parameters that have names, in order

    def __repr__(self) -> str:
        names = [p.name for p in self.parameters]
        if self._ahead is not None:
            names.insert(self._ahead, "*...")
        return f"<kernel {self.name}({', '.join(names)})>"

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """What launches the kernel on a grid: one to three numbers, or a function of the arguments by name."""
        return functools.partial(self._launch, grid)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Launches the kernel on the grid that its decorator gives; in another kernel: the function."""
        if running():
            return self.function(*arguments, **named)
        if self.grid is None:
            raise UserError(f"kernel '{self.name}' needs a grid: {self.name}[(instances,)](arguments)")
        return self._launch(self.grid, *arguments, **named)

    def _launch(self, grid: object, /, *arguments: object, **named: object) -> None:
        if self._ahead is not None:
            return self._variant(len(arguments) - self._ahead)._launch(grid, *arguments, **named)
        values = self._bound(arguments, named)
        mode = _VARIABLES.get(_MODE)
        try:
            if mode:
                self._in_numpy(os.environ.decodevalue(mode), self._grid(grid, values), values)
            elif not self._repeat(grid, values):
                self._launch_other(grid, values)
        except UserError as e:
            raise with_source(e).with_traceback(None) from None

    def _variant(self, many: int) -> Kernel:
        """The kernel of `many` arguments in the place of ``*xs``."""
        many = max(0, many)
        if many not in self._variants:
            self._variants[many] = Kernel(self.function, self.types, self.grid, self.config, many)
        return self._variants[many]

    def _launch_other(self, grid: object, values: Sequence[object]) -> None:
        """A launch that is not like the one before."""
        if not isinstance(grid, (int, tuple)):
            grid = self._grid(grid, values)
        key = (grid, *[(type(v), v) if c else (known_as.get(type(v)) or found_as)(v)
                       for c, v in zip(self._constant, values, strict=True)])
        try:
            launch = self._launches.get(key)
        except TypeError:       # a constant that cannot be compared, which is said where the form is looked for
            launch = None
        launch = launch or self._prepared(key, grid, values)
        launch(grid, values)
        self._repeat = launch.repeat

    def _bound(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """The arguments in the order of the parameters."""
        key = len(arguments), *named
        rest = self._named.get(key)
        if rest is None:
            values = bind(self.name, self.parameters, arguments, named)
            if len(arguments) + len(named) == len(values):      # nothing has its default
                self._named[key] = [p.name for p in self.parameters[len(arguments):]]
            return values
        return [*arguments, *[named[name] for name in rest]] if rest else arguments

    def _in_numpy(self, mode: str, grid: tuple[int, ...], values: Sequence[Any]) -> None:
        if mode not in MODES:
            raise UserError(f"XCC_KERNEL is '{mode}': it can be {listed(MODES)}, or not be set")
        (self._run_eagerly if mode == "eager" else self._check)(grid, values)

    def _prepared(self, key: Any, grid: Any, values: Sequence[Any]) -> Launch:
        """The launch of these arguments and those like them; the first of a form compiles it."""
        sizes = self._grid(grid, values)
        given = self._described(values)
        form = self._form(given, sizes)
        from xcc.frontends.kernel.compiling import loaded, place_of

        place = place_of(given)
        if place not in form.codes:
            form.codes[place] = loaded(form, *place)
        if len(self._launches) >= REMEMBERED:
            self._launches.clear()
        launch = self._launches[key] = Launch(form, form.codes[place], values, given, sizes)
        return launch

    @property
    def specialisations(self) -> list[Specialisation]:
        """The forms in which the kernel was compiled, each with the reason for it."""
        return [*self._forms.values(), *(form for k in self._variants.values() for form in k.specialisations)]

    def stages(self, target: str = "cpu", chip: str = "") -> Stages:
        """The IR after each stage, for a target, of the form that was launched last, else of the declared one."""
        from xcc.frontends.kernel import compiling
        from xcc.frontends.kernel.ahead import declared_program

        forms = self.specialisations
        return compiling.stages(forms[-1].program if forms else declared_program(self, {}), target, chip)

    def compile(self, target: str = "cpu", chip: str = "", **constants: Any) -> Artifact:
        """The artifact for the arguments that the decorator declares: ``save()`` writes it, ``xcc.load`` runs it.

        `constants` takes the place of defaults.
        """
        from xcc.frontends.kernel.ahead import declared_program
        from xcc.frontends.kernel.artifact import artifact_of
        from xcc.frontends.kernel.compiling import compiled
        from xcc.options import CompileOptions

        return artifact_of(compiled(declared_program(self, constants), CompileOptions.make(target, chip=chip)))

    def _form(self, values: Sequence[Any], grid: Sequence[int]) -> Specialisation:
        """The form for these arguments and grids such as this, traced where there is none; arrays are described."""
        kinds, small = kinds_of(self.parameters, values), is_small(values, grid)
        named, names = named_sizes(dict(zip((p.name for p in self.parameters), kinds, strict=True)), values, grid,
                                   declared_sizes(self.name, self.types))
        key = names, small, *named.values()
        try:
            form = self._forms.get(key)
        except TypeError:
            given = ", ".join(repr(k.value) for k in kinds if isinstance(k, Constant))
            raise UserError(f"kernel '{self.name}': constants are compared, which {given} cannot be: give tuples for "
                            "lists") from None
        if form is None:
            why = difference(named, names, small, self.specialisations)
            form = Specialisation(self.name, named, why, names, small)
            form.program = trace_program(self.function, self.name, named, self.config, names, small)
            self._forms[key] = form
        return form

    def _described(self, values: Sequence[Any]) -> list[Any]:
        """The arguments, arrays described."""
        return [described(p.name, v) if not p.constant and is_array(v) else v
                for p, v in zip(self.parameters, values, strict=True)]

    def _check(self, grid: tuple[int, ...], values: Sequence[Any]) -> None:
        from xcc.frontends.kernel.check import check

        given = [host_array(p.name, v) if not p.constant and is_array(v) else v
                 for p, v in zip(self.parameters, values, strict=True)]
        form = self._form(self._described(values), grid)
        check(form.program, {n: v for (n, k), v in zip(form.kinds.items(), given, strict=True)
                             if not isinstance(k, Constant)}, grid)

    def _grid(self, grid: Any, values: Sequence[Any]) -> tuple[int, ...]:
        if callable(grid):
            shaped = [described("", v) if is_array(v) and not hasattr(v, "shape") else v for v in values]
            grid = grid({p.name: v for p, v in zip(self.parameters, shaped, strict=True)})
        sizes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        if not 1 <= len(sizes) <= 3 or any(not hasattr(n, "__index__") or n < 0 for n in sizes):
            raise UserError(f"kernel '{self.name}': the grid {grid!r} is not one to three numbers of 0 or more")
        return tuple(int(n) for n in sizes)

    def _run_eagerly(self, grid: tuple[int, ...], values: Sequence[Any]) -> None:
        kinds_of(self.parameters, self._described(values))
        given = {p.name: self._eager(p.name, p.constant, v) for p, v in zip(self.parameters, values, strict=True)}
        for place in itertools.product(*(range(n) for n in reversed(grid))):
            with running_on(NumpyMachine(place[::-1], grid)):
                no_result(self.function, called(self.function, self.function, given))

    @staticmethod
    def _eager(name: str, constant: bool, value: Any) -> Any:
        if constant or not is_array(value):
            return value
        array = host_array(name, value)
        return View(name, dtype_of(array.dtype) or DTYPES["f32"], array.ndim, array)


def kernel(function: Callable[..., Any] | None = None, *, types: Mapping[str, str] | None = None,
           grid: Grid | None = None, config: Mapping[str, int] | None = None) -> Any:
    """Makes a kernel of a function, which reads blocks of arrays, computes and writes, once for each place of a grid.

    ::

        @xcc.kernel
        def add(x, y, z, BLOCK: xcc.constexpr):
            at = xcc.program_id(0) * BLOCK
            z.store(at, x.tile(at, BLOCK, other=0) + y.tile(at, BLOCK, other=0))

        add[(xcc.cdiv(n, 1024),)](x, y, z, BLOCK=1024)

    Args:
        types: what arguments are, for compilation ahead of time: ``{"x": "f32[m, n]", "slope": "float"}``. Launches
            of arrays whose sizes are the numbers that stand there are compiled for these.
        grid: makes the grid of the arguments by name, for launches and compilations without one:
            ``lambda a: (xcc.cdiv(a["x"].shape[0], a["BLOCK"]),)``.
        config: what the strategy is not to choose, on GPUs: ``{"threads": 256, "stages": 3}``, the threads of an
            instance and how many turns of a loop loads run ahead; ``persistent``, how many workgroups compute all
            instances of a product, one after the other; ``instances``, how many a workgroup has where a warp computes
            each; ``resident``, warps for which a core shall have registers; ``private``, bytes of a workgroup for
            copies of arrays that atomics update.
    """
    if function is None:
        return functools.partial(Kernel, types=types or {}, grid=grid, config=config or {})
    return Kernel(function, types or {}, grid, config or {})
