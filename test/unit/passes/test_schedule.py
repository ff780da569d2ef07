"""Schedules as attributes, and the sizes that strategies count with."""

from dataclasses import MISSING, fields

import pytest

from xcc._mlir import ir
from xcc.dialects import xt
from xcc.passes.linalg.domain import element_bytes
from xcc.passes.linalg.schedule import Kept, Schedule

PLAIN = Schedule((8, 8), (4, 8), (1, 0), reduce=((4,), (1, 0)))
# all that there is to choose, in two: what APART has does not go with the others
CHOSEN = Schedule(
    (8, 8), (8, 8), (1, 0), reduce=((4,), (1, 0)), tail="mask", access="gather", parallel=True, threads=128,
    stages=3, group=4, online=True, descending=0, dot=True, shares=2, strips=6, warpgroup=True, chunks=(0, 1),
    prefetch=5, splits=7, busy=9, ahead=11, depth=13, stream=True, streamed=(3, 132),
    persistent=132, kept=(Kept(1, (6, 1), (1, 0)),), staged=True, decoded=True, parts=2)
APART = Schedule((8, 0), (4, 8), (1, 0), reduce=((4,), (1, 0)), park=2, flatten=(1, 2), joined=((), (0, 1)))


@pytest.mark.parametrize("schedule", [PLAIN, CHOSEN, APART])
def test_schedules_read_back(schedule):
    with xt.context():
        assert Schedule.from_attr(ir.Attribute.parse(str(schedule.to_attr()))) == schedule


def test_every_entry_is_among_these():
    for f in fields(Schedule):
        assert f.default is MISSING or any(getattr(s, f.name) != f.default for s in (CHOSEN, APART)), f.name


def test_what_is_not_chosen_is_not_written():
    with xt.context():
        assert {a.name for a in PLAIN.to_attr()} == {"block", "vector", "order", "reduce", "tail", "access", "parallel"}


@pytest.mark.parametrize(("kind", "size"), [("index", 8), ("i64", 8), ("f32", 4), ("bf16", 2), ("i8", 1), ("i1", 1)])
def test_bytes_of_an_element(kind, size):
    with xt.context():
        assert element_bytes(ir.Type.parse(kind)) == size
