"""Tensors of more than 2^31 elements and 4 GiB: the last workgroups of kernels in the interpreter.

Memory that nothing touches takes none (`untouched`): what is checked lies at the end, where 32 bits do not suffice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compiled import compiled, module_of, on_chip

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.interpreter.executor import untouched

ROWS, COLUMNS = (1 << 17) + 1, 1 << 14
HALF, LONG, IMAGES = 1 << 16, (1 << 25) + 1, (1 << 17) + 1
Array = np.ndarray[Any, Any]


def whole(shape: tuple[int, ...], dtype: str) -> Array:
    """Zeros, with small integers in the last rows."""
    out = untouched(math.prod(shape), dtype).reshape(shape)
    out[-70:] = np.random.default_rng(shape[0]).integers(-4, 5, out[-70:].shape)
    return out


def transposed(x: Any) -> Any:
    return xt.transpose(x, perm=(1, 0))


def product(a: Any, b: Any) -> Any:
    return xt.dot_general(a, b, lhs_contract=(1,), rhs_contract=(1,))


def softmax(row: Array) -> Array:
    powers = np.exp(row.astype(np.float32) - row.max())
    return powers / powers.sum()


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[tuple[int, ...], str], ...], Callable[..., Any], int]] = {
    # body, inputs, the last row of the result, workgroups
    "pointwise": (xt.abs, (((ROWS, COLUMNS), "float16"),), lambda x: abs(x[-1]), 20),
    "bytes": (xt.abs, (((2 * ROWS, COLUMNS), "int8"),), lambda x: abs(x[-1]), 20),
    "transpose": (transposed, (((ROWS, COLUMNS), "float16"),), lambda x: x[-64:, -1], 600),
    "transpose to many rows": (transposed, (((COLUMNS, ROWS), "float16"),), lambda x: x[-64:, -1], 600),
    "row sums": (lambda x: xt.reduce(x, kind="sum", axes=(1,)), (((ROWS, COLUMNS), "float16"),),
                 lambda x: x[-1:].sum(1, np.float32), 2),
    "softmax": (lambda x: xt.softmax(x, axis=-1), (((ROWS, COLUMNS), "float16"),), lambda x: softmax(x[-1]), 2),
    "rows read": (lambda x, i: xt.gather(x, i, axis=0), (((ROWS, COLUMNS), "float16"), ((9,), "int64")),
                  lambda x, i: x[i[-1]], 130),
    "rows joined": (lambda x, y: xt.concatenate(x, y, axis=0),
                    (((HALF, COLUMNS), "float16"), ((HALF + 1, COLUMNS), "float16")), lambda x, y: y[-1], 20),
    "product": (product, (((LONG, 64), "float16"), ((64, 64), "float16")), lambda a, b: a[-1].astype("f") @ b.T, 300),
    "convolution": (lambda x, w: xt.convolution(x, w, low=(1, 1), high=(1, 1)),
                    (((IMAGES, 16, 32, 32), "float16"), ((16, 16, 3, 3), "float16")),
                    lambda x, w: np.einsum("chw,ochw->o", x[-1, :, -2:, -2:].astype("f"), w[:, :, :2, :2]), 300),
}


def on_chips() -> list[tuple[str, bool, str]]:
    """Each case of known sizes on a chip of one vendor and of symbolic ones on one of the other, the chips in turn."""
    chips = ("sm_80", "gfx942", "sm_90a", "gfx1100")
    return [(name, dynamic, chips[(i // 2 * 2 + (i + dynamic) % 2) % 4]) for i, name in enumerate(CASES)
            for dynamic in (False, True)]


@pytest.mark.parametrize(("name", "dynamic", "chip"), on_chips())
def test_the_end_of_large_tensors(name: str, dynamic: bool, chip: str) -> None:
    body, inputs, last, groups = CASES[name]
    names: dict[int, Any] = {}
    sizes = [tuple(names.setdefault(n, symbolic.sym(f"s{len(names)}")) if dynamic and n >= HALF else n for n in shape)
             for shape, _ in inputs]
    module = module_of(body, [xt.TensorType(s, xt.dtype_name(np.dtype(d)))
                              for s, (_, d) in zip(sizes, inputs, strict=True)])
    with on_chip(chip):
        model = compiled(module)
    executor = model._executor
    executor.options = replace(executor.options, races=False, banks=False, last_groups=groups)
    arrays = [np.arange(ROWS - 9, ROWS) if d == "int64" else whole(s, d) for s, d in inputs]
    got = model(*arrays)
    want = np.asarray(last(*arrays))
    end = got[-1:] if got.ndim == 1 else got[-1, :, -1, -1] if got.ndim == 4 else got[-1, -len(want):]
    np.testing.assert_allclose(end.astype(np.float64), want.astype(np.float64), rtol=2e-3, atol=1e-6)


COUNTED: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "nonzero": (lambda x: xt.nonzero(x, symbol="k"), ("i1",)),
    "compress": (lambda x, c: xt.compress(x, c, axis=0, symbol="k"), ("i8", "i1")),
    "unique": (lambda x: xt.unique(x, axis=0, flat=True, sorted=True, symbol="k"), ("i8",)),
    "scatter": (lambda x: xt.scatter_nd(x, xt.constant(np.zeros((2, 1)), "i64"), xt.constant(np.zeros(2), "i8")),
                ("i8",)),
    "sort": (lambda x: xt.sort(x, axis=0), ("i8",)),
}


@pytest.mark.parametrize("name", COUNTED)
def test_more_than_32_bits_count_is_refused(name: str) -> None:
    """Sizes that are not known: a run of too many elements ends with an error, not with a wrong result."""
    body, dtypes = COUNTED[name]
    n = symbolic.sym("n")
    with on_chip("sm_80"):
        model = compiled(module_of(body, [xt.TensorType((n,), d) for d in dtypes]))
    arrays = [untouched(1 << 31, bool if d == "i1" else np.int8) for d in dtypes]
    with pytest.raises(UserError, match="too large: n = 2147483648 elements are counted, which goes up to 2147483647"):
        model(*arrays)
