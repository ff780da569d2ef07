"""docs/aten-ops.md is current."""

from __future__ import annotations

from pathlib import Path

from xcc.frontends.torch.op_table import table


def test_the_table_is_current() -> None:
    document = Path(__file__).resolve().parents[4] / "docs" / "aten-ops.md"
    assert document.read_text() == table(), "run python -m xcc.frontends.torch.op_table > docs/aten-ops.md"
