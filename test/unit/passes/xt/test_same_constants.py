"""What is computed of weights when a model is compiled has the same bits, whatever numpy finds that the CPU can do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper

from xcc.runtime.artifact import Artifact

pytestmark = pytest.mark.early

CPUS: tuple[dict[str, str], ...] = (
    {}, {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR", "OPENBLAS_CORETYPE": "Haswell"},
    {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR", "OPENBLAS_CORETYPE": "Prescott"})
COMPILE = """
import sys, xcc
from pathlib import Path
folder, *models = map(Path, sys.argv[1:])
for path in models:
    xcc.compile(path, chip="x86-64-v3", isolate=False, cache=False, jobs=1).save(folder / f"{path.stem}.xcm")
"""
CURVES = {"inside": ("Acos", "Asin", "Atan", "Atanh", "Asinh", "Log", "Reciprocal", "Sqrt", "Softplus"),
          "wide": ("Cos", "Cosh", "Sinh", "Tan", "Tanh", "Sigmoid", "Elu", "Selu", "Celu", "Mish", "HardSwish"),
          "odd": ("Erf", "Exp", "Gelu", "Sin", "Neg", "Relu")}
ROWS = ("Softmax", "LogSoftmax", "ReduceLogSumExp", "ReduceL2", "ReduceMean", "ReduceProd", "ReduceMax", "CumSum",
        "LpNormalization", "LayerNormalization")
SIZES = {"small": 24, "large": 2304}     # elements of a constant; up to 1024 are known when the model is read


def packed(nodes: list[Any], given: dict[str, Any], inputs: list[Any], outputs: list[str], element: int) -> ModelProto:
    """A model of `nodes`, with the arrays `given`."""
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info(o, element, None) for o in outputs],
                              [numpy_helper.from_array(v, k) for k, v in given.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def computed_constants(size: int, dtype: Any) -> ModelProto:
    """A model whose output is its input plus all that its other nodes compute of constants."""
    rng = np.random.default_rng(0)
    inside, wide = rng.uniform(0.01, 0.99, size).astype(dtype), rng.standard_normal(size).astype(dtype)
    odd = np.concatenate([np.array([0.0, -0.0, np.nan, -np.nan, np.inf, 300.0, -300.0]), wide[7:]]).astype(dtype)
    given = {"inside": inside, "wide": wide, "odd": odd, "end": np.array([-1]), "axis": np.array(1),
             "axes": np.array([1]), "rows": wide.reshape(2, -1), "columns": inside.reshape(-1, 2),
             "image": inside[:16].reshape(1, 1, 4, 4), "filter": wide[:16].reshape(4, 1, 2, 2),
             "line": inside[:size // 2]}
    nodes = [helper.make_node(op, [of], [op]) for of, ops in CURVES.items() for op in ops]
    nodes += [helper.make_node("Add", ["inside", "Cosh"], ["above"]), helper.make_node("Acosh", ["above"], ["Acosh"]),
              helper.make_node("Pow", ["inside", "wide"], ["Pow"]), helper.make_node("Max", ["odd", "wide"], ["Max"]),
              helper.make_node("MatMul", ["rows", "columns"], ["MatMul"]),
              helper.make_node("Conv", ["image", "filter"], ["Conv"])]
    more = {"CumSum": ["axis"], "LayerNormalization": ["line"]}
    nodes += [helper.make_node(op, ["rows", *more.get(op, ["axes"] if op.startswith("Reduce") else [])], [op])
              for op in ROWS]
    parts = [*(op for ops in CURVES.values() for op in ops), "Acosh", "Pow", "Max", "MatMul", "Conv", *ROWS]
    nodes += [helper.make_node("Reshape", [name, "end"], [f"flat_{name}"]) for name in parts]
    nodes += [helper.make_node("Concat", [f"flat_{name}" for name in parts], ["all"], axis=0),
              helper.make_node("Add", ["x", "all"], ["y"])]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return packed(nodes, given, [helper.make_tensor_value_info("x", element, (1,))], ["y"], element)


def folded_layers() -> ModelProto:
    """Weights that layers take in: batch normalisations, filters of Winograd's form, tables of a Fourier transform."""
    rng = np.random.default_rng(1)
    given = {"filter": rng.standard_normal((32, 32, 3, 3)), "scale": rng.uniform(0.5, 2, 32), "shift": np.zeros(32),
             "mean": rng.standard_normal(32), "variance": rng.uniform(0.5, 2, 32),
             "first": rng.standard_normal((32, 48)), "second": rng.standard_normal((48, 24)),
             "factor": rng.standard_normal((1, 32, 1, 1))}
    nodes = [helper.make_node("Conv", ["x", "filter"], ["c"], pads=[1, 1, 1, 1]),
             helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"]),
             helper.make_node("Exp", ["factor"], ["grown"]), helper.make_node("Mul", ["n", "grown"], ["m"]),
             helper.make_node("MatMul", ["first", "second"], ["both"]),
             helper.make_node("MatMul", ["m", "both"], ["y"]),
             helper.make_node("HannWindow", ["length"], ["window"]), helper.make_node("Mul", ["m", "window"], ["w"]),
             helper.make_node("Unsqueeze", ["w", "last"], ["u"]), helper.make_node("DFT", ["u"], ["f"], axis=3)]
    arrays = {k: v.astype(np.float32) for k, v in given.items()} | {"length": np.array(32), "last": np.array([4])}
    return packed(nodes, arrays, [helper.make_tensor_value_info("x", 1, (1, 32, 32, 32))], ["y", "f"], 1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each of CPUS, with the artifact of each model."""
    root = tmp_path_factory.mktemp("constants")
    models = {f"{name}{kind.__name__}": computed_constants(size, kind) for name, size in SIZES.items()
              for kind in (np.float32, np.float64, np.float16)}
    paths = [root / f"{name}.onnx" for name in (*models, "layers")]
    for path, model in zip(paths, (*models.values(), folded_layers()), strict=True):
        path.write_bytes(model.SerializeToString())
    for number, cpu in enumerate(CPUS):
        (root / str(number)).mkdir()
        subprocess.run([sys.executable, "-c", COMPILE, str(root / str(number)), *map(str, paths)], check=True,
                       env={**os.environ, **cpu, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
    return root


@pytest.mark.parametrize("name", [*(f"{name}{kind}" for name in SIZES for kind in ("float32", "float64", "float16")),
                                  "layers"])
def test_the_same_bytes(made: Path, name: str) -> None:
    first, *others = [Artifact.read(made / str(n) / f"{name}.xcm") for n in range(len(CPUS))]
    for other in others:
        assert [k for k, v in first.weights.items() if v.tobytes() != other.weights[k].tobytes()] == []
        assert [k for k, v in first.members.items() if bytes(v) != bytes(other.members[k])] == []
    assert len({(made / str(n) / f"{name}.xcm").read_bytes() for n in range(len(CPUS))}) == 1


@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
def test_constants_are_computed_when_compiled(made: Path, kind: str) -> None:
    """All of these models but their last sum is one weight: nothing is left to a run."""
    for name in SIZES:
        weights = Artifact.read(made / "0" / f"{name}{kind}.xcm").weights
        assert len(weights) == 1
