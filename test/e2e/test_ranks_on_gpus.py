"""Models of several ranks on two NVIDIA GPUs, with NCCL between them in captured graphs, and failures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rank_processes import start
from rank_programs import KINDS, each_kind, on_gpus, plain_sum

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
