"""Outputs reuse memory that the caller let go of, and only that."""

import math

import ml_dtypes
import numpy as np
import pytest

from xcc import symbolic
from xcc.runtime import outputs
from xcc.runtime.large_pages import OWN, address_of
from xcc.runtime.outputs import KEPT, OutputMemory

SHAPE = (OWN // 4 + 3, 2)
F32, F64, I64 = map(np.dtype, ("f4", "f8", "i8"))


def address(a):
    return a.ctypes.data


def test_memory_let_go_of_is_used_again():
    memory = OutputMemory()
    first = memory.empty(SHAPE, F32)[0]
    assert first.shape == SHAPE and first.dtype == np.float32 and first.flags.writeable
    at = address(first)
    assert at % 64 == 0
    del first
    assert address(memory.empty(SHAPE, F32)[0]) == at


def test_memory_in_use_is_not():
    memory = OutputMemory()
    held = [memory.empty(SHAPE, F32)[0] for _ in range(KEPT + 2)]
    for n, a in enumerate(held):
        a.fill(n)
    assert len({address(a) for a in held}) == len(held)
    assert all((a == n).all() for n, a in enumerate(held))


def test_any_view_keeps_it():
    memory = OutputMemory()
    for keep in (lambda a: a[5:7], memoryview, lambda a: a.__dlpack__(), lambda a: a.reshape(-1).view(np.uint8)):
        a = memory.empty(SHAPE, F32)[0]
        at, view = address(a), keep(a)
        del a
        assert address(memory.empty(SHAPE, F32)[0]) != at
        del view


def test_another_size_gets_its_own():
    memory = OutputMemory()
    memory.empty(SHAPE, F32)[0]
    a = memory.empty((SHAPE[0] + 1, 2), F64)[0]
    assert a.shape == (SHAPE[0] + 1, 2) and a.dtype == np.float64


def test_small_outputs_are_plain_arrays():
    assert OutputMemory().empty((3,), I64)[0].base is None


def test_addresses():
    memory = OutputMemory()
    held = [memory.empty(shape, F32) for shape in (SHAPE, SHAPE, (3,), (0, 2), SHAPE)]
    assert all(at == a.ctypes.data for a, at in held)
    a = np.arange(12, dtype=F32)
    read_only = a[4:]
    read_only.flags.writeable = False
    for view in (a, a[3:], read_only, a[:0], a.astype(ml_dtypes.bfloat16), a.astype(np.bool_)):
        assert address_of(view) == view.ctypes.data


def test_made_ready():
    """What was made ready is handed out next, and to one caller."""
    memory = OutputMemory()
    memory.make_ready(SHAPE, F32)
    (ready,) = [at for _, _, at in memory._places]
    a, at = memory.empty(SHAPE, F32)
    assert at == ready and not a.any()
    assert memory.empty(SHAPE, F32)[1] != at
    memory.make_ready((3,), F32)
    assert len(memory._buffers) == KEPT


@pytest.mark.parametrize("limit, shape", [((4, 3), (2, 3)), ((2, 5, 3), (2, 4, 3)), ((2, 5), (2, 0)), ((), ())])
def test_cut_takes_the_first_elements(limit: tuple[int, ...], shape: tuple[int, ...]) -> None:
    whole = np.arange(math.prod(limit)).reshape(limit)
    part = outputs.cut(whole, shape)
    assert part.shape == shape and part.flags.c_contiguous
    np.testing.assert_array_equal(part.reshape(-1), np.arange(math.prod(shape)))


def test_final_shapes_are_of_the_values_that_a_run_leaves() -> None:
    n, k = symbolic.sym("n"), symbolic.sym("k")
    shape = outputs.FinalShape([2, k, n * k + 1], ["n", "k"])
    assert [shape([3, 5]), shape([3, 0])] == [(2, 5, 16), (2, 0, 1)]
