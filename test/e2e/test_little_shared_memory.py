"""Kernels on chips with less shared memory than their strategies count on: tiles are made smaller until they have room,
and the interpreter gives their numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from compiled import EXAMPLES, compare
from small_graphs import compiled, model_of, node, numbers, reference
from test_gpu_fusions import KINDS, ROWS, addend, attention, batched, convolution, product

from xcc.process import worker
from xcc.runtime.program import Launch

CHIPS = ("gfx942", "gfx1100", "gfx1201", "sm_80", "sm_90a")
BYTES = (2048, 4096, 8192, 16384)


def long_product() -> tuple[list[Any], dict[str, Any], str]:
    """Of tiles as large as a strategy takes them, and of steps of the deepest."""
    return [node("MatMul", "x w", "p"), node("Relu", "p", "y")], {"x": numbers(130, 200), "w": numbers(200, 140)}, "y"


def wide_heads() -> tuple[list[Any], dict[str, Any], str]:
    """Attention of heads of 128, whose keys and values fill the memory."""
    q, k = numbers(2, 40, 128), numbers(2, 128, 50)
    return [node("MatMul", "q k", "p"), node("Softmax", "p", "s", axis=-1), node("MatMul", "s v", "y")], \
        {"q": q / 8, "k": k / 8, "v": numbers(2, 50, 128)}, "y"


def fused(rng: np.random.Generator) -> tuple[list[Any], dict[str, Any], str]:
    """A product or an attention with something that lies in memory in another way."""
    source = (product, batched, convolution, attention)[rng.integers(4)]
    nodes, inputs = source()
    kind = KINDS[rng.integers(len(KINDS))]
    more, others = addend(kind, columns=ROWS) if source is attention else addend(kind)
    nodes = [*nodes, *more, node("Add", "p a", "s")]
    if source is attention:
        nodes += [node("Softmax", "s", "e", axis=-1), node("MatMul", "e v", "y")]
    else:
        nodes += [node("Tanh", "s", "y")]
    return nodes, {**inputs, **others}, "y"


def shown(nodes: list[Any], inputs: dict[str, Any], outputs: str, chip: str, room: int, precision: str) -> None:
    model = model_of(nodes, inputs, outputs)
    made = compiled(model, f"{chip},shared_bytes={room}", precision=precision)
    launches = [s for s in made.artifact.program.body if isinstance(s, Launch)]
    assert launches and all(s.shared_bytes <= room for s in launches)
    for got, want in zip(made.run(inputs).values(), reference(model, inputs), strict=True):
        compare(got, want, 400 if precision else 8)


@pytest.mark.parametrize("seed", range(max(1, int(6 * EXAMPLES))))
def test_drawn_kernels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, inputs, outputs = (long_product, wide_heads, lambda: fused(rng))[seed % 3]()
    shown(nodes, inputs, outputs, CHIPS[rng.integers(len(CHIPS))], BYTES[rng.integers(len(BYTES))],
          ("", "f16")[rng.integers(2)])


@pytest.mark.parametrize(("chip", "room", "precision"), [("sm_90a", 8192, "f16"), ("gfx1100", 8192, ""),
                                                         ("sm_80", 2048, "")])
def test_tiles_are_made_smaller(monkeypatch: pytest.MonkeyPatch, chip: str, room: int, precision: str) -> None:
    """One step after the other, until they have room."""
    tried: list[int] = []
    attempt = worker._attempt

    def counted(job: worker.KernelJob, at: Any, codes: Any, smaller: int = 0) -> worker.KernelResult:
        tried.append(smaller)
        return attempt(job, at, codes, smaller)

    monkeypatch.setattr(worker, "_attempt", counted)
    shown(*wide_heads(), chip, room, precision)
    assert tried[-1] < worker.MOST_SMALLER and max(tried) > 0
    assert all(n == 0 or n == before + 1 for before, n in pairwise(tried))
