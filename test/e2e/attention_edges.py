"""Attentions whose queries, keys and features lie around the sizes of tiles, with every kind of mask.

    python test/e2e/attention_edges.py --prepare DIR [COUNT]     # compiles them for an H100, anywhere
    python test/e2e/attention_edges.py --check DIR               # runs them on this machine's GPU, by the runtime alone

Both in f16 and f32, with several batches, in memory that is NaN where nobody wrote: buffers (XCC_POISON), and shared
memory before each run (gpu_poison.py).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from attention_forms import BOUND, FORMS, HALF, SINGLE, Case, module_of
from gpu_poison import SharedPoison, shared_poison

TILES = (16, 32, 64, 128)
FEATURES = (16, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256)
PRIMES = (3, 5, 7, 11, 13, 19, 29, 41, 43, 47, 53, 59, 61, 71, 97, 101)
WINDOW = Case("biased", 49, 49, 32, batch=2, heads=3, shared=3)     # a window of a Swin transformer: 7 x 7 pixels


def near(rng: np.random.Generator, most: int = 131) -> int:
    """A size one below, at, or one above a tile's; an odd one between two; a prime; any."""
    tile = int(rng.choice(TILES))
    kinds: list[Callable[[], int]] = [
        lambda: tile - 1, lambda: tile, lambda: tile + 1, lambda: tile // 2 + 2 * int(rng.integers(tile // 4)) + 1,
        lambda: int(rng.choice(PRIMES)), lambda: int(rng.integers(1, most))]
    return min(most, kinds[rng.integers(len(kinds))]())


def edge_cases(count: int, batch: int = 1, dtype: Any = HALF, seed: int = 0) -> list[Case]:
    """`count` draws, each form in turn; always the same ones."""
    rng = np.random.default_rng(seed)
    cases = []
    for form in (list(FORMS)[n % len(FORMS)] for n in range(count)):
        keys, queries, features = near(rng), 1 if rng.random() < 0.1 else near(rng), int(rng.choice(FEATURES))
        heads = 4 if form == "repeated" else int(rng.integers(1, 4))
        if form == "diagonal":      # each row sees a key
            queries = min(queries, keys)
        cases.append(Case(form, queries, keys, features, dtype, batch, heads, 2 if form == "repeated" else heads))
    return cases


def device_cases(count: int) -> list[Case]:
    """Draws for a GPU: more than one batch, f16 and f32."""
    half = [replace(WINDOW, batch=64), *edge_cases(count, 3, HALF, 1)]
    return [*half, *edge_cases(max(1, count // 3), 3, SINGLE, 2)]


def wrong(model: Any, shared: SharedPoison | None, case: Case, arrays: list[Any]) -> str:
    """What is wrong with a run on `arrays`; "" for nothing."""
    if shared is not None:
        shared.fill()
    (got,) = model.run({f"x{i}": a for i, a in enumerate(arrays)}).values()
    missing, error = int(np.isnan(np.asarray(got)).sum()), case.error(np.asarray(got), case.reference(arrays))
    return "" if error < BOUND[case.dtype] else f"error {error:.1e}, {missing} of {np.asarray(got).size} are NaN"


def prepare(folder: Path, count: int) -> None:
    import xcc

    folder.mkdir(parents=True, exist_ok=True)
    for n, case in enumerate(device_cases(count)):
        path = folder / f"{n}.mlir"
        path.write_text(str(module_of(case, case.arrays(n))))
        xcc.compile(path, target="nvptx", chip="sm_90a").save(folder / f"{n}.xcm")
        path.unlink()
    (folder / "shared.ptx").write_bytes(shared_poison("sm_90a"))


def check(folder: Path) -> int:
    """How many of the prepared cases are wrong."""
    from xcc.runtime.cuda_driver import CudaDriver
    from xcc.runtime.model import load

    os.environ.setdefault("XCC_POISON", "1")
    count = len(list(folder.glob("*.xcm")))
    cases = next(c for n in range(count + 1) for c in [device_cases(n)] if len(c) == count)
    shared = SharedPoison(CudaDriver(), (folder / "shared.ptx").read_bytes())
    bad = 0
    for n, case in enumerate(cases):
        message = wrong(load(folder / f"{n}.xcm"), shared, case, case.arrays(n))
        bad += bool(message)
        if message:
            print(f"{case}: {message}", flush=True)
    print(f"{bad} of {len(cases)} are wrong", flush=True)
    return bad


if __name__ == "__main__":
    if sys.argv[1] == "--prepare":
        prepare(Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 60)
    else:
        sys.exit(bool(check(Path(sys.argv[2]))))
