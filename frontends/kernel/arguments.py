"""What a kernel is called with: arrays of numpy, torch and others, numbers, and constants of the compilation."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcc.diagnostics import UserError
from xcc.frontends.kernel.types import dtype_of
from xcc.runtime.dlpack import CPU, ON_HOST, import_dlpack, to_numpy

__all__ = ["Array", "Parameter", "bind", "called", "constexpr", "described", "host_array", "is_array", "parameters_of",
           "rest_of"]


class constexpr:
    """The annotation of a parameter that is known when a kernel is compiled: a size of tiles, a flag, a function."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel's function."""

    name: str
    constant: bool
    default: Any = inspect.Parameter.empty


def parameters_of(function: Callable[..., Any], many: int = 0) -> tuple[Parameter, ...]:
    """The parameters, of ``*xs`` `many`: xs_0, xs_1, ...; UserError for kinds that a kernel cannot have."""
    found = []
    for p in inspect.signature(function).parameters.values():
        if p.kind in (p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            what = f"'{p.name}' in front of '/'" if p.kind == p.POSITIONAL_ONLY else f"**{p.name}"
            raise UserError(f"kernel '{function.__name__}': {what} is no parameter of a kernel: name each argument")
        names = _names(p.name, many) if p.kind == p.VAR_POSITIONAL else [p.name]
        found += [Parameter(n, _is_constexpr(p.annotation), p.default) for n in names]
    twice = [p.name for i, p in enumerate(found) if p.name in [q.name for q in found[:i]]]
    if twice:
        rest = twice[0].rpartition("_")[0]
        raise UserError(f"kernel '{function.__name__}': '{twice[0]}' is what an argument of *{rest} is called: give "
                        "the parameter another name")
    return tuple(found)


def rest_of(function: Callable[..., object]) -> tuple[str, int] | None:
    """Of ``f(a, b, *xs)`` what xs is called, and how many are in front of it; None where there is no such parameter."""
    kinds = [(p.name, p.kind) for p in inspect.signature(function).parameters.values()]
    return next(((n, i) for i, (n, kind) in enumerate(kinds) if kind == inspect.Parameter.VAR_POSITIONAL), None)


def called(function: Callable[..., object], own: Callable[..., object], values: Mapping[str, object]) -> object:
    """What `own`, a form of `function`, gives for the values of its parameters by name."""
    rest = rest_of(function)
    if rest is None:
        return own(**values)
    ahead = list(inspect.signature(function).parameters)[:rest[1]]
    many = next(n for n in itertools.count() if _names(rest[0], n + 1)[-1] not in values)
    first = [*ahead, *_names(rest[0], many)]
    return own(*(values[n] for n in first), **{n: v for n, v in values.items() if n not in first})


def _names(rest: str, many: int) -> list[str]:
    return [f"{rest}_{i}" for i in range(many)]


def _is_constexpr(annotation: Any) -> bool:
    """Also as text, which it is behind ``from __future__ import annotations``."""
    return annotation is constexpr or (isinstance(annotation, str) and annotation.split(".")[-1] == constexpr.__name__)


def bind(name: str, parameters: Sequence[Parameter], given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """The arguments in the order of the parameters."""
    if len(given) > len(parameters):
        raise UserError(f"kernel '{name}' takes {len(parameters)} arguments, not {len(given)}")
    known = {p.name for p in parameters}
    for key in named:
        if key not in known:
            raise UserError(f"kernel '{name}' has no parameter '{key}': it has {', '.join(p.name for p in parameters)}")
    values = list(given)
    for i, p in enumerate(parameters):
        if i < len(given):
            if p.name in named:
                raise UserError(f"kernel '{name}': '{p.name}' is given twice")
            continue
        value = named.get(p.name, p.default)
        if value is inspect.Parameter.empty:
            raise UserError(f"kernel '{name}': the argument '{p.name}' is missing")
        values.append(value)
    return values


def is_array(value: Any) -> bool:
    """Whether it is an array of some library."""
    return isinstance(value, np.ndarray) or hasattr(value, "__dlpack__") and not isinstance(value, np.generic)


@dataclass(frozen=True)
class Array:
    """What is known of an array argument, wherever it lies. `strides` are in elements; `device` is DLPack's type and
    number."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: tuple[int, int] = (CPU, 0)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def described(name: str, value: Any) -> Array:
    """What is known of an array; UserError for one that kernels cannot take."""
    if not isinstance(value, np.ndarray):
        t = import_dlpack(value)
        if t.device not in ON_HOST:
            return _of_some_dims(name, Array(t.dtype, t.shape, t.strides, (t.device, t.device_id)))
    array = host_array(name, value)
    dtype = dtype_of(array.dtype)
    assert dtype is not None
    return _of_some_dims(name, Array(dtype.name, array.shape, tuple(s // array.itemsize for s in array.strides)))


def _of_some_dims(name: str, array: Array) -> Array:
    if not array.shape:
        raise UserError(f"the argument '{name}' is an array of no dims: give {name}.reshape(1), whose element is at 0, "
                        f"or the number that it holds, {name}.item()")
    return array


def host_array(name: str, value: Any) -> Any:
    """An array as one of numpy that shares its memory; UserError where that cannot be."""
    array = value if isinstance(value, np.ndarray) else to_numpy(import_dlpack(value))
    if dtype_of(array.dtype) is None or not array.dtype.isnative:
        raise UserError(f"the argument '{name}' is an array of {array.dtype}, which kernels have no type for")
    if any(s % array.itemsize for s in array.strides):
        raise UserError(f"the argument '{name}' has strides of {array.strides} bytes, no multiples of its elements' "
                        f"{array.itemsize}: give a copy")
    return array
