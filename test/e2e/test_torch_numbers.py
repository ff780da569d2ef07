"""Numbers that a program is given, or that its modules keep, are values of a run: another one compiles nothing anew."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

import xcc.torch
from xcc.frontends.torch import backend
from xcc.frontends.torch.capture import capture_fx
from xcc.frontends.torch.tensor_call import TensorCall

pytestmark = pytest.mark.usefixtures("fresh_torch")

F = torch.nn.functional


def compilations(f: Callable[..., Any], *calls: tuple[Any, ...], like: Callable[..., Any] | None = None) -> list[int]:
    """How many there were after each call, each equal to eager's, of `f` itself or of `like`."""
    compiled, made = xcc.torch.compile(f, strict=True, versions=0), []
    for given in calls:
        torch.testing.assert_close(compiled(*given), (like or f)(*given), rtol=1e-4, atol=1e-5)
        made.append(counters["stats"]["unique_graphs"])
    return made


def test_floats_in_ops() -> None:
    """In those that torch's own pass moves to tensors, in others that take numbers, and in Python's arithmetic."""
    def f(x: Any, a: float) -> Any:
        y = torch.softmax(x / a, -1).clamp(-a, a) + F.leaky_relu(x, a)
        y = torch.where(x > a, y, a).masked_fill(x < -a, a) + torch.full((4,), a) + torch.add(x, y, alpha=a)
        return y.addcmul(x, x, value=a) + x.abs().pow(a) * math.exp(-a) + round(a) + math.log(a, 10), a * 2

    assert compilations(f, *((torch.randn(n, 4), a) for n, a in ((3, 0.7), (3, 0.8), (1, 1.0), (2, 2.5)))) == [1] * 4


def test_floats_of_gradients() -> None:
    """What is saved of a float for the backward graph."""
    x = torch.randn(3, 4, requires_grad=True)

    def f(x: Any, a: float) -> Any:
        return (F.elu(x * a, a) * math.cos(a)).square().sum()

    compiled = xcc.torch.compile(f, strict=True, versions=0)
    for a in (0.3, 0.4, 1.5):
        torch.testing.assert_close(*(torch.autograd.grad(g(x, a), x) for g in (compiled, f)))
    assert counters["stats"]["unique_graphs"] == 1


def test_factors_that_f16_does_not_hold() -> None:
    """Too large or too small: Python's, those of a run, of a tensor of rank 0, and sizes: torch multiplies in f32."""
    def f(x: Any, rows: Any, s: Any, n: Any, a: float) -> Any:
        scaled = torch._foreach_mul([x, x], 2e5)
        return x * 1e6, x / 1e-6, x * a, x / a, x * s, x / n, x * rows.shape[0], scaled, x * 0.5

    x = torch.tensor([1e-3, -2e-3, 6e-5], dtype=torch.float16)
    given = x, x.new_empty(70000, 0), torch.tensor(3e5, dtype=torch.float64), torch.tensor(100000)
    compiled = xcc.torch.compile(f, strict=True)
    for a in (1e-7, 2e5):
        torch.testing.assert_close(compiled(*given, a), f(*given, a), rtol=1e-3, atol=0)


@pytest.mark.parametrize("f", [lambda x, a: F.layer_norm(x, (4,), eps=a), lambda x, a: x.new_zeros(int(10 * a))])
def test_floats_that_are_to_be_constants(f: Callable[..., Any]) -> None:
    assert compilations(f, *((torch.randn(3, 4), a) for a in (0.1, 0.1, 0.3))) == [1, 1, 2]


def test_a_float_of_a_branch() -> None:
    """torch traces none that stands in the branch alone."""
    def f(x: Any, a: float) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x * a, lambda x: x - a, (x,))

    assert compilations(f, *((torch.randn(3, 4), a) for a in (0.1, 0.1, 0.3)),
                        like=lambda x, a: x * a if x.sum() > 0 else x - a) == [1, 1, 2]


