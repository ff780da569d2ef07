"""Sizes that a kernel knows since its ops take them to be equal to numbers."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from kernel_cases import module_of

from xcc import symbolic
from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.xt.form_kernels import FormKernels
from xcc.passes.xt.sizes.known_sizes import known_sizes
from xcc.symbolic import Dim, floordiv, sym

N, M = sym("n"), sym("m")
HALF = floordiv(N + 1, 2)


def f32(*shape: Dim) -> xt.TensorType:
    return xt.TensorType(shape, "f32")


def added(*sizes: Dim) -> Callable[[Dim], Dim]:
    """What additions of neighbours of vectors of `sizes` tell of dims."""
    module = module_of(lambda *values: tuple(xt.add(a, b) for a, b in pairwise(values)), *map(f32, sizes))
    return known_sizes(op.operation for op in module.body.operations[0].regions[0].blocks[0].operations)


@pytest.mark.parametrize(("sizes", "dim", "size"), [
    ((N, 7), N, 7), ((N, 7), 2 * N + M, M + 14), ((N, 7), floordiv(N, 2), 3), ((2 * N + 1, 7), N, 3),
    ((HALF, 7), HALF, 7), ((HALF, 7), 2 * HALF + N, N + 14), ((N, M, 7), M, 7), ((N, M + 1, 7), N * M, 42),
    ((N * M, 12), N * M, 12), ((N, M), N, N)])
def test_sizes(sizes: tuple[Dim, ...], dim: Dim, size: Dim) -> None:
    assert added(*sizes)(dim) == size


def test_sizes_that_cannot_be() -> None:
    """A kernel that never runs keeps its dims: its run is an error."""
    assert added(7, N, 8)(N) == N
    assert added(2 * N, 7)(N) == N
    assert added(N, 7)(N - 8) == N - 8


def test_replacement() -> None:
    assert symbolic.replace(floordiv(N + 1, 4) + HALF * M, {HALF: 5}) == floordiv(N + 1, 4) + 5 * M
    assert symbolic.replace(floordiv(N + M, 4), {N: 3, M: 5}) == 2
    assert symbolic.replace(4, {N: 3}) == 4


def test_a_kernel_has_numbers_for_them() -> None:
    """The dispatch keeps the model's types."""
    module = module_of(lambda x, w: xt.dot_general(xt.exp(x), w, lhs_contract=(1,), rhs_contract=(0,)), f32(M, N),
                       f32(33, 20))
    FormKernels().run(module, PassContext())
    main, *kernels = (str(op) for op in module.body.operations)
    assert "tensor<?x?xf32, [\"m\", \"n\"]>" in main and len(kernels) == 2
    assert "-> tensor<?x?xf32, [\"d0\", \"d1\"]>" in kernels[0]        # exp alone takes any
    assert "%arg0: tensor<?x33xf32, [\"d0\", 33]>" in kernels[1] and "d1" not in kernels[1]
