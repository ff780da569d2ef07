"""The scf.forall over chunks or workgroups, under construction."""

from __future__ import annotations

from collections.abc import Sequence

from xcc._mlir import Block, Operation, Value, ir


def forall_of(count: int) -> Block:
    """The block of a loop over `count` workgroups."""
    return forall([count], [], [1], parallel=True).regions[0].blocks[0]


def forall(sizes: Sequence[int | None], dynamic: list[Value], steps: list[int], parallel: bool) -> Operation:
    """A loop from 0 to `sizes` (None: the next of `dynamic`), with an empty body; `parallel`: it is worth threads."""
    n = len(steps)
    unknown = ir.ShapedType.get_dynamic_size()
    i64 = ir.DenseI64ArrayAttr.get
    attributes = {"staticLowerBound": i64([0] * n), "staticStep": i64(steps),
                  "staticUpperBound": i64([unknown if s is None else s for s in sizes]),
                  "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, len(dynamic), 0, 0])}
    if parallel:
        attributes["xcc.parallel"] = ir.UnitAttr.get()
    op = ir.Operation.create("scf.forall", operands=dynamic, regions=1, attributes=attributes)
    index = ir.IndexType.get()
    block = op.regions[0].blocks.append(*([index] * n), arg_locs=[ir.Location.unknown()] * n)
    with ir.InsertionPoint(block):
        end = ir.Operation.create("scf.forall.in_parallel", regions=1)
        end.regions[0].blocks.append()
    return op
