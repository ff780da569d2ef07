"""Loops over the places of a block value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xcc._mlir import ir
from xcc.passes.vector.tiles import index

__all__ = ["carried_loops", "loops"]


def loops(sizes: Sequence[int], steps: Sequence[int], body: Callable[[list[Any]], None]) -> None:
    """`body(places)` for every place; a dim of one step has no loop."""
    if not sizes:
        body([])
        return
    if sizes[0] <= steps[0]:
        loops(sizes[1:], steps[1:], lambda rest: body([0, *rest]))
        return
    loop = ir.Operation.create("scf.for", operands=[index(0), index(sizes[0]), index(steps[0])], regions=1)
    block = loop.regions[0].blocks.append(ir.IndexType.get())
    with ir.InsertionPoint(block):
        loops(sizes[1:], steps[1:], lambda rest: body([block.arguments[0], *rest]))
        ir.Operation.create("scf.yield")


def carried_loops(sizes: Sequence[int], steps: Sequence[int], start: list[Any],
                  body: Callable[[list[Any], list[Any]], list[Any]]) -> list[Any]:
    """`body(places, carried) -> carried` for every place, one after the other."""
    if not sizes:
        return body([], start)
    if sizes[0] <= steps[0]:
        return carried_loops(sizes[1:], steps[1:], start, lambda rest, c: body([0, *rest], c))
    loop = ir.Operation.create("scf.for", results=[v.type for v in start], regions=1,
                               operands=[index(0), index(sizes[0]), index(steps[0]), *start])
    block = loop.regions[0].blocks.append(ir.IndexType.get(), *[v.type for v in start])
    with ir.InsertionPoint(block):
        place, *carried = block.arguments
        made = carried_loops(sizes[1:], steps[1:], carried, lambda rest, c: body([place, *rest], c))
        ir.Operation.create("scf.yield", operands=made)
    return list(loop.results)