@pytest.mark.parametrize("versions", [0, 8])
def test_ints_are_symbols(versions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which a call makes no tensor; torch gets back what is made of them."""
    made = []
    number = TensorCall.number
    monkeypatch.setattr(TensorCall, "number", lambda self, value: made.append(value) or number(self, value))

    def f(x: Any, n: int, k: dict[str, int]) -> Any:
        return x.sum(0) * n, x.view(n, -1), n + 1, n, F.max_pool1d(x[None], **k)

    compiled = xcc.torch.compile(f, strict=True, versions=versions)
    for n in (2, 4, 4, 4, 5, 5):
        x, k = torch.randn(20, 3), {"kernel_size": 2}
        torch.testing.assert_close(compiled(x, n, k), f(x, n, k), rtol=1e-4, atol=1e-4)
    assert len(made) <= 4


@pytest.mark.parametrize("f", [
    lambda x, n: x[n] + x.select(0, n // 2),
    lambda x, n: x[abs(n)] * abs(n - 2),
    lambda x, n: x[:abs(n)].sum(0) + torch.arange(abs(n) + 1).sum(),
    lambda x, n: x + (n & 3) + (n | 1) + (n ^ 5) + 2 ** abs(n),
    lambda x, n: x.relu()[n & 1] + x.select_scatter(x[0], 0, n & 1)])
def test_arithmetic_of_ints(f: Callable[..., Any]) -> None:
    assert compilations(f, *((torch.randn(5, 4), n) for n in (2, 3, 0, 1))) == [1] * 4


def test_an_int_below_0_counts_from_the_end() -> None:
    def f(x: Any, n: int) -> Any:
        x[n] = 0
        return x[n - 1] + 1

    assert compilations(f, *((torch.randn(5, 4), n) for n in (2, 4, -1, -3, 1))) == [1, 1, 2, 2, 2]


def test_ints_in_indices_of_several_dims() -> None:
    """Read and written, beside slices, None, an ellipsis, a number, a list, tensors and a mask; those of sizes, too."""
    def f(x: Any, rows: Any, i: int) -> Any:
        y, z = x.detach().clone(), torch.zeros(4, 7, 5)
        y[:, x.shape[1] // 2] += x[:, x.shape[1] - 1]
        y[rows, ..., i] = 3
        z[i, 1:4, i + 1] = x[0, i]
        mask = torch.arange(4) == 2
        return x[:, i], x[i, ..., i + 1, None, None], x[None, 1:, i, 2], x[rows, i], x[[1, 0], :, i], \
            torch.where(mask, x[:, i, i], 0), y, z, z.requires_grad

    def given(n: int, i: int) -> tuple[Any, ...]:
        return torch.randn(4, n, 3, requires_grad=True), torch.tensor([2, 0]), i

    assert compilations(f, given(6, 0), given(3, 1), given(7, 1)) == [1, 1, 1]
    assert compilations(lambda x, i: x[:, i, :-1], *((given(6, 0)[0], i) for i in (2, -1, -3))) == [2, 3, 3]


def test_floats_are_rounded_to_digits_by_python() -> None:
    def f(x: Any, a: float) -> Any:
        return x + abs(a) + round(a, 1)

    x, compiled = torch.zeros(3), xcc.torch.compile(f)
    with pytest.warns(UserWarning, match="decimal text"):
        for a in (2.34, -0.87):
            torch.testing.assert_close(compiled(x, a), f(x, a))


def test_an_int_cuts_a_row_that_broadcasts() -> None:
    """As what keeps the k most likely tokens."""
    def f(x: Any, k: int) -> Any:
        return x.masked_fill(x < x.topk(k, -1).values[:, -1:], -9.0)

    assert compilations(f, *((torch.randn(3, 8), k) for k in (5, 1, 2, 8))) == [1] * 4


class Counting(torch.nn.Module):
    """A model whose numbers change in a call, from outside, and not."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.factor, self.eps = 0, 1.0, 1e-3
        self.norm = torch.nn.LayerNorm(4)

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return self.norm(x) * self.calls * self.factor * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)


