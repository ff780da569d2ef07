"""Kernels become code objects whose metadata says what the launches assume."""

import struct
from dataclasses import replace

import pytest
from kernels import ROW_SUM, lowered, mfma_loop

from xcc._mlir import ir
from xcc.diagnostics import CompilerBug
from xcc.targets.amdgcn.assembly import inner_loop, occupancy
from xcc.targets.amdgcn.chip import CHIPS
from xcc.targets.amdgcn.code_object import code_object_chip, read_code_object, read_msgpack
from xcc.targets.amdgcn.emit import assembly, check_kernel, emit_kernel
from xcc.targets.gpu_module import kernel_functions, kernel_llvm_ir


@pytest.fixture(autouse=True)
def context():
    with ir.Context() as c:
        c.allow_unregistered_dialects = True
        yield


@pytest.mark.parametrize("name", CHIPS)
def test_row_sum_for_every_chip(name):
    binary = emit_kernel(lowered(ROW_SUM, name), CHIPS[name])
    assert binary.format == "hsaco"
    assert code_object_chip(binary.blob) == name
    info = read_code_object(binary.blob)["row_sum"]
    assert [a.kind for a in info.arguments] == ["global_buffer", "global_buffer", "by_value"]
    assert (info.shared_bytes, info.scratch_bytes, info.max_threads, info.wave) == (1024, 0, 256, CHIPS[name].warp)
    launch, = binary.launches
    assert (str(launch.grid[0]), launch.block, launch.shared_bytes) == ("d0", (256, 1, 1), 0)


@pytest.mark.parametrize("name", ["gfx90a", "gfx942", "gfx950"])
def test_inner_loop_holds_the_matrix_instruction(name):
    report = dict(emit_kernel(lowered(mfma_loop(), name), CHIPS[name]).report)
    assert report["loop_matrix"] >= 1
    assert report["spills"] == report["scratch_bytes"] == 0
    assert 0.05 < report["matrix_share"] <= 1


def test_kernel_pointers_are_global_accesses():
    listing = assembly(kernel_llvm_ir(lowered(mfma_loop(), "gfx942")), CHIPS["gfx942"])
    assert "global_load_dwordx2" in listing
    assert "flat_load" not in listing and "flat_store" not in listing


def test_a_launch_that_does_not_fit_is_a_compiler_bug():
    chip = CHIPS["gfx942"]
    module = lowered(ROW_SUM, "gfx942")
    binary = emit_kernel(module, chip)
    function, = kernel_functions(module)
    infos, launch = read_code_object(binary.blob), binary.launches[0]

    def check(launch=launch, chip=chip):
        check_kernel(function, launch, infos, binary.blob, chip)

    check()
    with pytest.raises(CompilerBug, match="launched with 512"):
        check(launch=replace(launch, block=(512, 1, 1)))
    with pytest.raises(CompilerBug, match="waves of 64"):
        check(chip=replace(chip, warp=32))
    with pytest.raises(CompilerBug, match="bytes of LDS"):
        check(launch=replace(launch, shared_bytes=64 << 10))
    with pytest.raises(CompilerBug, match="the code object is for gfx942"):
        check(chip=replace(chip, name="gfx950"))


def test_code_object_must_be_linked_amd_code():
    with pytest.raises(CompilerBug, match="not a 64-bit"):
        read_code_object(b"\x7fELF\x01" + b"\0" * 100)
    header = b"\x7fELF\x02\x01" + b"\0" * 10 + struct.pack("<HH", 3, 62) + b"\0" * 44
    with pytest.raises(CompilerBug, match="ELF machine 62"):
        code_object_chip(header)


@pytest.mark.parametrize(("data", "value"), [
    (b"\x05", 5), (b"\xff", -1), (b"\xa2hi", "hi"), (b"\x92\x01\xc3", [1, True]), (b"\x81\xa1a\xc0", {"a": None}),
    (b"\xcd\x01\x00", 256), (b"\xd2\xff\xff\xff\xfe", -2), (b"\xd9\x03abc", "abc"), (b"\xdc\x00\x01\x07", [7]),
])
def test_msgpack(data, value):
    assert read_msgpack(data) == (value, len(data))


def test_inner_loop_takes_the_innermost_with_most_matrix_instructions():
    text = """
k:
.LBB0_1:
\ts_nop 0
.LBB0_2: ; comment
\tv_mfma_f32_32x32x8_f16 v[0:15], v[0:1], v[2:3], v[0:15]
\ts_add_u32 s0, s0, 4
\ts_cbranch_scc1 .LBB0_2
\ts_cbranch_scc0 .LBB0_1
.LBB0_3:
\tv_add_f32 v0, v0, v0
\tv_add_f32 v0, v0, v0
\tv_add_f32 v0, v0, v0
\tv_add_f32 v0, v0, v0
\ts_cbranch_scc1 .LBB0_3
\ts_endpgm
.Lfunc_end0:
"""
    loop = inner_loop(text, "k")
    assert (loop.instructions, loop.matrix) == (3, 1)
    assert dict(loop.counts)["s_add_u32"] == 1


@pytest.mark.parametrize(("chip", "registers", "shared", "threads", "waves"), [
    ("gfx942", 32, 0, 256, 8), ("gfx942", 128, 0, 256, 4), ("gfx942", 129, 0, 256, 3), ("gfx942", 512, 0, 256, 1),
    ("gfx942", 32, 32 << 10, 256, 2), ("gfx950", 32, 32 << 10, 256, 5), ("gfx1100", 96, 0, 128, 16),
    ("gfx1100", 256, 0, 128, 5), ("gfx1100", 32, 64 << 10, 256, 4),
])
def test_occupancy(chip, registers, shared, threads, waves):
    assert occupancy(CHIPS[chip], registers, shared, threads) == waves


def test_an_unrolled_loop_counts_as_the_whole_kernel():
    text = """
k:
\tv_mfma_f32_32x32x8_f16 v[0:15], v[0:1], v[2:3], v[0:15]
.LBB0_1:
\tv_add_f32 v0, v0, v0
\ts_cbranch_scc1 .LBB0_1
\ts_endpgm
.Lfunc_end0:
"""
    loop = inner_loop(text, "k")
    assert (loop.instructions, loop.matrix) == (4, 1)
