"""Where in the user's source an operation stands, and errors that show the line."""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from types import CodeType, FrameType

from xcc.diagnostics import SourceError, UserError

__all__ = ["NoAttribute", "Place", "error", "here", "no_attribute", "place_at", "raised_at", "standing_at",
           "with_source"]

_HERE = os.path.dirname(__file__)
_KNOWN: dict[tuple[CodeType, int], Place] = {}
_FIXED: ContextVar[Place | None] = ContextVar("place", default=None)


@dataclass(frozen=True)
class Place:
    """A range of the source. Lines and columns count from 1; `end` is the column behind the last one, on `line`."""

    file: str
    line: int
    column: int
    end: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def shown(self) -> str:
        """The line with a caret under the range; "" where the source cannot be read."""
        text = linecache.getline(self.file, self.line).rstrip()
        if not text:
            return ""
        begin = self.column - 1
        marks = "^" + "~" * (min(self.end, len(text) + 1) - self.column - 1)
        return f"\n    {text.strip()}\n    {' ' * (begin - (len(text) - len(text.lstrip())))}{marks}"


def here() -> Place:
    """The innermost place of the user's that led to this call."""
    fixed = _FIXED.get()
    if fixed is not None:
        return fixed
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _inside(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return Place("<unknown>", 1, 1, 1)
    return raised_at(frame.f_code, frame.f_lasti)


def raised_at(code: CodeType, at: int) -> Place:
    """The place of the instruction at the byte `at` of a function."""
    key = (code, at)
    if key not in _KNOWN:
        _KNOWN[key] = _place(*key)
    return _KNOWN[key]


def place_at(text: str) -> Place:
    """The place that ``file:line:column`` names."""
    file, line, column = text.rsplit(":", 2)
    known = (p for p in _KNOWN.values() if str(p) == text)
    return next(known, Place(file, int(line), int(column), int(column) + 1))


def _inside(file: str) -> bool:
    return file.startswith(_HERE)


def _place(code: CodeType, at: int) -> Place:
    line, end_line, column, end = next(islice(code.co_positions(), at // 2, None), (None,) * 4)
    line = line or code.co_firstlineno
    text = linecache.getline(code.co_filename, line)
    begin = _characters(text, column or 0)
    stop = _characters(text, end) if end is not None and end_line == line else len(text.rstrip())
    return Place(code.co_filename, line, begin + 1, max(begin + 2, stop + 1))


def _characters(text: str, byte: int) -> int:
    """Python counts columns in bytes of UTF-8."""
    return len(text.encode()[:byte].decode(errors="ignore"))


@contextmanager
def standing_at(place: Place) -> Iterator[None]:
    """What happens inside is said to stand at `place`."""
    token = _FIXED.set(place)
    try:
        yield
    finally:
        _FIXED.reset(token)


def error(message: str, place: Place | None = None) -> UserError:
    """The error to raise: the place, what is wrong and what to do, the line and a caret."""
    place = place or here()
    return SourceError(f"{place}: {message}", place.shown())


class NoAttribute(SourceError, AttributeError):
    """What is asked of a tile or an array that it does not have."""


def no_attribute(what: object, name: str, instead: str) -> AttributeError:
    """The error to raise where `what` has no attribute `name`; special names of Python's are none of the user's."""
    if name.startswith("__"):
        return AttributeError(name)
    place = here()
    return NoAttribute(f"{place}: {what} has no .{name}: {instead}", place.shown())


def with_source(found: UserError) -> UserError:
    """An error of a later stage, whose message begins with its place, with the line of source."""
    at = re.fullmatch(r"(?:kernel '[^']*': )?([^\n]+?:\d+:\d+): ([^\n]*)", str(found))
    return found if at is None else error(at[2], place_at(at[1]))
