"""Reads and writes the text form of symbolic dims: ``"2*batch + floordiv(h + 31, 32)"``.

    total  = term (("+" | "-") term)*
    term   = factor ("*" factor)*
    factor = "-" factor | "(" total ")" | number | name | function "(" total "," total ")"
    name   = letter (letter | digit | "_" | "." | ":")* | "'" any text, with each ' in it twice "'"

What names and functions mean is the caller's: :mod:`xcc.symbolic` makes dims of them. A name that is not plain, or that
a function has too, is written in quotes: ``'past seq' + 1``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xcc.dim_expr import Expr

__all__ = ["quoted", "read", "write"]

_PLAIN = r"[A-Za-z_][\w.:]*"
_TOKEN = re.compile(rf"\s*(?:(\d+)|({_PLAIN})|'((?:[^']|'')+)'|([-+*(),]))")
_FUNCTIONS = ("ceildiv", "divisor", "floordiv", "max", "min", "mod", "root", "scaled", "truncdiv")


def read(text: str, symbol: Callable[[str], Any], functions: Mapping[str, Callable[[Any, Any], Any]]) -> int | Expr:
    """What `text` says; raises ValueError with the position of what it cannot read."""
    reader = _Reader(text, symbol, functions)
    result = reader.total()
    reader.end()
    return result


@lru_cache(maxsize=4096)
def quoted(name: str) -> str:
    """How a text form has the symbol `name`: as it is where that is plain."""
    plain = re.fullmatch(_PLAIN, name, re.ASCII) and name not in _FUNCTIONS
    return name if plain else "'" + name.replace("'", "''") + "'"


def write(terms: Iterable[tuple[Any, int]]) -> str:
    """The text of a sum of `terms`: products of atoms ``(symbol,)`` and ``(function, a, b)``, and their factors."""
    out = ""
    for atoms, c in terms:
        body = "*".join(quoted(a[0]) if len(a) == 1 else f"{a[0]}({a[1]}, {a[2]})" for a in atoms)
        mag = abs(c)
        text = body if mag == 1 and body else (f"{mag}*{body}" if body else str(mag))
        sign = "-" if c < 0 else "+"
        out = (("-" if c < 0 else "") + text) if not out else f"{out} {sign} {text}"
    return out or "0"


class _Reader:
    """The tokens of one text: (kind, text, position), and how far they are read."""

    def __init__(self, text: str, symbol: Callable[[str], Any], functions: Mapping[str, Callable[[Any, Any], Any]]
                 ) -> None:
        self.text, self.symbol, self.functions = text, symbol, functions
        self.tokens: list[tuple[str, str, int]] = []
        self.at = 0
        start = 0
        while start < len(text.rstrip()):
            m = _TOKEN.match(text, start)
            if m is None:
                raise ValueError(f"dimension '{text}': unexpected '{text[start:].strip()[:1]}' at {start}")
            kind = ("int", "name", "quoted", "op")[(m.lastindex or 0) - 1]
            self.tokens.append((kind, m[m.lastindex or 0], m.start(m.lastindex or 0)))
            start = m.end()
        self.tokens.append(("end", "", len(text)))

    def total(self) -> int | Expr:
        out = self.term()
        while True:
            if self._take("+"):
                out = out + self.term()
            elif self._take("-"):
                out = out - self.term()
            else:
                return out

    def term(self) -> int | Expr:
        out = self.factor()
        while self._take("*"):
            out = out * self.factor()
        return out

    def factor(self) -> int | Expr:
        if self._take("-"):
            return self.factor() * -1
        if self._take("("):
            inner = self.total()
            self._expect(")")
            return inner
        kind, value, where = self.tokens[self.at]
        self.at += 1
        if kind == "int":
            return int(value)
        if kind == "quoted":
            return self.symbol(value.replace("''", "'"))
        if kind != "name":
            raise ValueError(f"dimension '{self.text}': expected a number or a name at {where}")
        if value in self.functions and self._take("("):
            a = self.total()
            self._expect(",")
            b = self.total()
            self._expect(")")
            return self.functions[value](a, b)
        return self.symbol(value)

    def end(self) -> None:
        kind, value, where = self.tokens[self.at]
        if kind != "end":
            raise ValueError(f"dimension '{self.text}': unexpected '{value}' at {where}")

    def _take(self, value: str) -> bool:
        kind, found, _ = self.tokens[self.at]
        if (kind, found) != ("op", value):
            return False
        self.at += 1
        return True

    def _expect(self, value: str) -> None:
        if not self._take(value):
            raise ValueError(f"dimension '{self.text}': expected '{value}' at {self.tokens[self.at][2]}")
