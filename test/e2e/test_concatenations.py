"""Concatenations of any number of parts along any axis, turned or not, made in the kernel of their operands or not.

Parts are one element longer and shorter than a tile or columns, bounds lie within tiles, and sizes are symbols.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import behind_poison, check, compare, compiled, examples, filled, module_of, on_chip
from hypothesis import given
from hypothesis import strategies as st
from small_graphs import check as check_graph
from small_graphs import node, numbers

from xcc._mlir import ir
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.runtime.program import Launch
from xcc.symbolic import sym

PARTS = st.lists(st.sampled_from([1, 2, 3, 5, 15, 16, 17, 31, 32, 33, 47, 48, 64, 100]), min_size=2, max_size=5) \
    | st.lists(st.sampled_from([1, 1, 1, 2]), min_size=2, max_size=4)
DTYPES = [np.float32, np.float32, np.float16, np.int8, np.float64, np.bool_]


def turned(v: Any, perm: list[int]) -> Any:
    return v if perm == sorted(perm) else xt.transpose(v, perm=perm)


def joined(values: Any, axis: int, perm: list[int], op: str, before: list[int]) -> Any:
    """Every other operand goes through `op`, and all are turned by `before`."""
    made = [getattr(xt, op)(v) if op and n % 2 else v for n, v in enumerate(values)]
    return turned(xt.concatenate(*(turned(v, before) for v in made), axis=axis), perm)


@given(st.data())
@examples(24)
def test_parts(data: Any) -> None:
    """Static sizes, and sizes of which each that is above 1 is a symbol."""
    axis, perm = data.draw(st.integers(0, 2)), data.draw(st.permutations([0, 1, 2]))
    before = data.draw(st.sampled_from([[0, 1, 2], [0, 2, 1], [2, 0, 1]]))
    base = [data.draw(st.sampled_from([1, 2, 3])), *(data.draw(st.sampled_from([1, 7, 16, 17, 33])) for _ in range(2))]
    dtype = data.draw(st.sampled_from(DTYPES))
    op = data.draw(st.sampled_from(["", "tanh"])) if dtype == np.float32 else ""
    shapes = [[n if d == axis else size for d, size in enumerate(base)] for n in data.draw(PARTS)]
    shapes = [[s[before.index(d)] for d in range(3)] for s in shapes]
    check(lambda *values: joined(values, axis, perm, op, before),
          *(filled(s, dtype, seed) for seed, s in enumerate(shapes)), dynamic=data.draw(st.booleans()))


@given(st.data())
@examples(6)
def test_slices(data: Any) -> None:
    """What is taken of one part or of several, with steps."""
    axis, parts = data.draw(st.integers(0, 1)), data.draw(st.lists(st.integers(1, 6), min_size=2, max_size=4))
    bounds = np.cumsum([0, *parts])
    first, last = sorted(data.draw(st.lists(st.integers(0, len(parts)), min_size=2, max_size=2, unique=True)))
    whole = (int(bounds[-1]), 9)[::1 - 2 * axis]
    starts = [int(bounds[first]) if d == axis else 2 for d in range(2)]
    limits = [int(bounds[last]) if d == axis else n for d, n in enumerate(whole)]
    step = data.draw(st.integers(1, 3))
    check(lambda *v: xt.slice(xt.concatenate(*v, axis=axis), starts=starts, limits=limits, strides=[step, step]),
          *(filled((n, 9)[::1 - 2 * axis], np.float32, seed) for seed, n in enumerate(parts)))


@given(st.data())
@examples(8)
def test_parts_of_open_rows(data: Any) -> None:
    """Parts of known sizes; the other dims are symbols, and one compilation serves all their sizes, 0 too."""
    axis, perm = data.draw(st.integers(0, 2)), data.draw(st.permutations([0, 1, 2]))
    parts = data.draw(PARTS)
    others: list[Any] = [sym("n"), sym("m")]

    def shape(n: int, rest: list[Any]) -> tuple[Any, ...]:
        return (*rest[:axis], n, *rest[axis:])

    op = data.draw(st.sampled_from(["", "tanh"]))
    module = module_of(lambda *values: joined(values, axis, perm, op, [0, 1, 2]),
                       [xt.TensorType(shape(n, others), "f32") for n in parts])
    model = compiled(module)
    for sizes in ([2, 16], [1, 33], [3, 1], [0, 5], [40, 17]):
        arrays = [filled(shape(n, sizes), np.float32, seed) for seed, n in enumerate(parts)]
        got = model.run({f"x{i}": a for i, a in enumerate(arrays)})
        for mine, wanted in zip(got.values(), interpret(module, arrays), strict=True):
            compare(mine, np.asarray(wanted))


@pytest.mark.parametrize(("dtype", "axis", "shape", "columns"), [
    ("f16", 1, (16, 24), (64, 128)), ("f32", 1, (sym("n"), 40), (96, 32)), ("f16", 2, (3, sym("n"), 16), (128, 64)),
    ("f32", 0, (64, 48), (32, 32)), ("f16", 1, (1, 32, 24), (64, 64))])
@pytest.mark.parametrize(("chip", "first"), [("sm_90a", True), ("gfx942", False)])
def test_parts_that_their_kernels_store(chip: str, first: bool, dtype: str, axis: int, shape: tuple[Any, ...],
                                        columns: tuple[int, int]) -> None:
    """Two products, or one behind an input, whose kernel has another result."""
    inputs = [shape, (shape[-1], columns[0]), (shape[-1], columns[1])] if first else \
        [shape, (shape[-1], columns[0]), (*shape[:-1], columns[1])]

    def body(x: Any, w: Any, z: Any) -> Any:
        product = xt.dot_general(x, w, lhs_contract=[len(shape) - 1], rhs_contract=[0])
        if first:
            other = xt.dot_general(xt.softmax(x, axis=len(shape) - 1), z, lhs_contract=[len(shape) - 1],
                                   rhs_contract=[0])
            return xt.concatenate(product, other, axis=axis)
        return xt.concatenate(z, product, axis=axis), xt.maximum(product, xt.constant(0, dtype))

    module = module_of(body, [xt.TensorType(s, dtype) for s in inputs])
    with on_chip(chip):
        model = compiled(module)
    launched = [s.kernel for s in model.artifact.program.body if isinstance(s, Launch)]
    assert any("_placed" in kernel for kernel in launched), launched
    for n in (1, 37):
        given = [filled([d if isinstance(d, int) else n for d in s], dtype.replace("f", "float"), seed)
                 for seed, s in enumerate(inputs)]
        outputs = model.run({f"x{i}": behind_poison(a) for i, a in enumerate(given)})
        for got, want in zip(outputs.values(), interpret(module, given), strict=True):
            compare(got, want, 4.0)


def test_parts_of_rows_that_a_run_compares() -> None:
    """A product beside an input of as many rows, whose number has another name."""
    inputs = {"x": numbers(37, 40), "z": numbers(37, 32)}
    check_graph([node("MatMul", "x w", "a"), node("Concat", "a z", "y", axis=1)], inputs, "y", {"w": numbers(40, 96)},
          "sm_90a", dims={"x": ["n", 40], "z": ["m", 32]})


@given(st.data())
@examples(8)
def test_mirrored_ends(data: Any) -> None:
    """Rows with ends of their own elements, up to all but one of them, by kernels that join or index."""
    size = data.draw(st.sampled_from([2, 17, 31, 32, 33, 64, 71]))
    mode = data.draw(st.sampled_from(["reflect", "wrap"]))
    low, high = ([data.draw(st.sampled_from([0, 1, n - 1])) for n in (3, size)] for _ in range(2))
    dtype = data.draw(st.sampled_from([np.float32, np.float16, np.int8]))
    check(lambda v: xt.pad(v, low=(0, *low), high=(0, *high), mode=mode), filled((2, 3, size), dtype, 1))


def test_ends_of_rows_of_bounded_sizes() -> None:
    """Rows that are longer than their ends, whatever size they have: pieces."""
    module = module_of(lambda v: tuple(xt.pad(v, low=(0, 4), high=(1, 3), mode=mode) for mode in ("reflect", "wrap")),
                       [xt.TensorType((3, sym("m")), "f32")])
    with module.context:
        module.operation.attributes["xt.dims"] = ir.Attribute.parse("{m = [5, 4096]}")
    model = compiled(module)
    for size in (5, 6, 64, 257):
        given = [filled((3, size), np.float32, 1)]
        outputs = model.run({"x0": behind_poison(given[0])})
        for got, want in zip(outputs.values(), interpret(module, given), strict=True):
            compare(got, want, 0.0)
