"""Conversions through less shared memory than a tile takes, in the interpreter: what was read is what is written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from xcc._mlir import ir
from xcc.interpreter.kernel import run_kernel
from xcc.interpreter.machine import Options
from xcc.passes.base import PassContext, get_pass
from xcc.passes.gpu.exchange.exchange_pieces import part_functions
from xcc.passes.gpu.layout.linear import Layout
from xcc.targets.amdgcn.chip import CHIPS as AMD
from xcc.targets.nvptx.chip import chips

CHIPS = {**chips(), **AMD}
SHAPE = (32, 64)
PROGRAM = """
func.func @copy(%a: memref<32x64x{t}>, %o: memref<32x64x{t}>)
    attributes {{xt.kernel, xcc.config = {{gpu = {{threads = {threads} : i64}}}}}} {{
  %c0 = arith.constant 0 : index
  %pad = arith.constant {zero} : {t}
  scf.forall (%i) in (1) {{
    %x = vector.transfer_read %a[%c0, %c0], %pad {{in_bounds = [true, true], xcc.layout = ["{source}"]}}
        : memref<32x64x{t}>, vector<32x64x{t}>
    %y = builtin.unrealized_conversion_cast %x : vector<32x64x{t}> to vector<32x64x{t}> {{xcc.layout = ["{target}"]}}
    vector.transfer_write %y, %o[%c0, %c0] {{in_bounds = [true, true], xcc.layout = ["{target}"]}}
        : vector<32x64x{t}>, memref<32x64x{t}>
  }}
  return
}}
"""


def drawn(rng: np.random.Generator, lanes: int, warps: int) -> Layout:
    """Any layout of the tile: bits of it dealt out, some mixed by XOR, some lanes and warps with copies."""
    units = [(1 << b, 0) for b in range(5)] + [(0, 1 << b) for b in range(6)]
    held = [units[i] for i in rng.permutation(len(units))]
    for _ in range(int(rng.integers(0, 4))):
        i, j = rng.choice(len(held), 2, replace=False)
        held[i] = (held[i][0] ^ held[j][0], held[i][1] ^ held[j][1])
    bases: dict[str, list[tuple[int, int]]] = {"register": [], "lane": [], "warp": []}
    for name, count in (("lane", lanes), ("warp", warps)):
        for _ in range(count):
            bases[name].append(held.pop() if rng.random() < 0.85 else (0, 0))
    return Layout.make(SHAPE, {**bases, "register": held})


@pytest.mark.parametrize("seed", range(9))
def test_copies_through_little_memory(seed: int) -> None:
    rng = np.random.default_rng(seed)
    name = ("sm_86", "gfx942", "gfx1100")[seed % 3]
    warps = int(rng.integers(0, 3))
    lanes = CHIPS[name].warp.bit_length() - 1
    source, target = drawn(rng, lanes, warps), drawn(rng, lanes, warps)
    dtype, kind = ((np.float32, "f32"), (np.int8, "i8"), (np.float64, "f64"))[int(rng.integers(3))]
    least = 16 if kind == "i8" else 64
    limit = least << int(rng.integers(0, 5))
    threads = CHIPS[name].warp << warps
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(PROGRAM.format(t=kind, zero="0" if kind == "i8" else "0.0", source=source,
                                                target=target, threads=threads))
        for decided in ("convert-layouts", "distribute"):
            get_pass(decided)().run(module, PassContext(chip=replace(CHIPS[name], shared_bytes=limit)))
        assert module.operation.verify()
        x = rng.integers(-100, 100, SHAPE).astype(dtype)
        out = np.full_like(x, 111)
        run_kernel(module, "copy", (1, 1, 1), (threads, 1, 1), [x, out], options=Options(warp=CHIPS[name].warp),
                   dynamic_shared=limit)
        np.testing.assert_array_equal(out, x)


def test_parts_are_of_registers_where_there_are_such() -> None:
    """Two layouts of rows and columns: the rows' high bits are registers of both, so that no thread waits its turn."""
    rows = Layout.parse("tile=[32,64] register=[[0,1],[0,2],[4,0],[8,0],[16,0]] "
                        "lane=[[0,4],[0,8],[0,16],[0,32],[1,0]] warp=[[2,0]]")
    columns = Layout.parse("tile=[32,64] register=[[1,0],[2,0],[4,0],[8,0],[16,0]] "
                           "lane=[[0,1],[0,2],[0,4],[0,8],[0,16]] warp=[[0,32]]")
    assert set(part_functions(rows, columns, 3)) == {1 << 8, 1 << 9, 1 << 10}
