"""A model that tests load again and again, and what the process holds of it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

import xcc
from xcc.runtime.model import Model

# Two kernels for several threads: a product whose result is a temporary, and its softmax.
PRODUCT = """
func.func @main(%x: tensor<?x32xf32, ["n", 32]> {xt.name = "x"}) -> (tensor<?x?xf32, ["n", "n"]> {xt.name = "y"}) {
  %0 = "xt.dot_general"(%x, %x) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]}
    : (tensor<?x32xf32, ["n", 32]>, tensor<?x32xf32, ["n", 32]>) -> tensor<?x?xf32, ["n", "n"]>
  %1 = "xt.softmax"(%0) {axis = 0 : i64} : (tensor<?x?xf32, ["n", "n"]>) -> tensor<?x?xf32, ["n", "n"]>
  return %1 : tensor<?x?xf32, ["n", "n"]>
}
"""


def compiled_product(folder: Path, threads: int = 2) -> Path:
    """The artifact of PRODUCT for so many threads, with its source ``m.mlir`` beside it."""
    (folder / "m.mlir").write_text(PRODUCT)
    xcc.compile(folder / "m.mlir", threads=threads).save(folder / "m.xcm")
    return folder / "m.xcm"


def libraries() -> int:
    return len({line.split()[4] for line in Path("/proc/self/maps").read_text().splitlines() if "xcc-model" in line})


def held() -> tuple[int, int, int]:
    """Threads of this process, models' libraries and their files."""
    files = [p.readlink() for p in Path("/proc/self/fd").iterdir() if p.is_symlink()]
    return len(os.listdir("/proc/self/task")), libraries(), sum("xcc-model" in str(f) for f in files)


def assert_held(wanted: tuple[int, int, int]) -> None:
    """Linux lists a thread for a moment longer than one waits for it to end."""
    for _ in range(200):
        if held() == wanted:
            break
        time.sleep(0.005)
    assert held() == wanted


def more(before: tuple[int, int, int], count: int) -> tuple[int, int, int]:
    """With `count` more models of two threads."""
    threads, libraries, files = before
    return threads + count, libraries + count, files + count


def rows(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, 32), np.float32)


def expected(x: np.ndarray) -> np.ndarray:
    e = np.exp((x @ x.T) - (x @ x.T).max(0))
    return e / e.sum(0)


def check(model: Model, n: int = 100) -> None:
    np.testing.assert_allclose(model(rows(n)), expected(rows(n)), rtol=2e-4, atol=1e-6)
