"""Random tile programs: loops that carry and swap tiles, branches, moves, and memory read where it was written."""

import random

import numpy as np
import pytest

from xcc import tile

CONTIGUOUS, STRIDED = (tile.BufferOf("f32", (None, None), s) for s in (None, (None, None)))
GPUS = (("nvptx", "sm_80"), ("amdgcn", "gfx942"), ("nvptx", "sm_90a"), ("amdgcn", "gfx1100"))


class Draw:
    """Draws the steps of one program. `pool` are tiles to take."""

    def __init__(self, seed):
        self.rnd = random.Random(seed)

    def pick(self, pool, shape=None):
        return self.rnd.choice([t for t in pool if shape is None or t.shape == shape])

    def offsets(self):
        return self.rnd.randrange(-3, 8), self.rnd.randrange(-3, 8)

    def step(self, pool, x, y, depth=0):
        steps = [self.arithmetic, self.arithmetic, self.moved, self.combined, self.read, self.written]
        steps += [self.loop, self.turns, self.branch] if depth < 2 else []
        return self.rnd.choice(steps)(pool, x, y, depth)

    def arithmetic(self, pool, x, y, depth):
        a = self.pick(pool)
        b = self.pick(pool, a.shape)
        return self.rnd.choice([lambda: a - b * 0.5, lambda: tile.maximum(a, b), lambda: tile.where(a > b, a, b * 0.25),
                                lambda: tile.exp(a * 0.1)])()

    def moved(self, pool, x, y, depth):
        a = self.pick(pool)
        even, odd = a.reshape(a.shape[0], a.shape[1] // 2, 2).split()
        return self.rnd.choice([lambda: a.T.reshape(a.shape), lambda: tile.join(odd, even).reshape(a.shape)])()

    def combined(self, pool, x, y, depth):
        a, axis = self.pick(pool), self.rnd.randrange(2)
        return self.rnd.choice([lambda: a - a.sum(axis, keepdims=True) * 0.03,
                                lambda: (a + a.max(axis, keepdims=True)) * 0.5,
                                lambda: a.cumsum(axis, reverse=axis == 0) * 0.2,
                                lambda: tile.dot(tile.dot(a, a.T) * 0.05, a) * 0.05])()

    def read(self, pool, x, y, depth):
        a = self.pick(pool)
        i, j = tile.arange(a.shape[0])[:, None], tile.arange(a.shape[1])[None, :]
        return self.rnd.choice([lambda: x.tile(self.offsets(), a.shape, 1.5),
                                lambda: y.tile(self.offsets(), a.shape, 0.5),
                                lambda: x.gather(i * 2, j + i, mask=a > 0, other=2)])()

    def written(self, pool, x, y, depth):
        a = self.pick(pool)
        y.store(self.offsets(), a)
        return a

    def loop(self, pool, x, y, depth):
        start = [self.pick(pool) for _ in range(self.rnd.randrange(1, 4))]

        def body(i, *carried):
            inside = [*carried, *(t for t in pool[:2] if t.shape == carried[0].shape)]
            for _ in range(self.rnd.randrange(1, 5)):
                inside.append(self.step(inside, x, y, depth + 1))
            return [self.pick(inside, c.shape) for c in carried]

        end, by = self.rnd.choice([x.size(0), 3]), self.rnd.randrange(1, 3)
        return self.rnd.choice(tile.for_(0, end, by, start, body)) * 0.5

    def turns(self, pool, x, y, depth):
        a = self.pick(pool)
        last = self.rnd.randrange(1, 4)

        def body(c, d, n):
            return d * 0.9 + self.arithmetic([c, d], x, y, 2) * 0.1, c, n + 1

        return tile.while_([a, self.pick(pool, a.shape), 0], lambda c, d, n: n < last, body)[self.rnd.randrange(2)]

    def branch(self, pool, x, y, depth):
        shape = self.pick(pool).shape

        def way():
            inside = [*pool, self.step(pool, x, y, depth + 1)]
            return self.pick(inside[::-1], shape)

        return tile.if_(x.size(0) > self.rnd.choice([3, 100]), way, way)[0]

    def body(self, x, y):
        pool = [x.tile((0, 0), (8, 16), 0), x.tile((1, 2), (16, 16), 0.5)]
        for _ in range(self.rnd.randrange(4, 10)):
            pool.append(self.step(pool, x, y))
        for n, t in enumerate(pool[-3:]):
            y.store((n * 16, 16), t)


def arrays(seed, strided):
    x = np.random.default_rng(seed).standard_normal((13, 40), dtype=np.float32)
    y = np.zeros((60, 80), np.float32)
    return [x[:, ::2], y[:, ::2]] if strided else [x[:, :20].copy(), y[:, :40].copy()]


@pytest.mark.parametrize("seed", range(40))
def test_means_the_same_everywhere(seed):
    """Every eighth is run on a GPU, too."""
    kind = STRIDED if seed % 3 == 0 else CONTIGUOUS
    program = tile.build("drawn", {"x": kind, "y": kind}, Draw(seed).body, grid=(1,))
    want = arrays(seed, kind is STRIDED)
    tile.evaluate(program, want)
    if not np.isfinite(want[1]).all() or np.abs(want[1]).max() > 1e6:
        pytest.skip("too large numbers")
    for target, chip in [("cpu", ""), *([GPUS[seed // 8 % 4]] if seed % 8 == 0 else [])]:
        got = arrays(seed, kind is STRIDED)
        tile.run(program, got, target, chip)
        np.testing.assert_allclose(got[1], want[1], 1e-3, 1e-3, err_msg=f"{target} {chip}")


def test_carried_tiles_change_places():
    def rotate(x, y):
        def step(i, a, b, c):
            return tile.where(a > c, a, c * 0.25), a, b

        start = [x.tile((n, 0), (4, 16), 0) for n in range(3)]
        for n, t in enumerate(tile.for_(0, 5, 1, start, step)):
            y.store((4 * n, 0), t)

    program = tile.build("rotate", {"x": CONTIGUOUS, "y": CONTIGUOUS}, rotate, grid=(1,))
    want, got = arrays(1, False), arrays(1, False)
    tile.evaluate(program, want)
    tile.run(program, got)
    np.testing.assert_array_equal(got[1], want[1])
