"""For which sizes a function of tensors is compiled: those of its first calls, then what was alike in all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from xcc.frontends.torch import sized_calls  # noqa: E402
from xcc.frontends.torch.sized_calls import SizedCalls, gains_by_sizes  # noqa: E402


def calls(monkeypatch: pytest.MonkeyPatch, most: int, impossible: tuple[Mapping[str, int], ...] = ()) -> Any:
    """A call of (m x k, k x n) that returns what was known of the sizes, and a list of what was compiled for."""
    made: list[dict[str, int]] = []

    def make(known: Mapping[str, int]) -> Any:
        made.append(dict(known))
        return None if known in impossible else lambda _arguments: [dict(known)]

    monkeypatch.setattr(sized_calls, "sizes_of", lambda _graph: [("m", 0, 0), ("k", 0, 1), ("n", 1, 1)])
    compiled = SizedCalls(None, most, make, lambda _arguments: ["torch"])      # type: ignore[arg-type]
    return (lambda m, k, n: compiled([torch.empty(m, k), torch.empty(k, n)])[0]), made


def test_first_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    call, made = calls(monkeypatch, 2)
    whole = [{"m": m, "k": 3, "n": 5} for m in (1, 2)]
    assert [call(1, 3, 5), call(2, 3, 5), call(1, 3, 5)] == [*whole, whole[0]]
    assert [call(7, 3, 5), call(8, 3, 5), call(7, 3, 5)] == [{"k": 3, "n": 5}] * 3      # the rows change
    assert [call(7, 3, 6), call(9, 3, 9), call(2, 3, 5)] == [{"k": 3}, {"k": 3}, whole[1]]
    assert [call(7, 4, 5), call(8, 8, 8), call(8, 3, 5)] == [{}, {}, {"k": 3, "n": 5}]
    assert made == [*whole, {"k": 3, "n": 5}, {"k": 3}, {}]


def test_sizes_that_cannot_be_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    call, made = calls(monkeypatch, 1, ({"m": 1, "k": 2, "n": 3}, {}))
    assert [call(1, 2, 3), call(0, 4, 4)] == ["torch", "torch"]     # sizes of 0 have no version of their own
    assert made == [{"m": 1, "k": 2, "n": 3}, {}]


def test_what_gains() -> None:
    x = torch.ones(2, 2)
    gain = [lambda x: x @ x, lambda x: x.sum(1), lambda x: x.sort()[0], lambda x: x.exp() + x.mean(),
            lambda x: x.relu() * x[:1], lambda x: x + x[0]]
    lose = [lambda x: x + 1, lambda x: x.t().relu() * x]
    assert [gains_by_sizes(make_fx(f)(x)) for f in gain + lose] == [True] * 6 + [False] * 2
