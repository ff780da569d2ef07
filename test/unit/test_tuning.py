"""The tuning database, the schedules that are tried, and a whole tuning run on one small kernel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_tile import SOFTMAX, matmul  # noqa: E402

import xcc
from xcc._mlir import ir
from xcc.context import new_context, parse_module
from xcc.diagnostics import UserError
from xcc.options import CompileOptions
from xcc.passes.base import PassContext
from xcc.passes.linalg.configure import Configure
from xcc.passes.linalg.kernel import read
from xcc.passes.linalg.neighbours import neighbours
from xcc.passes.linalg.tuning import Database, signature
from xcc.targets.cpu import chip as cpu_chip
from xcc.targets.cpu.strategy import configure
from xcc.tuner import tune

MODEL = """
func.func @main(%x: tensor<64x96xf32> {xt.name = "x"}) -> (tensor<64x96xf32> {xt.name = "y"}) {
  %0 = "xt.softmax"(%x) {axis = 1 : i64} : (tensor<64x96xf32>) -> tensor<64x96xf32>
  return %0 : tensor<64x96xf32>
}
"""


def kernel(text: str):
    module = parse_module(text, new_context(), "test")
    return module, read(module.body.operations[0])


def test_text_round_trip_and_merge():
    a = Database({("znver4", "pointwise f32 64 #1"): "{block = array<i64: 64>}"})
    b = Database({("znver4", "pointwise f32 64 #1"): "{block = array<i64: 32>}", ("x", "y"): "{}"})
    assert Database.parse(a.text(), "a").entries == a.entries
    assert a.merged(b).entries == b.entries
    assert a.merged(b).text() == b.merged(a).merged(b).text()


def test_damaged_files_are_located():
    with pytest.raises(UserError, match="t.txt:2: not an entry"):
        Database.parse("# head\nznver4 nothing\n", "t.txt")
    with pytest.raises(UserError, match="cannot read"):
        Database.read("/nowhere/t.txt")


def test_signatures_tell_kernels_apart():
    def key(text: str) -> str:
        _module, k = kernel(text)       # the kernel refers to the module's ops
        return signature(k)

    assert len({key(t) for t in (SOFTMAX, matmul(32, 64), matmul(32, 65), matmul(32, 64, "b"))}) == 4
    assert key(SOFTMAX) == key(SOFTMAX.replace("@k", "@other"))


def test_configure_takes_the_entry(tmp_path):
    module, k = kernel(matmul(32, 64))
    with module.context:
        base = configure(k, cpu_chip.host())
        other = neighbours(k, base, cpu_chip.host())[0]
        file = tmp_path / "t.txt"
        file.write_text(Database({(cpu_chip.host().name, signature(k)): str(other.to_attr())}).text())
    for path, expected in (("", base), (str(file), other)):
        ctx = PassContext(chip=cpu_chip.host(), options=CompileOptions(tuning=path))
        module, _ = kernel(matmul(32, 64))
        Configure(target="cpu").run(module, ctx)
        with module.context:
            assert module.body.operations[0].attributes["xcc.config"] == ir.Attribute.parse(str(expected.to_attr()))


def test_neighbours_are_distinct_and_valid():
    module, k = kernel(matmul(100, 33))
    with module.context:
        base = configure(k, cpu_chip.host())
        found = neighbours(k, base, cpu_chip.host())
    assert len(found) > 5 and base not in found and len(set(found)) == len(found)


def test_gpu_neighbours_have_tiles_of_warpgroups_where_the_chip_has_them():
    from xcc.targets.nvptx.chip import chips
    from xcc.targets.nvptx.strategy import configure as configure_gpu

    module, k = kernel(matmul(512, 1024))
    with module.context:
        for chip, wanted in (("sm_90a", True), ("sm_80", False)):
            base = configure_gpu(k, chips()[chip])
            found = neighbours(k, base, chips()[chip])
            assert len(set(found)) == len(found) and base not in found
            assert any(s.warpgroup and s.reduce == ((64,),) for s in found) == wanted


def test_steps_of_an_online_loop_change_together():
    from xcc.passes.linalg.schedule import Schedule
    from xcc.targets.nvptx.chip import chips

    base = Schedule((64, 64), (64, 64), (0, 1), ((64,), (32,), (64,)), "mask", "gather", threads=128, stages=2,
                    online=True)
    module, k = kernel(matmul(512, 1024))
    with module.context:
        steps = {s.reduce for s in neighbours(k, base, chips()["sm_90a"])} - {base.reduce}
    assert steps == {((32,), (32,), (32,)), ((128,), (32,), (128,))}


def test_a_tuned_model_computes_the_same(tmp_path):
    import numpy as np

    path = tmp_path / "m.mlir"
    path.write_text(MODEL)
    lines: list[str] = []
    found = tune(str(path), CompileOptions(), 0.5, lines.append)
    assert len(lines) == 1 and "us" in lines[0]
    (tmp_path / "t.txt").write_text(found.text())
    x = np.random.default_rng(0).standard_normal((64, 96), np.float32)
    plain = xcc.compile(str(path))(x)
    np.testing.assert_allclose(xcc.compile(str(path), tuning=str(tmp_path / "t.txt"))(x), plain, rtol=1e-5, atol=1e-7)
