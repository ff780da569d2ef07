"""The thread pool of compiled models: every index once, from any caller, after sleep, after fork."""

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time

import cpu_kernels
import numpy as np
import pytest

HANGS = 300.0           # seconds after which nothing more will happen

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


def happens(true):
    """Waits for what happens at last, however slow the machine is; False when it hangs."""
    end = time.monotonic() + HANGS
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def other_threads():
    return {int(t) for t in os.listdir("/proc/self/task")} - {threading.get_native_id()}


def sleep(workers):
    """Waits until all these threads sleep, which those of a pool do when they have nothing to do and have waited."""
    def state(thread):
        with open(f"/proc/self/task/{thread}/stat") as f:
            return f.read().rpartition(")")[2].split()[0]

    return happens(lambda: all(state(w) == "S" for w in workers))


def count(library, x):
    library.count(ctypes.c_void_p(x.ctypes.data), ctypes.c_int64(x.size))


def test_every_index_once(library):
    for n in (0, 1, 2, 3, 5, 16, 17, 1000):
        x = np.zeros(n, np.int32)
        for _ in range(300):
            count(library, x)
        assert (x == 300).all()


def test_pieces_become_small(library):
    """So that a thread that is late has little left when the others are done."""
    found = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    library.xcc_parallel(kind(lambda _, begin, end: found.append((begin, end))), None, ctypes.c_int64(4 * 1024))
    found.sort()
    assert [begin for begin, _ in found] == [0, *(end for _, end in found[:-1])] and found[-1][1] == 4 * 1024
    for share in range(4):
        sizes = [end - begin for begin, end in found if begin // 1024 == share]
        assert max(sizes) == 1024 // 8 and len(sizes) > 12


def test_after_the_workers_fell_asleep():
    before = other_threads()
    own = cpu_kernels.load(COUNT, threads=4)
    workers, x = other_threads() - before, np.zeros(100, np.int32)
    for _ in range(5):
        assert sleep(workers)
        count(own, x)
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


def threads_are(count):
    """Whether this process has so many at last: Linux lists one for a moment longer than one waits for it to end."""
    return happens(lambda: len(os.listdir("/proc/self/task")) == count)


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="Linux lists threads")
@pytest.mark.parametrize("asleep", [False, True], ids=["awake", "asleep"])
def test_stop(asleep):
    """Ends all workers wherever they are; they can be started again."""
    gc.collect()
    own, others = cpu_kernels.load(COUNT, threads=1), other_threads()
    x, runs = np.zeros(64, np.int32), 3 if asleep else 100
    for turn in range(runs):
        assert own.xcc_set_threads(4) == 4
        count(own, x)
        if asleep:
            assert sleep(other_threads() - others)
        else:
            time.sleep(turn % 2 * 0.0002)       # at once, and a little later
        own.xcc_stop()
        assert threads_are(1 + len(others))
        own.xcc_stop()          # there is none
        count(own, x)           # alone
    assert (x == 2 * runs).all()
    for _ in range(runs):       # workers that have just begun
        own.xcc_set_threads(4)
        own.xcc_stop()
    assert threads_are(1 + len(others))


STACK = """
func.func @sums(%x: memref<?xf32>, %d0: index) attributes {xt.kernel, xt.symbols = ["d0"], xt.result_dims = [["d0"]]} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 512 : index
  %end = arith.constant 524288 : index
  %one = arith.constant 1.0 : f32
  scf.forall (%i) in (%d0) {
    %rows = memref.alloca() : memref<524288xf32>
    %first = memref.load %x[%i] : memref<?xf32>
    scf.for %k = %c0 to %end step %step {
      %old = memref.load %x[%i] : memref<?xf32>
      %new = arith.addf %old, %one : f32
      memref.store %new, %x[%i] : memref<?xf32>
      memref.store %new, %rows[%k] : memref<524288xf32>
    }
    %sum = scf.for %k = %c0 to %end step %step iter_args(%s = %first) -> f32 {
      %v = memref.load %rows[%k] : memref<524288xf32>
      %t = arith.addf %s, %v : f32
      scf.yield %t : f32
    }
    memref.store %sum, %x[%i] : memref<?xf32>
  } {xcc.parallel}
  return
}
"""


