"""Scatters whose index is one for all of a row: the numbers stay, whatever the sizes are."""

import numpy as np
import pytest
from kernel_cases import module_of, reference

from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.xt.xt_simplify import XtSimplify
from xcc.symbolic import sym

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("sizes", "known"), [
    ((5, 4, 7, 4), True), ((5, 6, 7, 4), True),         # whole rows, parts of rows
    ((5, 4, 7, 4), False), ((5, 6, 7, 4), False), ((5, 6, 7, 0), False), ((0, 0, 7, 0), False), ((5, 1, 7, 1), False)])
@pytest.mark.parametrize("counted", [False, True])
def test_numbers_stay(sizes, known, counted):
    places, width, count, columns = sizes if known else (sym("p"), sym("w"), sym("n"), sym("m"))

    def build(x, indices, updates):
        shared = xt.broadcast(xt.reshape(indices, shape=(count, 1)), shape=(count, columns))
        if counted:
            x, updates = (xt.broadcast(xt.scalar(1.0, "f32"), shape=xt.shape_of(v)) for v in (x, updates))
        return xt.scatter_elements(x, shared, updates, axis=0, reduction="add")
    module = module_of(build, xt.TensorType((places, width), "f32"), xt.TensorType((count,), "i64"),
                       xt.TensorType((count, columns), "f32"))
    inputs = [RNG.standard_normal(sizes[:2]).astype(np.float32), RNG.integers(0, max(sizes[0], 1), sizes[2]),
              RNG.standard_normal(sizes[2:]).astype(np.float32)]
    names = {} if known else dict(zip("pwnm", sizes, strict=True))
    want = reference(module, inputs, names)
    XtSimplify().run(module, PassContext())
    xt.verify(module)
    np.testing.assert_allclose(reference(module, inputs, names)[0], want[0], rtol=1e-5, atol=1e-6)
