"""What docs/glossary.md names is there: files, what they hold, attributes, options and passes."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text()
ROWS = [line.strip("|").split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and "`" in line]
SOURCES = ("dialects", "frontends", "passes", "runtime", "targets", "tools", "xcc")
ELSEWHERE = {"num_stages", "convert_layout", "GROUP_SIZE_M", "compute_at"}
"""Names of other projects."""


@cache
def sources() -> str:
    return "\n".join(p.read_text() for folder in SOURCES for p in (ROOT / folder).rglob("*.py"))


def holds(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r[0].strip())
def test_named(row: list[str]) -> None:
    assert len(row) == 3, "a term, what it is, where it lives"
    *words, where = row
    for path, name in re.findall(r"`([\w/.]+)(?:: (\w+))?`", where):
        text = (ROOT / path).read_text()
        assert not name or re.search(rf"\bclass {name}\b" if name[0].isupper() else rf"\b{name}\b", text), name
    for quoted in re.findall(r"`([^`]+)`", " ".join(words)):
        for name in re.findall(r"\w[\w.-]*", quoted):
            assert name in ELSEWHERE or holds(sources(), name), f"nothing is called {name}"


def test_where_is_a_file() -> None:
    assert len(ROWS) > 80
    for *_, where in ROWS:
        assert re.fullmatch(r" ?(`[\w/.]+(: \w+)?`(, )?)+ ?", where), where
