"""Products of weights that a GPU's kernel decodes, with as many rows as a run has, against onnxruntime."""

from __future__ import annotations

import numpy as np
from small_graphs import RNG, check_runs, node, numbers


def test_decoded_weights_beside_rows_that_are_copied_ahead() -> None:
    """wgmma reads both operands in shared memory: the rows are copied there, the weights written in each step."""
    constants = {"w": RNG.integers(-8, 8, (1024, 256)).astype(np.int8),
                 "s": RNG.uniform(.01, .05, (1024, 8)).astype(np.float16)}
    nodes = [node("DequantizeLinear", "w s", "d", axis=1, block_size=32), node("Transpose", "d", "t", perm=[1, 0]),
             node("MatMul", "x t", "y")]
    check_runs(nodes, [{"x": numbers(3, 256).astype(np.float16)}], "y", constants, "sm_90a", dims={"x": ["m", 256]})
