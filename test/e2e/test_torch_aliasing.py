"""Tensors that share memory, through torch.compile(backend="xcc"), equal to eager: before and after writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from xcc.frontends.torch.backend import backend

pytestmark = pytest.mark.usefixtures("fresh_torch")


def overlapping() -> list[Any]:
    base = torch.arange(12.0)
    return [base[:8], base[4:]]


def with_gaps() -> list[Any]:
    return [torch.arange(24.0).reshape(3, 4, 2)[..., 0]]


def twice() -> list[Any]:
    x = torch.arange(6.0).reshape(2, 3)
    return [x, x]


def one() -> list[Any]:
    return [torch.arange(6.0).reshape(2, 3)]


def written_overlap(x: Any, y: Any) -> Any:
    x.mul_(2)
    return x + y


def both_written(x: Any, y: Any) -> Any:
    x.add_(1)
    y.mul_(3)
    return x - y


def base_read(x: Any) -> Any:
    row = x[0]
    row.add_(10)
    return x * 2, row


def view_read(x: Any) -> Any:
    turned = x.t()
    x[0, 1] = 7
    return turned + 0, turned


def returned(x: Any) -> Any:
    return x.add_(1), x.view(-1), x


def views_of_a_result(x: Any) -> Any:
    y = x.sin()
    return y, y[1:], y.t(), y.chunk(3, 1)[2]


def views_of_gaps(x: Any) -> Any:
    return x.reshape(3, -1, 1).transpose(1, 2), x.flatten(), x[::2], x + 1


def copied_over(x: Any) -> Any:
    y = x.clone()
    y[0] = x[1]
    x.copy_(y)
    return y


def expanded(x: Any) -> Any:
    return x[0].expand(4, 3), x[:1].expand(2, 3) * 2


CASES: list[tuple[Callable[..., Any], Callable[[], list[Any]]]] = [
    (written_overlap, overlapping), (both_written, overlapping), (written_overlap, twice), (both_written, twice),
    (base_read, one), (view_read, one), (returned, one), (views_of_a_result, one), (views_of_gaps, with_gaps),
    (returned, with_gaps), (copied_over, one), (expanded, one)]


@pytest.mark.parametrize("f, make", CASES, ids=lambda f: f.__name__)
def test_equals_eager(f: Callable[..., Any], make: Callable[[], list[Any]]) -> None:
    compiled = torch.compile(f, backend=backend, fullgraph=True, options={"strict": True})
    with torch.no_grad():
        mine, own = make(), make()
        got, want = ([r] if isinstance(r := g(*a), torch.Tensor) else list(r)
                     for g, a in ((compiled, mine), (f, own)))
        for a, b in ((mine, own), (got, want)):
            torch.testing.assert_close(a, b)
        assert [t.stride() for t in got] == [t.stride() for t in want]
        for t in (got, want):       # what else do later writes into the results change?
            for n, r in enumerate(t):
                if 0 not in r.stride():
                    r.add_(n + 1)
        for a, b in ((mine, own), (got, want)):
            torch.testing.assert_close(a, b)


def test_a_cache_that_grows() -> None:
    def step(cache: Any, row: Any) -> Any:
        grown = torch.cat((cache, row.unsqueeze(0)))
        return grown, grown.mean(0)

    compiled = torch.compile(step, backend=backend, fullgraph=True, dynamic=True, options={"strict": True})
    mine = own = torch.empty(0, 4)
    for n in range(5):
        row = torch.full((4,), float(n))
        (mine, got), (own, want) = compiled(mine, row), step(own, row)
        torch.testing.assert_close((mine, got), (own, want))


def test_a_cache_that_is_written() -> None:
    def step(cache: Any, at: Any, row: Any) -> Any:
        cache.index_copy_(1, at, row)
        return cache[:, :3].sum(1)

    compiled = torch.compile(step, backend=backend, fullgraph=True, options={"strict": True})
    mine, own = torch.zeros(2, 8, 4), torch.zeros(2, 8, 4)
    for n in range(4):
        at, row = torch.tensor([n]), torch.full((2, 1, 4), float(n + 1))
        torch.testing.assert_close(compiled(mine, at, row), step(own, at, row))
        torch.testing.assert_close(mine, own)


def parts_of_written(x: Any) -> Any:
    a, b = torch.tensor_split(x, 2, dim=0)
    b.mul_(3)
    return a


def written_part(x: Any) -> Any:
    a, b = torch.tensor_split(x, 2, dim=0)
    a.mul_(3)
    return b, x[1:3], x.sum(), x, a * 1


def kept_beside(x: Any) -> Any:
    y = x * 2
    x.copy_(y)
    return y[0], x[1]


@pytest.mark.parametrize("f", [parts_of_written, written_part, kept_beside])
def test_views_of_what_is_written_lie_where_the_input_does(f: Callable[..., Any]) -> None:
    """At any offset of an input, which no guard tells apart: torch makes them of its memory."""
    compiled = torch.compile(f, backend="xcc", dynamic=True)
    for offset, rows in ((0, 6), (12, 6), (3, 4)):
        memory = [torch.arange(120.0), torch.arange(120.0)]
        got, want = (g(m[offset:offset + rows * 12].view(rows, 12)) for g, m in zip((compiled, f), memory, strict=True))
        for p, q in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want)), strict=True):
            torch.testing.assert_close(p, q)
            assert p.storage_offset() == q.storage_offset()
            assert [r.untyped_storage().data_ptr() == m.data_ptr() for r, m in zip((p, q), memory, strict=True)] \
                in ([True, True], [False, False])
        torch.testing.assert_close(*memory)
