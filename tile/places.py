"""Where in a Python file an operation of a tile program comes from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import CodeType, FrameType

from xcc._mlir import Location, ir

__all__ = ["located", "not_mine", "place", "where"]

_OWN: list[str] = [str(Path(__file__).parent)]
_SAID: ContextVar[tuple[str, int, int] | None] = ContextVar("place", default=None)


def not_mine(folder_or_file: str) -> None:
    """Frames of code in there are not the program's author's: a language built on the builder says so of itself."""
    if folder_or_file not in _OWN:
        _OWN.append(folder_or_file)


@contextmanager
def located(file: str, line: int, column: int = 1) -> Iterator[None]:
    """What is built inside comes from this place."""
    token = _SAID.set((file, line, column))
    try:
        yield
    finally:
        _SAID.reset(token)


def where() -> tuple[str, int, int]:
    """(file, line, column) of the author's code that runs."""
    said = _SAID.get()
    if said is not None:
        return said
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(tuple(_OWN)):
        frame = frame.f_back
    if frame is None:
        return "<unknown>", 0, 0
    return frame.f_code.co_filename, frame.f_lineno, _column(frame.f_code, frame.f_lasti)


def _column(code: CodeType, instruction: int) -> int:
    for i, (_, _, column, _) in enumerate(code.co_positions()):
        if i == instruction // 2:
            return (column or 0) + 1
    return 1


def place() -> Location:
    """The MLIR location of `where()`, in the current context."""
    file, line, column = where()
    return ir.Location.file(file, line, column)
