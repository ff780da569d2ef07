"""The processes of benchmarks/cpu.py: turns, cases one after the other, and what becomes of one that fails."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))
from cpu_rivals import Rival  # noqa: E402
from cpu_tables import page  # noqa: E402
from first_run import COLUMNS, first_runs  # noqa: E402

import xcc  # noqa: E402
from xcc.targets.cpu.machine import limit_call  # noqa: E402

if not sys.platform.startswith("linux"):
    pytest.skip("reads /proc", allow_module_level=True)


def product(folder, n, rows=None):
    """A case: x of n x n (or of `rows` rows) times a weight."""
    w, x = (np.full((n, n), v, np.float32) for v in (2, 3))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows or n, n))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows or n, n))], [numpy_helper.from_array(w, "w")])
    folder.mkdir()
    onnx.save(helper.make_model(graph), str(folder / "m.onnx"))
    (folder / "job.json").write_text(json.dumps({"path": str(folder / "m.onnx"), "torch": ["matmul"]}))
    np.savez(folder / "feeds.npz", x=x)
    return folder


def test_cases_one_after_the_other(tmp_path):
    rival = Rival("openblas", 1, tmp_path / "log")
    try:
        for n, alone in ((4, False), (8, False), (16, True), (32, False)):
            rival.load(product(tmp_path / str(n), n), alone)
            rival.loaded()
            assert not rival.why and rival.facts["run_bytes"] >= rival.facts["activation_bytes"] >= 0
            rival.turn(0.001)
            assert not rival.why and rival.times and min(rival.times) > 0
            rival.end()
            assert np.all(np.load(tmp_path / str(n) / "openblas.npz")["0"] == 6 * n)
        rival.load(tmp_path)
        rival.loaded()
        assert rival.why.startswith("FileNotFoundError") and not rival.times
    finally:
        rival.stop()


def test_process_that_dies(tmp_path):
    """It is out of its case, and in the next."""
    rival = Rival("openblas", 1, tmp_path / "log")
    try:
        for folder in (product(tmp_path / "a", 4), product(tmp_path / "b", 4)):
            rival.load(folder)
            rival.loaded()
            assert not rival.why
            os.killpg(rival._process.pid, signal.SIGKILL)
            rival.turn(0.001)
            assert "died" in rival.why and not rival.times
    finally:
        rival.stop()


def test_rows_of_earlier_versions_are_named():
    row = {"group": "matmul", "ms": {"xcc": 1.0, "limit": 0.5, "openblas": 2.0}, "ratio": 2.0, "gflops": 3.0,
           "of_limit": 0.5}
    data = {"cpu": "c", "threads": 2, "flops": {"f32": 1e9}, "bandwidth": [[1, 1e9]], "version": "new",
            "rows": [row | {"case": "a", "version": "new"}, row | {"case": "b", "version": "old"}]}
    text = page(data)
    assert "earlier version of the compiler: b." in text and "| a | 1.000 | 2.000 | 0.500 | 2.00 | 3 | 50% |" in text


@pytest.mark.parametrize("flops, moved", [(1e6, 0.0), (0.0, 1e6)])
def test_limits_take_turns(flops, moved):
    """A call does at least what it is asked for."""
    call, times = limit_call(1, flops, moved)
    begin = time.perf_counter()
    call()
    seconds = time.perf_counter() - begin
    assert times >= 1
    assert (flops + moved) * times / seconds < 1e13        # no machine is that fast


def test_first_runs_of_a_model_with_symbolic_dims(tmp_path, monkeypatch):
    """Some samples name the sizes; no more begin when the time is over."""
    product(tmp_path / "case", 64, "n")
    artifact = tmp_path / "xcc.xcm"
    xcc.compile(tmp_path / "case" / "m.onnx").save(artifact)
    commands, run = [], subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda c, **options: commands.append(c) or run(c, **options))
    found = first_runs(artifact, tmp_path / "case" / "feeds.npz", 1, 50, seconds=0)
    assert set(found) == {*COLUMNS, "named_ms", "named_ratio"} and found["named_ms"] > 0
    assert ["--dims" in c for c in commands] == [False, True]


def test_first_runs(tmp_path):
    """A sample in a process of its own, and its columns in the table."""
    product(tmp_path / "case", 64)
    artifact = tmp_path / "xcc.xcm"
    xcc.compile(tmp_path / "case" / "m.onnx").save(artifact)
    found = first_runs(artifact, tmp_path / "case" / "feeds.npz", 1, 1)
    assert set(found) == set(COLUMNS) and all(found[k] > 0 for k in COLUMNS if k != "faults")
    row = {"case": "small", "group": "models", "version": "v", "ms": {"xcc": 2.0},
           "first_ms": {"xcc": 3.0}, "load_s": {"xcc": 0.1}, "run_mb": {},
           "activation_mb": {}, "weights_mb": 1.0, "compile_s": 1.0}
    data = {"cpu": "c", "threads": 1, "version": "v", "flops": {}, "bandwidth": [[1, 1e9]]}
    with_first = page(data | {"rows": [row | {"first": found}]})
    assert f"| {found['first_ms']:.3f} | {found['warm_ms']:.3f} |" in with_first
    assert "| small | 1.0 | 0.10 | 3.000 | 2.000 | - | 1.50 | - |" in page(data | {"rows": [row]})
