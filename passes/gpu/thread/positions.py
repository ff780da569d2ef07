"""Vectors made of positions, or whose elements only change theirs: steps, masks, constants, broadcasts, transposes."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Value, arith_d, ir, maker, vector_d
from xcc.diagnostics import CompilerBug
from xcc.passes.gpu.index.index_values import MAX_DIVISOR, divisor
from xcc.passes.gpu.index.index_vectors import line_along, scalar_of
from xcc.passes.gpu.index.upper_bounds import largest
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.registers import from_registers, registers_of, select_registers
from xcc.passes.gpu.layout.tile_ops import splat
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.values import index, is_vector, vec

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

__all__ = ["broadcast", "compared", "constant", "mask", "reshape", "step", "transpose"]


Position = tuple[int, ...]


def _view(select: Callable[[Any, Layout, Layout, Position], Position]) -> Callable[[KernelBuilder, Any], None]:
    """A handler of an op that renames positions: `select(op, source's layout, result's, position in the result)`."""
    def handle(k: KernelBuilder, op: Operation) -> None:
        source = op.operands[0]
        target = k.layout(op.results[0])
        if not is_vector(source):
            k.values[op.results[0]] = vector_d.broadcast(k.type_of(op.results[0]), k.get(source))
            return
        layout = k.layout(source)
        held = {layout.at(register=r): r for r in reversed(range(layout.registers))}
        chosen = [held[select(op, layout, target, target.at(register=r))] for r in range(target.registers)]
        k.values[op.results[0]] = select_registers(k.get(source), chosen)
    return handle


def _broadcast_position(op: Operation, source: Layout, target: Layout, position: Position) -> Position:
    del op
    lead = len(target.shape) - len(source.shape)
    return tuple(0 if s == 1 else c for s, c in zip(source.shape, position[lead:], strict=True))


def _transpose_position(op: Operation, source: Layout, target: Layout, position: Position) -> Position:
    del source, target
    order = list(op.attributes["permutation"])
    return tuple(position[order.index(d)] for d in range(len(order)))


def _reshape_position(op: Operation, source: Layout, target: Layout, position: Position) -> Position:
    del op
    return source.unflatten(target.flatten(position))


def step(k: KernelBuilder, op: Operation) -> None:
    """vector.step: the coordinates themselves."""
    layout = k.layout(op.results[0])
    k.values[op.results[0]] = from_registers([k.code.coordinate(layout, r, 0) for r in range(layout.registers)])


def mask(k: KernelBuilder, op: Operation) -> None:
    """create_mask and constant_mask: one comparison for each coordinate that differs, joined."""
    layout = k.layout(op.results[0])
    if op.name == "vector.create_mask":
        bounds = [k.get(v) for v in op.operands]
    else:
        bounds = [index(n) for n in op.attributes["mask_dim_sizes"]]
    runs = [_run(layout, d, divisor(v) if op.name == "vector.create_mask" else 1) for d, v in
            enumerate(op.operands if op.name == "vector.create_mask" else bounds)]
    tests = [_below(k, layout, d, runs[d], bound) for d, bound in enumerate(bounds)]
    out = []
    for r in range(layout.registers):
        joined: Any = None
        for d, below in enumerate(tests):
            test = below[layout.at(register=r)[d] // runs[d]]
            joined = test if joined is None else arith_d.andi(joined, test)
        out.append(joined)
    k.values[op.results[0]] = from_registers(out)


def _below(k: KernelBuilder, layout: Layout, dim: int, run: int, bound: Value) -> dict[int, Value]:
    """Whether a register's coordinate `dim` is below `bound`, by the coordinate's number of runs of the thread's own.

    What is compared are numbers, with the bound as seen from where the thread begins: coordinates of many registers
    would be kept through loops.
    """
    places: dict[int, int] = {}
    for r in range(layout.registers):
        places.setdefault(layout.at(register=r)[dim] // run, r)
    whole, ends = _all_or_none(bound, layout.shape[dim]), (int_constant(bound), largest(bound, {}))
    if whole is not None:
        return dict.fromkeys(places, whole)
    part = _apart(k, layout, dim) if len(places) > 1 and ends[0] is None else None
    limit = bound if part is None else arith_d.subi(bound, part)
    return {at: _known(layout, dim, layout.at(register=r)[dim], ends) or arith_d.cmpi(
        arith_d.CmpIPredicate.slt, k.code.coordinate(layout, r, dim) if part is None
        else index(layout.at(register=r)[dim]), limit) for at, r in places.items()}


def _apart(k: KernelBuilder, layout: Layout, dim: int) -> Value | None:
    """The thread's part of coordinate `dim`, where a register's is added to it; None where there is none, and on chips
    whose kernels keep products' operands in registers: attention's gradients spilled there."""
    if not k.chip.warpgroup_products:
        return None
    moving = _bits(layout, dim, "lane") | _bits(layout, dim, "warp")
    return None if moving & _bits(layout, dim, "register") else k.code.part(layout, dim)


def _bits(layout: Layout, dim: int, name: str) -> int:
    return functools.reduce(operator.or_, (v[dim] for v in layout.basis(name)), 0)


def _all_or_none(bound: Value, elements: int) -> Value | None:
    """The condition under which all of a dim's elements are below `bound`, where else none is; None for others."""
    op = maker(bound, "arith.select")
    if op is None or int_constant(op.operands[2]) != 0:
        return None
    return op.operands[0] if (int_constant(op.operands[1]) or 0) >= elements else None


