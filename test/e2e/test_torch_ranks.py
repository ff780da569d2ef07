"""PyTorch programs of several ranks, as processes on this CPU: DDP, FSDP2, DTensor plans, pipelines, exported ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from rank_processes import start

pytestmark = [
    pytest.mark.early,
    pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed"),
]

WORKER = Path(__file__).with_name("torch_rank_worker.py")
STEPS, MICRO_BATCHES = 3, 4
TASKS = ("ddp", "one_graph", "fsdp", "plan", "sequence", "pipeline", "exported", "between", "refused")

Answers = dict[str, list[Any]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What each task gives on both ranks, which are processes for all tasks: to start one takes longer than a task.
    Nothing is left to torch with a warning, but of `refused`."""
    said = start(",".join(TASKS), tmp_path_factory.mktemp("ranks"), worker=WORKER, seconds=900)
    assert None not in said, "a rank has failed, see above"
    by_task = dict(zip(TASKS, zip(*said, strict=True), strict=True))
    assert not [w for task in TASKS if task != "refused" for _, warnings in by_task[task] for w in warnings]
    return {task: [answer for answer, _ in given] for task, given in by_task.items()}


@pytest.mark.parametrize("task, graphs, kinds", [
    ("ddp", 4, {"transformer": set()}),
    ("one_graph", 2, {"perceptron": set()}),
    ("fsdp", 2, {"transformer": set()}),
    ("plan", 2, {"transformer": {"all_reduce"}}),
    ("sequence", 2, {"perceptron": {"all_gather", "reduce_scatter"}, "transformer": {"all_gather", "reduce_scatter"}}),
])
def test_training(answers: Answers, task: str, graphs: int, kinds: dict[str, set[str]]) -> None:
    """Three steps give what eager PyTorch gives on two ranks, and on one. A step calls so many graphs at least: DDP's
    buckets cut both passes."""
    for answer in answers[task]:
        for model, (from_eager, from_one, counted) in answer.items():
            assert from_eager < 1e-5 and from_one < 1e-5, model
            assert counted.pop("graph") >= graphs * STEPS
            assert set(counted) == kinds[model]


def test_pipeline(answers: Answers) -> None:
    """Each step calls the compiled graphs of both passes for each micro-batch; losses are the last stage's."""
    for from_one, loss_apart, counted in answers["pipeline"]:
        assert from_one < 1e-5 and loss_apart < 1e-5
        assert counted["graph"] >= 2 * MICRO_BATCHES * STEPS


def test_exported_programs(answers: Answers) -> None:
    """In the process that compiles it, from a file, and as a function of tensors."""
    for distances, mesh in answers["exported"]:
        assert max(distances) < 1e-5
        assert mesh == [["group_0", 2]]


def test_eager_collectives_around_compiled_ones(answers: Answers) -> None:
    assert answers["between"] == [{"graph": STEPS, "all_reduce": STEPS}] * 2


def test_parts_of_other_sizes_stay_in_torch(answers: Answers) -> None:
    for (exported, compiled), equal in answers["refused"]:
        assert "torch_rank_worker.py:" in exported and "_c10d_functional.all_to_all_single" in exported
        assert "are not of one size" in exported
        assert "_c10d_functional.all_to_all_single.default: no converter" in compiled
        assert equal
