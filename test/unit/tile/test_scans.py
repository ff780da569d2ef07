"""Scans of lines of pieces: in the loops of the store that needs them, or kept, against numpy."""

import numpy as np
import pytest

from xcc import tile

ROWS = 4
KINDS = {"sum": (np.cumsum, 0), "prod": (np.cumprod, 1), "max": (np.maximum.accumulate, -np.inf),
         "min": (np.minimum.accumulate, np.inf)}


def _program(kind, columns, dtype, body, **attributes):
    more = "".join(f", {name} = true" for name, on in attributes.items() if on)
    shape = f"vector<{ROWS}x{columns}x{dtype}>"
    load = f'"tile.load"(%x, %zero, %at, %c0) {{shape = [{ROWS}, {columns}]}} ' \
        f": (memref<?x?x{dtype}>, {dtype}, index, index)"
    return f"""
    func.func @scan(%x: memref<?x?x{dtype}> {{tile.name = "x"}}, %y: memref<?x?x{dtype}>, %z: memref<?x?x{dtype}>)
        attributes {{tile.grid = [2]}} {{
      %i = "tile.program_id"() {{axis = 0 : i64}} : () -> index
      %c0 = arith.constant 0 : index
      %rows = arith.constant {ROWS} : index
      %at = arith.muli %i, %rows : index
      %zero = arith.constant {"1.0" if dtype[0] in "fb" else "1"} : {dtype}
      %t = {load} -> {shape}
      %s = "tile.scan"(%t) {{kind = "{kind}"{more}}} : ({shape}) -> {shape}
      {body.replace("SHAPE", shape).replace("STORE", f"({shape}, memref<?x?x{dtype}>, index, index) -> ()")}
      return
    }}"""


def _want(x, kind, reverse=False, exclusive=False):
    running, start = KINDS[kind]
    line = x[:, ::-1] if reverse else x
    made = running(line.astype(np.float64), axis=1)
    if exclusive:
        made = np.concatenate([np.full((len(x), 1), start), made[:, :-1]], axis=1)
    return made[:, ::-1] if reverse else made


WRITTEN = '"tile.store"(%s, %y, %at, %c0) : STORE'


@pytest.mark.parametrize("columns", [1, 8, 32, 512])
@pytest.mark.parametrize("reverse, exclusive", [(False, False), (True, False), (False, True), (True, True)])
def test_written(columns, reverse, exclusive):
    """Of all kinds and directions, on whole lines and on shorter ones."""
    rng = np.random.default_rng(0)
    for kind in KINDS:
        text = _program(kind, columns, "f32", WRITTEN, reverse=reverse, exclusive=exclusive)
        for n in {columns, max(1, columns - 5)}:
            x = rng.uniform(0.9, 1.1, (2 * ROWS, n)).astype(np.float32)
            y, z = np.zeros_like(x), np.zeros_like(x)
            tile.run(text, [x, y, z], "cpu")
            whole = np.pad(x, ((0, 0), (0, columns - n)), constant_values=1)
            np.testing.assert_allclose(y, _want(whole, kind, reverse, exclusive)[:, :n], rtol=2e-5)


@pytest.mark.parametrize("dtype, kind", [("f16", np.float16), ("f64", np.float64), ("i8", np.int8), ("i64", np.int64)])
def test_types(dtype, kind):
    x = np.random.default_rng(0).integers(-2, 3, (2 * ROWS, 128)).astype(kind)
    y, z = np.zeros_like(x), np.zeros_like(x)
    tile.run(_program("sum", 128, dtype, WRITTEN), [x, y, z], "cpu")
    np.testing.assert_array_equal(y, np.cumsum(x, axis=1, dtype=kind))


@pytest.mark.parametrize("body", [
    '''%d = arith.addf %s, %t : SHAPE
      "tile.store"(%d, %y, %at, %c0) : STORE''',
    '''"tile.store"(%s, %z, %at, %c0) : STORE
      %d = arith.addf %s, %t : SHAPE
      "tile.store"(%d, %y, %at, %c0) : STORE''',
    '''%r = "tile.scan"(%t) {kind = "max", reverse = true} : (SHAPE) -> SHAPE
      %e = arith.addf %s, %t : SHAPE
      %one = arith.subf %r, %r : SHAPE
      %d = arith.addf %e, %one : SHAPE
      "tile.store"(%d, %y, %at, %c0) : STORE''',
    '''"tile.store"(%t, %z, %at, %c0) : STORE
      %a = "tile.reduce"(%s) {axes = [1], kind = "max"} : (SHAPE) -> vector<4xf32>
      %b = "tile.reshape"(%a) {shape = [4, 1]} : (vector<4xf32>) -> vector<4x1xf32>
      %m = "tile.broadcast"(%b) {shape = [4, 64]} : (vector<4x1xf32>) -> SHAPE
      %u = arith.subf %m, %m : SHAPE
      %e = arith.addf %s, %u : SHAPE
      %d = arith.addf %e, %t : SHAPE
      "tile.store"(%d, %y, %at, %c0) : STORE'''])
def test_with_others(body):
    """Beside what else is stored; of two stores, of two scans in one, and of a reduction."""
    x = np.random.default_rng(0).uniform(-1, 1, (2 * ROWS, 64)).astype(np.float32)
    y, z = np.zeros_like(x), np.zeros_like(x)
    tile.run(_program("sum", 64, "f32", body), [x, y, z], "cpu")
    np.testing.assert_allclose(y, np.cumsum(x, axis=1) + x, rtol=1e-4, atol=1e-5)
