"""How many threads a process takes by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from xcc.runtime import cores


@pytest.mark.parametrize("outer, inner, wanted", [
    ("max 100000", "150000 100000", 2), ("300000 100000", "max 100000", 3), ("max 100000", "max 100000", 1 << 30),
    ("200000 100000", "50000 100000", 1), ("nonsense", "400000 100000", 4)])
def test_quota_of_a_control_group(tmp_path: Path, outer: str, inner: str, wanted: int) -> None:
    groups, root = tmp_path / "cgroup", tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    groups.write_text("0::/a/b\n")
    (root / "a" / "cpu.max").write_text(outer + "\n")
    (root / "a" / "b" / "cpu.max").write_text(inner + "\n")
    assert cores.quota(str(groups), str(root)) == wanted


def test_no_control_group(tmp_path: Path) -> None:
    assert cores.quota(str(tmp_path / "none")) >= 1 << 30


def test_threads_stay_within_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "quota", lambda: 1)
    assert cores.physical_cores() == 1
