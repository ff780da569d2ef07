"""Products, convolutions and attentions whose fused neighbours lie in memory in other ways than the product's tile: no
kernel needs more shared memory than the chip has, and the interpreter gives their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import compare, examples
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto
from small_graphs import RNG, check, compiled, info, model_of, node, numbers, reference, with_outputs

from xcc import onnx_backend
from xcc.runtime.program import Launch
from xcc.targets.amdgcn.chip import CHIPS as AMD
from xcc.targets.nvptx.chip import chips

SMALL = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_86", "sm_89")     # chips and their LDS: 64 KB, 100 KB
CHIPS = {**chips(), **AMD}
BATCH, ROWS, COLUMNS = 3, 67, 132


def ids(count: int, *shape: int) -> Any:
    return np.random.default_rng(5).integers(0, count, shape)


def addend(kind: str, batch: int = BATCH, rows: int = ROWS, columns: int = COLUMNS) -> tuple[list[Any], dict[str, Any]]:
    """Nodes that make a value `a`, which broadcasts to [batch, rows, columns], and their inputs."""
    table = numbers(50, columns)
    return {
        "positions": ([node("Identity", "t", "a")], {"t": numbers(rows, columns)}),
        "rows": ([node("Identity", "t", "a")], {"t": numbers(batch, rows, 1)}),
        "images": ([node("Identity", "t", "a")], {"t": numbers(batch, 1, columns)}),
        "transposed": ([node("Transpose", "t", "a", perm=[0, 2, 1])], {"t": numbers(batch, columns, rows)}),
        "turned": ([node("Transpose", "t", "a", perm=[1, 0])], {"t": numbers(columns, rows)}),
        "gathered": ([node("Gather", "t i", "a", axis=0)], {"t": table, "i": ids(50, batch, rows)}),
        "columns": ([node("Gather", "t i", "a", axis=1)], {"t": numbers(rows, 40), "i": ids(40, columns)}),
        "nd": ([node("GatherND", "t i", "a")], {"t": table, "i": ids(50, batch, rows, 1)}),
        "elements": ([node("GatherElements", "t i", "a", axis=2)],
                     {"t": numbers(batch, rows, 40), "i": ids(40, batch, rows, columns)}),
        "masked": ([node("Where", "m t u", "a")], {"m": ids(2, rows, columns) > 0, "t": numbers(batch, rows, 1),
                                                   "u": numbers(columns)}),
    }[kind]


KINDS = ("positions", "rows", "images", "transposed", "turned", "gathered", "columns", "nd", "elements", "masked")


def product() -> tuple[list[Any], dict[str, Any]]:
    return [node("MatMul", "x w", "p")], {"x": numbers(BATCH, ROWS, 24), "w": numbers(24, COLUMNS)}


def batched() -> tuple[list[Any], dict[str, Any]]:
    return [node("MatMul", "x w", "p")], {"x": numbers(BATCH, ROWS, 24), "w": numbers(BATCH, 24, COLUMNS)}


def convolution() -> tuple[list[Any], dict[str, Any]]:
    return [node("Conv", "x w", "c", pads=[1, 1]), node("Transpose", "c", "p", perm=[0, 2, 1])], \
        {"x": numbers(BATCH, 16, ROWS), "w": numbers(COLUMNS, 16, 3)}


def attention() -> tuple[list[Any], dict[str, Any]]:
    """Queries, keys and values packed beside each other; the addend below is a bias of the scores."""
    return [node("Split", "x", "q k v", axis=2, num_outputs=3), node("Transpose", "k", "kt", perm=[0, 2, 1]),
            node("MatMul", "q kt", "p")], {"x": numbers(BATCH, ROWS, 192)}


def shown(nodes: list[Any], inputs: dict[str, Any], outputs: str, chip: str, precision: str, run: bool) -> None:
    """Compiles the graph for any batch, for which tiles are as large as they get."""
    dims = {n: ["b" if d == 0 and s == BATCH else s for d, s in enumerate(a.shape)] for n, a in inputs.items()}
    model = model_of(nodes, inputs, outputs, dims=dims)
    made = compiled(model, chip, precision=precision)
    launches = [s for s in made.artifact.program.body if isinstance(s, Launch)]
    assert launches and all(s.shared_bytes <= CHIPS[chip].shared_bytes for s in launches)
    if run:
        for got, want in zip(made.run(inputs).values(), reference(model, inputs), strict=True):
            compare(got, want, 400 if precision else 8)


@given(st.data())
@examples(6)
def test_products_with_odd_addends(data: Any) -> None:
    """A part of them is run, too."""
    chip, kind = data.draw(st.sampled_from(SMALL)), data.draw(st.sampled_from(KINDS))
    source = data.draw(st.sampled_from((product, batched, convolution, attention)))
    nodes, inputs = source()
    columns = ROWS if source is attention else COLUMNS
    more, others = addend(kind, columns=columns)
    nodes = [*nodes, *more, node("Add", "p a", "s")]
    outputs = "s"
    if source is attention:
        nodes += [node("Softmax", "s", "e", axis=-1), node("MatMul", "e v", "o")]
        outputs = "o"
    elif data.draw(st.booleans()):
        nodes += [node("Transpose", "s", "z", perm=[0, 2, 1]), node("Tanh", "s", "o")]
        outputs = data.draw(st.sampled_from(("z", "o", "o z")))
    shown(nodes, {**inputs, **others}, outputs, chip, data.draw(st.sampled_from(("", "f16"))), data.draw(st.booleans()))


@pytest.mark.parametrize("chip", ["sm_89", "gfx942"])
def test_products_with_a_mask_that_is_a_result(chip: str) -> None:
    """As large as the product's, and made without it, as dropout's is that a backward reads."""
    nodes, inputs = product()
    nodes = [node("Less", "i j", "m"), *nodes, node("Where", "m p r", "s")]
    inputs |= {"i": ids(50, BATCH, ROWS, COLUMNS), "j": ids(50, COLUMNS), "r": numbers(BATCH, ROWS, COLUMNS)}
    shown(nodes, inputs, "m s", chip, "f16", chip == "sm_89")


@pytest.mark.parametrize("chip, axes", [("sm_80", [1, 2]), ("sm_90a", [1]), ("gfx942", [1, 2]), ("gfx1100", [2])])
def test_reductions_of_concatenations(chip: str, axes: list[int]) -> None:
    """All that is reduced is read at computed places, as the last maps of a dense block are."""
    inputs = {f"x{i}": numbers(3, 7, 5, width) for i, width in enumerate((64, 32, 32, 17))}
    nodes = [node("Concat", " ".join(inputs), "c", axis=3), node("Relu", "c", "r"),
             node("ReduceMean", "r axes", "y", keepdims=1)]
    check(nodes, inputs, "y", {"axes": np.array(axes)}, chip=chip, dims={n: ["n", *a.shape[1:]]
                                                                       for n, a in inputs.items()})


NARROW = {name: getattr(TensorProto, name) for name in (
    "INT2", "UINT2", "INT4", "UINT4", "INT8", "UINT8", "FLOAT4E2M1", "FLOAT8E4M3FN", "FLOAT8E5M2")
    if hasattr(TensorProto, name)}


@pytest.mark.parametrize("chip", list(AMD))
def test_narrow_types(chip: str) -> None:
    """Quantised and back, for each type: numbers equal those of the ops' meaning."""
    x, scale = (RNG.uniform(-20, 20, (33, 21)) * 4).astype(np.float32), np.array(0.5, np.float32)
    nodes = []
    for name, kind in NARROW.items():
        nodes += [node("QuantizeLinear", "x s", f"q{name}", output_dtype=kind),
                  node("DequantizeLinear", f"q{name} s", f"y{name}")]
    results = [info(f"y{name}", x, [None, None]) for name in NARROW]
    model = with_outputs(nodes, {"x": x}, results, {"s": scale}, opset=25)
    want = onnx_backend.prepare(model, engine="interpret").run([x])
    for got, meant in zip(compiled(model, chip).run({"x": x}).values(), want, strict=True):
        np.testing.assert_array_equal(got, meant)
