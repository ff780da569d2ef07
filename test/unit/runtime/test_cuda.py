"""The CUDA driver over the stand-in for HIP (fake_hip.c) under CUDA's names: the same functions and arguments."""

import ctypes
from pathlib import Path

import numpy as np
import pytest
from c_compiler import compile_c

from xcc.runtime import cuda_driver
from xcc.runtime.cuda_driver import CudaDriver
from xcc.runtime.gpu_graphs import Recorder
from xcc.runtime.stream_driver import StreamDriver

SAME = ("Init", "GetErrorName", "GetErrorString", "StreamCreate", "StreamSynchronize", "ModuleGetFunction",
        "MemcpyHtoDAsync", "MemcpyDtoHAsync", "MemcpyDtoDAsync", "StreamBeginCapture", "StreamEndCapture",
        "GraphInstantiateWithFlags", "GraphDestroy", "GraphLaunch", "GraphExecDestroy", "EventCreate", "EventRecord",
        "EventSynchronize", "EventElapsedTime", "EventDestroy", "StreamDestroy", "ModuleUnload")
OTHER = {"hipFree": "cuMemFree_v2", "hipMalloc": "cuMemAlloc_v2", "hipModuleLaunchKernel": "cuLaunchKernel"}


@pytest.fixture(scope="module")
def fake(tmp_path_factory):
    out = tmp_path_factory.mktemp("cuda") / "libcuda.so"
    names = OTHER | {f"hip{n}": CudaDriver.renamed.get(n, f"cu{n}") for n in SAME}
    compile_c(Path(__file__).with_name("fake_hip.c"), out, "-shared", "-O1", *(f"-D{a}={b}" for a, b in names.items()))
    return ctypes.CDLL(str(out))


@pytest.fixture
def driver(fake, monkeypatch):
    """A CudaDriver without what it asks CUDA alone: contexts, attributes of the device, compilation of PTX."""
    monkeypatch.setattr(cuda_driver, "library", lambda: fake)
    made = CudaDriver.__new__(CudaDriver)
    StreamDriver.__init__(made, 0)
    fake.cuInit(0)
    assert fake.cuStreamCreate(ctypes.byref(made._stream)) == 0
    made._context, made._early_launches = ctypes.c_void_p(), False
    return made


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
    bases[0], bases[2] = others[0], others[1]
    graph.move(bases, [0, 2])
    graph.replay()
    np.testing.assert_array_equal(got(y), 2 * given[1])
    np.testing.assert_array_equal(got(others[1]), 2 * given[1])
    np.testing.assert_array_equal(got(z), 2 * given[0])
    bases[3] = z
    graph.move(bases, [3])
    graph.replay()
    np.testing.assert_array_equal(got(z)[2:7], given[2][:5])
    graph.free()
    for pointer in arrays:
        driver.free(pointer)


def test_a_failing_call_is_an_error_with_its_name(driver):
    with pytest.raises(cuda_driver.CudaError, match="cuMemFree_v2 failed"):
        driver.free(16)
