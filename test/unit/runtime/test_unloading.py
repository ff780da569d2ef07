"""A model that nothing refers to any more leaves nothing behind: no threads, mappings, files or memory."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import cpu_kernels
import numpy as np
import pytest
from loaded_models import PRODUCT, assert_held, check, compiled_product, expected, held, libraries, more, rows

import xcc
from xcc.diagnostics import UserError
from xcc.runtime.artifact import Artifact
from xcc.runtime.library import load_library
from xcc.runtime.model import Model
from xcc.targets.cpu import chip as cpu_chip
from xcc.targets.cpu import codegen, link

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="reads /proc")


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_product(tmp_path_factory.mktemp("unloading"))


@pytest.fixture
def no_cycles() -> Iterator[None]:
    """What goes here goes without a search for cycles."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


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
        subprocess.run([*link.linker(), "-shared", "-z", "nodelete", "-o", str(tmp_path / "k.so"),
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
