"""Complex numbers between real tensors: each op that has a converter, and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch_programs import check, check_traced, gradients

Pairs = Any     # complex64[3, 4]
CASES: dict[str, Callable[[Pairs, Pairs, Any], Any]] = {
    "products": lambda a, b, r: (a * b, r * a, a * 2, (1 + 2j) * b, a.conj() * (b * r[0])),
    "quotients": lambda a, b, r: (a / b, r / b, a / 3, b / r[0], a / a.abs()),
    "sums": lambda a, b, r: (a + b, a - r, torch.sub(a, b, alpha=2), a + 1j, -a, a.sum(0), b.mean(-1, keepdim=True)),
    "shapes": lambda a, b, r: (a.t()[1:], a[:, None].expand(3, 2, 4), a.reshape(2, 6), b[2].squeeze(), b.flip(1)),
    "parts": lambda a, b, r: (*a.split(2, 1), *a.unbind(0), a[torch.tensor([2, 0])],
                              a.index_select(1, torch.tensor([1, 1])), a.gather(1, torch.tensor([[3, 0], [1, 1]]))),
    "joined": lambda a, b, r: (torch.cat([a, b]), torch.stack([b, a], 1), b.repeat(2, 1), a.roll(1, 0)),
    "made": lambda a, b, r: (torch.polar(r, r[0]), torch.complex(r, r[0]), torch.where(r > 0, a, 0),
                             torch.zeros_like(a), torch.full_like(a, 2 + 1j)),
    "transforms": lambda a, b, r: (torch.fft.fft(a), torch.fft.ifft2(b), torch.fft.rfft2(r, (5, 3), norm="ortho"),
                                   torch.fft.irfft(a * b, n=5), torch.fft.irfft2(b, norm="forward"),
                                   torch.fft.hfft(a, 6, 0)),
    "compared": lambda a, b, r: (torch.where((a == a.conj()) | (b != r), a, b), a == 1j, torch.complex(r, r * 0) == r),
    "angles": lambda a, b, r: (a.angle(), (a * b).exp(), a.mean(), torch.zeros_like(a).angle()),
    "powers": lambda a, b, r: (a ** 2, a ** b, a ** r, 2 ** b, a ** 0.5, a ** -1, a.log()),
    "matrices": lambda a, b, r: (a @ b.T, b[0] @ a.T, a @ b[1], torch.dot(a[0], b[1]), torch.einsum("ij,ik->jk", a, b),
                                 torch.bmm(a[None], b.mH[None])),
    "types": lambda a, b, r: (a.to(torch.complex128) * b, r.to(torch.complex64), a.clone())}


def of_real(f: Callable[[Pairs, Pairs, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """`f` of numbers whose parts are a last dim, and its results so."""
    return lambda a, b, r: [torch.view_as_real(t.resolve_conj()) if t.is_complex() else t
                            for t in f(torch.view_as_complex(a), torch.view_as_complex(b), r)]


@pytest.mark.parametrize("case", CASES)
def test_ops_and_gradients(case: str) -> None:
    torch.manual_seed(0)
    f, given = of_real(CASES[case]), (torch.randn(3, 4, 2), torch.randn(3, 4, 2), torch.randn(3, 4))
    check_traced(f, *given, sizes="fake")
    check_traced(gradients(lambda *x: (f(*x), x[0].sum() * x[1].sum() * x[2].sum())), *given, sizes="fake")


class Windows(torch.nn.Module):
    """A spectrogram, and the signal from it."""

    def forward(self, x: Any) -> Any:
        window = torch.hann_window(8)
        made = torch.stft(x, 8, 4, window=window, return_complex=True)
        return made.abs(), torch.istft(made * 2j, 8, 4, window=window)


def test_pads() -> None:
    f = of_real(lambda a, b, r: [torch.nn.functional.pad(a, (2, 1), mode=m) for m in ("reflect", "replicate")])
    check_traced(f, torch.randn(3, 4, 2), torch.randn(3, 4, 2), torch.randn(3, 4), sizes="fake")


def test_short_transforms() -> None:
    check(Windows(), (torch.randn(2, 32),), (torch.randn(3, 32),), dynamic_shapes=({0: torch.export.Dim("n")},))


def test_powers_of_zero() -> None:
    """1 for the exponent 0, and 0 where the exponent is above it, not the NaN of 0 times the logarithm."""
    given = torch.zeros(2, 3, 2), torch.randn(2, 3, 2).abs(), torch.tensor([0.1, 0.5, 2.5])
    check_traced(of_real(lambda a, b, r: (a ** r, a ** b, a ** 0, 2 ** a)), *given, sizes="fake")


def test_phases_of_real_numbers() -> None:
    """Half a turn is exact: what has no imaginary part does not change its sign by rounding, from pi to -pi."""
    torch.manual_seed(0)
    check_traced(lambda x: [torch.fft.rfft(x)[:, ::6].angle()], torch.randn(64, 12), sizes="fake")


class Rotary(torch.nn.Module):
    """Pairs of features turned by complex factors of a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("factors", torch.polar(torch.ones(9, 4), torch.randn(9, 4)))

    def forward(self, x: Any) -> Any:
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * self.factors[:x.shape[0]]).flatten(-2)


def test_a_buffer_of_complex_numbers() -> None:
    check(Rotary(), (torch.randn(5, 8),), (torch.randn(9, 8),), dynamic_shapes=({0: torch.export.Dim("n", max=9)},))
