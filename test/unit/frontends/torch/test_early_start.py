"""The compiler starts while torch traces a graph that is new, and only then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import xcc
from xcc.frontends.torch import backend as xcc_backend
from xcc.process import isolation

pytestmark = pytest.mark.apart


@pytest.fixture
def expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is started, in an empty cache; graphs run in torch."""
    found: list[Any] = []
    monkeypatch.setenv("XCC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(isolation, "expect", lambda *what: found.append(what))
    monkeypatch.setattr(xcc_backend, "compile_graph", lambda module, *_, **__: xcc_backend._boxed(module))
    return found


def call(size: int, **options: Any) -> None:
    torch._dynamo.reset()
    torch.compile(lambda x: x.sin() + 1, backend=xcc_backend.backend, dynamic=False, options=options)(torch.ones(size))


def test_for_what_is_new(expected: list[Any]) -> None:
    for size in (3, 3, 4, 3, 4):
        call(size)
    assert expected == [("cpu", ".pt2")] * 2
    call(3, precision="f16")
    assert len(expected) == 3


def test_without_a_cache_all_is_new(expected: list[Any]) -> None:
    call(3, cache=False), call(3, cache=False)
    assert len(expected) == 2


def test_a_cache_that_cannot_be_written(expected: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XCC_CACHE_DIR", str(tmp_path / "file"))
    call(3), call(3)
    assert len(expected) == 2


def test_what_was_started_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process, however often it is expected."""
    monkeypatch.setattr(isolation, "_IDLE", [])
    for _ in range(3):
        isolation.expect("cpu", "")
    started, = isolation._IDLE
    (tmp_path / "m.mlir").write_text("""func.func @main(%x: tensor<3xf32> {xt.name = "x"}) -> (tensor<3xf32>) {
      %0 = "xt.add"(%x, %x) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      return %0 : tensor<3xf32> }""")
    y, = xcc.compile(tmp_path / "m.mlir", cache=False).run({"x": np.ones(3, np.float32)}).values()
    assert y.tolist() == [2, 2, 2] and isolation._IDLE == [started]
    started.end(5.0)
