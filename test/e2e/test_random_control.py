"""Random graphs of If, Loop and Scan against onnxruntime. `XCC_EXAMPLES=100 pytest` of this file draws more."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from compiled import EXAMPLES
from graph_control import control_graph

import xcc

pytestmark = pytest.mark.apart
OPSETS = (16, 7, 12, 9, 21, 11, 13, 8, 18, 10)


@pytest.mark.parametrize("seed", range(max(1, int(5 * EXAMPLES))))
def test_control_flow(seed: int) -> None:
    """In this process, or in one of its own as compilations are by default."""
    graph, feeds = control_graph(seed, OPSETS[seed % len(OPSETS)], depth=1 + seed % 2)
    session = reference(graph)
    read = {i.name for i in session.get_inputs()}
    model = xcc.compile(graph, cache=False, isolate=seed % 4 == 1)
    for given in feeds:
        found = model.run(given)
        for name, want in zip(found, session.run(None, {k: v for k, v in given.items() if k in read}), strict=True):
            if want.shape[:1] == (0,):      # of no step onnxruntime does not know the sizes of what is stacked
                assert found[name].shape[:1] == (0,)
                continue
            assert (found[name].dtype, found[name].shape) == (want.dtype, want.shape), name
            np.testing.assert_allclose(found[name], want, rtol=1e-4, atol=2e-5, err_msg=name)


def reference(graph: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
