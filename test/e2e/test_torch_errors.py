"""What PyTorch users are told: the op, their file and line, what to do; in one line."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.exc import BackendCompilerFailed
from torch.export import Dim

import xcc
import xcc.torch
from xcc.frontends.torch.backend import backend

pytestmark = pytest.mark.usefixtures("fresh_torch")

HERE = r"test_torch_errors\.py:\d+, in forward: "
ADVICE = r"torch\.compile\(backend='xcc'\), which leaves such ops to torch"


class Double(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x * 2


class Sum(torch.nn.Module):
    def forward(self, x: Any, y: Any) -> Any:
        return x + y


class Eigenvalues(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.linalg.eigvalsh(x @ x.T)


class Spectrum(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.fft.rfft(x.sin()).abs() + 1


class Roots(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.view_as_complex(x).sqrt().abs()


class Power(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x[:int(x.shape[0] ** 0.7)] * 2


class Cut(torch.nn.Module):
    def forward(self, x: Any, at: Any) -> Any:
        start = at.item()
        torch._check(start >= 0)
        return x[start:start + 2] * 2


SQUARE, COMPLEX, PAIRS = torch.ones(3, 3), torch.ones(3, dtype=torch.complex64), torch.ones(3, 2)
N = Dim("n", max=8)


def exported(model: torch.nn.Module, *args: Any) -> Any:
    """With dim 0 of all inputs called n."""
    return torch.export.export(model, args, dynamic_shapes=tuple({0: N} for _ in args))


@cache
def doubled() -> Any:
    return xcc.compile(exported(Double(), SQUARE))


def strict(model: Any, *args: Any, **options: Any) -> Any:
    return torch.compile(model, backend=backend, dynamic=True, options={"strict": True, **options})(*args)


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "a module": (lambda: xcc.compile(Double()), r"a Double is no exported program: give torch.export.export\(model, "
                 r"args\), or use torch.compile\(model, backend='xcc'\)"),
    "a function": (lambda: xcc.compile(torch.sin), "give a path, .*; torch.compile.* compiles functions"),
    "an op": (lambda: xcc.compile(exported(Eigenvalues(), SQUARE)),
              rf"no converter for aten._linalg_eigh.default \(.*{HERE}.*eigvalsh.*\): compile the model with {ADVICE}"),
    "an op, strict": (lambda: strict(Eigenvalues(), SQUARE),
                      rf"{HERE}.*eigvalsh.*: aten._linalg_eigh.default: no converter.* without options={{'strict'"),
    "a type": (lambda: xcc.compile(exported(Double(), COMPLEX)),
               f"input 'x': element type complex64 is not supported: .*{ADVICE}"),
    "a type inside": (lambda: xcc.compile(exported(Roots(), PAIRS)),
                      rf"no converter for aten.sqrt.default of complex numbers .*{HERE}.*{ADVICE}"),
    "a type, strict": (lambda: strict(Roots(), PAIRS), rf"{HERE}.*sqrt.*: aten.sqrt.default of complex64"),
    "a length, strict": (lambda: strict(Spectrum(), PAIRS), rf"{HERE}.*rfft.*: aten._fft_r2c.default of such sizes"),
    "a size": (lambda: strict(Power(), SQUARE), rf"{HERE}.*aten.slice.Tensor: the size .* is not supported: sizes are"),
    "a number of a tensor": (lambda: xcc.compile(torch.export.export(Cut(), (SQUARE, torch.tensor(1)))),
                             rf"{HERE}start = at.item\(\): aten._local_.*'item', .* dims=\{{'item': \(0, 100\)\}}"),
    "an option": (lambda: strict(Double(), SQUARE, fast=True), "no option 'fast'; options are cache, chip, freeze"),
    "a precision": (lambda: strict(Double(), SQUARE, precision="f8"), "precision 'f8' is none of"),
    "a chip": (lambda: strict(Double(), SQUARE, chip="z80"), "no chip 'z80'; chips are"),
    "a dim": (lambda: xcc.compile(exported(Double(), SQUARE), dims={"m": 3}), "no dimension 'm'; there are 'n'"),
    "a constant": (lambda: xcc.compile(exported(Double(), SQUARE), fix={"m": 3}), "export the model with the value of"),
    "a rank": (lambda: doubled()(torch.ones(3)), r"input 'x': shape is \[3\], the model takes x: f32\[n, 3\]"),
    "a fixed dim": (lambda: doubled()(torch.ones(3, 4)), "input 'x': .*: dim 1 is 4, the model takes 3"),
    "a range": (lambda: doubled()(torch.ones(9, 3)), "dim 0 of input 'x': 'n' is 9, the model was compiled for 0..8"),
    "another type": (lambda: doubled()(SQUARE.double()), r"input 'x': element type is f64, the model takes x: f32"),
    "a name": (lambda: doubled().run({"y": SQUARE}), "no input 'y'; its inputs are x"),
    "a count": (lambda: doubled()(SQUARE, SQUARE), r"takes 1 input \(x: f32\[n, 3\]\), got 2"),
    "unequal dims": (lambda: xcc.compile(exported(Sum(), SQUARE, SQUARE))(SQUARE, torch.ones(4, 3)),
                     r"input 'y': .*: dim 0 is 4, but must be n = 3, as 'n' is 3 \(from dim 0 of input 'x'\)"),
}


@pytest.mark.parametrize("case", CASES)
def test_message(case: str) -> None:
    attempt, pattern = CASES[case]
    with pytest.raises((xcc.UserError, BackendCompilerFailed), match=pattern) as e:
        attempt()
    assert "\n" not in str(getattr(e.value, "inner_exception", e.value)).strip()


def test_the_command_line_says_it_in_one_line(tmp_path: Path) -> None:
    torch.export.save(exported(Eigenvalues(), SQUARE), tmp_path / "m.pt2")
    done = subprocess.run([sys.executable, "-m", "xcc.tools.xcc_cli", "m.pt2"], cwd=tmp_path, capture_output=True,
                          text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "no converter for aten._linalg_eigh.default" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("model, x, said", [
    (Eigenvalues(), SQUARE, "aten._linalg_eigh.default: xcc has no converter"),
    (Spectrum(), PAIRS, "aten._fft_r2c.default of such sizes: xcc has no converter"),
    (Roots(), PAIRS, "aten.sqrt.default of complex64: xcc has no converter"),
    (Power(), SQUARE, "aten.slice.Tensor: the size")])
def test_what_is_not_compiled_runs_in_torch(model: torch.nn.Module, x: Any, said: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = torch.compile(model, backend=backend, dynamic=True)(x)
    torch.testing.assert_close(got, model(x), rtol=1e-4, atol=1e-5)
    assert any(said in str(w.message) and "test_torch_errors.py" in str(w.message) for w in caught)
