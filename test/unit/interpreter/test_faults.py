"""The interpreter reports what hardware would not: races, wild accesses, barriers that not all threads reach."""

import numpy as np
import pytest

from xcc.interpreter.faults import KernelFault
from xcc.interpreter.kernel import run_kernel
from xcc.interpreter.machine import Options
from xcc.interpreter.memory import any_of, pieces

SHARED = "#gpu.address_space<workgroup>"


def run(body: str, threads: int = 64, blocks: int = 1, **options):
    """Runs `body` with %t the thread, %y an output of 64 floats, %s 64 floats of shared memory."""
    text = f"""gpu.module @m {{
      gpu.func @k(%y: memref<64xf32>) workgroup(%s: memref<64xf32, {SHARED}>) kernel {{
        %t = gpu.thread_id x
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c63 = arith.constant 63 : index
        %i = arith.index_cast %t : index to i32
        %f = arith.sitofp %i : i32 to f32
        %one = arith.constant 1.0 : f32
        %mirror = arith.subi %c63, %t : index
        {body}
        gpu.return
      }} }}"""
    y = np.full(64, -1, np.float32)
    report = run_kernel(text, "k", (blocks, 1, 1), (threads, 1, 1), [y], options=Options(**options))
    return y, report


STORE = f"memref.store %f, %s[%t] : memref<64xf32, {SHARED}>\n"
LOAD_MIRROR = f"%v = memref.load %s[%mirror] : memref<64xf32, {SHARED}>\nmemref.store %v, %y[%t] : memref<64xf32>\n"


def test_exchange_with_a_barrier_is_right():
    y, report = run(STORE + "gpu.barrier\n" + LOAD_MIRROR)
    np.testing.assert_array_equal(y, np.arange(63, -1, -1))
    assert not report.uninitialised


def test_exchange_without_a_barrier_is_a_race():
    with pytest.raises(KernelFault, match="race: workgroup 0 thread 0 reads byte 252"):
        run(STORE + LOAD_MIRROR)


def test_write_after_read_without_a_barrier_is_a_race():
    with pytest.raises(KernelFault, match="race: .*writes"):
        run(STORE + "gpu.barrier\n" + LOAD_MIRROR + STORE)


def test_write_after_read_with_a_barrier_is_right():
    run(STORE + "gpu.barrier\n" + LOAD_MIRROR + "gpu.barrier\n" + STORE)


PARTS = f"""
  %c128 = arith.constant 128 : index
  %id = arith.constant 1 : i32
  %all = arith.constant 256 : i32
  %first = arith.cmpi ult, %t, %c128 : index
  %at = arith.remui %t, %c64 : index
  scf.if %first {{ memref.store %f, %s[%at] : memref<64xf32, {SHARED}>
                 nvvm.barrier.arrive id = %id number_of_threads = %all }}
  else {{ WAIT %v = memref.load %s[%at] : memref<64xf32, {SHARED}>
         memref.store %v, %y[%at] : memref<64xf32> }}
"""


def test_named_barrier_orders_who_came_before_who_waits():
    once = "%c64 = arith.constant 64 : index\n" + PARTS.replace("ult, %t, %c128", "ult, %t, %c64")
    run(once.replace("WAIT", ""), threads=64)       # nobody reads
    body = "%c64 = arith.constant 64 : index\n" + PARTS.replace("%f, %s", "%one, %s")
    y, _ = run(body.replace("WAIT", "nvvm.barrier id = %id number_of_threads = %all\n"), threads=256)
    np.testing.assert_array_equal(y, 1)
    with pytest.raises(KernelFault, match="race"):
        run(body.replace("WAIT", ""), threads=256)
    with pytest.raises(KernelFault, match="divergent-barrier: .* 128 of 256 threads reach barrier 2"):
        run(body.replace("WAIT", "%two = arith.constant 2 : i32\n"
                         "nvvm.barrier id = %two number_of_threads = %all\n"), threads=256)


def test_two_values_to_one_place_race_and_equal_values_do_not():
    with pytest.raises(KernelFault, match="race"):
        run(f"memref.store %f, %s[%c0] : memref<64xf32, {SHARED}>")
    run(f"memref.store %one, %s[%c0] : memref<64xf32, {SHARED}>")


def test_a_wavefront_orders_its_own_accesses():
    with pytest.raises(KernelFault, match="race"):
        run(STORE + LOAD_MIRROR, warp=64)
    run(STORE + LOAD_MIRROR, warp=64, warp_order=True)


