"""Cut sums give what the whole ones give, by the ops' numpy definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from linalg_cases import build_kernel, evaluate

from xcc.dialects import xt
from xcc.passes.base import PassContext, parse_pass
from xcc.passes.xt.split_contractions import SplitContractions
from xcc.targets.nvptx.chip import chips

RNG = np.random.default_rng(9)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape, np.float32)


def split(body: Callable[..., Any], inputs: list[Any],
          names: tuple[str, ...] = ("split-contractions", "split-reductions", "split-scans"), counted: str = "reduce"
          ) -> tuple[Any, Any, int]:
    """The result before and after the passes, and how many ops of one kind there are then."""
    module, _ = build_kernel(body, inputs)
    before = evaluate(module, inputs)[0]
    with module.context:
        for name in names:
            parse_pass(name).run(module, PassContext(chip=chips()["sm_90a"]))
        assert module.operation.verify()
    return before, evaluate(module, inputs)[0], str(module).count(f'"xt.{counted}"')


@pytest.mark.parametrize("a, b, options", [
    ((9, 1024), (1024, 33), {"lhs_contract": (1,), "rhs_contract": (0,)}),
    ((1024, 9), (33, 1024), {"lhs_contract": (0,), "rhs_contract": (1,)}),
    ((3, 9, 1024), (3, 1024, 33), {"lhs_contract": (2,), "rhs_contract": (1,), "lhs_batch": (0,), "rhs_batch": (0,)}),
])
def test_products(a: tuple[int, ...], b: tuple[int, ...], options: dict[str, Any]) -> None:
    before, after, sums = split(lambda x, y: xt.dot_general(x, y, **options), [floats(*a), floats(*b)])
    assert sums == 1
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("terms, parts", [(401408, 256), (313600, 245), (1600, 5), (1568, 7), (1023, 1)])
def test_parts_of_a_sum(terms: int, parts: int) -> None:
    """As many as there is work for, of those that leave whole tiles of terms."""
    assert SplitContractions()._parts([64, 64], 1, terms, terms, chips()["sm_90a"].cores) == parts


@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
def test_convolutions(strides: tuple[int, int]) -> None:
    w = floats(3, 3, 64, 40)
    before, after, sums = split(lambda x: xt.convolution(x, xt.constant(w), layout="NHWC", filter="HWIO", low=(1, 1),
                                                         high=(1, 1), strides=strides), [floats(1, 7, 7, 64)])
    assert sums == 1
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind, keepdims", [("sum", False), ("max", True)])
def test_reductions(kind: str, keepdims: bool) -> None:
    before, after, sums = split(lambda x: xt.reduce(x, kind=kind, axes=(1, 2), keepdims=keepdims),
                                [floats(1, 70, 80, 24)])
    assert sums == 2
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("kind, shape, axis", [("sum", (20000,), 0), ("max", (3, 1000), 1), ("min", (2, 513, 5), 1),
                                               ("sum", (2, 512), 1)])
def test_scans(kind: str, shape: tuple[int, ...], axis: int, exclusive: bool, reverse: bool) -> None:
    before, after, parts = split(lambda x: xt.cumulative(x, kind=kind, axis=axis, exclusive=exclusive, reverse=reverse),
                                 [floats(*shape)], counted="scan_parts")
    assert parts == (shape in ((20000,), (2, 513, 5)))
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-2 if kind == "sum" else 0)


@pytest.mark.parametrize("kind", ["max", "sum"])
@pytest.mark.parametrize("shape, parts", [((16, 4), 0), ((128, 4), 0), ((1000, 2), 1)])
def test_scans_of_columns_of_integers(kind: str, shape: tuple[int, ...], parts: int) -> None:
    """Those of a few rows stay; no part needs to be padded."""
    before, after, found = split(lambda x: xt.cumulative(x, kind=kind, axis=0), [RNG.integers(-9, 9, shape)],
                                 counted="scan_parts")
    assert found == parts
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize(("shape", "axes"), [((70, 1000), (0, 1)), ((2, 70000), (1,)), ((65537, 3), (0,)),
                                             ((3, 40, 1, 1001, 2), (1, 3))])
@pytest.mark.parametrize(("kind", "dtype"), [("sum", np.float16), ("max", np.float32), ("min", np.int32)])
def test_long_reductions(shape: tuple[int, ...], axes: tuple[int, ...], kind: str, dtype: Any) -> None:
    x = (RNG.standard_normal(shape) * 10).astype(dtype)
    module, _ = build_kernel(lambda x: xt.reduce(xt.add(x, x), kind=kind, axes=axes), [x])
    before = evaluate(module, [x])[0]
    with module.context:
        parse_pass("cut-reductions{elements=4096 part=64}").run(module, PassContext(chip=chips()["sm_90a"]))
        assert module.operation.verify()
    assert str(module).count('"xt.reduce"') in (2, 3)
    assert str(module).find('"xt.reshape"') < str(module).rfind('"xt.add"')      # which stays in the first kernel
    np.testing.assert_allclose(evaluate(module, [x])[0], before, rtol=1e-3)


@pytest.mark.parametrize("rows", [(32, 64), (33, 61)])
def test_columns_behind_several_dims(rows: tuple[int, int]) -> None:
    """Of what is computed with a number a column; sizes that no number of parts divides, too."""
    def gradient(x: Any, g: Any, mean: Any) -> Any:
        difference = xt.sub(x, mean)
        return xt.add(xt.reduce(xt.mul(g, difference), kind="sum", axes=(0, 1)),
                      xt.reduce(xt.mul(difference, difference), kind="sum", axes=(0, 1)))
    inputs = [floats(*rows, 96), floats(*rows, 96), floats(1, 1, 96)]
    before, after, sums = split(gradient, inputs, ("cut-reductions{elements=4096 part=512}", "split-reductions"))
    assert sums == 4 if rows[0] == 32 else 6
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-3)
