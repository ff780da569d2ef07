"""Outputs that update inputs, against the numpy meaning of the ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import compare, compiled, examples, on_chip
from hypothesis import given
from update_programs import (
    UPDATES,
    check,
    graphs,
    inputs,
    on_device,
    program,
    put,
    written,
    zero,
)

from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.symbolic import sym


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
    assert chip or model.executor.copied_outputs == []


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


@given(graphs())
@examples(30)
def test_any_order(drawn: Any) -> None:
    body, updates = drawn
    check(program(body, 6, updates), updates)


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


def test_tensors_of_other_libraries() -> None:
    torch = pytest.importorskip("torch")
    module = program(lambda c, d, r, i: (xt.add(c, r), xt.exp(d)), sym("n"), {0: 0})
    model = compiled(module)
    for rows in (6, 0):
        c, d, row, at = inputs(rows)
        cache = torch.from_numpy(c.copy())
        assert model.run({"x0": cache, "x1": d, "x2": row, "x3": at})["y0"] is cache
        np.testing.assert_array_equal(cache.numpy(), c + row)
    with pytest.raises(UserError, match="is not contiguous"):
        c, d, row, at = inputs(6)
        model.run({"x0": torch.from_numpy(c.T.copy()).T, "x1": d, "x2": row, "x3": at})


@pytest.mark.gpu
@pytest.mark.parametrize("update", [*UPDATES, lambda c, r, i: xt.add(c, r)])
def test_on_a_gpu(update: Any) -> None:
    """Arrays of the host and of the device; state stays on the device, and graphs are replayed."""
    torch = pytest.importorskip("torch")
    module = program(lambda c, d, r, i: (update(c, r, i), xt.exp(d)), sym("n"), {0: 0})
    model = on_device(module)
    for rows in (6, 9, 6):
        c, d, row, at = inputs(rows)
        tensor = torch.from_numpy(c.copy()).cuda()
        want, _ = interpret(module, [c.copy(), d, row, at])
        assert model.run({"x0": c, "x1": d, "x2": row, "x3": at})["y0"] is c
        compare(c, want)
        assert model.run({"x0": tensor, "x1": d, "x2": row, "x3": at})["y0"] is tensor
        compare(tensor.cpu().numpy(), want)


@pytest.mark.parametrize(("updates", "problem"), [
    ({0: 9}, "output 'y0' updates 'x9', and there is no such input"),
    ({0: 2}, r"output 'y0' is f32\[6, 4\] and cannot update 'x2', which is f32\[1, 4\]"),
    ({0: 0, 1: 0}, "output 'y1': another output updates 'x0', too")])
def test_updates_that_do_not_fit(updates: dict[int, int], problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        compiled(program(lambda c, d, r, i: (put(c, r, i), d), 6, updates))
