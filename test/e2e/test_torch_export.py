"""Exported programs, compiled for the CPU and run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.export import Dim

import xcc


def perceptron() -> tuple[Any, Any]:
    """A small model and its export with a dim called batch."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 10))
    return model, torch.export.export(model, (torch.randn(3, 64),), dynamic_shapes=({0: Dim("batch")},))


def test_one_compilation_runs_all_sizes() -> None:
    model, program = perceptron()
    compiled = xcc.compile(program)
    assert str(compiled.inputs[0]) == "input: f32[batch, 64]"
    for n in (0, 1, 2, 5, 9):
        x = torch.randn(n, 64)
        np.testing.assert_allclose(compiled(x), model(x).detach().numpy(), atol=1e-6)


def test_a_file_is_compiled_once_and_needs_no_torch_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_CACHE_DIR", str(tmp_path / "cache"))
    model, program = perceptron()
    torch.export.save(program, tmp_path / "m.pt2")
    command = [sys.executable, "-m", "xcc.tools.xcc_cli", "m.pt2", "-o", "m.xcm"]
    first = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    again = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "from the cache" not in first.stderr and "from the cache" in again.stderr
    x = np.random.default_rng(0).standard_normal((2, 64)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    script = ("import sys; sys.modules['torch'] = None; import numpy as np, xcc; "
              "np.save('y.npy', xcc.load('m.xcm')(np.load('x.npy')))")
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), model(torch.from_numpy(x)).detach().numpy(), atol=1e-6)


def test_what_is_no_exported_program_is_said(tmp_path: Path) -> None:
    model, _ = perceptron()
    with pytest.raises(xcc.UserError, match="Sequential is no exported program"):
        xcc.compile(model)
    (tmp_path / "bad.pt2").write_bytes(b"nothing")
    with pytest.raises(xcc.UserError, match="bad.pt2: torch cannot read it"):
        xcc.compile(tmp_path / "bad.pt2")
    with pytest.raises(xcc.UserError, match="no dimension 'n'; there are 'batch'"):
        xcc.compile(perceptron()[1], dims={"n": 4})


class Counting(torch.nn.Module):
    """A length that values tell, of a range and as a number; and where a window begins, which checks bound."""

    def forward(self, lengths: Any, x: Any, at: Any) -> Any:
        longest, start = lengths.max().item(), at.item()
        torch._check(start >= 0)
        torch._check(start + 2 <= x.shape[0])
        return torch.arange(longest) < lengths[:, None], x[start:start + 2] * longest


class Repeating(torch.nn.Module):
    """Rows as often as each is asked for, how often each number is there, and the sums of their weights."""

    def forward(self, x: Any, repeats: Any, weights: Any) -> Any:
        return torch.repeat_interleave(x, repeats, 0) * 2, torch.bincount(repeats, minlength=3), \
            torch.bincount(repeats, weights)


def test_sizes_that_are_sums_and_largest_elements() -> None:
    n = torch.export.Dim("n")
    given = torch.randn(3, 2), torch.tensor([1, 0, 4]), torch.rand(3)
    program = torch.export.export(Repeating(), given, dynamic_shapes=({0: n}, {0: n}, {0: n}))
    limits = {"repeat_interleave_size": (0, 20), "bincount_size": (0, 20), "bincount_1_size": (0, 20)}
    compiled = xcc.compile(program, dims=limits)
    for repeats in ([1, 0, 4], [1, 0, 2, 0, 2], [0], [19]):
        given = torch.randn(len(repeats), 2), torch.tensor(repeats), torch.rand(len(repeats))
        for got, want in zip(compiled(*given), Repeating()(*given), strict=True):
            torch.testing.assert_close(torch.from_numpy(got), want)
    with pytest.raises(xcc.UserError, match="'repeat_interleave_size' is not in 0..20"):
        compiled(torch.randn(2, 2), torch.tensor([19, 2]), torch.rand(2))


def test_sizes_that_are_read_from_tensors() -> None:
    x, lengths, at = torch.randn(4, 3), torch.tensor([3, 5]), torch.tensor(1)
    program = torch.export.export(Counting(), (lengths, x, at))
    compiled = xcc.compile(program, dims={"item": (0, 20)})
    for first, start in ((3, 0), (0, 2), (20, 1)):
        given = torch.tensor([first, first // 2]), x, torch.tensor(start)
        for got, want in zip(compiled(*given), Counting()(*given), strict=True):
            np.testing.assert_allclose(got, want.numpy())
    with pytest.raises(xcc.UserError, match="'item' is not in 0..20"):
        compiled(torch.tensor([21, 3]), x, at)
    with pytest.raises(xcc.UserError, match="'item_1' is not in 0..2"):
        compiled(lengths, x, torch.tensor(3))
