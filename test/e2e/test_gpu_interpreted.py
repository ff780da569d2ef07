"""Distributed tile programs, run by the interpreter of gpu-stage kernels, against numpy."""

from __future__ import annotations

import gpu_smoke_cases
import numpy as np
import pytest

from xcc import symbolic
from xcc._mlir import ir
from xcc.interpreter.kernel import run_kernel
from xcc.passes.base import PassContext, get_pass
from xcc.targets.gpu_stages import DECISIONS
from xcc.targets.nvptx.chip import chips


def distribute(text: str, chip: str) -> str:
    with ir.Context():
        module = ir.Module.parse(text)
        for name in ("assign-layouts", *DECISIONS, "distribute"):
            get_pass(name)().run(module, PassContext(chip=chips()[chip]))
            module.operation.verify()
        return str(module)


@pytest.mark.parametrize("case", gpu_smoke_cases.CASES, ids=lambda c: c.id)
def test_distributed_kernel(case):
    inputs, expected, dtype, symbols = case.make(np.random.default_rng(7))
    text = distribute(case.text(), "sm_90a")
    output = gpu_smoke_cases.poisoned(expected.shape, dtype)
    with ir.Context():
        module = ir.Module.parse(text)
        kernel = next(op for op in module.body.operations[0].regions[0].blocks[0].operations)
        attributes = kernel.operation.attributes
        grid = symbolic.evaluate(symbolic.parse(attributes["xcc.grid"].value), symbols)
        shared = attributes["xcc.shared_bytes"].value
        threads = list(attributes["known_block_size"])[0]
        run_kernel(module, case.kernel, (grid, 1, 1), (threads, 1, 1), [*inputs, output], list(symbols.values()),
                   dynamic_shared=shared)
    gpu_smoke_cases.check(output, expected, dtype)
