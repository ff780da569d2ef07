"""Some of the models that `python test/e2e/torch_models.py` checks all of, and what that script stands on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch_models
import torch_zoo

pytestmark = pytest.mark.usefixtures("fresh_torch")


@pytest.mark.parametrize(("name", "way", "dtype"), [("lstm", "compile", "f16"), ("vit", "compile", "f32"),
                                                    ("llama", "compile", "f32"),
                                                    ("whisper_decoder", "export", "f32")])
def test_right_at_four_sizes(name: str, way: str, dtype: str) -> None:
    row = torch_models.check(name, way, dtype)
    assert not row.problem and 0 < row.error < torch_models.LIMITS[dtype], row


def test_there_are_eighteen_models_and_four_sizes_of_each() -> None:
    models = torch_zoo.zoo()
    assert len(models) >= 18
    for model in models.values():
        free = {d for given in model.inputs.values() for d in given.shape if isinstance(d, str)}
        assert len({tuple(sorted(case.items())) for case in model.cases}) == 4, model.name
        assert all(set(case) == free for case in model.cases), model.name


def test_all_models_by_torch_compile_were_right_when_last_recorded() -> None:
    """From one compilation each, in ``torch_models.py --way compile --json``."""
    rows = json.loads((Path(__file__).parents[2] / "benchmarks/results/torch-models.json").read_text())["rows"]
    right = {r["name"] for r in rows if (r["way"], r["dtype"]) == ("compile", "f32") and not r["problem"]}
    assert set(torch_zoo.zoo()) <= right


def test_what_is_wrong_is_a_problem_of_its_row() -> None:
    assert "KeyError" in torch_models.in_child("no_such_model", "compile", "f32", 60).problem
    assert torch_models.in_child("lstm", "compile", "f32", 0).problem == "took more than 0 s"
    assert torch_models.distance([1.0, 2.0], [1.0, 2.5]) == 0.2 and torch_models.distance([float("nan")], [1.0]) > 1