def _known(layout: Layout, dim: int, at: int, end: tuple[int | None, int | None]) -> Value | None:
    """Whether what threads hold from coordinate `at` along `dim` on is below a bound, of which `end` says what it is
    and what it is at most, where that is the same for all of them."""
    fixed, most = end
    last = at | sum(v[dim] for name in ("lane", "warp") for v in layout.basis(name))
    i1 = ir.IntegerType.get_signless(1)
    if most is not None and at >= most:
        return arith_d.constant(i1, 0)
    return arith_d.constant(i1, 1) if fixed is not None and last < fixed else None


def _run(layout: Layout, dim: int, factor: int) -> int:
    """How many neighbours along `dim`, all in one thread, are on one side of each multiple of `factor`."""
    run = factor & -factor
    moving = [v[dim] for name in ("lane", "warp") for v in layout.basis(name) if v[dim]]
    return min([run, *(v & -v for v in moving)])


def compared(k: KernelBuilder, op: Operation) -> bool:
    """arith.cmpi of positions, 0, 1, ... behind a scalar, as those of :func:`mask`; where the bound is a scalar, one
    comparison for neighbours of a thread that are on one side of whatever it is. False where `op` is something else."""
    line = line_along(op.operands[0])
    if line is None:
        return False
    (start, dim), layout = line, k.layout(op.results[0])
    bound = scalar_of(op.operands[1])
    below = ir.IntegerAttr(op.attributes["predicate"]).value == arith_d.CmpIPredicate.slt.value
    if below and start is None and (splat(op.operands[1]) or 0) >= layout.shape[dim]:
        kind = k.type_of(op.results[0])
        k.values[op.results[0]] = arith_d.constant(kind, ir.DenseElementsAttr.get_splat(kind, ir.BoolAttr.get(True)))
        return True
    if bound is not None and below and isinstance(bound.type, ir.IndexType):
        run = _run(layout, dim, math.gcd(divisor(bound), MAX_DIVISOR if start is None else divisor(start)))
        tests = _below(k, layout, dim, run, k.get(bound) if start is None
                       else arith_d.subi(k.get(bound), k.get(start)))
        k.values[op.results[0]] = from_registers([tests[layout.at(register=r)[dim] // run]
                                                  for r in range(layout.registers)])
        return True
    part, places = _apart(k, layout, dim), [layout.at(register=r)[dim] for r in range(layout.registers)]
    if part is None or len(set(places)) ** 2 < layout.registers:     # the other side has more that differ
        return False
    other = k.get(op.operands[1])
    kind = ir.VectorType(other.type)
    first = part if start is None else arith_d.addi(part, k.get(start))
    if not isinstance(kind.element_type, ir.IndexType):
        first = arith_d.index_cast(kind.element_type, first)
    limit = arith_d.subi(other, vector_d.broadcast(kind, first))
    numbers = arith_d.constant(kind, ir.DenseElementsAttr.get(
        [ir.IntegerAttr.get(kind.element_type, n) for n in places], kind))
    k.values[op.results[0]] = arith_d.cmpi(ir.IntegerAttr(op.attributes["predicate"]).value, numbers, limit)
    return True


def constant(k: KernelBuilder, op: Operation) -> None:
    """arith.constant of a vector: a splat, or a table from which each register reads its element."""
    result = op.results[0]
    data = ir.DenseElementsAttr(op.attributes["value"])
    kind = k.type_of(result)
    if data.is_splat:
        k.values[result] = arith_d.constant(kind, ir.DenseElementsAttr.get_splat(kind, data.get_splat_value()))
        return
    layout = k.layout(result)
    table = vector_d.shape_cast(vec(prod(layout.shape), kind.element_type),
                                arith_d.constant(result.type, op.attributes["value"]))
    scalars = []
    for r in range(layout.registers):
        flat = index(0)
        for d, s in enumerate(layout.shape):
            flat = arith_d.addi(arith_d.muli(flat, index(s)), k.code.coordinate(layout, r, d))
        scalars.append(vector_d.extract(table, [flat], [ir.ShapedType.get_dynamic_size()]))
    k.values[result] = from_registers(scalars)


broadcast = _view(_broadcast_position)
reshape = _view(_reshape_position)
transpose = _view(_transpose_position)


def extract(k: KernelBuilder, op: Operation) -> None:
    """vector.extract of the one element of a tile, which every thread has."""
    if is_vector(op.results[0]) or prod(ir.VectorType(op.operands[0].type).shape) != 1:
        raise CompilerBug("vector.extract of one element of many has no distribution to threads")
    k.values[op.results[0]] = registers_of(k.get(op.operands[0]))[0]
