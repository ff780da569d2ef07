"""What the passes of stage ``schedule`` decide about a kernel's loops: attributes that `tile` obeys.

The strategy's wishes are in ``xcc.config``. A pass looks whether a kernel can have what is
wished for, and writes an attribute: of the ``linalg.generic`` that it concerns, or of the function where it is about
the loops around the results. `tile` reads these alone: what is not there it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from xcc._mlir import Module, Operation, ir
from xcc.diagnostics import UserError
from xcc.passes.linalg.kernel.kernel import Kernel, Op
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.passes.linalg.schedule.schedule_parts import CpuPart, Kept, entries_of, values_of

DEPTH, PACKED, COLUMNS, DECODED, STRIPS = "xcc.depth", "xcc.packed", "xcc.columns", "xcc.decoded", "xcc.strips"
PREFETCH, SHARES, UNROLLED = "xcc.prefetch", "xcc.shares", "xcc.unrolled"
"""Of a product."""
BLOCKED = "xcc.blocked"
"""Of a sum."""
KEPT, PARKED = "xcc.kept", "xcc.parked"
"""Of any op."""
PEELED, PARTS, AHEAD, STREAM = "xcc.peeled", "xcc.parts", "xcc.ahead", "xcc.stream"
SPLITS, STREAMED = "xcc.splits", "xcc.streamed"
OF_LOOPS = (PEELED, PARTS, AHEAD, STREAM, SPLITS, STREAMED)
"""Of the function."""


def scheduled(module: Module) -> Iterator[tuple[Operation, Schedule]]:
    """The kernels of `module` that `tile` will turn into loops, and what is wished for each."""
    for function in module.body.operations:
        attributes = function.operation.attributes
        if function.operation.name == "func.func" and "xcc.config" in attributes and "xcc.tiles" not in attributes:
            yield function, Schedule.from_attr(attributes["xcc.config"])


def decide(of: Operation, name: str, value: int | bool) -> None:
    """Writes attribute `name` of a function or op; nothing for 0 and False."""
    if value is True:
        of.attributes[name] = ir.UnitAttr.get()
    elif value:
        of.attributes[name] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def op_number(kernel: Kernel, number: int) -> Op:
    """The op of `kernel` that its schedule names by a number; UserError where there is none."""
    if number >= len(kernel.ops) or kernel.ops[number].operation is None:
        raise UserError(f"xcc.config: there is no op number {number}")
    return kernel.ops[number]


def keep(op: Op, how: Kept) -> None:
    """Says that chunks keep the result of `op`."""
    entries = entries_of(how)
    op.operation.attributes[KEPT] = ir.DictAttr.get({name: entries[name] for name in ("vector", "order")})


def count_of(op: Op, name: str) -> int:
    """The number that a pass wrote as attribute `name` of `op`; 0 where none did."""
    return _count(op.operation, name)


def _count(of: Operation, name: str) -> int:
    found = of.attributes[name] if name in of.attributes else None
    if found is not None and not (isinstance(found, ir.IntegerAttr) and found.value >= 0):
        raise UserError(f"{of.location}: {name} is {found}, not a number from 0 on")
    return 0 if found is None else int(found.value)


def _pair(of: Operation, name: str) -> tuple[int, ...]:
    found = of.attributes[name] if name in of.attributes else None
    if found is not None and not isinstance(found, ir.DenseI64ArrayAttr):
        raise UserError(f"{of.location}: {name} is {found}, not two numbers (array<i64: tiles, workers>)")
    return () if found is None else tuple(found)


def decided(kernel: Kernel, schedule: Schedule) -> Schedule:
    """`schedule` with what the attributes of `kernel` and of its ops say in place of what was wished for."""
    loops = kernel.function
    ops = [(n, op) for n, op in enumerate(kernel.ops) if op.operation is not None]

    def most(name: str) -> int:
        return max((count_of(op, name) for _, op in ops), default=0)

    def said(name: str) -> bool:
        return any(name in op.operation.attributes for _, op in ops)

    cpu = CpuPart(
        dot=schedule.cpu.dot, along=schedule.cpu.along, prefetch=most(PREFETCH), shares=most(SHARES),
        strips=most(STRIPS), depth=most(DEPTH), staged=said(PACKED),
        columns=said(COLUMNS), decoded=said(DECODED), stream=STREAM in loops.attributes,
        parts=_count(loops, PARTS), ahead=_count(loops, AHEAD),
        kept=tuple(_kept(n, op) for n, op in ops if KEPT in op.operation.attributes),
        park=next((n for n, op in ops if PARKED in op.operation.attributes), -1))
    gpu = replace(schedule.gpu, splits=_count(loops, SPLITS), streamed=_pair(loops, STREAMED))
    return replace(schedule, tail="peel" if PEELED in loops.attributes else "mask", cpu=cpu, gpu=gpu)


def _kept(number: int, op: Op) -> Kept:
    values = values_of(Kept, op.operation.attributes[KEPT])
    if set(values) != {"vector", "order"} or {len(v) for v in values.values()} != {len(op.results[0].dims)}:
        raise UserError(f"{op.operation.location}: {KEPT} has vector and order, one entry a dim of the value each")
    return Kept(number, **values)
