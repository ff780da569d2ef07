"""Processes that load and drop many models, fork, end or are interrupted meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from loaded_models import compiled_product

import xcc

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="reads /proc")

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

def use():
    for _ in range(3):
        xcc.load(path)(x)

def seconds():
    begin = time.perf_counter()
    use()
    return time.perf_counter() - begin

use()
longest, interrupts, tries = 1.5 * min(seconds() for _ in range(3)), 0, 0       # one alone may be a slow moment's
while tries < 150 or interrupts <= 30 and tries < 1000:
    tries += 1
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0005, longest))
        use()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1
    check(xcc.load(path))
assert interrupts > 30, (interrupts, tries)
"""


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_product(tmp_path_factory.mktemp("unloading"))


def in_a_process(text: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    environment.pop("XCC_THREADS", None)
    done = subprocess.run([sys.executable, "-c", SETTING + text, *arguments], capture_output=True, text=True,
                          env=environment, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_many_models_in_one_process(artifact: Path) -> None:
    in_a_process(MANY, str(artifact), "300", "")


def test_many_models_of_several_versions(artifact: Path, tmp_path: Path) -> None:
    from test_versions import here

    chips = here()
    if len(chips) < 2:
        pytest.skip("this machine runs one version")
    xcc.compile(artifact.with_name("m.mlir"), threads=2, chip=",".join(chips)).save(tmp_path / "m.xcm")
    in_a_process(MANY, str(tmp_path / "m.xcm"), "60", ",".join(chips))


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
