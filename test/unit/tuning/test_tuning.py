"""The tuning database, the schedules that are tried, and a whole tuning run on one small kernel."""

from __future__ import annotations

import pytest
from test_tile import SOFTMAX, matmul

import xcc
from xcc._mlir import ir
from xcc.context import new_context, parse_module
from xcc.diagnostics import UserError
from xcc.options import CompileOptions
from xcc.passes.base import PassContext
from xcc.passes.linalg.configure import Configure
from xcc.passes.linalg.kernel.kernel_reader import read
from xcc.passes.linalg.schedule.neighbours import neighbours
from xcc.passes.linalg.schedule.tuning import Database, signature
from xcc.targets.cpu import chip as cpu_chip
from xcc.targets.cpu.strategy import configure
from xcc.tuning.tuner import tune

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
    with pytest.raises(UserError, match="t.txt: its schedules are in the form of an older xcc: tune again"):
        Database.parse("# xcc tuning database: chip | kernel | xcc.config\nchip | k | {threads = 32 : i64}\n", "t.txt")
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
            assert any(s.gpu.warpgroup and s.reduce == ((64,),) for s in found) == wanted


def test_steps_of_an_online_loop_change_together():
    from xcc.passes.linalg.schedule.schedule import GpuPart, Schedule
    from xcc.targets.nvptx.chip import chips

    base = Schedule((64, 64), (64, 64), (0, 1), ((64,), (32,), (64,)), "mask", "gather", online=True,
                    gpu=GpuPart(threads=128, stages=2))
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


def test_the_nearest_entry_of_a_family_serves_the_sizes_around_it():
    def key(text: str) -> str:
        _module, k = kernel(text)
        return signature(k)

    near, far, other = (key(matmul(m, n)) for m, n in ((512, 1024), (2048, 1024), (512, 1000)))
    database = Database({("sm_80", near): "{near}", ("sm_80", far): "{far}", ("sm_80", other): "{other}"})
    assert database.text_for("sm_80", near) == "{near}"
    assert database.text_for("sm_80", key(matmul(640, 1024))) == "{near}"
    assert database.text_for("sm_80", key(matmul(1600, 1024))) == "{far}"
    assert database.text_for("sm_80", key(matmul(1000, 1024))) is None      # further than 1.5 from both
    assert database.text_for("sm_80", key(matmul(528, 1048))) == "{other}"  # 8 divides 1048, 16 does not
    assert database.text_for("sm_90a", near) is None
    assert database.text_for("sm_80", key(matmul(512, 1024, "b"))) is None     # another access


def test_a_draw_goes_to_the_first_line():
    keys = [f"product f16 1x{m}x256 r 256 ~nn" for m in (100, 120, 144)]
    database = Database({("c", keys[0]): "{parts = 2 : i64}", ("c", keys[2]): "{parts = 4 : i64}"})
    assert [database.number("c", k, "parts") for k in keys] == [2, 2, 4]
    assert database.number("c", "product f16 1x100x256 r 256 ~nt", "parts") == 0
    assert database.number("c", "product bf16 1x100x256 r 256 ~nn", "parts") == 0


PRODUCT = """
func.func @main(%x: tensor<64x2048xf16>, %w: tensor<2048x128xf16>) -> tensor<64x128xf16> {
  %0 = "xt.dot_general"(%x, %w) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]}
      : (tensor<64x2048xf16>, tensor<2048x128xf16>) -> tensor<64x128xf16>
  return %0 : tensor<64x128xf16>
}
"""


@pytest.mark.parametrize(("entry", "given", "parts"), [(4, 0, 4), (1, 0, 1), (0, 8, 8), (4, 2, 2), (0, 0, 16)])
def test_products_are_cut_as_the_database_says(tmp_path, entry, given, parts):
    from xcc.passes.base import parse_pass
    from xcc.targets.nvptx.chip import chips

    file = tmp_path / "t.txt"
    lines = {("sm_80", "product f16 1x64x128 r 2048 ~nn"): f"{{parts = {entry} : i64}}"} if entry else {}
    file.write_text(Database(lines).text())
    module = parse_module(PRODUCT, new_context(), "test")
    ctx = PassContext(chip=chips()["sm_80"], options=CompileOptions(target="nvptx", tuning=str(file)))
    parse_pass(f"split-contractions{{parts={given}}}" if given else "split-contractions").run(module, ctx)
    assert (f"tensor<{parts}x64x128xf32>" in str(module)) == (parts > 1)
    assert ("xt.reduce" in str(module)) == (parts > 1)


def test_parts_of_products_are_kept_where_they_are_faster(tmp_path, monkeypatch):
    from xcc.tuning import tuner_parts

    def seconds(text: str, options: CompileOptions, parts: int) -> float | None:
        assert '"xt.dot_general"' in text and parse_module(text, new_context(), "alone")
        slow = {0: 20e-6, 1: 30e-6, 2: 19.8e-6, 4: None, 8: 12e-6, 16: 13e-6}
        return slow[parts] if "64x2048" in text else {0: 10e-6}.get(parts, 9.9e-6)

    monkeypatch.setattr(tuner_parts, "_seconds", seconds)
    path, lines = tmp_path / "m.mlir", []
    path.write_text("""
func.func @main(%x: tensor<64x2048xf16> {xt.name = "x"}, %w: tensor<2048x128xf16> {xt.name = "w"},
                %v: tensor<128x512xf16> {xt.name = "v"}) -> (tensor<64x512xf16> {xt.name = "y"}) {
  %0 = "xt.dot_general"(%x, %w) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]}
      : (tensor<64x2048xf16>, tensor<2048x128xf16>) -> tensor<64x128xf16>
  %1 = "xt.dot_general"(%0, %v) {dtype = f16, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]}
      : (tensor<64x128xf16>, tensor<128x512xf16>) -> tensor<64x512xf16>
  return %1 : tensor<64x512xf16>
}
""")
    options = CompileOptions(target="nvptx", chip="sm_80")
    found = tuner_parts.tune_parts(str(path), options, 60.0, lines.append)
    assert found.entries == {("sm_80", "product f16 1x64x128 r 2048 ~nn"): "{parts = 8 : i64}"}
    assert len(lines) == 2 and "8 parts" in lines[0] and "kept" in lines[1]
    assert tuner_parts.tune_parts(str(path), CompileOptions(target="cpu"), 60.0, lines.append).entries == {}
