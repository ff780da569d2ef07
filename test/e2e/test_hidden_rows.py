"""Rows of attention whose keys are all hidden by f32's least number, in f16: uniform weights, as in f32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_graphs import RNG, compiled, model_of, node, numbers, reference

LEAST = np.finfo(np.float32).min
BOUND = 2e-3        # of the largest number, as for whole models in f16
SHAPE = (2, 2, 17, 16)
KEPT = RNG.uniform(0, 1, (2, 1, 17, 17)) < 0.6
KEPT[0, 0, 3] = KEPT[1, 0, :5] = False
ATTENTION = [node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), node("MatMul", "q kt", "p"), node("Mul", "p scale", "s"),
             node("Add", "s mask", "m"), node("Softmax", "m", "e", axis=-1), node("MatMul", "e v", "y")]
MASKS: dict[str, tuple[list[Any], Any]] = {
    "input": ([], np.where(KEPT, 0, LEAST).astype(np.float32)),
    "chosen": ([node("Where", "kept zero least", "mask")], KEPT),
    "product": ([node("Cast", "kept", "f", to=1), node("Sub", "one f", "r"), node("Mul", "r least", "mask")],
                KEPT.astype(np.int64)),
}


@pytest.mark.parametrize("chip", ["sm_90a", "gfx942"])
@pytest.mark.parametrize("kind", MASKS)
def test_rows_that_see_nothing(kind: str, chip: str) -> None:
    before, given = MASKS[kind]
    inputs = {**{name: numbers(*SHAPE) for name in "qkv"}, "kept" if before else "mask": given}
    constants = {"scale": np.float32(0.25), "zero": np.float32(0), "one": np.float32(1), "least": LEAST}
    model = model_of([*before, *ATTENTION], inputs, "y", constants)
    (got,), (want,) = compiled(model, chip, precision="f16").run(inputs).values(), reference(model, inputs)
    assert np.abs(got - want).max() <= BOUND * np.abs(want).max()
