"""Products that take several steps at a time, and instances that share packed operands, against numpy."""

import numpy as np
import pytest

from xcc import tile

MATRIX = tile.BufferOf("f32", (None, None))
M, N, K = 16, 32, 16


def product(columns_first):
    """c = a @ b, blocks of a column of blocks one after the other, or of a row."""
    def program(a, b, c):
        p = tile.program_id(0)
        across = tile.cdiv(c.size(1), N) if columns_first else tile.cdiv(c.size(0), M)
        slow, fast = p // across, p % across
        row, column = (slow * M, fast * N) if columns_first else (fast * M, slow * N)

        def step(at, s):
            return tile.dot(a.tile((row, at), (M, K), 0), b.tile((at, column), (K, N), 0), s)

        c.store((row, column), tile.for_(0, a.size(1), K, [tile.zeros((M, N))], step)[0])

    return tile.build("product", {"a": MATRIX, "b": MATRIX, "c": MATRIX}, program, grid=("blocks",))


@pytest.mark.parametrize("columns_first", [False, True])
def test_products(columns_first):
    rng = np.random.default_rng(0)
    compiled = tile.compile(product(columns_first), "cpu")
    for rows, columns, steps in ((70, 150, 1100), (200, 64, 40), (1, 33, 513), (300, 200, 5000)):
        a, b = (rng.standard_normal(s).astype(np.float32) for s in ((rows, steps), (steps, columns)))
        c = np.full((rows, columns), np.nan, np.float32)
        compiled.launch([a, b, c], (-(-rows // M) * -(-columns // N),))
        np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=2e-3)
