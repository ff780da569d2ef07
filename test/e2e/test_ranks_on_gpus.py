"""Models of several ranks on two NVIDIA GPUs, with NCCL between them in captured graphs, and failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from rank_models import SHARED, decoder, greedy
from rank_processes import start
from rank_programs import KINDS, each_kind, on_gpus, plain_sum

import xcc
from xcc.runtime.collectives import exchange
from xcc.runtime.cuda_api import find_gpu
from xcc.runtime.dtypes import numpy_dtype

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(find_gpu(1) is None, reason="needs two NVIDIA GPUs")]


@pytest.fixture(scope="module")
def summing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ranks") / "m.xcm"
    on_gpus(plain_sum()).save(path)
    return path


def test_several_sizes(summing: Path) -> None:
    assert start("sums", summing) == [[[0, 0, 0]] * 3] * 2


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "ui8", "i32"])
def test_each_collective(dtype: str, tmp_path: Path) -> None:
    program = each_kind(dtype, 2)
    on_gpus(program).save(tmp_path / "m.xcm")
    got = start("kinds", tmp_path / "m.xcm")
    given = [((np.arange(8) + 100 * rank) % 117).astype(numpy_dtype(dtype)) for rank in range(2)]
    for n, kind in enumerate(KINDS):
        for rank, wanted in enumerate(exchange(program.body[n], given)):
            np.testing.assert_array_equal(got[rank][kind], wanted.astype(np.float64), f"{kind} on rank {rank}")


@pytest.mark.parametrize(("dtype", "limit"), [("f32", 3e-7), ("f16", 2e-3), ("bf16", 2e-2)])
@pytest.mark.parametrize("peers", ["1", "0"])
def test_sums_by_peers_and_by_the_library(dtype: str, limit: float, peers: str, tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    """Right, the same on all ranks, the same each time."""
    monkeypatch.setenv("XCC_PEER_COLLECTIVES", peers)
    on_gpus(plain_sum(dtype)).save(tmp_path / "m.xcm")
    said = start("totals", tmp_path / "m.xcm")
    assert said[0] == said[1] and said[0][0] <= limit and said[0][1]


@pytest.mark.parametrize("batch", [64, "batch"])
@pytest.mark.parametrize("peers", ["1", "0"])
def test_a_model_over_and_over(batch: Any, peers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What two ranks exchange in a run is not what they exchanged before."""
    monkeypatch.setenv("XCC_PEER_COLLECTIVES", peers)
    model = blocks(tmp_path / "m.onnx", batch)
    xcc.compile(model, target="nvptx", mesh={"tp": 2}, shard={"up*": "tp:1", "down*": "tp:0"}).save(tmp_path / "m.xcm")
    x = np.random.default_rng(1).standard_normal((64, 32)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    one = xcc.compile(model)
    first, second = start("again", tmp_path / "m.xcm")
    assert first == second
    for rows, y in first.items():
        turn = max(t for t in range(40) if int(rows) == (64 if t % 2 or batch == 64 else 3 + t % 4))
        want = one.run({"x": x[:int(rows)] + np.float32(turn)})["y"]
        np.testing.assert_allclose(np.array(y), want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


def test_two_hundred_greedy_tokens(tmp_path: Path) -> None:
    model = decoder(tmp_path / "m.onnx")
    want = greedy(xcc.compile(model, target="nvptx"))
    xcc.compile(model, target="nvptx", mesh={"tp": 2}, shard=SHARED).save(tmp_path / "m.xcm")
    assert start("tokens", tmp_path / "m.xcm") == [want, want]


def blocks(path: Path, batch: Any) -> Path:
    """x [batch, 32] through three feed-forward blocks, 32 -> 64 -> 32, with residuals."""
    rng, nodes, weights, x = np.random.default_rng(0), [], [], "x"
    for n in range(3):
        for name, shape in ((f"up{n}", (32, 64)), (f"down{n}", (64, 32))):
            weights.append(onnx.numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) / 8, name))
        nodes += [helper.make_node("MatMul", [x, f"up{n}"], [f"a{n}"]), helper.make_node("Relu", [f"a{n}"], [f"b{n}"]),
                  helper.make_node("MatMul", [f"b{n}", f"down{n}"], [f"c{n}"]),
                  helper.make_node("Add", [f"c{n}", x], ["y" if n == 2 else f"d{n}"])]
        x = f"d{n}"
    graph = helper.make_graph(nodes, "blocks", [helper.make_tensor_value_info("x", 1, [batch, 32])],
                              [helper.make_tensor_value_info("y", 1, [batch, 32])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


def test_a_rank_that_dies_ends_the_others(summing: Path) -> None:
    said, nothing = start("killed", summing)
    assert nothing is None and said[0] == "rank 0 of 2: rank 1 has ended" and said[1] < 10


def test_a_rank_whose_run_is_an_error_ends_the_others(summing: Path) -> None:
    first, second = start("failing", summing)
    wrong = "input 'x': element type is f64"
    assert all(wrong in text for text in (*first, *second))
    assert first[0].startswith("rank 0 of 2: rank 1 failed: ") and second[0].startswith(wrong)


def test_inputs_that_do_not_fit_each_other_are_refused(summing: Path) -> None:
    for said in start("differing", summing):
        assert "inputs of ranks 0 and 1 have shapes that do not fit each other" in said
