"""Checks a program that was read: indices, dtypes, symbols, names, in the order in which they are defined."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable
from typing import Any

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime.arena import touched
from xcc.runtime.collective_checks import collective_problem
from xcc.runtime.program import (
    DTYPE_BYTES,
    VALUE_TYPES,
    BindSymbol,
    Collective,
    For,
    If,
    Launch,
    Program,
    Require,
    SetScalar,
    Statement,
    While,
)
from xcc.runtime.update_checks import update_problem
from xcc.symbolic import Dim

__all__ = ["check_program", "fail"]

_KERNEL = re.compile(r"[A-Za-z_][\w.$]*")


def check_program(p: Program) -> None:
    """UserError, with the place, where `p` is no program that an executor can run."""
    _check_buffers(p)
    bound = set(p.symbols)
    _check_values(p)
    for d in (d for b in p.inputs for d in p.buffers[b].shape):
        _check_dim(d, bound, "program: an input's shape")
    for pair in p.equal:
        if len(pair) != 2:
            fail("program.equal", f"a pair has {len(pair)} dims")
        for d in pair:
            _check_dim(d, bound, "program.equal")
    _check_setup(p)
    _check_body(p, p.body, bound, "program.body")
    if problem := update_problem(p):
        fail(*problem)
    known = bound | set(_defined(p.body))
    for i, b in enumerate(p.buffers):
        for d in (*b.shape, b.offset):
            _check_dim(d, known, f"program.buffers[{i}]")


def fail(where: str, what: str) -> typing.NoReturn:
    """The error of the place `where`."""
    raise UserError(f"{where}: {what}")


def _check_buffers(p: Program) -> None:
    for i, b in enumerate(p.buffers):
        where = f"program.buffers[{i}]"
        if b.dtype not in DTYPE_BYTES:
            fail(where, f"unknown dtype '{b.dtype}'")
        if any(isinstance(d, int) and d < 0 for d in (*b.shape, b.offset)):
            fail(where, "has a negative dimension or offset")
        if b.kind == "alias":
            if not 0 <= b.base < i:
                fail(where, f"aliases buffer {b.base}, which does not come before it")
            size, room = p.nbytes(i) + b.offset, p.nbytes(b.base)
            if isinstance(size, int) and isinstance(room, int) and size > room:
                fail(where, f"reaches {size - room} bytes past the end of buffer {b.base}")
        elif b.kind in ("input", "output", "weight") and not b.name:
            fail(where, f"{b.kind} without a name")
        elif b.kind in ("kept", "state") and not symbolic.is_static(b.shape):
            fail(where, f"is {b.kind}, but its shape is not known when the model is loaded")
    updated = {output for output, _ in p.updates}
    for kind, indices in (("input", p.inputs), ("output", p.outputs)):
        for i in indices:
            _check_index(p, i, f"program.{kind}s")
            if p.buffers[i].kind != kind and i not in updated:
                fail(f"program.{kind}s", f"buffer {i} is of kind {p.buffers[i].kind}")


def _check_index(p: Program, i: int, where: str) -> None:
    if not 0 <= i < len(p.buffers):
        fail(where, f"there is no buffer {i}")


def _check_dim(d: Dim, bound: set[str], where: str) -> None:
    missing = [s for s in symbolic.symbols_of(d) if s not in bound]
    if missing:
        fail(where, f"symbol '{missing[0]}' has no value")


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
                fail(where, f"buffer {b} is neither a weight nor kept")
        _check_launch(p, s, set(), where)


def _check_values(p: Program) -> None:
    """Each value is an integer that an input certainly has."""
    for i, v in enumerate(p.values):
        where = f"program.values[{i}]"
        if v.name not in p.symbols:
            fail(where, f"'{v.name[:40]}' is none of the program's symbols")
        if v.source not in p.inputs:
            fail(where, f"buffer {v.source} is no input")
        b = p.buffers[v.source]
        count = symbolic.product(b.shape)
        if b.dtype not in VALUE_TYPES or not isinstance(count, int) or not 0 <= v.index < count:
            fail(where, f"there is no integer {v.index} in buffer {v.source}")


def _check_launch(p: Program, s: Launch, bound: set[str], where: str) -> None:
    if not _KERNEL.fullmatch(s.kernel):
        fail(where, f"'{s.kernel[:40]}' is not a kernel name")
    if len(s.grid) > 3 or len(s.block) > 3 or s.shared_bytes < 0:
        fail(where, "has a bad launch geometry")
    for d in (*s.symbols, *s.grid):
        _check_dim(d, bound, where)


def _check_scalars(p: Program, s: SetScalar, bound: set[str], where: str) -> None:
    for d in s.values:
        _check_dim(d, bound, where)
    if p.nbytes(s.target) != len(s.values) * DTYPE_BYTES[p.buffers[s.target].dtype]:
        fail(where, f"writes {len(s.values)} values to a buffer of another size")


def _check_bind(p: Program, s: BindSymbol, bound: set[str], where: str) -> None:
    if "i" not in p.buffers[s.source].dtype or s.index < 0:
        fail(where, "does not read an integer buffer")
    count = symbolic.product(p.buffers[s.source].shape)
    if isinstance(count, int) and s.index >= count:
        fail(where, f"reads element {s.index} of {count}")
    _check_dim(s.limit, bound, where)
    bound.add(s.name)


def _check_require(p: Program, s: Require, bound: set[str], where: str) -> None:
    for d in (s.left, s.right):
        _check_dim(d, bound, where)


def _check_for(p: Program, s: For, bound: set[str], where: str) -> None:
    _check_dim(s.trips, bound, where)
    if s.counter in bound:
        fail(where, f"the counter '{s.counter}' is taken")


def _check_condition(p: Program, s: If | While, bound: set[str], where: str) -> None:
    if symbolic.product(p.buffers[s.condition].shape) != 1:
        fail(where, f"buffer {s.condition} is no scalar condition")


def _check_collective(p: Program, s: Collective, bound: set[str], where: str) -> None:
    if problem := collective_problem(p, s):
        fail(where, problem)


_CHECKS: dict[type, Callable[[Program, Any, set[str], str], None]] = {
    Launch: _check_launch, SetScalar: _check_scalars, BindSymbol: _check_bind, Require: _check_require,
    Collective: _check_collective, For: _check_for, If: _check_condition, While: _check_condition}
