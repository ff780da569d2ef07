"""``XCC_KERNEL=check`` finds faults that were put into kernels, at the lines that are marked here, and no others."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import xcc

N = 50      # elements of x, y and z; w and the rows of m are as long


def last_block(x, y):
    at = xcc.program_id(0) * 16
    y.store(at, x.tile(at, 16))  # instance 3 reads outside 'x' of shape [50], at [50]


def dropped_mask(x, y):
    at = xcc.program_id(0) * 16 + xcc.arange(16)
    y.scatter(at, x.gather(at), mask=at < x.shape[0])  # instance 3 reads outside 'x'


def row_too_far(m, y):
    row = xcc.program_id(0)
    y.store(row, m.tile((row + 1, 0), (1, 1)).reshape(1))  # instance 3 reads outside 'm' of shape [4, 50]


def before_the_begin(x, y):
    at = xcc.program_id(0) * 16
    t = x.tile(at - 1, 16)  # instance 0 reads outside 'x' of shape [50], at [-1]
    y.store(at, t)


def long_rows(m, y):
    row, total = xcc.program_id(0), xcc.zeros((1, 16))
    for k in range(0, m.shape[1], 16):
        total += m.tile((row, k), (1, 16))  # reads outside 'm' of shape [4, 50], at [0, 50]
    y.store(row, total.sum())


def far_index(x, i, y):
    at = xcc.program_id(0) * 16
    t = x.gather(i.tile(at, 16, other=0) * 2)  # reads outside 'x' of shape [50], at [50]
    y.store(at, t)


def no_initial_value(x, e):
    at = xcc.program_id(0) * 16
    e.store(at, e.tile(at, 16, other=0) + x.tile(at, 16, other=0))  # reads what nobody has written in 'e', at [0]


def unset_counts(i, c):
    at = xcc.program_id(0) * 16
    c.atomic_add(i.tile(at, 16, other=0), 1)  # reads what nobody has written in 'c', at [0]


def half_written(x, e):
    at = xcc.program_id(0) * 16
    e.store(at, x.tile(at, 8, other=0))
    t = e.tile(at, 16, other=0)  # reads what nobody has written in 'e', at [8]
    e.store(at, t * 2)


def wrong_way_round(x, e, y):
    at = xcc.program_id(0) * 16
    y.store(at, e.tile(at, 16, other=0))  # reads what nobody has written in 'e'
    e.store(at, x.tile(at, 16, other=0))


def running_maximum(m, e):
    row = xcc.program_id(0)
    for k in range(0, m.shape[1], 16):
        best = m.tile((row, k), (1, 16), other=0).max(axis=1)
        e.store(row, xcc.maximum(best, e.tile(row, 1)))  # reads what nobody has written in 'e', at [0]


def one_place(x, y):
    y.store(0, x.tile(xcc.program_id(0), 1))  # instance 1 writes what instance 0 writes in this line, in 'y'


def overlapping_blocks(x, y):
    at = xcc.program_id(0) * 15
    y.store(at, x.tile(at, 16, other=0))  # instance 1 writes what instance 0 writes


def unused_axis(x, y):
    at = xcc.program_id(0) * 16 + xcc.program_id(1) * 0
    y.store(at, x.tile(at, 16, other=0))  # instance [0, 1] writes what instance 0 writes


def histogram(i, y):
    bins = i.tile(xcc.program_id(0) * 16, 16, other=0) // 8
    y.scatter(bins, y.gather(bins) + 1)  # instance 0 writes [0] of 'y' twice in this line


def sums_in_one(x, y):
    t = x.tile(xcc.program_id(0) * 16, 16, other=0)
    y.store(0, y.tile(0, 1) + t.sum())  # instance 1 reads what instance 0 writes


def atomic_and_store(x, y):
    y.atomic_add(0, x.tile(xcc.program_id(0) * 16, 16, other=0).sum())  # instance 1 writes what instance 0 writes in
    y.store(0, 1.0)


def shift_in_place(y):
    at = xcc.program_id(0) * 16
    y.store(at, y.tile(at + 1, 16, other=0))  # instance 1 writes what instance 0 reads, in 'y'


def blur_in_place(y):
    at = xcc.program_id(0) * 16
    y.store(at, y.tile(at - 1, 16, other=0) + y.tile(at, 16, other=0))  # instance 1 reads what instance 0 writes


def carry(x, y):
    row = xcc.program_id(0)
    before = y.tile(row - 1, 1, other=0)  # instance 1 reads what instance 0 writes
    y.store(row, before + x.tile(row, 1))


def aliases(y, shifted):
    at = xcc.program_id(0) * 16
    shifted.store(at, y.tile(at, 16, other=0))  # shares memory with


def group_order(x, y):
    place, blocks = xcc.program_id(0), xcc.num_programs(0)
    block = place // 2 + place % 2 * (blocks // 4)
    y.store(block * 16, x.tile(block * 16, 16, other=0))  # instance 2 writes what instance 1 writes


def before_the_lock(i, y):
    y.store(0, xcc.program_id(0) * 1.0)  # instance 1 writes what instance 0 writes in this line
    while i.atomic("exchange", 0, 1) == 1:
        pass
    y.store(0, y.tile(0, 1) + 1)
    i.atomic("exchange", 0, 0)


def behind_the_lock(i, y):
    while i.atomic("exchange", 0, 1) == 1:
        pass
    t = y.tile(0, 1)  # instance 1 reads what instance 0 writes in line
    i.atomic("exchange", 0, 0)
    y.store(0, t + 1)


def two_locks(i, y):
    lock = xcc.program_id(0) % 2
    while i.compare_swap(lock, lock, 7) == 7:
        pass
    t = y.tile(0, 1)  # the order of instances is any, and they hold no lock in common
    y.store(0, t + 1)
    i.atomic("exchange", lock, lock)


def kept_lock(i, y):
    while i.compare_swap(0, 0, 1) != 0:  # instance 1 goes round this loop forever
        pass
    y.store(xcc.program_id(0), 1.0)


def waits_for_a_later_one(i, y):
    p, tries = xcc.program_id(0), 0
    while True:  # instance 0 goes round this loop forever
        tries += 1
        if i.atomic_add(p, 0) != 0:
            break
    i.atomic("exchange", p - 1, 1)


def halves_that_meet(i, y):
    low, high, sums = xcc.program_id(0), i.shape[0], xcc.zeros(4)
    while low < high:  # instance 0 goes round this loop forever
        middle = (low + high) // 2
        sums += xcc.arange(4).to(xcc.f32)
        if middle % 2 == 0:
            low, high = 2, 5
        else:
            low, high = 3, 5
    y.store(0, sums.sum())


def another_lock_at_last(i, y):
    for lock in range(1, 3):
        while i.compare_swap(lock, lock, 7) == 7:
            pass
    if xcc.program_id(0) == 3:
        i.atomic("exchange", 1, 1)
    y.store(0, 1.0)  # instance 3 writes what instance 2 writes in line
    if xcc.program_id(0) < 3:
        i.atomic("exchange", 2, 2)
        y.store(0, 2.0)
        i.atomic("exchange", 1, 1)
    else:
        i.atomic("exchange", 2, 2)


FAULTS = (last_block, dropped_mask, row_too_far, before_the_begin, long_rows, far_index, no_initial_value, unset_counts,
          half_written, wrong_way_round, running_maximum, one_place, overlapping_blocks, unused_axis, histogram,
          sums_in_one, atomic_and_store, before_the_lock, behind_the_lock, two_locks, another_lock_at_last,
          kept_lock, waits_for_a_later_one, halves_that_meet,
          shift_in_place, blur_in_place, carry, aliases, group_order)


def arguments(function: Any) -> dict[str, Any]:
    y = np.zeros(2 * N, np.float32)
    known = {"x": np.ones(N, np.float32), "y": y[:N], "m": np.ones((4, N), np.float32),
             "i": np.arange(N, dtype=np.int32), "e": xcc.empty(N), "c": xcc.empty(N, xcc.i32), "shifted": y[4:N + 4]}
    return {n: known[n] for n in inspect.signature(function).parameters}


@pytest.mark.parametrize("function", FAULTS, ids=lambda f: f.__name__)
def test_fault(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_KERNEL", "check")
    lines, first = inspect.getsourcelines(function)
    at = next(i for i, line in enumerate(lines) if "  # " in line)
    with pytest.raises(xcc.UserError) as caught:
        xcc.kernel(function)[(4, 2) if function is unused_axis else 4](**arguments(function))
    message = str(caught.value).splitlines()[0]      # ahead of the source line, which says it, too
    assert re.match(rf"{re.escape(__file__)}:{first + at}:\d+: ", message), message
    assert lines[at].split("  # ")[1].strip() in message, message


def in_bounds(x, y):
    at = xcc.program_id(0) * 16
    y.store(at, x.tile(at, 16, other=0))


def atomics(i, y):
    y.atomic_add(i.tile(xcc.program_id(0) * 16, 16, other=0) // 8, 1.0)


def own_parts(x, e):
    at = xcc.program_id(0) * 16
    e.store(at, x.tile(at, 16, other=0))
    e.store(at, e.tile(at, 16, other=0) * 2)


def shared_reads(x, y):
    y.store(xcc.program_id(0), x.tile(0, 1))


def locked(i, y):
    while i.atomic("exchange", 49, 1) == 1:
        pass
    y.store(0, y.tile(0, 1) + 1)
    i.atomic("exchange", 49, 0)


def two_locks_in_common(i, y):
    for lock in range(2):
        while i.compare_swap(lock, lock, 7) == 7:
            pass
    y.store(0, y.tile(0, 1) + 1)
    i.atomic("exchange", 0, 0)
    y.store(0, y.tile(0, 1) + 1)
    i.atomic("exchange", 1, 1)


def last_one_sums(x, y, i):
    y.store(xcc.program_id(0), x.tile(xcc.program_id(0), 1))
    if i.atomic_add(0, 1) == xcc.num_programs(0) - 1:
        y.store(8, y.tile(0, 4).sum())


def in_turn(i, y):
    while i.compare_swap(0, xcc.program_id(0), -1) != xcc.program_id(0):
        pass
    y.store(0, y.tile(0, 1) + 1)
    i.atomic("exchange", 0, xcc.program_id(0) + 1)


@pytest.mark.parametrize("function", (in_bounds, atomics, own_parts, shared_reads, locked, two_locks_in_common,
                                      last_one_sums, in_turn), ids=lambda f: f.__name__)
def test_no_fault(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_KERNEL", "check")
    xcc.kernel(function)[4](**arguments(function))


def test_marks() -> None:
    """Every element of an empty array is known for it, and none that is written."""
    from xcc.frontends.kernel.unwritten import unwritten

    for name in ("f64", "f32", "f16", "bf16", "i64", "i32", "ui32"):
        array = xcc.empty((3, 4), getattr(xcc, name))
        array[1] = 7
        assert unwritten(array[:, ::2]).tolist() == [[True, True], [False, False], [True, True]], name
    assert not unwritten(xcc.empty(4, xcc.i8)).any()
