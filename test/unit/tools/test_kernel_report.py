"""xcc-bench --kernels: work from the artifact, limits of the machine."""

from __future__ import annotations

import re

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import xcc
from xcc.targets.cpu import machine
from xcc.tools import xcc_bench
from xcc.tools.kernel_report import kernel_rows, kernel_text

MACHINE = machine.Machine("a cpu", 2, {"f32": 1e9}, ((1000, 4e9), (100_000, 2e9), (1 << 30, 1e9)))


def test_limit_is_the_longer_of_arithmetic_and_traffic():
    assert MACHINE.limit(2e9, 1000) == 2.0
    assert MACHINE.limit(1.0, 2e6) == 2e-3
    assert MACHINE.limit(0.0, 1000) == 1000 / 4e9       # data that a cache holds
    assert MACHINE.limit(1e9, 0, "bf16") == 1.0         # a type without a peak of its own


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    w = np.ones((8, 16), np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("MatMul", ["t", "v"], ["u"]),
         helper.make_node("MatMul", ["u", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.ones((16, 8), np.float32), "v")])
    path = tmp_path_factory.mktemp("m") / "m.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                       ir_version=9).SerializeToString())
    return path


def test_rows_add_the_launches_of_a_kernel(model):
    compiled = xcc.compile(model, dims={"n": (1, 64)})
    rows = kernel_rows(compiled, {"x": np.ones((5, 8), np.float32)}, MACHINE)
    assert sum(r.calls for r in rows) == 3
    assert sum(r.flops for r in rows) == 3 * 2 * 5 * 8 * 16
    assert sum(r.moved for r in rows) == 3 * 4 * (5 * 8 + 8 * 16 + 5 * 16)
    assert all(r.limit > 0 and r.seconds > 0 for r in rows)
    head, *lines, last = kernel_text(rows).splitlines()
    assert len(lines) == len(rows) and last.startswith("all")
    assert len({len(line) for line in (head, *lines, last)}) == 1


def test_command(model, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("XCC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(machine, "SIZES", (1 << 15, 1 << 17))
    monkeypatch.setattr(machine, "SECONDS", 1e-4)
    assert xcc_bench.main([str(model), "--dim=n=4", "--kernels", "--seconds=0.01", "--threads=2"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"limits, \d threads: f32 \d+ GFLOP/s", out)
    assert "of limit" in out
    (kept,) = (tmp_path / "machine").glob("*.json")
    first = kept.read_text()
    found = machine.measured(2)
    assert found.flops["f32"] > 0 and found.bandwidth[0][1] >= found.bandwidth[-1][1] > 0
    assert kept.read_text() == first
    kept.write_text("{}")           # damaged: measured again
    assert machine.measured(2).flops["f32"] > 0
