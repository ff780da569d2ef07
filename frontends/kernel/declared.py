"""What a kernel's decorator says of its arguments, for compilations without any: ``types={"x": "f32[m, n]"}``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.frontends.kernel.arguments import Parameter
from xcc.frontends.kernel.types import DTYPES

__all__ = ["Declared", "StandIn", "declared_of", "declared_sizes", "grid_of"]

_TYPE = re.compile(r"\s*(\w+)\s*(?:\[([^\]]*)\])?\s*")
_NUMBERS = {"int": "i64", "float": "f64"}


@dataclass(frozen=True)
class Declared:
    """A declared argument; a number has no `shape`. A size is a number or the name of a symbol."""

    dtype: str
    shape: tuple[int | str, ...] | None


@dataclass(frozen=True)
class StandIn:
    """What a grid's function gets for an array of which the sizes are symbols."""

    shape: tuple[Any, ...]


def declared_of(kernel: str, parameters: Sequence[Parameter], types: Mapping[str, str],
                fixed: Mapping[str, Any]) -> tuple[dict[str, Declared], dict[str, Any]]:
    """The arguments and the constants; `fixed` gives values for constants. UserError for what nothing is said of."""
    arguments: dict[str, Declared] = {}
    constants: dict[str, Any] = {}
    names = [p.name for p in parameters]
    for name in (*types, *fixed):
        if name not in names:
            raise UserError(f"kernel '{kernel}' has no parameter '{name}': it has {', '.join(names)}")
    for p in parameters:
        value = fixed.get(p.name, p.default)
        if p.name in fixed or p.constant:
            if value is inspect.Parameter.empty:
                raise UserError(f"kernel '{kernel}': the constant '{p.name}' has no value: give the parameter a "
                                f"default, or --fix {p.name}=VALUE")
            constants[p.name] = value
        elif p.name in types:
            arguments[p.name] = _parsed(kernel, p.name, types[p.name])
        else:
            raise UserError(f"kernel '{kernel}': nothing says what '{p.name}' is: give @xcc.kernel("
                            f"types={{'{p.name}': 'f32[m, n]', ...}}, grid=...)")
    return arguments, constants


def declared_sizes(kernel: str, types: Mapping[str, str]) -> dict[str, tuple[int | str, ...]]:
    """The sizes of the arrays that are declared, numbers or names of symbols."""
    return {n: shape for n, t in types.items() if (shape := _parsed(kernel, n, t).shape) is not None}


def _parsed(kernel: str, name: str, text: str) -> Declared:
    found = _TYPE.fullmatch(text)
    dtype = _NUMBERS.get(found[1], found[1]) if found else ""
    if found is None or dtype not in DTYPES or (found[2] is not None and not found[2].strip()):
        raise UserError(f"kernel '{kernel}': '{name}' is declared as '{text}': give an element type and sizes, as in "
                        "'f32[m, 64]', or 'int', 'float' or an element type for a number")
    if found[2] is None:
        return Declared(dtype, None)
    sizes = [s.strip() for s in found[2].split(",") if s.strip()]
    for s in sizes:
        if not s.isdecimal() and not s.isidentifier():
            raise UserError(f"kernel '{kernel}': '{name}' is declared as '{text}': '{s}' is neither a number nor a "
                            "name")
    return Declared(dtype, tuple(int(s) if s.isdecimal() else s for s in sizes))


def grid_of(kernel: str, grid: Callable[[dict[str, Any]], Any] | None, arguments: Mapping[str, Declared],
            constants: Mapping[str, Any]) -> tuple[str, ...]:
    """The grid as expressions of the declared sizes."""
    if grid is None:
        raise UserError(f"kernel '{kernel}': nothing says what its grid is: give @xcc.kernel(types=..., "
                        "grid=lambda a: (a['x'].shape[0],))")
    given = {n: StandIn(tuple(d if isinstance(d, int) else symbolic.sym(d) for d in a.shape))
             for n, a in arguments.items() if a.shape is not None}
    try:
        made = grid({**given, **constants})
    except KeyError as e:
        raise UserError(f"kernel '{kernel}': the grid is made of {e}, which is no array and no constant") from None
    sizes = tuple(made) if isinstance(made, (tuple, list)) else (made,)
    return tuple(str(s) for s in sizes)
