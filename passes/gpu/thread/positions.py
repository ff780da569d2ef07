"""Vectors made of positions, or whose elements only change theirs: steps, masks, constants, broadcasts, transposes."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Value, arith_d, ir, maker, vector_d
from xcc.diagnostics import CompilerBug
from xcc.passes.gpu.index.index_values import MAX_DIVISOR, divisor
from xcc.passes.gpu.index.index_vectors import line_below
from xcc.passes.gpu.index.upper_bounds import largest
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.registers import from_registers, registers_of, select_registers
from xcc.passes.gpu.layout.tile_ops import shape_of
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.values import index, is_vector, vec

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

__all__ = ["bounded", "broadcast", "constant", "mask", "reshape", "step", "transpose"]


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
    ends = [(int_constant(v), largest(v, {})) for v in bounds]
    tests: dict[tuple[int, int], Value] = {}
    out = []
    for r in range(layout.registers):
        joined: Any = None
        for d, bound in enumerate(bounds):
            at = layout.at(register=r)[d]
            key = (d, at // runs[d])
            if key not in tests:
                tests[key] = _all_or_none(bound, layout.shape[d]) or _known(layout, d, at, ends[d]) or arith_d.cmpi(
                    arith_d.CmpIPredicate.slt, k.code.coordinate(layout, r, d), bound)
            joined = tests[key] if joined is None else arith_d.andi(joined, tests[key])
        out.append(joined)
    k.values[op.results[0]] = from_registers(out)


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


def bounded(k: KernelBuilder, op: Operation) -> bool:
    """arith.cmpi of positions, 0, 1, ... behind a scalar, and a bound: one comparison for neighbours of a thread that
    are on one side of whatever the bound is. False where `op` is something else."""
    found = line_below(op)
    dims = [d for d, n in enumerate(shape_of(op.results[0])) if n > 1] if found is not None else []
    if found is None or len(dims) != 1:
        return False
    (dim,), (start, bound) = dims, found
    layout = k.layout(op.results[0])
    run = _run(layout, dim, math.gcd(divisor(bound), MAX_DIVISOR if start is None else divisor(start)))
    limit = k.get(bound) if start is None else arith_d.subi(k.get(bound), k.get(start))
    tests: dict[int, int] = {}
    for r in range(layout.registers):
        tests.setdefault(layout.at(register=r)[dim] // run, r)
    made = {at: arith_d.cmpi(arith_d.CmpIPredicate.slt, k.code.coordinate(layout, r, dim), limit)
            for at, r in tests.items()}
    k.values[op.results[0]] = from_registers([made[layout.at(register=r)[dim] // run]
                                              for r in range(layout.registers)])
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