def faults():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="Linux counts page faults")
@pytest.mark.parametrize("made", [True, False])
def test_stacks_are_there_before_the_first_run(made):
    """2 MiB of stack on each of three threads; `seen` are the page faults of the first call."""
    seen = []

    def caller():           # a thread with a stack of its own
        if made:
            library.xcc_make_stack(ctypes.c_int64(2 << 20))
        there = other_threads()
        library.xcc_set_threads(3)
        assert sleep(other_threads() - there)       # when they have made theirs
        x = np.zeros(64, np.float32)
        before = faults()
        library.sums(ctypes.c_void_p(x.ctypes.data), ctypes.c_int64(x.size))
        seen.append(faults() - before)
        np.testing.assert_array_equal(x, 1024 * 1025 / 2)

    library = cpu_kernels.load(STACK, threads=1)
    thread = threading.Thread(target=caller)
    thread.start()
    thread.join()
    assert seen[0] < 100 if made else seen[0] > 400


def ended(child):
    """The exit status of a process; one that hangs is killed."""
    found = []

    def has_ended():
        done, code = os.waitpid(child, os.WNOHANG)
        found.extend([code] if done else [])
        return done

    if not happens(has_ended):
        os.kill(child, 9)
        os.waitpid(child, 0)
    return found[0] if found else None


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
    assert ended(child) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_in_the_child_of_a_fork_while_a_region_runs():
    """The child's threads leave alone what is left of the region of the thread that did not fork."""
    library = cpu_kernels.load(COUNT, threads=2)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    children, late = [], []

    def piece(_, begin, end):
        late.append(begin)
        if not children and threading.current_thread() is threading.main_thread():
            children.append(os.fork())
            if not children[0]:
                library.xcc_after_fork()
                late.clear()
                library.xcc_make_stack(ctypes.c_int64(4 << 20))      # takes the worker until there is its limit
                library.xcc_set_threads(2)
                os._exit(1 if not sleep(other_threads()) or late else 0)

    library.xcc_parallel(kind(piece), None, ctypes.c_int64(64))
    assert ended(children[0]) == 0


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this process may use one processor only")
def test_a_worker_leaves_the_callers_processor():
    """Where the scheduler has put it there, it would have no time while the caller works. It follows the caller's
    moves, and keeps to the processors that somebody gives it meanwhile."""
    allowed = os.sched_getaffinity(0)
    first, second = sorted(allowed)[:2]
    before = other_threads()
    pair = cpu_kernels.load(COUNT, threads=2)
    worker, = other_threads() - before
    x = np.zeros(1000, np.int32)

    def processors(caller, wanted):
        """The worker's, at last, while the caller is on `caller`."""
        os.sched_setaffinity(0, {caller})
        end = time.monotonic() + HANGS
        while os.sched_getaffinity(worker) != wanted and time.monotonic() < end:
            count(pair, x)
        return os.sched_getaffinity(worker)

    spin = f"import os\nos.sched_setaffinity(0, {{{second}}})\nwhile True: pass"
    busy = subprocess.Popen([sys.executable, "-c", spin])
    try:
        os.sched_setaffinity(worker, {first, second})
        assert processors(first, {second}) == {second}      # soon, as the other one has work of its own
        busy.kill()
        assert processors(second, {first}) == {first}
        assert processors(first, {second}) == {second}
        os.sched_setaffinity(worker, {first})               # and there is no other
        for _ in range(1000):
            count(pair, x)
        assert os.sched_getaffinity(worker) == {first}
    finally:
        busy.kill()
        busy.wait()
        os.sched_setaffinity(0, allowed)
    assert len({*x}) == 1
