"""The two kinds of error: the user's, and ours.

A :class:`UserError` says what was seen, where, and what to do: tools print its one line and exit with 1.
A :class:`CompilerBug` carries a reproducer: tools print how to replay it and exit with 70.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

LONG_WORD = 400
"""Characters of a name that a message shows in full."""

EXIT_USER = 1
EXIT_BUG = 70


@dataclass(eq=False)
class XccError(Exception):
    """Base of every error that xcc raises on purpose."""

    message: str

    def __str__(self) -> str:
        return self.message


class UserError(XccError):
    """Bad input or options: unsupported ops, wrong shapes, unreadable files."""


@dataclass(eq=False)
class SourceError(UserError):
    """A fault in source that the user wrote: `shown` is its line, and a caret under the place."""

    shown: str = ""

    def __str__(self) -> str:
        return self.message + self.shown


class Misfit(UserError):
    """Operands that an op can never take together. A branch that holds one is an error only of runs that take it."""


@dataclass(eq=False)
class CompilerBug(XccError):
    """A pass or code generator failed on valid input."""

    reproducer: str = ""
    command: str = ""
    details: str = field(default="", repr=False)

    def __str__(self) -> str:
        lines = [self.message]
        if self.reproducer:
            lines.append(f"reproducer: {self.reproducer}")
        if self.command:
            lines.append(f"replay with: {self.command}")
        return "\n".join(lines)


class NoRoom(CompilerBug):
    """A kernel as it was scheduled needs more shared memory than the chip has; smaller tiles may need less."""


def one_line(message: str) -> str:
    """`message` with what does not print escaped and the middle of long names left out: models name things at will."""
    printed = "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)
    return re.sub(rf"\S{{{LONG_WORD},}}", lambda m: f"{m[0][:100]}...{m[0][-20:]}", printed)


def dim_option(name: str, value: str) -> str:
    """The option that gives the dim `name` a value, as a shell takes it."""
    from shlex import quote

    return f"--dim {quote(f'{name}={value}')}"


def listed(names: Sequence[str]) -> str:
    """``a, b or c``."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def counted(n: int, thing: str) -> str:
    """`n` with the name of what it counts: 1 kernel, 2 kernels."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}{'es' if thing.endswith('ch') else 's'}"
