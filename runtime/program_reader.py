"""Reads a program from the JSON of an artifact; what it says is checked by xcc.runtime.program_checks.

A file may be damaged or hostile, so nothing is taken on trust; every fault is a UserError that names the place.
Sizes that depend on symbols are checked again by the executor once the symbols have values.
"""

from __future__ import annotations

import typing
from dataclasses import MISSING, fields
from functools import cache
from typing import Any

from xcc import symbolic
from xcc.runtime.program import (
    TAGS,
    Buffer,
    InputValue,
    Launch,
    Program,
    State,
    Statement,
)
from xcc.runtime.program_checks import check_program, fail
from xcc.symbolic import Dim

__all__ = ["program_from_json"]

_MAX_TEXT = 1 << 16
_MAX_INT = 1 << 62
_MAX_NESTING = 32


def program_from_json(data: Any) -> Program:
    """The program that ``to_json`` wrote; UserError when `data` is anything else."""
    p = _record(Program, data, "program", 0)
    assert isinstance(p, Program)
    check_program(p)
    return p


_hints = cache(typing.get_type_hints)


def _record(cls: type, data: Any, where: str, depth: int) -> Any:
    if not isinstance(data, dict):
        fail(where, f"expected an object, got {type(data).__name__}")
    if depth > _MAX_NESTING:
        fail(where, "nested too deep")
    hints = _hints(cls)
    known = {f.name: f for f in fields(cls)}
    for key in data:
        if key not in known and key != "op":
            fail(where, f"unknown key '{str(key)[:40]}'")
    values = {}
    for name, f in known.items():
        if name in data:
            values[name] = _value(hints[name], data[name], f"{where}.{name}", depth)
        elif f.default is MISSING and f.default_factory is MISSING:
            fail(where, f"'{name}' is missing")
    return cls(**values)


def _value(hint: Any, data: Any, where: str, depth: int) -> Any:
    if hint is int:
        return _int(data, where)
    if hint is bool:
        return data if isinstance(data, bool) else fail(where, f"expected true or false, got {str(data)[:40]!r}")
    if hint is str:
        return _text(data, where)
    if hint in (Buffer, InputValue, Launch, State):
        return _record(hint, data, where, depth + 1)
    if hint == Dim:
        return _dim(data, where)
    if hint == Statement:
        return _statement(data, where, depth)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return data if data in args else fail(where, f"'{str(data)[:40]}' is not one of {', '.join(args)}")
    if origin is tuple and args[-1] is Ellipsis:
        if not isinstance(data, list):
            fail(where, f"expected a list, got {type(data).__name__}")
        return tuple(_value(args[0], v, f"{where}[{i}]", depth) for i, v in enumerate(data))
    if origin is tuple:
        return _pair(data, where)
    if origin is dict:
        if not isinstance(data, dict):
            fail(where, f"expected an object, got {type(data).__name__}")
        return {_text(k, where): _pair(v, f"{where}.{k}") for k, v in data.items()}
    raise AssertionError(f"{where}: no reader for {hint}")


def _statement(data: Any, where: str, depth: int) -> Any:
    cls = TAGS.get(data.get("op", "")) if isinstance(data, dict) and isinstance(data.get("op"), str) else None
    return _record(cls, data, where, depth + 1) if cls else fail(where, "is not a statement")


def _int(data: Any, where: str) -> int:
    if not isinstance(data, int) or isinstance(data, bool) or abs(data) > _MAX_INT:
        fail(where, f"expected an integer, got {str(data)[:40]!r}")
    return data


def _text(data: Any, where: str) -> str:
    if not isinstance(data, str) or len(data) > _MAX_TEXT:
        fail(where, f"expected a text of at most {_MAX_TEXT} characters")
    return data


def _pair(data: Any, where: str) -> tuple[int, int]:
    if not isinstance(data, list) or len(data) != 2:
        fail(where, "expected a pair of integers")
    return _int(data[0], where), _int(data[1], where)


def _dim(data: Any, where: str) -> Dim:
    if not isinstance(data, str):
        return _int(data, where)
    text = _text(data, where)
    try:
        return symbolic.parse(text)
    except (ValueError, ZeroDivisionError, RecursionError) as e:
        fail(where, f"'{text[:60]}' is not a dimension ({type(e).__name__})")
