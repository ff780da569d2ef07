"""Products that take several steps at a time, and instances that share packed operands, against numpy."""

import ml_dtypes
import numpy as np
import pytest

from xcc import tile

M, N, K = 16, 32, 16
TYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8}
TOLERANCE = {"f32": 2e-3, "bf16": 5e-3, "i8": 0}


def product(columns_first, dtype):
    """c = a @ b, blocks of a column of blocks one after the other, or of a row."""
    def program(a, b, c):
        p = tile.program_id(0)
        across = tile.cdiv(c.size(1), N) if columns_first else tile.cdiv(c.size(0), M)
        slow, fast = p // across, p % across
        row, column = (slow * M, fast * N) if columns_first else (fast * M, slow * N)

        def step(at, s):
            return tile.dot(a.tile((row, at), (M, K), 0), b.tile((at, column), (K, N), 0), s)

        c.store((row, column), tile.for_(0, a.size(1), K, [tile.zeros((M, N), sums)], step)[0])

    sums = "i32" if dtype == "i8" else "f32"
    given = tile.BufferOf(dtype, (None, None))
    return tile.build("product", {"a": given, "b": given, "c": tile.BufferOf(sums, (None, None))}, program,
                      grid=("blocks",))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("columns_first", [False, True])
def test_products(columns_first, dtype):
    rng = np.random.default_rng(0)
    compiled = tile.compile(product(columns_first, dtype), "cpu")
    for rows, columns, steps in ((70, 150, 1100), (200, 64, 40), (1, 33, 513), (300, 200, 5000)):
        a, b = ((rng.standard_normal(s) * (60 if dtype == "i8" else 1)).clip(-128, 127).astype(TYPES[dtype])
                for s in ((rows, steps), (steps, columns)))
        c = np.full((rows, columns), 7, np.int32 if dtype == "i8" else np.float32)
        compiled.launch([a, b, c], (-(-rows // M) * -(-columns // N),))
        want = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(c, want, rtol=1e-4, atol=TOLERANCE[dtype])
