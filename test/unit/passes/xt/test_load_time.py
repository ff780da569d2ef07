"""What runs once, when the model is loaded: what the program does, and what the summary says of it."""

import numpy as np
from kernel_cases import module_of, program_results, reference

from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.xt.form_kernels import FormKernels
from xcc.passes.xt.fusion.kernel_summary import summarise
from xcc.runtime.arena import walk
from xcc.runtime.program import Launch
from xcc.weights import WeightStore

X = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
HALVES = np.full((4, 4), 0.25, np.float32)      # its square is itself


def square(a, b=None):
    return xt.dot_general(a, a if b is None else b, lhs_contract=(1,), rhs_contract=(0,))


def halves():
    return xt.weight("w", (4, 4), "f32")


def formed(build, *inputs):
    """What the summary of `build`'s kernels says and the program does, after its results were compared with numpy's."""
    store = WeightStore()
    store.add("w", HALVES)
    module = module_of(build, *(xt.TensorType(x.shape, xt.dtype_name(x.dtype)) for x in inputs))
    want = reference(module, inputs, {"w": HALVES})
    FormKernels().run(module, PassContext())
    got, program = program_results(module, inputs, store)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4)
    return summarise(module), program


def launches(statements):
    return [s.kernel for s in walk(statements) if isinstance(s, Launch)]


def test_a_long_chain_of_values_used_twice():
    """Time that doubles with each link would not end."""
    def build(x):
        made = halves()
        for _ in range(40):
            made = square(made)
        return square(x, made)
    summary, program = formed(build, X)
    assert [(k.dispatches, k.setup) for k in summary.kernels] == [(40, 40), (1, 0)]
    assert (len(program.setup), len(launches(program.body))) == (40, 1)


def test_an_output_of_weights_alone_is_made_once_and_copied():
    def build(x):
        made = square(halves())
        return made, square(x, square(made))
    summary, program = formed(build, X)
    assert [(k.dispatches, k.setup) for k in summary.kernels] == [(2, 2), (1, 0)] and summary.dispatches == 1
    assert (len(program.setup), len(launches(program.body))) == (2, 1)
    assert str(summary.kernels[0]).endswith("flop, when loaded")


def test_a_branch_of_weights_alone():
    def build(x, flag):
        return xt.if_(flag, lambda: square(halves()), lambda: square(x, halves()))
    for flag in (True, False):
        summary, program = formed(build, np.ones((4, 4), np.float32), np.array(flag))
        assert (len(program.setup), len(launches(program.body)), summary.dispatches) == (1, 1, 1)


def test_a_kernel_that_is_called_at_both_times():
    summary, program = formed(lambda x: square(square(halves(), halves()), x), HALVES)
    (kernel,) = summary.kernels
    assert launches(program.setup) == launches(program.body) == [kernel.name]
    assert (kernel.dispatches, kernel.setup) == (2, 1)
    assert str(kernel).endswith("flop, 1 of 2 when loaded")
