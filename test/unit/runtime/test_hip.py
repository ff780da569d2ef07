"""The HIP driver and the GPU executor over a stand-in for libamdhip64 that checks every call (fake_hip.c)."""

import ctypes
import gc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from c_compiler import compile_c

from xcc.diagnostics import UserError
from xcc.runtime import hip_driver, placed_shape
from xcc.runtime.gpu_executor import GpuExecutor
from xcc.runtime.hip import make_executor
from xcc.runtime.hip_driver import HipDriver, HipError, device_architecture
from xcc.runtime.program import BindSymbol, Buffer, Copy, If, Launch, Program, SetScalar
from xcc.symbolic import sym

CODE = b"\x7fELF and so on"


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    out = tmp_path_factory.mktemp("hip") / "libamdhip64.so"
    compile_c(Path(__file__).with_name("fake_hip.c"), out, "-shared", "-O1")
    lib = ctypes.CDLL(str(out))
    lib.hipGetErrorName.restype = lib.hipGetErrorString.restype = ctypes.c_char_p
    return lib


@pytest.fixture(autouse=True)
def library(fake, monkeypatch):
    monkeypatch.setattr(hip_driver, "library", lambda: fake)


def launch(kernel, source, target, n="n"):
    n = sym(n)
    return Launch(kernel, (source, target), (n,), grid=(4, 1, 1), block=(64, 1, 1))


def program(body, extra=()):
    n = sym("n")
    buffers = (Buffer("input", (n,), "f32", "x"), Buffer("output", (n,), "f32", "y"),
               Buffer("temp", (n,), "f32"), *extra)
    return Program(buffers=buffers, body=tuple(body), inputs=(0,), outputs=(1,), symbols=("n",))


def test_the_architecture_is_found():
    assert device_architecture() == "gfx942"
    assert device_architecture(2) == ""


def test_memory_goes_there_and_back():
    driver = HipDriver()
    x = np.arange(10, dtype=np.int64)
    a, b = driver.alloc(x.nbytes), driver.alloc(x.nbytes)
    assert a % 256 == b % 256 == 0
    driver.upload(a, x)
    driver.copy(b, a, x.nbytes)
    y = np.zeros_like(x)
    driver.download(y, b)
    np.testing.assert_array_equal(x, y)
    driver.free(a)
    driver.free(b)


def test_a_wild_pointer_is_an_error_with_its_name():
    with pytest.raises(HipError, match=r"hipMemcpyHtoDAsync failed: hipErrorInvalidValue \(1\): invalid argument"):
        HipDriver().upload(4096, np.zeros(4))


def test_an_absent_kernel_and_a_bad_image():
    driver = HipDriver()
    with pytest.raises(HipError, match="hipErrorNotFound"):
        driver.function(driver.load(CODE), "absent")
    with pytest.raises(HipError, match="hipModuleLoadData"):
        driver.load(b"nothing")


def test_events():
    driver = HipDriver()
    assert driver.elapsed_ms(driver.event(), driver.event()) == 1.5


def test_a_program_is_captured_once_for_each_shape(fake):
    executor = GpuExecutor(HipDriver(), program([launch("twice", 0, 2), launch("increment", 2, 1)]), [CODE], {})
    launches, replays, graphs = fake.fake_launches(), fake.fake_replays(), fake.fake_live_graphs()
    for size in (100, 7, 100):
        x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
        y, = executor.run([x], {"n": size})
        np.testing.assert_array_equal(y, 2 * x + 1)
    assert fake.fake_launches() - launches == 6
    assert fake.fake_replays() - replays == 3
    assert fake.fake_live_graphs() - graphs == 2


def test_conditions_and_symbols_are_read_back():
    flag = Buffer("temp", (1,), "i64")
    body = [SetScalar(3, (sym("n") - 5,)), BindSymbol("left", 3, limit=sym("n")),
            If(3, (launch("twice", 0, 1),), (Copy(0, 1),))]
    executor = GpuExecutor(HipDriver(), program(body, (flag,)), [CODE], {})
    for size, factor in ((5, 1), (6, 2)):
        x = np.arange(size, dtype=np.float32)
        y, = executor.run([x], {"n": size})
        np.testing.assert_array_equal(y, factor * x)


def test_weights_are_uploaded_once(fake):
    weight = Buffer("weight", (3,), "f32", "w")
    body = [Launch("increment", (3, 1), (3,), grid=(1, 1, 1), block=(64, 1, 1))]
    w = np.array([1, 2, 3], np.float32)
    executor = GpuExecutor(HipDriver(), program(body, (weight,)), [CODE], {"w": w})
    for _ in range(2):
        y, = executor.run([np.zeros(3, np.float32)], {"n": 3})
        np.testing.assert_array_equal(y, w + 1)


def test_the_setup_runs_once(fake):
    """y = twice(w + 1), where w + 1 is made when the model is loaded."""
    geometry = {"grid": (1, 1, 1), "block": (64, 1, 1)}
    weight, kept = Buffer("weight", (3,), "f32", "w"), Buffer("kept", (3,), "f32")
    whole = replace(program([Launch("twice", (4, 1), (3,), **geometry)], (weight, kept)),
                    setup=(Launch("increment", (3, 4), (3,), **geometry),))
    w = np.array([1, 2, 3], np.float32)
    executor = GpuExecutor(HipDriver(), whole, [CODE], {"w": w})
    launches = fake.fake_launches()
    for _ in range(2):
        y, = executor.run([np.zeros(3, np.float32)], {"n": 3})
        np.testing.assert_array_equal(y, 2 * (w + 1))
    assert fake.fake_launches() - launches == 2


def test_memory_and_graphs_of_many_shapes_stay_bounded(fake):
    executor = GpuExecutor(HipDriver(), program([launch("twice", 0, 1)]), [CODE], {})
    executor.run([np.ones(1, np.float32)], {"n": 1})
    blocks, before = fake.fake_live_blocks(), fake.fake_live_graphs()
    for _ in range(2):
        for size in range(1, 100):
            executor.run([np.ones(size, np.float32)], {"n": size})
    assert fake.fake_live_blocks() == blocks and fake.fake_live_graphs() - before < placed_shape.CACHED_SHAPES


def test_a_dropped_model_leaves_nothing_on_the_device(fake):
    def live():
        return [getattr(fake, f"fake_live_{what}")() for what in ("blocks", "graphs", "modules", "streams")]

    gc.collect()
    before = live()
    weight = Buffer("weight", (3,), "f32", "w")
    executor = GpuExecutor(HipDriver(), program([launch("twice", 0, 1)], (weight,)), [CODE], {"w": np.ones(3, "f")})
    for size in (7, 5):
        executor.run([np.ones(size, np.float32)], {"n": size})
    assert live() == [a + n for a, n in zip(before, (4, 2, 1, 1), strict=True)]
    del executor
    assert live() == before


def test_another_chip_is_refused():
    members = {"kernels/a.hsaco": CODE}
    model = program([launch("twice", 0, 1)])
    x = np.ones(3, np.float32)
    kernels = [{"name": "a", "entries": ["twice"]}]
    y, = make_executor(model, members, {}, {"chip": "gfx942", "kernels": kernels}).run([x], {"n": 3})
    np.testing.assert_array_equal(y, 2 * x)
    with pytest.raises(UserError, match="compiled for gfx1100 and this GPU is gfx942"):
        make_executor(model, members, {}, {"chip": "gfx1100"})