def test_numbers_of_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number is a constant, and no input, until its module has another one."""
    given: list[int] = []

    def captured(graph: Any, **options: Any) -> Any:
        program = capture_fx(graph, **options)
        given.append(sum(getattr(i.spec, "shape", None) == () for i in program.graph.inputs))
        return program

    monkeypatch.setattr(backend, "capture_fx", captured)
    model, like = Counting(), Counting()
    assert compilations(model, *((torch.randn(n, 4),) for n in (3, 3, 2, 1)), like=like) == [1, 2, 2, 2]
    model.factor = like.factor = 0.5
    assert compilations(model, (torch.randn(3, 4),), like=like) == [3]
    model.factor = like.factor = 0.25
    assert compilations(model, (torch.randn(3, 4),), like=like) == [3]
    assert (given[0], given[-2]) == (0, 1)      # of forward graphs


BEHIND_ANOTHER_BACKEND = """
import torch, xcc.torch
from torch._dynamo.utils import counters

class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x, i=0):
        self.calls += 1
        y = x.clone()
        y[i] = self.calls
        return x * y[i]

torch.compile(Counting(), backend="eager", dynamic=True)(torch.ones(2), 1)
counters.clear()
compiled = xcc.torch.compile(Counting(), strict=True)
print([compiled(torch.ones(4), i).tolist()[0] for i in range(4)], counters["stats"]["unique_graphs"])
"""


def test_numbers_behind_another_backend() -> None:
    """Dynamo keeps what it has looked up of its own methods in its first trace."""
    done = subprocess.run([sys.executable, "-c", BEHIND_ANOTHER_BACKEND], check=True, capture_output=True, text=True)
    assert done.stdout == "[1.0, 2.0, 3.0, 4.0] 2\n"


@pytest.mark.parametrize("f", [
    lambda x, i: F.one_hot(torch.arange(5) % i, i) + torch.logspace(0, 1, i, base=2) + torch.linspace(3, -1, i),
    lambda x, i: (x.diagonal(i, 1, 2), x.diagonal(-i, 1, 2), x.quantile(i / 10, -1)),
    lambda x, i: F.conv1d(x, torch.ones(2, 12, 3), padding=i) + F.adaptive_avg_pool1d(x[:, :2], 12 + 2 * i - 2),
    lambda x, i: F.group_norm(x, i, torch.arange(12.), torch.ones(12)) + 1,
    lambda x, i: F.pixel_unshuffle(F.pixel_shuffle(torch.arange(14400.).view(-1, 2, 2), i + 1), i + 1) + x[0, 0, 0]])
def test_ints_that_torch_takes_as_constants(f: Callable[..., Any]) -> None:
    assert compilations(f, *((torch.randn(8, 12, 12), i) for i in (2, 4, 3, 1))) == [1] * 4


def test_a_view_of_an_int_is_a_view() -> None:
    def f(x: Any, i: int) -> Any:
        y = x.clone()
        y.diagonal(i).add_(1)
        y[1:].diagonal(-i).mul_(2)
        return y

    assert compilations(f, *((torch.randn(8, 12), i) for i in (2, 4, 1))) == [1] * 3


def test_sizes_are_compared_with_tensors() -> None:
    """Lists of them, in an assertion, too: the graph ends there, or the run checks."""
    def f(x: Any, n: Any) -> Any:
        y = x.new_zeros(x.shape[0], n, 2)
        assert list(y.shape) == [x.shape[0], n, 2]
        return y + 1 if list(x.shape) == [n, 4] else y - 1

    compiled = xcc.torch.compile(f)
    for n in (3, 2):
        x, size = torch.randn(3, 4), torch.tensor(n)
        torch.testing.assert_close(compiled(x, size), f(x, size))