def test_blocks_that_write_one_global_element_race():
    with pytest.raises(KernelFault, match="race"):
        run("%b = gpu.block_id x\n%bi = arith.index_cast %b : index to i32\n%g = arith.sitofp %bi : i32 to f32\n"
            "memref.store %g, %y[%t] : memref<64xf32>", blocks=2)


def test_out_of_bounds_names_the_thread_and_the_index():
    with pytest.raises(KernelFault, match="out-of-bounds: workgroup 0 thread 63: index 64 of dimension 0 of size 64"):
        run("%u = arith.addi %t, %c1 : index\nmemref.store %f, %y[%u] : memref<64xf32>")


def test_a_vector_must_fit_whole():
    with pytest.raises(KernelFault, match="thread 61: index 61 to 64 of dimension 0"):
        run("%v = vector.load %y[%t] : memref<64xf32>, vector<4xf32>")


def test_idle_threads_may_point_anywhere():
    run("%u = arith.addi %t, %c1 : index\n%in = arith.cmpi slt, %t, %c63 : index\n"
        "scf.if %in { memref.store %f, %y[%u] : memref<64xf32> }")


def test_misaligned_vector():
    with pytest.raises(KernelFault, match="misaligned"):
        run("%in = arith.cmpi eq, %t, %c1 : index\n"
            "scf.if %in { %v = vector.load %y[%t] {alignment = 16} : memref<64xf32>, vector<4xf32> }")


def test_barrier_in_divergent_control_flow():
    with pytest.raises(KernelFault, match="divergent-barrier: workgroup 0: 1 of 64 threads"):
        run("%in = arith.cmpi eq, %t, %c0 : index\nscf.if %in { gpu.barrier }")


def test_barrier_under_a_condition_that_all_threads_share():
    run("%b = gpu.block_id x\n%in = arith.cmpi eq, %b, %c0 : index\nscf.if %in { gpu.barrier }", blocks=2)


def test_unwritten_shared_memory_is_nan_and_reported():
    y, report = run(LOAD_MIRROR)
    assert np.isnan(y).all()
    assert list(report.uninitialised.values()) == [64]
    with pytest.raises(KernelFault, match="uninitialised"):
        run(LOAD_MIRROR, uninitialised="fault")


def test_division_by_zero():
    with pytest.raises(KernelFault, match="division-by-zero: workgroup 0 thread 0"):
        run("%d = arith.divsi %c1, %t : index\nmemref.store %one, %y[%d] : memref<64xf32>")


ASYNC = f"""
    %d = arith.constant 4 : index
    %lane4 = arith.muli %t, %d : index
    %tok = nvgpu.device_async_copy %y[%lane4], %s[%lane4], 4 : memref<64xf32> to memref<64xf32, {SHARED}>
    %grp = nvgpu.device_async_create_group %tok
"""


def test_asynchronous_copy_read_before_its_wait():
    with pytest.raises(KernelFault, match="pending-copy"):
        run(ASYNC + f"%v = memref.load %s[%lane4] : memref<64xf32, {SHARED}>", threads=16)


def test_asynchronous_copy_with_wait_and_barrier():
    y, report = run(ASYNC + f"""
        nvgpu.device_async_wait %grp {{numGroups = 0 : i32}}
        gpu.barrier
        %v = memref.load %s[%c63] : memref<64xf32, {SHARED}>
        %w = arith.addf %v, %one : f32
        %at = arith.addi %t, %c1 : index
        memref.store %w, %y[%t] : memref<64xf32>""", threads=16)
    np.testing.assert_array_equal(y[:16], 0)
    assert not report.uninitialised


def test_flags_of_bytes_are_those_of_the_pieces_they_are_seen_in():
    rng = np.random.default_rng(0)
    for length, size, unit in ((64, 1, 1), (64, 2, 2), (96, 4, 4), (96, 8, 8), (128, 16, 16), (60, 12, 4), (64, 8, 2)):
        byte = rng.integers(0, (length - size) // unit + 1, 5) * unit
        where = byte[:, None] + np.arange(size)
        for share in (0.02, 0.9):
            flags = rng.random(length) < share
            seen, at, every = pieces(flags, byte, size)
            assert any_of(flags, byte, size) == flags[where].any()
            assert ((seen[at] == every).all(axis=1) == flags[where].all(axis=1)).all()
            wanted = flags.copy()
            wanted[where] = True
            seen[at] = every
            assert (flags == wanted).all()
