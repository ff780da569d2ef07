"""docs/aten-ops.md names every core ATen op, and only xt ops that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from xcc.dialects import xt

PAGE = Path(__file__).resolve().parents[3] / "docs" / "aten-ops.md"


def rows() -> dict[str, str]:
    lines = [line.strip("|").split("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return {op.strip(): how.strip() for op, how in lines[1:]}


def test_all_core_ops_are_listed() -> None:
    torch = pytest.importorskip("torch")
    packets = {name: getattr(torch.ops.aten, name) for name in dir(torch.ops.aten)}
    core = {name for name, p in packets.items() if hasattr(p, "overloads")
            and any(torch.Tag.core in getattr(p, o).tags for o in p.overloads())}
    assert set(rows()) == core


def test_the_xt_ops_exist() -> None:
    """A row may point to another one: as `other`."""
    for op, how in rows().items():
        pointed = re.findall(r"\bas `(\w+)`", how)
        assert set(pointed) <= set(rows()), op
        named = set(re.findall(r"`(\w+)`", re.sub(r"\bas `\w+`", "", how)))
        assert named <= set(xt.OPS), op
        assert named or pointed or how.startswith(("none:", "as above")), op
