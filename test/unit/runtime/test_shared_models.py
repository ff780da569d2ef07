"""Threads that share a model, and how many threads a run uses."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loaded_models import compiled_product

import xcc
from xcc.runtime.model import Model
from xcc.tools import xcc_bench, xcc_run

Array = np.ndarray[Any, Any]
SMALL = """
func.func @main(%x: tensor<8xf32> {xt.name = "x"}) -> (tensor<8xf32> {xt.name = "y"}) {
  %0 = "xt.exp"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two kernels with a temporary between them: runs at the same time spoil each other's."""
    return compiled_product(tmp_path_factory.mktemp("shared"), threads=3)


def inputs(seed: int) -> Array:
    """Of a size of its own, so that runs plan anew and take different memory."""
    return np.random.default_rng(seed).standard_normal((1 + seed * 37 % 101, 32), np.float32)


def expected(x: Array) -> Array:
    t = x @ x.T
    e = np.exp(t - t.max(0))
    made: Array = e / e.sum(0)
    return made


def in_threads(count: int, work: Any) -> list[Any]:
    """What `work` raised or returned in threads 0 to `count` that begin together."""
    gate, found = threading.Barrier(count), list[Any]()

    def begin(n: int) -> None:
        gate.wait()
        try:
            found.append(work(n))
        except BaseException as e:      # an assertion, too
            found.append(e)

    threads = [threading.Thread(target=begin, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return found


def test_threads_share_a_model(artifact: Path) -> None:
    """Each gets the results for its own inputs; nothing of it was made before they begin."""
    model = xcc.load(artifact, prepare=False)

    def work(n: int) -> None:
        for seed in range(n, 400, 4):
            x = inputs(seed)
            np.testing.assert_allclose(model(x), expected(x), rtol=2e-4, atol=1e-6)
            if seed % 50 == n:
                model.prepare({"n": seed})

    assert in_threads(4, work) == [None] * 4


def test_a_model_in_each_thread(artifact: Path) -> None:
    def work(n: int) -> None:
        model = xcc.load(artifact)
        for seed in range(n, 200, 4):
            np.testing.assert_allclose(model(inputs(seed)), expected(inputs(seed)), rtol=2e-4, atol=1e-6)

    assert in_threads(4, work) == [None] * 4


FORKED = """
import os, sys, threading
import numpy as np
import xcc

model, x = xcc.load(sys.argv[1]), np.ones((700, 32), np.float32)
busy, stop = threading.Event(), threading.Event()

def work():
    while not stop.is_set():
        with model.turn.lock:
            busy.set()
            model(x)

thread = threading.Thread(target=work)
thread.start()
busy.wait()
for _ in range(5):
    child = os.fork()
    if not child:
        os._exit(0 if np.allclose(model(x), 1 / 700) else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_in_the_middle_of_a_run(artifact: Path) -> None:
    """The child does not wait for a thread that it does not have."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, "-c", FORKED, str(artifact)], capture_output=True, text=True, timeout=60,
                          env=environment)
    assert done.returncode == 0, done.stderr


def test_number_of_threads(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `load` is asked for, else XCC_THREADS, else what it was compiled for; all give the same bits."""
    x = inputs(60)
    found = [xcc.load(artifact)]
    monkeypatch.setenv("XCC_THREADS", "4")
    found += [xcc.load(artifact), xcc.load(artifact, threads=2), xcc.load(artifact, threads=1, prepare=False)]
    assert [m.threads for m in found] == [3, 4, 2, 1]
    for m in found[1:]:
        np.testing.assert_array_equal(m(x), found[0](x))
    assert xcc.load(artifact, threads=1 << 40).threads == 256       # the most of a pool
    monkeypatch.setenv("XCC_THREADS", "two")
    with pytest.raises(xcc.UserError, match="XCC_THREADS is 'two', which is no number of threads"):
        xcc.load(artifact).run({"x": x})


def test_no_threads_without_work_for_them(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(SMALL)
    xcc.compile(tmp_path / "m.mlir").save(tmp_path / "m.xcm")
    assert xcc.load(tmp_path / "m.xcm", threads=4).threads == 1


@pytest.mark.parametrize("wrong", [-1, 1.5, "2", None, True])
def test_what_is_no_number_of_threads(artifact: Path, wrong: Any) -> None:
    with pytest.raises(xcc.UserError, match=r"threads is .*; give a number of threads, or 0 for one a core"):
        xcc.load(artifact, threads=wrong)


def test_threads_are_of_cpus(artifact: Path) -> None:
    loaded = xcc.load(artifact, prepare=False).artifact
    loaded.manifest["target"] = "nvptx"
    with pytest.raises(xcc.UserError, match="threads is for models on CPUs, this one is for 'nvptx'"):
        Model(loaded, threads=2)


def test_threads_on_the_command_line(artifact: Path, capsys: pytest.CaptureFixture[str],
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    run = Model.run
    monkeypatch.setattr(Model, "run", lambda self, given: seen.append(self.threads) or run(self, given))
    assert xcc_run.main([str(artifact), "--random", "--dim=n=9", "--threads=2"]) == 0
    assert set(seen) == {2}
    seen.clear()
    assert xcc_bench.main([str(artifact), "--dim=n=9", "--seconds=0", "--threads=4"]) == 0
    assert set(seen) == {4}
    assert xcc_run.main([str(artifact), "--random", "--threads=-2"]) == 1
    assert "threads is -2; give a number of threads" in capsys.readouterr().err
