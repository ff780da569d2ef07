"""The thread pool of compiled models: every index once, from any caller, after sleep, after fork."""

import ctypes
import os
import threading
import time

import cpu_kernels
import numpy as np
import pytest

COUNT = """
func.func @count(%x: memref<?xi32>, %d0: index) attributes {xt.kernel, xt.symbols = ["d0"], xt.result_dims = [["d0"]]} {
  %c1 = arith.constant 1 : i32
  scf.forall (%i) in (%d0) {
    %v = memref.load %x[%i] : memref<?xi32>
    %w = arith.addi %v, %c1 : i32
    memref.store %w, %x[%i] : memref<?xi32>
  } {xcc.parallel}
  return
}
"""


@pytest.fixture(scope="module")
def library():
    return cpu_kernels.load(COUNT, threads=4)


def count(library, x):
    library.count(ctypes.c_void_p(x.ctypes.data), ctypes.c_int64(x.size))


def test_every_index_once(library):
    for n in (0, 1, 2, 3, 5, 16, 17, 1000):
        x = np.zeros(n, np.int32)
        for _ in range(300):
            count(library, x)
        assert (x == 300).all()


def test_after_the_workers_fell_asleep(library):
    x = np.zeros(100, np.int32)
    for _ in range(5):
        time.sleep(0.05)
        count(library, x)
    assert (x == 5).all()


def test_callers_at_the_same_time(library):
    arrays = [np.zeros(50 + i, np.int32) for i in range(3)]

    def work(x):
        for _ in range(300):
            count(library, x)

    threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all((x == 300).all() for x in arrays)


def test_number_of_threads(library):
    assert library.xcc_set_threads(1) == 1
    assert library.xcc_set_threads(3) == 3
    x = np.zeros(64, np.int32)
    count(library, x)
    assert library.xcc_set_threads(4) == 4
    count(library, x)
    assert (x == 2).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_in_the_child_of_a_fork(library):
    x = np.zeros(64, np.int32)
    count(library, x)
    child = os.fork()
    if child == 0:
        library.xcc_after_fork()
        count(library, x)
        library.xcc_set_threads(2)
        count(library, x)
        os._exit(0 if (x == 3).all() else 1)
    deadline = time.time() + 20
    status = None
    while status is None and time.time() < deadline:
        done, code = os.waitpid(child, os.WNOHANG)
        status = code if done else None
        time.sleep(0.01)
    if status is None:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert status == 0
