"""A model that nothing refers to any more leaves nothing behind: no threads, mappings, files or memory."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import cpu_kernels
import numpy as np
import pytest

import xcc
from xcc.diagnostics import UserError
from xcc.runtime.artifact import Artifact
from xcc.runtime.library import load_library
from xcc.runtime.model import Model
from xcc.targets.cpu import chip as cpu_chip
from xcc.targets.cpu import codegen, link

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="reads /proc")

# Two kernels for several threads: a product whose result is a temporary, and its softmax.
PRODUCT = """
func.func @main(%x: tensor<?x32xf32, ["n", 32]> {xt.name = "x"}) -> (tensor<?x?xf32, ["n", "n"]> {xt.name = "y"}) {
  %0 = "xt.dot_general"(%x, %x) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]}
    : (tensor<?x32xf32, ["n", 32]>, tensor<?x32xf32, ["n", 32]>) -> tensor<?x?xf32, ["n", "n"]>
  %1 = "xt.softmax"(%0) {axis = 0 : i64} : (tensor<?x?xf32, ["n", "n"]>) -> tensor<?x?xf32, ["n", "n"]>
  return %1 : tensor<?x?xf32, ["n", "n"]>
}
"""
SETTING = """
import gc, os, sys, threading, time
import numpy as np
import xcc

path = sys.argv[1]
x = np.random.default_rng(0).standard_normal((200, 32), np.float32)
e = np.exp((x @ x.T) - (x @ x.T).max(0))

def check(model):
    np.testing.assert_allclose(model(x), e / e.sum(0), rtol=2e-4, atol=1e-6)

def held():
    "Threads, mappings, files, and KiB of memory. Linux lists a thread for a moment after it was waited for."
    time.sleep(0.05)
    pages = int(open("/proc/self/statm").read().split()[1])
    mappings = sum(1 for _ in open("/proc/self/maps"))
    return [len(os.listdir("/proc/self/task")), mappings, len(os.listdir("/proc/self/fd")),
            pages * os.sysconf("SC_PAGESIZE") >> 10]
"""
MANY = """
count, chips = int(sys.argv[2]), sys.argv[3].split(",")

def use(count):
    for n in range(count):
        os.environ["XCC_CPU_VERSION"] = chips[n % len(chips)]
        check(xcc.load(path))

before = held()
use(20)
early = held()
use(count - 20)
late = held()
assert early[0] == late[0] == before[0], (before, early, late)
assert early[2] == late[2] == before[2], (before, early, late)
assert late[1] <= early[1] + 10, (early, late)
assert late[3] <= early[3] + 4096, (early, late)
"""
DROPPED_IN_A_CHILD = """
import warnings
warnings.simplefilter("ignore")
model, other = xcc.load(path), xcc.load(path)
check(model)
for _ in range(5):
    child = os.fork()
    if not child:
        before = held()
        del model
        gone = held()
        assert gone[1] < before[1] and gone[2] < before[2], (before, gone)
        check(other)
        check(xcc.load(path))
        assert held()[0] == 1
        assert other.executor.set_threads(2) == 2 and held()[0] == 2
        check(other)
        del other
        assert held()[0] == 1
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
    check(model)
"""
AT_EXIT = """
model, other = xcc.load(path), xcc.load(path)
begun = threading.Event()

def run(model):
    while True:
        model(x)
        begun.set()

threading.Thread(target=run, args=(model,), daemon=True).start()
begun.wait()
check(other)
"""
INTERRUPTED = """
import random, signal
signal.signal(signal.SIGALRM, signal.default_int_handler)
sys.unraisablehook = lambda what: None      # of an interrupt while a model is dropped
random.seed(0)
interrupts = 0
for _ in range(150):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0005, 0.04))
        for _ in range(3):
            xcc.load(path)(x)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1
    check(xcc.load(path))
