"""Gathers among two simulated ranks whose own halves are stored in the whole, against the gather."""

import numpy as np
import pytest
from kernel_cases import module_of
from sharded import close, copy_of

from xcc.dialects import xt
from xcc.dialects.xt.collective import MESH, mesh_attribute
from xcc.dialects.xt.interpret_ranks import interpret_ranks
from xcc.passes.base import PassContext, get_pass
from xcc.passes.xt.exchange_pairs import ExchangePairs
from xcc.runtime.mesh import Mesh
from xcc.targets.base import chip_of, get_target


@pytest.mark.parametrize(("dtype", "columns", "placed"), [("f16", 128, True), ("f32", 32, True), ("f16", 48, False)])
def test_a_gather_of_two(dtype, columns, placed):
    def build(x, w):
        y = xt.dot_general(x, w, lhs_contract=(2,), rhs_contract=(0,))
        y.owner.operation.block.owner.parent.attributes[MESH] = mesh_attribute(Mesh((("tp", 2),)))
        return xt.all_gather(y, axes=["tp"], dim=2, ranks=2)

    module = module_of(build, xt.TensorType((2, 5, 16), dtype), xt.TensorType((16, columns), dtype))
    rng, name = np.random.default_rng(3), dtype.replace("f", "float")
    inputs = [[rng.standard_normal(s).astype(name) for s in ((2, 5, 16), (16, columns))] for _ in range(2)]
    modules = [copy_of(module) for _ in range(2)]
    ctx = PassContext(chip=chip_of(get_target("nvptx"), "sm_90a"))
    for rank, own in enumerate(modules):
        ExchangePairs(rank=rank).run(own, ctx)
        for step in ("form-kernels", "push-results", "place-parts"):
            get_pass(step)().run(own, ctx)
            xt.verify(own)
    assert all(("_placed1_2_" in str(m)) == placed for m in modules)
    wanted = interpret_ranks([module, module], inputs)
    for got, want in zip(interpret_ranks(modules, inputs), wanted, strict=True):
        close(got[0], want[0])
