"""One program in every element type, on this CPU and, turn by turn, on the GPUs."""

import numpy as np
import pytest

from xcc import tile
from xcc.dialects.tile.types import is_float
from xcc.dialects.xt.types import numpy_dtype

DTYPES = ("f64", "f32", "f16", "bf16", "f8E4M3FN", "f8E5M2", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")
GPUS = (("nvptx", "sm_80"), ("amdgcn", "gfx942"), ("nvptx", "sm_90a"), ("amdgcn", "gfx1100"))
ATOMIC = ("f64", "f32", "f16", "bf16", "i32", "i64", "ui32", "ui64")
LOOSE = {"f64": 1e-9, "f32": 1e-4, "f16": 0.1, "bf16": 1.0}


def program(dtype):
    def body(x, y, z, w):
        t = x.tile((0, 0), (4, 32), 0)
        a, b = t.reshape(4, 16, 2).split()
        rows = [tile.maximum(t, 1), tile.join(b, a).reshape(4, 32), t.T.reshape(4, 32), (t.to("f32") * 0.5).to(dtype),
                t.to("i32").to(dtype), t.argmax(1).to(dtype)[:, None], t.min(0)[None, :],
                tile.reduce(t, 0, tile.maximum)[None, :]]
        if dtype[:2] != "f8":       # sums of more than two are rounded at other places
            rows += [t + t, t.cumsum(1), t * 2 / 3 if is_float(dtype) else t * 2 // 3]
            z.store((0,), t.sum(1))
        for n, row in enumerate(rows):
            y.store((4 * n, 0), row)
        z.store((4,), t.max(1))
        w.store((0, 0), tile.sort(t))
        if dtype in ATOMIC:
            i = tile.arange(32)
            y.atomic("max", i * 0 + 44, i, value=t.max(0))
            y.atomic("add", i * 0 + 45, i // 2, value=t.min(0))

    matrix = tile.BufferOf(dtype, (None, None))
    line = tile.BufferOf(dtype, (None,))
    return tile.build("all", {"x": matrix, "y": matrix, "z": line, "w": matrix}, body, grid=(1,))


def arrays(dtype):
    rng = np.random.default_rng(1)
    low = 0 if dtype[0] == "u" else -50
    x = rng.standard_normal((4, 32)) * 3 if is_float(dtype) else rng.integers(low, 100, (4, 32))
    kind = numpy_dtype(dtype)
    return [x.astype(kind), np.zeros((46, 32), kind), np.zeros(8, kind), np.zeros((4, 32), kind)]


@pytest.mark.parametrize("number, dtype", list(enumerate(DTYPES)))
def test_every_type(number, dtype):
    made, want = program(dtype), arrays(dtype)
    tile.evaluate(made, want)
    for target, chip in (("cpu", ""), GPUS[number % 4]):
        got = arrays(dtype)
        tile.run(made, got, target, chip)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), 0, LOOSE.get(dtype, 0),
                                       err_msg=f"{target} {chip}")


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("target, chip", [("nvptx", "sm_90a"), ("nvptx", "sm_80"), ("amdgcn", "gfx942")])
def test_products_of_aligned_rows(target, chip, turned):
    """Instructions of warpgroups and of warps, whose operands are copied ahead, 16 bytes at a time."""
    matrix = tile.BufferOf("f16", (None, None), None, 8)

    def product(a, b, c):
        i, j = tile.program_id(0) * 64, tile.program_id(1) * 32

        def step(k, s):
            right = b.tile((j, k), (32, 64), 0).T if turned else b.tile((k, j), (64, 32), 0)
            return tile.dot(a.tile((i, k), (64, 64), 0), right, s)

        c.store((i, j), tile.for_(0, a.size(1), 64, [tile.zeros((64, 32))], step)[0].to("f16"))

    made = tile.build("product", {"a": matrix, "b": matrix, "c": matrix}, product,
                      grid=("floordiv(a_0 + 63, 64)", "floordiv(c_1 + 31, 32)"))
    rng = np.random.default_rng(2)
    a, b = rng.random((70, 136)).astype(np.float16), rng.random((136, 40)).astype(np.float16)
    got = [a, np.ascontiguousarray(b.T) if turned else b, np.zeros((70, 40), np.float16)]
    code = tile.compile(made, target, chip, emit=False)
    code.interpret(got)
    np.testing.assert_allclose(got[2].astype(np.float32), a.astype(np.float32) @ b.astype(np.float32), 2e-3)
    assert ("xtg.wgmma" in code.stages["gpu"]) == (chip == "sm_90a")
    with pytest.raises(Exception, match="rows of a are 135 elements long"):
        tile.evaluate(made, [a[:, :135].copy(), *got[1:]])
