"""Some of the models that `python test/e2e/torch_models.py` checks all of, and what that script stands on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch_models
import torch_zoo


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield


@pytest.mark.parametrize(("name", "way"), [("lstm", "compile"), ("vit", "compile"), ("whisper_decoder", "export")])
def test_right_at_four_sizes(name: str, way: str) -> None:
    row = torch_models.check(name, way, "f32")
    assert not row.problem and 0 < row.error < 1e-4, row


def test_there_are_eighteen_models_and_four_sizes_of_each() -> None:
    models = torch_zoo.zoo()
    assert len(models) >= 18
    for model in models.values():
        free = {d for given in model.inputs.values() for d in given.shape if isinstance(d, str)}
        assert len({tuple(sorted(case.items())) for case in model.cases}) == 4, model.name
        assert all(set(case) == free for case in model.cases), model.name


def test_what_is_wrong_is_a_problem_of_its_row() -> None:
    assert "KeyError" in torch_models.in_child("no_such_model", "compile", "f32", 60).problem
    assert torch_models.in_child("lstm", "compile", "f32", 0).problem == "took more than 0 s"
    assert torch_models.distance([1.0, 2.0], [1.0, 2.5]) == 0.2 and torch_models.distance([float("nan")], [1.0]) > 1
