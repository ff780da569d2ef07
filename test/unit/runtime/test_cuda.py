"""The CUDA driver over the stand-in for HIP (fake_hip.c) under CUDA's names: the same functions and arguments."""

import ctypes
from pathlib import Path

import numpy as np
import pytest
from c_compiler import compile_c

from xcc.diagnostics import UserError
from xcc.runtime import cuda_api
from xcc.runtime.cuda_api import on_gpu
from xcc.runtime.cuda_driver import CudaDriver
from xcc.runtime.gpu_graphs import Recorder

SAME = ("Init", "GetErrorName", "GetErrorString", "StreamCreate", "StreamSynchronize", "ModuleGetFunction",
        "MemcpyHtoDAsync", "MemcpyDtoHAsync", "MemcpyDtoDAsync", "StreamBeginCapture", "StreamEndCapture",
        "GraphInstantiateWithFlags", "GraphDestroy", "GraphLaunch", "GraphExecDestroy", "EventCreate", "EventRecord",
        "EventSynchronize", "EventElapsedTime", "EventDestroy", "StreamDestroy", "ModuleUnload")
OTHER = {"hipGetDeviceCount": "cuDeviceGetCount", "hipFree": "cuMemFree_v2", "hipMalloc": "cuMemAlloc_v2",
         "hipModuleLaunchKernel": "cuLaunchKernel"}


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    out = tmp_path_factory.mktemp("cuda") / "libcuda.so"
    names = OTHER | {f"hip{n}": CudaDriver.renamed.get(n, f"cu{n}") for n in SAME}
    compile_c(Path(__file__).with_name("fake_hip.c"), out, "-shared", "-O1", *(f"-D{a}={b}" for a, b in names.items()))
    return ctypes.CDLL(str(out))


@pytest.fixture(autouse=True)
def library(fake, monkeypatch):
    monkeypatch.setattr(cuda_api, "library", lambda: fake)
    cuda_api.context_of.cache_clear()
    yield
    cuda_api.context_of.cache_clear()


@pytest.fixture
def driver():
    return CudaDriver()


def test_kernels_and_copies_are_enqueued_and_replayed(driver, fake):
    module = ctypes.c_void_p()
    assert fake.hipModuleLoadData(ctypes.byref(module), b"\x7fELF") == 0
    twice = driver.function(module, "twice")
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    a, b, c = (driver.alloc(x.nbytes) for _ in range(3))
    driver.upload(a, x)
    driver.launch(twice, (2,), (64,), 0, [a, b], [100])
    driver.launch(twice, (0, 1, 1), (64, 1, 1), 0, [a, b], [100])   # an empty grid
    driver.download(y, b)
    np.testing.assert_array_equal(y, 2 * x)
    driver.begin_capture()
    driver.launch(twice, (2, 1, 1), (64, 1, 1), 16, [b, c], [100])
    driver.copy(b, c, x.nbytes)
    graph = driver.end_capture()
    start = driver.event()
    driver.replay(graph)
    driver.replay(graph)
    assert driver.elapsed_ms(start, driver.event()) == 1.5
    driver.download(y, b)
    np.testing.assert_array_equal(y, 8 * x)
    driver.free_graph(graph)
    for p in (a, b, c):
        driver.free(p)
    assert fake.fake_live_graphs() == fake.fake_live_blocks() == 0


def test_nodes_of_a_graph_get_other_buffers(driver, fake):
    """Launches and copies, from the host, too; what is not named stays."""
    module = ctypes.c_void_p()
    assert fake.hipModuleLoadData(ctypes.byref(module), b"\x7fELF") == 0
    twice = driver.function(module, "twice")
    n, given = 100, [np.random.default_rng(k).standard_normal(100).astype(np.float32) for k in range(3)]
    arrays = [driver.alloc(4 * n) for _ in range(6)]
    x, y, z, *others = arrays
    for pointer, values in zip((x, others[0]), given, strict=False):
        driver.upload(pointer, values)
    bases = {0: x, 1: y, 2: z, 3: others[2]}
    recorder = Recorder(driver, bases)
    recorder.launch(twice, (2, 1, 1), (64, 1, 1), 0, [x, y], [n], False, [0, 1])
    recorder.copy(z, y, 4 * n, [2, 1])
    recorder.upload(others[2] + 8, given[2][:5], [3])
    graph = recorder.finish()

    def got(pointer):
        out = np.empty(n, np.float32)
        driver.download(out, pointer)
        return out

    graph.replay()
    np.testing.assert_array_equal(got(z), 2 * given[0])
    graph.move(0, others[0])
    graph.move(2, others[1])
    graph.replay()
    np.testing.assert_array_equal(got(y), 2 * given[1])
    np.testing.assert_array_equal(got(others[1]), 2 * given[1])
    np.testing.assert_array_equal(got(z), 2 * given[0])
    graph.move(3, z)
    graph.replay()
    np.testing.assert_array_equal(got(z)[2:7], given[2][:5])
    graph.free()
    for pointer in arrays:
        driver.free(pointer)


