"""Weights of random numbers, kept as their mean and deviation: drawn anew from a seed where they are needed.

A model's large random weights lie in ``weights.bin`` beside it, which :func:`restore` writes again from what the ONNX
file says about them.
"""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

SMALLEST = 1 << 12
RECIPE = "xcc.random_weights"


def forget_random_weights(source: Path, target: Path, seed: int) -> list[str]:
    """Writes the model without its large random weights; the names of its outputs."""
    model = onnx.load(str(source))
    model.graph.ClearField("value_info")
    for node in model.graph.node:
        node.ClearField("metadata_props")       # stack traces, most of a small model's file
    recipe = []
    for weight in model.graph.initializer:
        array = numpy_helper.to_array(weight)
        if array.dtype != np.float32 or array.size < SMALLEST or not _is_random(array):
            continue
        offset = 4 * sum(size for size, _, _ in recipe)
        recipe.append((array.size, float(array.mean()), max(float(array.std()), least_deviation(array.shape))))
        weight.ClearField("raw_data")
        weight.data_location = onnx.TensorProto.EXTERNAL
        del weight.external_data[:]
        for key, value in (("location", "weights.bin"), ("offset", str(offset)), ("length", str(array.nbytes))):
            weight.external_data.add(key=key, value=value)
    model.metadata_props.add(key=RECIPE, value=json.dumps([seed, recipe]))
    onnx.save(model, str(target))
    return [o.name for o in model.graph.output]


def least_deviation(shape: tuple[int, ...]) -> float:
    """One that keeps a signal's size. Fresh transformers have less, which hides mistakes in all but their residuals."""
    terms = math.prod(shape[1:]) if len(shape) > 2 else max(shape)
    return float(terms ** -0.5)


def _is_random(array: np.ndarray) -> bool:
    """Whether the numbers hold no structure that a compressor finds."""
    data = array.tobytes()[:1 << 16]
    return len(zlib.compress(data, 1)) > 0.85 * len(data)


def restore(path: Path) -> None:
    """Writes the weights of the model that were left out."""
    model = onnx.load(str(path), load_external_data=False)
    seed, recipe = json.loads(next(p.value for p in model.metadata_props if p.key == RECIPE))
    rng = np.random.default_rng(seed)
    with open(path.parent / "weights.bin", "wb") as out:
        for size, mean, deviation in recipe:
            out.write((rng.standard_normal(size, np.float32) * np.float32(deviation) + np.float32(mean)).tobytes())
