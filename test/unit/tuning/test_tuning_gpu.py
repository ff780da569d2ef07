"""What the tuner's GPU runs read: weights from memory, not from a cache that the run before has filled."""

from __future__ import annotations

from typing import Any

import pytest

from xcc.targets.base import KernelBinary, KernelLaunch
from xcc.targets.nvptx import measure as gpu
from xcc.tuning.tuner_bench import Subject


class FakeDriver:
    """Notes what is launched and copied; addresses count up."""

    def __init__(self) -> None:
        self.end, self.launches, self.order = 0, [], []

    def alloc(self, size: int) -> int:
        self.end += size
        return self.end - size

    def launch(self, _function: Any, _grid: Any, _block: Any, _shared: int, pointers: list[int], _symbols: Any,
               early: bool) -> None:
        self.launches.append((pointers, early))

    def copy(self, *_: int) -> None:
        self.order.append("flush")

    def replay(self, _graph: Any) -> None:
        self.order.append("replay")

    def event(self) -> int:
        return 0

    def elapsed_ms(self, _start: int, _stop: int) -> float:
        return 1.0

    def __getattr__(self, _name: str) -> Any:
        return lambda *_: None


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    fake = FakeDriver()
    monkeypatch.setattr(gpu, "_driver", lambda: fake)
    monkeypatch.setattr(gpu, "_held", None)
    return fake


def test_each_run_reads_its_own_copy_of_the_largest_input(driver: FakeDriver) -> None:
    subject = Subject((((4, 8), "f16"), ((8, 64), "f16")), (((4, 64), "f16"),), ())
    binary = KernelBinary("k", "ptx", b"", (KernelLaunch("k", (1, 1, 1), (32, 1, 1), 0, True),))
    gpu.measure(binary, subject, 0.0)
    runs = driver.launches[-gpu.RUNS:]
    assert len({pointers[1] for pointers, _ in runs}) == gpu.RUNS
    assert len({(pointers[0], pointers[2]) for pointers, _ in runs}) == 1
    assert [early for _, early in runs] == [False] + [True] * (gpu.RUNS - 1)
    assert driver.order[:4] == ["flush", "replay"] * 2


def test_an_input_that_no_cache_holds_is_not_copied(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "MOST_COPIED", 100)
    subject = Subject((((64,), "f32"),), (((64,), "f32"),), ())
    gpu.measure(KernelBinary("k", "ptx", b"", (KernelLaunch("k", (1, 1, 1), (32, 1, 1)),)), subject, 0.0)
    assert len({tuple(pointers) for pointers, _ in driver.launches}) == 1
