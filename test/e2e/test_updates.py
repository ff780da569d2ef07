"""Outputs that update inputs, and what models hold from run to run, against the numpy meaning of the ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled import behind_poison, compare, compiled, examples, filled, module_of, on_chip
from hypothesis import given
from hypothesis import strategies as st

import xcc
from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.runtime.program import Copy, Launch
from xcc.symbolic import Dim, sym
from xcc.weights import WeightStore

ROW = 4
TYPES = ("f32", "f32", "f32", "i64")


def program(body: Callable[..., Any], rows: Dim, updates: dict[int, int], state: Sequence[int] = ()) -> Any:
    """Two caches [rows, ROW], a row and a place to `body`; result n updates input ``updates[n]``."""
    shapes: list[tuple[Dim, ...]] = [(rows, ROW), (rows, ROW), (1, ROW), ()]
    return with_attributes(module_of(body, [xt.TensorType(s, t) for s, t in zip(shapes, TYPES, strict=True)]), updates,
                           state)


def with_attributes(module: Any, updates: dict[int, int], state: Sequence[int] = ()) -> Any:
    """`module`, whose result n updates input ``updates[n]``, and which holds the inputs of `state`."""
    with module.context:
        main = module.body.operations[0].operation
        for key, name, which in (("res_attrs", "xt.updates", {n: f"x{a}" for n, a in updates.items()}),
                                 ("arg_attrs", "xt.state", {n: f"first{n}" for n in state})):
            old = [{a.name: a.attr for a in ir.DictAttr(d)} for d in ir.ArrayAttr(main.attributes[key])]
            main.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(
                d | ({name: ir.StringAttr.get(which[n])} if n in which else {})) for n, d in enumerate(old)])
    return module


def inputs(rows: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((rows, ROW), (rows, ROW), (1, ROW))]
    return [*map(behind_poison, arrays), np.int64(rng.integers(-2, rows + 2))]


def check(module: Any, updates: dict[int, int], rows: Sequence[int] = (6,)) -> Any:
    """Runs it; outputs are right, those that update an input are that very array, and other inputs are as before."""
    model = compiled(module)
    for n in rows:
        given = inputs(n, n)
        wanted = interpret(module, [a.copy() for a in given])
        before = [a.copy() for a in given]
        outputs = list(model.run({f"x{i}": a for i, a in enumerate(given)}).values())
        for got, want in zip(outputs, wanted, strict=True):
            compare(got, want)
        assert all(outputs[result] is given[argument] for result, argument in updates.items())
        for i in set(range(4)) - set(updates.values()):
            np.testing.assert_array_equal(given[i], before[i])
    return model


def written(model: Any) -> tuple[int, int]:
    """How many launches and copies a run has."""
    body = model.artifact.program.body
    return sum(isinstance(s, Launch) for s in body), sum(isinstance(s, Copy) for s in body)


def zero() -> Any:
    return xt.constant(0, dtype="i64")


def put(x: Any, row: Any, at: Any) -> Any:
    return xt.dynamic_update_slice(x, row, at, zero())


def scatter(x: Any, row: Any, at: Any) -> Any:
    return xt.scatter_nd(x, xt.reshape(at, shape=(1, 1)), row, reduction="add")


def elements(x: Any, row: Any, at: Any) -> Any:
    return xt.scatter_elements(x, xt.broadcast(xt.reshape(at, shape=(1, 1)), shape=(1, ROW)), row, axis=0)


def rows(x: Any, row: Any, at: Any) -> Any:
    """An index for all of a row."""
    return xt.scatter_elements(x, xt.reshape(at, shape=(1, 1)), row, axis=0, reduction="add")


def flat(x: Any, row: Any, at: Any) -> Any:
    """Through views."""
    shape = xt.shape_of(x)
    narrow = xt.reshape(x, shape=(shape[0] * ROW,))
    return xt.reshape(xt.dynamic_update_slice(narrow, xt.reshape(row, shape=(ROW,)), at), shape=shape)


UPDATES = (put, scatter, elements, rows, flat)


@pytest.mark.parametrize("chip", ["", "sm_90a", "gfx942"])
@pytest.mark.parametrize("update", UPDATES)
def test_a_row_is_all_that_is_written(update: Any, chip: str) -> None:
    """Read behind the update, and by nobody else."""
    def body(c: Any, _: Any, row: Any, at: Any) -> Any:
        new = update(c, row, at)
        return new, xt.reduce(new, kind="sum", axes=(0,), keepdims=False)

    with on_chip(chip):
        model = check(program(body, sym("n"), {0: 0}), {0: 0}, (6, 1, 9))
    assert written(model)[1] == 0 and "copy" not in str(model.artifact.program.body)


@pytest.mark.parametrize(("body", "updates", "copies"), [
    (lambda c, d, r, i: (xt.exp(c), put(c, r, i)), {1: 0}, 0),                   # the old value is read: first
    (lambda c, d, r, i: (put(c, r, i), xt.exp(c)), {0: 0}, 1),                   # afterwards
    (lambda c, d, r, i: (put(c, r, i), c), {0: 0}, 2),                           # and given back
    (lambda c, d, r, i: (put(c, r, i),) * 2, {0: 0}, 1),                         # the new value twice
    (lambda c, d, r, i: (put(put(c, r, i), r, zero()), xt.exp(d)), {0: 0}, 0),   # one behind the other
    (lambda c, d, r, i: (d, c), {0: 0, 1: 1}, 4),                                # exchanged, through temporaries
    (lambda c, d, r, i: (put(d, r, i), put(c, r, i)), {0: 0, 1: 1}, 1),                # the second one where d was
    (lambda c, d, r, i: (c, put(d, r, i)), {0: 0, 1: 1}, 0),                     # as it was
    (lambda c, d, r, i: (xt.exp(d), put(d, r, i)), {0: 0, 1: 1}, 0),             # made anew, without being read
    (lambda c, d, r, i: (xt.add(c, r),), {0: 0}, 0),                             # each element is read, then written
    (lambda c, d, r, i: (put(xt.add(c, d), r, i),), {0: 0}, 0),
    (lambda c, d, r, i: (xt.add(c, xt.reverse(c, axes=[0])),), {0: 0}, 1),       # others are read, too
    (lambda c, d, r, i: (xt.softmax(c, axis=1),), {0: 0}, 1),
    (lambda c, d, r, i: (xt.add(c, d), xt.sub(d, c)), {0: 0, 1: 1}, 1),          # two kernels read c
    (lambda c, d, r, i: (xt.add(put(c, r, i), c),), {}, 0),                      # of no argument: a kernel for both
    (lambda c, d, r, i: (put(xt.cumulative(c, kind="sum", axis=0), r, i),), {}, 0)])
def test_who_reads_what_when(body: Any, updates: dict[int, int], copies: int) -> None:
    assert written(check(program(body, 6, updates), updates))[1] == copies


@st.composite
def graphs(draw: Any) -> tuple[Any, dict[int, int]]:
    """A body of a few ops on what is there so far, and its updates."""
    steps = [(draw(st.sampled_from([*UPDATES, None])), draw(st.integers(0, 99)), draw(st.integers(0, 99)))
             for _ in range(draw(st.integers(1, 5)))]
    picked = [draw(st.integers(0, 99)) for _ in range(draw(st.integers(2, 4)))]

    def body(c: Any, d: Any, row: Any, at: Any) -> Any:
        there = [c, d]
        for op, a, b in steps:
            x, y = there[-1 - a % len(there) % 2], there[b % len(there)]
            there.append(xt.add(x, y) if op is None else op(x, row, at))
        return tuple(there[-1 - n % min(4, len(there))] for n in picked)

    return body, draw(st.sampled_from([{0: 0}, {0: 1}, {0: 0, 1: 1}, {0: 1, 1: 0}]))


@given(graphs())
@examples(30)
def test_any_order(drawn: Any) -> None:
    body, updates = drawn
    check(program(body, 6, updates), updates)


def descent(p: Any, m: Any, g: Any, v: Any) -> Any:
    """A step of Adam: what is updated is read by one kernel, for all of its results."""
    moment = xt.add(xt.mul(m, number(0.9)), xt.mul(g, number(0.1)))
    square = xt.add(xt.mul(v, number(0.99)), xt.mul(xt.mul(g, g), number(0.01)))
    return xt.sub(p, xt.div(moment, xt.add(xt.sqrt(square), number(1e-3)))), moment, square


def number(value: float) -> Any:
    return xt.scalar(value, "f32")


@pytest.mark.parametrize("chip", ["", "sm_90a", "gfx942"])
@pytest.mark.parametrize("shape", [(33, 7), (sym("n"), 5), (4096,), ()])
def test_parameters(shape: tuple[Dim, ...], chip: str) -> None:
    module = with_attributes(module_of(descent, [xt.TensorType(shape, "f32")] * 4), {0: 0, 1: 1, 2: 3})
    with on_chip(chip):
        model = compiled(module)
    sizes = tuple(d if isinstance(d, int) else 67 for d in shape)
    given = [behind_poison(np.random.default_rng(n).uniform(0.1, 1, sizes).astype(np.float32)) for n in range(4)]
    for _ in range(2):
        wanted = interpret(module, [a.copy() for a in given])
        for got, want in zip(model.run({f"x{n}": a for n, a in enumerate(given)}).values(), wanted, strict=True):
            compare(got, want)
    assert written(model) == (1, 3 if chip == "gfx942" else 0)       # whose code takes pointers to differ


STEPS: tuple[Callable[..., Any], ...] = (
    xt.add, xt.mul, lambda x, y: xt.transpose(x, perm=[1, 0]), lambda x, y: xt.add(x, xt.transpose(y, perm=[1, 0])),
    lambda x, y: xt.sub(x, xt.reduce(y, kind="max", axes=(1,), keepdims=True)), lambda x, y: xt.softmax(x, axis=1),
    lambda x, y: xt.reverse(y, axes=[1]), lambda x, y: xt.dot_general(x, y, lhs_contract=[1], rhs_contract=[0]),
    lambda x, y: xt.cumulative(x, kind="sum", axis=0), lambda x, y: xt.concatenate(
        xt.slice(x, starts=(0, 0), limits=(5, 37)), xt.slice(y, starts=(5, 0), limits=(37, 37)), axis=0))


@st.composite
def kernels(draw: Any) -> tuple[Any, dict[int, int]]:
    """A body of ops that read and write elements in many orders, on squares."""
    numbers = st.integers(0, 99)
    steps = [(draw(st.sampled_from(STEPS)), draw(numbers), draw(numbers)) for _ in range(draw(st.integers(1, 4)))]
    picked = [draw(numbers) for _ in range(2)]

    def body(c: Any, d: Any) -> Any:
        there = [c, d]
        for op, a, b in steps:
            there.append(op(there[-1 - a % 2], there[b % len(there)]))
        return tuple(there[-1 - n % min(3, len(there))] for n in picked)

    return body, draw(st.sampled_from([{0: 0}, {0: 1}, {0: 0, 1: 1}]))


def check_kernels(drawn: Any) -> None:
    body, updates = drawn
    module = with_attributes(module_of(body, [xt.TensorType((37, 37), "f32")] * 2), updates)
    given = [filled((37, 37), np.dtype(np.float32), n, -1, 1) for n in range(2)]
    wanted = interpret(module, [a.copy() for a in given])
    for got, want in zip(compiled(module).run({"x0": given[0], "x1": given[1]}).values(), wanted, strict=True):
        compare(got, want, 8)


@given(kernels())
@examples(25)
def test_any_kernel(drawn: Any) -> None:
    check_kernels(drawn)


@given(kernels())
@examples(5)
def test_any_kernel_on_gpus(drawn: Any) -> None:
    with on_chip("sm_90a"):
        check_kernels(drawn)


@given(graphs())
@examples(4)
def test_any_order_on_gpus(drawn: Any) -> None:
    body, updates = drawn
    with on_chip("sm_90a"):
        check(program(body, 6, updates), updates)


def test_the_same_array_twice() -> None:
    """What an updated array shares memory with is read as it was; two updated ones may not."""
    def body(c: Any, d: Any, row: Any, at: Any) -> Any:
        new = put(c, row, at)
        return new, xt.add(new, d)

    module = program(body, 6, {0: 0})
    model, (c, _, row, at) = compiled(module), inputs(6)
    wanted = interpret(module, [c.copy(), c.copy(), row, at])
    new, total = model.run({"x0": c, "x1": c, "x2": row, "x3": at}).values()
    compare(new, wanted[0])
    compare(total, wanted[1])
    both = compiled(program(lambda c, d, r, i: (put(c, r, i), put(d, r, i)), 6, {0: 0, 1: 1}))
    with pytest.raises(UserError, match="inputs 'x0' and 'x1' are updated in place, and share memory"):
        both.run({"x0": c, "x1": c, "x2": row, "x3": at})


@pytest.mark.parametrize(("given", "problem"), [
    (lambda a: np.asfortranarray(a), "is not contiguous"), (lambda a: a.tolist(), "a list cannot be"),
    (lambda a: np.broadcast_to(a, a.shape), "read-only|not contiguous"),
    (lambda a: a.astype(np.float64), "element type is f64")])
def test_what_cannot_be_written(given: Any, problem: str) -> None:
    model, (c, d, row, at) = compiled(program(lambda c, d, r, i: (put(c, r, i),), 6, {0: 0})), inputs(6)
    with pytest.raises(UserError, match=problem):
        model.run({"x0": given(c), "x1": d, "x2": row, "x3": at})


@pytest.mark.parametrize(("updates", "problem"), [
    ({0: 9}, "output 'y0' updates 'x9', and there is no such input"),
    ({0: 2}, r"output 'y0' is f32\[6, 4\] and cannot update 'x2', which is f32\[1, 4\]"),
    ({0: 0, 1: 0}, "output 'y1': another output updates 'x0', too")])
def test_updates_that_do_not_fit(updates: dict[int, int], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        compiled(program(lambda c, d, r, i: (put(c, r, i), d), 6, updates))


def counting() -> tuple[Any, WeightStore]:
    """A model that holds x0 (first 0, 1, 2, ...) and x1 (zeros): it puts a row into x0, and adds x0 to x1."""
    def body(c: Any, d: Any, row: Any, at: Any) -> Any:
        new = put(c, row, at)
        total = xt.add(d, new)
        return new, total, xt.reduce(total, kind="sum", axes=(0,), keepdims=False)

    weights = WeightStore()
    weights.add("first0", np.arange(6 * ROW, dtype=np.float32).reshape(6, ROW))
    weights.add("first1", np.zeros((6, ROW), np.float32))
    return program(body, 6, {0: 0, 1: 1}, (0, 1)), weights


@pytest.mark.parametrize("chip", ["", "sm_90a"])
def test_a_model_holds_its_state(chip: str, tmp_path: Path) -> None:
    module, weights = counting()
    with on_chip(chip):
        model = compiled(module, weights)
    assert [i.name for i in model.inputs] == ["x2", "x3"] and [o.name for o in model.outputs] == ["y2"]
    assert "first0" in model.artifact.weights and "first1" not in model.artifact.weights    # zeros take no place
    first = [np.arange(6 * ROW, dtype=np.float32).reshape(6, ROW), np.zeros((6, ROW), np.float32)]
    held = first
    for step in range(3):
        _, _, row, _ = inputs(6, step)
        *held, total = interpret(module, [*held, row, np.int64(step)], weights)
        compare(model(row, np.int64(step)), total)
        for name, want in zip(("x0", "x1"), held, strict=True):
            compare(model.state[name], want)
    model.state["x0"] = held[1]
    *held, total = interpret(module, [held[1], held[1], row, np.int64(0)], weights)
    compare(model(row, 0), total)
    model.reset()
    for name, want in zip(("x0", "x1"), first, strict=True):
        np.testing.assert_array_equal(model.state[name], want)


def test_an_artifact_has_the_first_state(tmp_path: Path) -> None:
    module, weights = counting()
    compiled(module, weights).save(tmp_path / "m.xcm")
    one, other = xcc.load(tmp_path / "m.xcm"), xcc.load(tmp_path / "m.xcm")
    one(np.ones((1, ROW), np.float32), 0)
    assert one.state["x0"][0, 0] == 1 and other.state["x0"][0, 0] == 0 and dict(other.state).keys() == {"x0", "x1"}
    one.state["x0"][...] = 7        # a copy
    assert one.state["x0"][0, 0] == 1
    for value, problem in ((np.zeros((6, ROW)), r"an array of f64\[6, 4\], the model holds x0: f32\[6, 4\]"),
                           (np.zeros((5, ROW), np.float32), r"an array of f32\[5, 4\]")):
        with pytest.raises(UserError, match=problem):
            one.state["x0"] = value
    with pytest.raises(UserError, match="the model holds no 'y'; it holds x0, x1"):
        one.state["y"]
