"""Reads a program from the JSON of an artifact and checks it: indices, dtypes, symbols, names, nesting.

A file may be damaged or hostile, so nothing is taken on trust; every fault is a UserError that names the place.
Sizes that depend on symbols are checked again by the executor once the symbols have values.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import cache
from typing import Any

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime.arena import touched
from xcc.runtime.collective_checks import collective_problem
from xcc.runtime.program import (
    DTYPE_BYTES,
    TAGS,
    VALUE_TYPES,
    BindSymbol,
    Buffer,
    Collective,
    For,
    If,
    InputValue,
    Launch,
    Program,
    Require,
    SetScalar,
    State,
    Statement,
    While,
)
from xcc.runtime.update_checks import update_problem
from xcc.symbolic import Dim

__all__ = ["program_from_json"]

_MAX_TEXT = 4096
_MAX_INT = 1 << 62
_MAX_NESTING = 32
_KERNEL = re.compile(r"[A-Za-z_][\w.$]*")


def program_from_json(data: Any) -> Program:
    """The program that ``to_json`` wrote; UserError when `data` is anything else."""
    p = _record(Program, data, "program", 0)
    assert isinstance(p, Program)
    _check_buffers(p)
    bound = set(p.symbols)
    _check_values(p)
    for d in (d for b in p.inputs for d in p.buffers[b].shape):
        _check_dim(d, bound, "program: an input's shape")
    for pair in p.equal:
        if len(pair) != 2:
            _fail("program.equal", f"a pair has {len(pair)} dims")
        for d in pair:
            _check_dim(d, bound, "program.equal")
    _check_setup(p)
    _check_body(p, p.body, bound, "program.body")
    if problem := update_problem(p):
        _fail(*problem)
    known = bound | set(_defined(p.body))
    for i, b in enumerate(p.buffers):
        for d in (*b.shape, b.offset):
            _check_dim(d, known, f"program.buffers[{i}]")
    return p


def _fail(where: str, what: str) -> typing.NoReturn:
    raise UserError(f"{where}: {what}")


_hints = cache(typing.get_type_hints)


def _record(cls: type, data: Any, where: str, depth: int) -> Any:
    if not isinstance(data, dict):
        _fail(where, f"expected an object, got {type(data).__name__}")
    if depth > _MAX_NESTING:
        _fail(where, "nested too deep")
    hints = _hints(cls)
    known = {f.name: f for f in fields(cls)}
    for key in data:
        if key not in known and key != "op":
            _fail(where, f"unknown key '{str(key)[:40]}'")
    values = {}
    for name, f in known.items():
        if name in data:
            values[name] = _value(hints[name], data[name], f"{where}.{name}", depth)
        elif f.default is MISSING and f.default_factory is MISSING:
            _fail(where, f"'{name}' is missing")
    return cls(**values)


def _value(hint: Any, data: Any, where: str, depth: int) -> Any:
    if hint is int:
        return _int(data, where)
    if hint is bool:
        return data if isinstance(data, bool) else _fail(where, f"expected true or false, got {str(data)[:40]!r}")
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
        return data if data in args else _fail(where, f"'{str(data)[:40]}' is not one of {', '.join(args)}")
    if origin is tuple and args[-1] is Ellipsis:
        if not isinstance(data, list):
            _fail(where, f"expected a list, got {type(data).__name__}")
        return tuple(_value(args[0], v, f"{where}[{i}]", depth) for i, v in enumerate(data))
    if origin is tuple:
        return _pair(data, where)
    if origin is dict:
        if not isinstance(data, dict):
            _fail(where, f"expected an object, got {type(data).__name__}")
        return {_text(k, where): _pair(v, f"{where}.{k}") for k, v in data.items()}
    raise AssertionError(f"{where}: no reader for {hint}")


def _statement(data: Any, where: str, depth: int) -> Any:
    cls = TAGS.get(data.get("op", "")) if isinstance(data, dict) and isinstance(data.get("op"), str) else None
    return _record(cls, data, where, depth + 1) if cls else _fail(where, "is not a statement")


def _int(data: Any, where: str) -> int:
    if not isinstance(data, int) or isinstance(data, bool) or abs(data) > _MAX_INT:
        _fail(where, f"expected an integer, got {str(data)[:40]!r}")
    return data


def _text(data: Any, where: str) -> str:
    if not isinstance(data, str) or len(data) > _MAX_TEXT:
        _fail(where, f"expected a text of at most {_MAX_TEXT} characters")
    return data


def _pair(data: Any, where: str) -> tuple[int, int]:
    if not isinstance(data, list) or len(data) != 2:
        _fail(where, "expected a pair of integers")
    return _int(data[0], where), _int(data[1], where)


def _dim(data: Any, where: str) -> Dim:
    if not isinstance(data, str):
        return _int(data, where)
    text = _text(data, where)
    try:
        return symbolic.parse(text)
    except (ValueError, ZeroDivisionError, RecursionError) as e:
        _fail(where, f"'{text[:60]}' is not a dimension ({type(e).__name__})")


def _check_buffers(p: Program) -> None:
    for i, b in enumerate(p.buffers):
        where = f"program.buffers[{i}]"
        if b.dtype not in DTYPE_BYTES:
            _fail(where, f"unknown dtype '{b.dtype}'")
        if any(isinstance(d, int) and d < 0 for d in (*b.shape, b.offset)):
            _fail(where, "has a negative dimension or offset")
        if b.kind == "alias":
            if not 0 <= b.base < i:
                _fail(where, f"aliases buffer {b.base}, which does not come before it")
            size, room = p.nbytes(i) + b.offset, p.nbytes(b.base)
            if isinstance(size, int) and isinstance(room, int) and size > room:
                _fail(where, f"reaches {size - room} bytes past the end of buffer {b.base}")
        elif b.kind in ("input", "output", "weight") and not b.name:
            _fail(where, f"{b.kind} without a name")
        elif b.kind in ("kept", "state") and not symbolic.is_static(b.shape):
            _fail(where, f"is {b.kind}, but its shape is not known when the model is loaded")
    updated = {output for output, _ in p.updates}
    for kind, indices in (("input", p.inputs), ("output", p.outputs)):
        for i in indices:
            _check_index(p, i, f"program.{kind}s")
            if p.buffers[i].kind != kind and i not in updated:
                _fail(f"program.{kind}s", f"buffer {i} is of kind {p.buffers[i].kind}")


def _check_index(p: Program, i: int, where: str) -> None:
    if not 0 <= i < len(p.buffers):
        _fail(where, f"there is no buffer {i}")


def _check_dim(d: Dim, bound: set[str], where: str) -> None:
    missing = [s for s in symbolic.symbols_of(d) if s not in bound]
    if missing:
        _fail(where, f"symbol '{missing[0]}' has no value")


def _defined(body: tuple[Statement, ...]) -> list[str]:
    out: list[str] = []
    for s in body:
        if isinstance(s, BindSymbol):
            out.append(s.name)
        elif isinstance(s, For):
            out.append(s.counter)
        for nested in _nested(s):
            out += _defined(nested)
    return out


def _nested(s: Statement) -> tuple[tuple[Statement, ...], ...]:
    if isinstance(s, If):
        return s.then, s.orelse
    if isinstance(s, While):
        return s.before, s.body
    return (s.body,) if isinstance(s, For) else ()


def _check_body(p: Program, body: tuple[Statement, ...], bound: set[str], where: str) -> None:
    """Checks statements in order; `bound` grows with the symbols that they define."""
    for i, s in enumerate(body):
        here = f"{where}[{i}]"
        for b in touched(s):
            _check_index(p, b, here)
        if (check := _CHECKS.get(type(s))) is not None:
            check(p, s, bound, here)
        for nested in _nested(s):
            _check_body(p, nested, bound | {s.counter} if isinstance(s, For) else bound, here)


def _check_setup(p: Program) -> None:
    for i, s in enumerate(p.setup):
        where = f"program.setup[{i}]"
        for b in s.buffers:
            _check_index(p, b, where)
            if p.buffers[p.root(b)].kind not in ("weight", "kept"):
                _fail(where, f"buffer {b} is neither a weight nor kept")
        _check_launch(p, s, set(), where)


def _check_values(p: Program) -> None:
    """Each value is an integer that an input certainly has."""
    for i, v in enumerate(p.values):
        where = f"program.values[{i}]"
        if v.name not in p.symbols:
            _fail(where, f"'{v.name[:40]}' is none of the program's symbols")
        if v.source not in p.inputs:
            _fail(where, f"buffer {v.source} is no input")
        b = p.buffers[v.source]
        count = symbolic.product(b.shape)
        if b.dtype not in VALUE_TYPES or not isinstance(count, int) or not 0 <= v.index < count:
            _fail(where, f"there is no integer {v.index} in buffer {v.source}")


def _check_launch(p: Program, s: Launch, bound: set[str], where: str) -> None:
    if not _KERNEL.fullmatch(s.kernel):
        _fail(where, f"'{s.kernel[:40]}' is not a kernel name")
    if len(s.grid) > 3 or len(s.block) > 3 or s.shared_bytes < 0:
        _fail(where, "has a bad launch geometry")
    for d in (*s.symbols, *s.grid):
        _check_dim(d, bound, where)


def _check_scalars(p: Program, s: SetScalar, bound: set[str], where: str) -> None:
    for d in s.values:
        _check_dim(d, bound, where)
    if p.nbytes(s.target) != len(s.values) * DTYPE_BYTES[p.buffers[s.target].dtype]:
        _fail(where, f"writes {len(s.values)} values to a buffer of another size")


def _check_bind(p: Program, s: BindSymbol, bound: set[str], where: str) -> None:
    if "i" not in p.buffers[s.source].dtype or s.index < 0:
        _fail(where, "does not read an integer buffer")
    count = symbolic.product(p.buffers[s.source].shape)
    if isinstance(count, int) and s.index >= count:
        _fail(where, f"reads element {s.index} of {count}")
    _check_dim(s.limit, bound, where)
    bound.add(s.name)


def _check_require(p: Program, s: Require, bound: set[str], where: str) -> None:
    for d in (s.left, s.right):
        _check_dim(d, bound, where)


def _check_for(p: Program, s: For, bound: set[str], where: str) -> None:
    _check_dim(s.trips, bound, where)
    if s.counter in bound:
        _fail(where, f"the counter '{s.counter}' is taken")


def _check_condition(p: Program, s: If | While, bound: set[str], where: str) -> None:
    if symbolic.product(p.buffers[s.condition].shape) != 1:
        _fail(where, f"buffer {s.condition} is no scalar condition")


def _check_collective(p: Program, s: Collective, bound: set[str], where: str) -> None:
    if problem := collective_problem(p, s):
        _fail(where, problem)


_CHECKS: dict[type, Callable[[Program, Any, set[str], str], None]] = {
    Launch: _check_launch, SetScalar: _check_scalars, BindSymbol: _check_bind, Require: _check_require,
    Collective: _check_collective, For: _check_for, If: _check_condition, While: _check_condition}