def test_a_replay_that_fails_is_an_error(driver, fake):
    """Of an edit, which the next call makes again, and of the launch; nothing is counted as moved that is not."""
    module = ctypes.c_void_p()
    assert fake.hipModuleLoadData(ctypes.byref(module), b"\x7fELF") == 0
    twice, n = driver.function(module, "twice"), 32
    x, y, z = (driver.alloc(4 * n) for _ in range(3))
    driver.upload(x, np.ones(n, np.float32))
    recorder = Recorder(driver, {0: x, 1: y})
    recorder.launch(twice, (1, 1, 1), (64, 1, 1), 0, [x, y], [n], False, [0, 1])
    graph = recorder.finish()
    graph.move(1, z)
    driver.begin_capture()          # while the fake driver refuses both
    with pytest.raises(cuda_api.CudaError, match="an edit of a graph's node failed"):
        graph.replay()
    with pytest.raises(cuda_api.CudaError, match="an edit of a graph's node failed"):
        graph.replay()
    driver.launch(twice, (1, 1, 1), (64, 1, 1), 0, [x, y], [n])
    driver.free_graph(driver.end_capture())
    graph.replay()
    out = np.empty(n, np.float32)
    driver.download(out, z)
    np.testing.assert_array_equal(out, np.full(n, 2, np.float32))
    driver.begin_capture()
    with pytest.raises(cuda_api.CudaError, match="cuGraphLaunch failed"):
        graph.replay()
    driver.launch(twice, (1, 1, 1), (64, 1, 1), 0, [x, y], [n])
    driver.free_graph(driver.end_capture())
    graph.free()
    for pointer in (x, y, z):
        driver.free(pointer)


def test_a_failing_call_is_an_error_with_its_name(driver):
    with pytest.raises(cuda_api.CudaError, match="cuMemFree_v2 failed"):
        driver.free(16)


def test_a_driver_for_each_gpu(fake):
    """Memory, streams and kernels of each are its own; what was current is so again."""
    drivers = [CudaDriver(n) for n in range(2)]
    assert fake.fake_current() == 1
    module = ctypes.c_void_p()
    assert fake.hipModuleLoadData(ctypes.byref(module), b"\x7fELF") == 0
    x, y = np.arange(64, dtype=np.float32), np.empty(64, np.float32)
    with on_gpu(0):
        for n, driver in enumerate(drivers):
            driver.enter()
            assert fake.fake_current() == n
            a, b = driver.alloc(x.nbytes), driver.alloc(x.nbytes)
            driver.upload(a, x + n)
            driver.launch(driver.function(module, "twice"), (1,), (64,), 0, [a, b], [64])
            driver.download(y, b)
            driver.leave()
            np.testing.assert_array_equal(y, 2 * (x + n))
            assert fake.fake_current() == 0
            driver.free(a), driver.free(b)
    with pytest.raises(UserError, match="there is no GPU 2: this machine has 2 GPUs, from number 0 on"):
        CudaDriver(2)
    assert cuda_api.find_gpu(1) == (9, 0, 132) and cuda_api.find_gpu(2) is None


def test_memory_of_another_gpu_is_copied(fake):
    first, second = CudaDriver(0), CudaDriver(1)
    x, y = np.arange(64, dtype=np.float32), np.empty(64, np.float32)
    with first.current():
        a = first.alloc(x.nbytes)
        first.upload(a, x)
    with second.current():
        b = second.alloc(x.nbytes)
        with pytest.raises(cuda_api.CudaError, match="cuMemcpyDtoDAsync_v2 failed"):
            second.copy(b, a, x.nbytes)
        second.copy_from(0, b, a, x.nbytes)
        second.download(y, b)
    np.testing.assert_array_equal(x, y)
    first.free(a), second.free(b)
