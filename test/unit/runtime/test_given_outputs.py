"""Outputs that callers give memory for lie apart from inputs and from each other."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from xcc.diagnostics import UserError
from xcc.runtime.given_outputs import check_apart
from xcc.runtime.signature import TensorInfo

MEMORY = np.zeros(12, np.float32)


@pytest.mark.parametrize("seed", range(3))
def test_all_pairs_with_an_output_are_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(200):
        starts, sizes = rng.integers(0, 12, 5), rng.integers(0, 4, 5)
        arrays = [MEMORY[a:a + n] for a, n in zip(starts, sizes, strict=True)]
        shared = [set(range(a, a + x.size)) for a, x in zip(starts, arrays, strict=True)]
        infos = [TensorInfo(f"v{n}", "f32", (x.size,)) for n, x in enumerate(arrays)]
        clash = any(shared[o] & shared[n] for o, n in product(range(2, 5), range(5)) if o != n)
        if clash:
            with pytest.raises(UserError, match="out: 'v[2-4]' shares memory with "):
                check_apart(infos[:2], arrays[:2], infos[2:], arrays[2:])
        else:
            check_apart(infos[:2], arrays[:2], infos[2:], arrays[2:])


def test_the_message_names_both() -> None:
    x, y, z = (TensorInfo(n, "f32", (4,)) for n in "xyz")
    with pytest.raises(UserError, match="'y' shares memory with input 'x'"):
        check_apart([x], [MEMORY[2:6]], [y, z], [MEMORY[:4], MEMORY[8:]])
    with pytest.raises(UserError, match="'z' shares memory with 'y'"):
        check_apart([x], [MEMORY[:1]], [y, z], [MEMORY[2:6], MEMORY[3:7]])
    check_apart([x, x], [MEMORY[:4], MEMORY[2:6]], [y, z], [MEMORY[6:], None])
