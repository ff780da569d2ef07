"""Models of several ranks as processes on this CPU, with gloo between them; and what happens when one fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch.distributed
from rank_processes import SECONDS, start
from rank_programs import KINDS, artifact, each_kind, summing

import xcc
from xcc.runtime.collectives import exchange
from xcc.runtime.dtypes import numpy_dtype
from xcc.runtime.mesh import Mesh

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
def test_each_rank_has_its_program_and_weights(tmp_path: Path) -> None:
    assert start("sums", summing(tmp_path, 3, 1), 3) == [[[33, 33, 33]] * 3] * 3


@pytest.mark.parametrize("dtype", ["f32", "bf16", "ui8"])
def test_each_collective(dtype: str, tmp_path: Path) -> None:
    mesh = Mesh((("tp", 2),))
    program = each_kind(dtype, 2)
    artifact([program, program], mesh).save(tmp_path / "m.xcm")
    got = start("kinds", tmp_path / "m.xcm")
    given = [((np.arange(8) + 100 * rank) % 117).astype(numpy_dtype(dtype)) for rank in range(2)]
    for n, kind in enumerate(KINDS):
        for rank, wanted in enumerate(exchange(program.body[n], given)):
            np.testing.assert_array_equal(got[rank][kind], wanted.astype(np.float64), f"{kind} on rank {rank}")


def test_tensors_of_torch(tmp_path: Path) -> None:
    assert start("tensors", summing(tmp_path, 2, 1)) == [[[12, 14, 16]] * 2] * 2


def test_a_rank_that_dies_ends_the_others(tmp_path: Path) -> None:
    said, nothing = start("killed", summing(tmp_path))
    assert nothing is None and said[0] == "rank 0 of 2: rank 1 has ended" and said[1] < 10


def test_a_rank_whose_run_is_an_error_ends_the_others(tmp_path: Path) -> None:
    first, second = start("failing", summing(tmp_path))
    wrong = "input 'x': element type is f64"
    assert all(wrong in text for text in (*first, *second))
    assert first[0].startswith("rank 0 of 2: rank 1 failed: ") and second[0].startswith(wrong)


def test_a_rank_ends_before_the_one_that_it_waited_for(tmp_path: Path) -> None:
    first, second = start("outliving", summing(tmp_path))
    assert first == f"rank 0 of 2: rank 1 failed: {second}" and "element type is f64" in second


def test_inputs_that_do_not_fit_each_other_are_refused(tmp_path: Path) -> None:
    for said in start("differing", summing(tmp_path)):
        assert "inputs of ranks 0 and 1 have shapes that do not fit each other" in said


def test_other_artifacts_are_refused(tmp_path: Path) -> None:
    for rank in range(2):
        shutil.copy(summing(tmp_path, 2, rank), tmp_path / f"{rank}.xcm")
    for said in start("loading", tmp_path / "RANK.xcm"):
        assert said == "rank 1 loads another artifact than rank 0 where they load m"


def test_a_mesh_of_another_size_is_refused(tmp_path: Path) -> None:
    said, _ = start("loading", summing(tmp_path, 3))
    assert said == "m is for the mesh tp:3, which has 3 ranks; 2 were started"


def test_without_a_launcher_it_says_how(tmp_path: Path) -> None:
    path = summing(tmp_path)
    with pytest.raises(xcc.UserError, match="torchrun --nproc-per-node=2 -m xcc.tools.xcc_run m.xcm"):
        xcc.load(path)
    looked_at = xcc.load(path, prepare=False)
    assert [i.name for i in looked_at.inputs] == ["x"]
    with pytest.raises(xcc.UserError, match="start a process for each of its 2 ranks"):
        looked_at.run({"x": np.zeros(3, np.float32)})


def test_xcc_run_under_torchrun(tmp_path: Path) -> None:
    path = summing(tmp_path, 2, 1)
    for rank in range(2):
        np.save(tmp_path / f"x{rank}.npy", np.full(4, 5 + rank, np.float32))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m",
               "xcc.tools.xcc_run", str(path), "--input", f"x={tmp_path}/x{{rank}}.npy", "-o",
               f"{tmp_path}/out{{rank}}.npz", "--repeat", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
    assert done.returncode == 0, done.stderr
    assert "rank 0: y" in done.stdout and "rank 1: y" in done.stdout and done.stdout.count("2 runs: median") == 1
    for rank in range(2):       # (5 + 1) + (6 + 11)
        np.testing.assert_array_equal(np.load(tmp_path / f"out{rank}.npz")["y"], np.full(4, 23))