assert interrupts > 30, interrupts
"""


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unloading")
    (folder / "m.mlir").write_text(PRODUCT)
    xcc.compile(folder / "m.mlir", threads=2).save(folder / "m.xcm")
    return folder / "m.xcm"


@pytest.fixture
def no_cycles() -> Iterator[None]:
    """What goes here goes without a search for cycles."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def in_a_process(text: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    environment.pop("XCC_THREADS", None)
    done = subprocess.run([sys.executable, "-c", SETTING + text, *arguments], capture_output=True, text=True,
                          env=environment, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stderr


def libraries() -> int:
    return len({line.split()[4] for line in Path("/proc/self/maps").read_text().splitlines() if "xcc-model" in line})


def held() -> tuple[int, int, int]:
    """Threads of this process, models' libraries and their files."""
    files = [p.readlink() for p in Path("/proc/self/fd").iterdir() if p.is_symlink()]
    return len(os.listdir("/proc/self/task")), libraries(), sum("xcc-model" in str(f) for f in files)


def assert_held(wanted: tuple[int, int, int]) -> None:
    """Linux lists a thread for a moment longer than one waits for it to end."""
    for _ in range(200):
        if held() == wanted:
            break
        time.sleep(0.005)
    assert held() == wanted


def more(before: tuple[int, int, int], count: int) -> tuple[int, int, int]:
    """With `count` more models of two threads."""
    threads, libraries, files = before
    return threads + count, libraries + count, files + count


def rows(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal((n, 32), np.float32)


def expected(x: np.ndarray) -> np.ndarray:
    e = np.exp((x @ x.T) - (x @ x.T).max(0))
    return e / e.sum(0)


def check(model: Model, n: int = 100) -> None:
    np.testing.assert_allclose(model(rows(n)), expected(rows(n)), rtol=2e-4, atol=1e-6)


def test_many_models_in_one_process(artifact: Path) -> None:
    in_a_process(MANY, str(artifact), "300", "")


def test_many_models_of_several_versions(artifact: Path, tmp_path: Path) -> None:
    from test_versions import here

    chips = here()
    if len(chips) < 2:
        pytest.skip("this machine runs one version")
    xcc.compile(artifact.with_name("m.mlir"), threads=2, chip=",".join(chips)).save(tmp_path / "m.xcm")
    in_a_process(MANY, str(tmp_path / "m.xcm"), "60", ",".join(chips))


@pytest.mark.usefixtures("no_cycles")
def test_at_once(artifact: Path) -> None:
    before = held()
    model = xcc.load(artifact)
    check(model)
    assert_held(more(before, 1))        # a worker beside the caller
    del model
    assert_held(before)


def test_a_name_serves_again(artifact: Path, tmp_path: Path) -> None:
    """The descriptor of a file that was closed comes again, and with it the name of the library."""
    (tmp_path / "m.mlir").write_text(PRODUCT.replace("axis = 0", "axis = 1"))
    xcc.compile(tmp_path / "m.mlir", threads=2).save(tmp_path / "m.xcm")
    names = set()
    for _ in range(3):
        model = xcc.load(artifact)
        names.add(model.executor._library._name)
        check(model)
        del model
        model = xcc.load(tmp_path / "m.xcm")
        names.add(model.executor._library._name)
        np.testing.assert_allclose(model(rows(50)), expected(rows(50)).T, rtol=2e-4, atol=1e-6)
        del model
    assert len(names) == 1


def test_outputs_outlive_the_model(artifact: Path) -> None:
    """Small ones, large ones that may serve again, views of them, and what others made of them."""
    model = xcc.load(artifact)
    outputs = [model(rows(n)) for n in (3, 300, 400)]
    shared = np.from_dlpack(model(rows(500)))
    part = memoryview(model(rows(600))[7])
    del model
    gc.collect()
    others = [xcc.load(artifact) for _ in range(3)]
    for other in others:
        for n in (3, 300, 400, 500, 600):
            other(rows(n) + 1)
    for n, y in zip((3, 300, 400, 500), (*outputs, shared), strict=True):
        np.testing.assert_allclose(y, expected(rows(n)), rtol=2e-4, atol=1e-6)
    np.testing.assert_allclose(np.asarray(part), expected(rows(600))[7], rtol=2e-4, atol=1e-6)


def test_dropped_by_another_thread_while_it_runs(artifact: Path) -> None:
    gc.collect()
    before = held()
    for _ in range(20):
        models = [xcc.load(artifact)]
        begun, failed = threading.Event(), []

        def run(model: Model, begun: threading.Event, failed: list[BaseException]) -> None:
            try:
                for _ in range(10):
                    begun.set()
                    check(model, 300)
            except BaseException as e:
                failed.append(e)

        thread = threading.Thread(target=run, args=(models[0], begun, failed))
        thread.start()
        begun.wait()
        models.clear()
        check(xcc.load(artifact))
        thread.join()
        assert not failed
        del thread
    assert_held(before)


def test_functions_hold_their_library(artifact: Path) -> None:
    blob = link.link_shared([codegen.thread_pool(cpu_chip.host())])
    before = libraries()
    library = load_library(blob)
    threads = library.xcc_set_threads
    del library
    assert libraries() == before + 1 and threads(ctypes.c_int32(3)) == 3
    del threads
    assert libraries() == before


def test_cycles_whose_end_runs_the_model(artifact: Path) -> None:
    """The collector of cycles calls ``__del__`` when it has decided that all of the cycle goes."""
    ran = []

    class Server:
        def __init__(self) -> None:
            self.model, self.itself = xcc.load(artifact), self

        def __del__(self) -> None:
            check(self.model)
            ran.append(True)

    gc.collect()
    before = held()
    server = Server()
    assert held() != before
    del server
    gc.collect()
    assert ran == [True]
    assert_held(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_in_the_child_of_a_fork(artifact: Path) -> None:
    """There are no threads to wait for. The parent's model is not touched."""
    assert not in_a_process(DROPPED_IN_A_CHILD, str(artifact))


@pytest.mark.parametrize("end", ["", "sys.exit()", "import gc; gc.disable(); sys.modules.clear()"])
def test_at_the_end_of_a_process(artifact: Path, end: str) -> None:
    """Models that are still there, one of them running."""
    for _ in range(3):
        assert not in_a_process(AT_EXIT + end, str(artifact))


def test_interrupts_at_any_moment(artifact: Path) -> None:
    """Runs behind them give the right results: of the right library."""
    in_a_process(INTERRUPTED, str(artifact))


def test_models_from_before_there_was_a_stop(artifact: Path) -> None:
    """Their threads cannot be ended: they stay, with what the threads may run."""
    a = Artifact.read(artifact)
    blob = bytes(a.members["kernels/model.so"])
    assert b"\0xcc_stop\0" in blob
    old = Artifact(a.manifest, a.program, {**a.members, "kernels/model.so": blob.replace(b"xcc_stop", b"xcc_stay")})
    gc.collect()
    before = held()
    model = Model(old)
    check(model)
    del model
    assert_held(more(before, 1))
    for _ in range(2):
        check(xcc.load(artifact))
        check(Model(old))
    assert_held(more(before, 3))


def test_libraries_that_the_system_never_unloads(tmp_path: Path) -> None:
    """They keep their file, or its number would name them again."""
    text = """func.func @value(%x: memref<1xi32>) attributes {xt.kernel} {
      %c0 = arith.constant 0 : index
      %v = arith.constant VALUE : i32
      memref.store %v, %x[%c0] : memref<1xi32>
      return
    }"""
    for n in range(3):
        code = cpu_kernels.llvm_text(text.replace("VALUE", str(n)))
        (tmp_path / "k.o").write_bytes(codegen.emit_object(code, cpu_chip.host()))
        subprocess.run([*link._linkers()[0], "-shared", "-z", "nodelete", "-o", str(tmp_path / "k.so"),
                        str(tmp_path / "k.o")], check=True)
        library, x = load_library((tmp_path / "k.so").read_bytes()), np.full(1, -1, np.int32)
        library.value(ctypes.c_void_p(x.ctypes.data))
        assert x[0] == n


def test_code_that_cannot_be_loaded(artifact: Path) -> None:
    a = Artifact.read(artifact)
    before = held()
    with pytest.raises(UserError, match=r"kernels/model\.so cannot be loaded"):
        _ = Model(Artifact(a.manifest, a.program, {**a.members, "kernels/model.so": b"\x7fELF" * 100})).executor
    assert_held(before)
