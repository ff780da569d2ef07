"""Schedules as attributes, and the sizes that strategies count with."""

from dataclasses import MISSING, fields

import pytest

from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.passes.gpu.layout.tile_ops import config_int
from xcc.passes.linalg.kernel.domain import element_bytes
from xcc.passes.linalg.schedule.schedule import CpuPart, GpuPart, Kept, Schedule

PLAIN = Schedule((8, 8), (4, 8), (1, 0), reduce=((4,), (1, 0)))
# all that there is to choose, in two: what APART has does not go with the others
CHOSEN = Schedule(
    (8, 8), (8, 8), (1, 0), reduce=((4,), (1, 0)), tail="mask", access="gather", parallel=True, online=True,
    chunks=(0, 1),
    cpu=CpuPart(dot=True, shares=2, prefetch=5, ahead=11, depth=13, stream=True,
                kept=(Kept(1, (6, 1), (1, 0)),), staged=True, columns=True, decoded=True, parts=2),
    gpu=GpuPart(threads=128, stages=3, group=4, warpgroup=True, splits=7, busy=9, streamed=(3, 132),
                beside=4, persistent=132))
APART = Schedule((8, 0), (4, 8), (1, 0), reduce=((4,), (1, 0)), flatten=(1, 2), written=4, joined=((), (0, 1)),
                 cpu=CpuPart(park=2, strips=6, along=True))


@pytest.mark.parametrize("schedule", [PLAIN, CHOSEN, APART])
def test_schedules_read_back(schedule):
    with xt.context():
        assert Schedule.from_attr(ir.Attribute.parse(str(schedule.to_attr()))) == schedule


def test_every_entry_is_among_these():
    for records in ((CHOSEN, APART), (CHOSEN.cpu, APART.cpu), (CHOSEN.gpu,)):
        for f in fields(records[0]):
            assert f.default is MISSING or any(getattr(r, f.name) != f.default for r in records), f.name


@pytest.mark.parametrize(("text", "said"), [
    ("threads = 128 : i64", "there is no entry 'threads' here; it is one of gpu = {...}"),
    ("gpu = {park = 1 : i64}", "there is no entry 'park' here; it is one of cpu = {...}"),
    ("cpu = {fast = true}", "there is no entry 'fast' here; there are dot, "),
    ("gpu = {threads = \"all\"}", ""), ("cpu = 3 : i64", ""), ("cpu = {kept = [{op = 1 : i64}]}", "")])
def test_wrong_entries(text, said):
    plain = "block = array<i64: 8>, vector = array<i64: 8>, order = array<i64: 0>"
    with xt.context(), pytest.raises(UserError, match="xcc.config: ") as error:
        Schedule.from_attr(ir.Attribute.parse(f"{{{plain}, {text}}}"))
    assert said in str(error.value)


def test_what_is_not_chosen_is_not_written():
    with xt.context():
        assert {a.name for a in PLAIN.to_attr()} == {"block", "vector", "order", "reduce", "tail", "access", "parallel"}


def test_threads_that_are_not_in_the_gpu_part():
    """Passes that read one entry do not take their default for it."""
    with xt.context(), pytest.raises(UserError, match="xcc.config: threads is one of gpu = "):
        module = ir.Module.parse("func.func @k() attributes {xt.kernel, xcc.config = {threads = 64 : i64}} { return }")
        config_int(module.body.operations[0], "threads", 128)


@pytest.mark.parametrize(("kind", "size"), [("index", 8), ("i64", 8), ("f32", 4), ("bf16", 2), ("i8", 1), ("i1", 1)])
def test_bytes_of_an_element(kind, size):
    with xt.context():
        assert element_bytes(ir.Type.parse(kind)) == size
