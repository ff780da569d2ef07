"""Random ONNX graphs against onnxruntime. `XCC_EXAMPLES=100 pytest test/e2e/test_random_graphs.py` draws more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import EXAMPLES
from graph_builder import Builder, reference
from graph_steps import random_graph

import xcc
from xcc.interpreter.executor import make_executor as interpreting

ROUNDING = {"": 2e-6, "f16": 4e-4, "bf16": 3e-3}
"""How far a result of f32 may be off, of its largest number, by the precision that the compiler computes in."""


@pytest.mark.parametrize("seed", range(max(1, int(8 * EXAMPLES))))
def test_cpu(seed: int) -> None:
    precision = ("", "", "f16", "", "", "bf16")[seed % 6]
    chip = ("", "x86-64-v3")[seed % 2]
    b = random_graph(seed, most=16, noise=ROUNDING[precision])
    compare(b, lambda model: xcc.compile(model, chip=chip, precision=precision, cache=False, isolate=False))


@pytest.mark.parametrize("seed", range(max(1, int(3 * EXAMPLES))))
def test_gpu(seed: int) -> None:
    """What a GPU would compute, by the interpreter."""
    chip = ("sm_80", "gfx942", "sm_90a", "gfx1100")[seed % 4]

    def compiled(model: Any) -> Any:
        target = "nvptx,code=ptx" if chip.startswith("sm_") else "amdgcn"
        made = xcc.compile(model, target=target, chip=chip, cache=False, isolate=False, keep_ir=True)
        a = made.artifact
        made._executor = interpreting(a.program, a.members, a.weights, a.manifest)
        return made

    compare(random_graph(1000 + seed, limit=1500, most=8), compiled)


def compare(b: Builder, compiled: Any) -> None:
    """Compiles the graph once and runs it with both sets of sizes."""
    outputs = b.outputs()
    graph, expected = b.model(outputs), b.model(outputs, reference=True)
    model = compiled(graph)
    values = {v.name: v for v in b.values}
    for which in (0, 1):
        feeds = {i.name: values[i.name].worlds[2 * which] for i in graph.graph.input}
        got = model.run(feeds)
        for v, want in zip(outputs, reference(expected, feeds), strict=True):
            found = got[v.name]
            assert (found.dtype, found.shape) == (want.dtype, want.shape), v.name
            np.testing.assert_allclose(found.astype(np.float64), want.astype(np.float64), rtol=0,
                                       atol=b.allowed(v, which), err_msg=f"{v.name} of {b.nodes}")
