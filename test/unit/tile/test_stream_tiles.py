"""Stores past the caches, where the buffer is large and its lines allow it, against numpy."""

import numpy as np
import pytest

from xcc import tile
from xcc.frontends.kernel.compiling import compiled
from xcc.options import CompileOptions
from xcc.passes.tile.stream_tiles import StreamTiles
from xcc.targets.front import tile_pipeline


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_stores(dtype):
    def program(x, y):
        at = (tile.program_id(0) * 4, tile.program_id(1) * 64)
        t = x.tile(at, (4, 64), other=0)
        y.store(at, t + t)

    made = tile.build("double", {"x": tile.BufferOf(dtype, (None, None)), "y": tile.BufferOf(dtype, (None, None))},
                      program, grid=("rows", "columns"))
    options = CompileOptions(target="cpu")
    plan = tile_pipeline(options).replace("stream-tiles", StreamTiles(bytes=1))
    code = compiled(made, options, pipeline=plan)
    for rows, columns, start in ((64, 256, 0), (63, 320, 0), (64, 256, 4), (9, 100, 0)):
        kind = {"f32": np.float32, "f16": np.float16}[dtype]
        x = np.random.default_rng(0).standard_normal((rows, columns)).astype(kind)
        room = np.full(rows * columns + 256, 7, kind)
        first = -(room.ctypes.data // room.itemsize) % (64 // room.itemsize) + start
        y = room[first:first + x.size].reshape(x.shape)
        code.launch([x, y], (-(-rows // 4), -(-columns // 64)))
        np.testing.assert_array_equal(y, x + x)
        assert (room[:first] == 7).all() and (room[first + x.size:] == 7).all()
