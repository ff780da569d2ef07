"""Some models of the table of exports, as `make test-exported` checks them all, and what those checks stand on."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from exported import results
from exported.checking import Outcome, check
from exported.weights import forget_random_weights, restore
from exported_models import in_child, table
from onnx import TensorProto, helper, numpy_helper

from xcc.tools.peers import onnxruntime_session

QUICK = ("gpt_oss", "llama_step")
"""A mixture of experts, and a step with keys and values of the past: of transformers alone."""


@pytest.mark.parametrize("name", QUICK)
def test_right_at_two_sizes_on_the_cpu(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from exported.exporting import export

    export(table()[name], tmp_path)
    assert len(list(tmp_path.glob("case*.npz"))) == 2
    assert not check(tmp_path, "cpu").problem


def product(path: Path) -> None:
    rng = np.random.default_rng(0)
    steps = np.arange(96 * 64).reshape(96, 64) / 1000
    weights = {"random": rng.standard_normal((64, 96)) * 0.02 + 0.01, "steps": steps}
    nodes = [helper.make_node("MatMul", ["x", "random"], ["h"]), helper.make_node("MatMul", ["h", "steps"], ["y"])]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 64]) for n in "xy")
    held = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), str(path))


def test_random_weights_are_drawn_anew(tmp_path: Path) -> None:
    """Only their mean and deviation are kept, that at least at what keeps a signal's size; other weights stay."""
    product(tmp_path / "source.onnx")
    assert forget_random_weights(tmp_path / "source.onnx", tmp_path / "model.onnx", seed=3) == ["y"]
    assert (tmp_path / "model.onnx").stat().st_size < 64 * 96 * 4 + 1000
    kept = []
    for _ in range(2):
        restore(tmp_path / "model.onnx")
        kept.append((tmp_path / "weights.bin").read_bytes())
    assert kept[0] == kept[1] and len(kept[0]) == 64 * 96 * 4
    drawn, steps = map(numpy_helper.to_array, onnx.load(str(tmp_path / "model.onnx")).graph.initializer)
    assert abs(drawn.mean() - 0.01) < 0.005 and abs(drawn.std() - 96 ** -0.5) < 0.01
    assert steps[0, 1] == np.float32(0.001)
    y, = onnxruntime_session(str(tmp_path / "model.onnx")).run(None, {"x": np.ones((2, 64), np.float32)})
    assert np.isfinite(y).all()


def test_a_crash_and_a_hang_are_problems_of_their_row(tmp_path: Path) -> None:
    assert "no such file" in in_child("cpu", tmp_path, 60, 1).problem
    assert in_child("cpu", tmp_path, 0, 1).problem == "took more than 0 s"


def test_rows_are_kept_and_rendered(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    where = ("0123", "a machine")
    for seconds in (1.0, 2.0):
        results.save([results.row("m", "cpu", "timm", "batch 1, 3", where, Outcome("", seconds, 7, 1e-6))], path)
    results.save([results.row("m", "gfx942", "timm", "batch 1, 3", where, Outcome("too much LDS", 3.0))], path)
    rows = results.load(path)
    assert [r.seconds for r in rows.values()] == [2.0, 3.0]
    page = results.render(rows)
    assert "| m | timm | batch 1, 3 | 1e-06 2 s | failed |" in page and "cpu, gfx942: a machine." in page


def test_every_model_has_two_sizes_of_each_free_dim() -> None:
    models = table()
    assert len(models) >= 34
    for model in models.values():
        free = {d for given in model.inputs.values() for d in given.shape if isinstance(d, str)}
        assert all(set(case) == free for case in model.cases), model.name
        assert not free or all(model.cases[0][d] != model.cases[1][d] for d in free), model.name


def test_the_table_needs_no_library_until_it_builds() -> None:
    loaded = {"timm", "diffusers", "torchvision"} & set(sys.modules)
    table()
    assert {"timm", "diffusers", "torchvision"} & set(sys.modules) == loaded
