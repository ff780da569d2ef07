"""Random ONNX graphs of several simulated ranks beside one. `XCC_EXAMPLES=20` draws more."""

from __future__ import annotations

import numpy as np
import pytest
from compiled import EXAMPLES
from graph_steps import random_graph
from sharded import sharded

from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.dialects.xt.interpret import interpret
from xcc.dialects.xt.interpret_ranks import interpret_ranks
from xcc.driver.sources import load_source
from xcc.options import CompileOptions
from xcc.passes.base import PassContext, get_pass
from xcc.passes.xt.sizes.equal_dims import note_equal_dims


@pytest.mark.parametrize("mesh", ("tp:2", "tp:3", "pp:2"))
@pytest.mark.parametrize("seed", range(max(1, int(4 * EXAMPLES))))
def test_ranks_give_what_one_does(seed: int, mesh: str) -> None:
    b = random_graph(seed, most=16)
    outputs = b.outputs()
    source = load_source(b.model(outputs), CompileOptions())
    note_equal_dims(source.module)
    get_pass("xt-simplify")().run(source.module, PassContext(weights=source.weights))
    values = {v.name: v for v in b.values}
    main = source.module.body.operations[0].operation.attributes
    given = [ir.StringAttr(ir.DictAttr(a)["xt.name"]).value for a in ir.ArrayAttr(main["arg_attrs"])]
    try:
        modules, stores = sharded(source.module, mesh, source.weights)
    except UserError as e:
        assert "pipeline needs sizes" in e.message or "do not make 2 stages" in e.message
        return
    for which in (0, 1):
        inputs = [values[n].worlds[2 * which] for n in given]
        with np.errstate(all="ignore"):
            want = interpret(source.module, inputs, source.weights)
        for results in interpret_ranks(modules, [inputs] * len(modules), stores):
            for v, got, wanted in zip(outputs, results, want, strict=True):
                assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
                np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol=0,
                                           atol=b.allowed(v, which), err_msg=f"{v.name} of {b.nodes}")
