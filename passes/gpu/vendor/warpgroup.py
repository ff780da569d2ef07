"""Contractions of a warpgroup: wgmma, four warps that multiply straight from shared memory (PTX ISA, "Asynchronous
Warpgroup Level Matrix Instructions").

    %r = "xtg.wgmma"(%acc, %a, %a_at, %b, %b_at) {m = 64, n = 256, k = 16, a = {...}, b = {...}}

    %r = "xtg.wgmma"(%acc, %a, %b, %b_at) {m = 64, n = 256, k = 16, b = {...}}

multiplies, for each step s of the tile's k, the 64 x k elements of A and the k x n elements of B that begin
`steps[s]` elements behind `a_at` and `b_at` (of A the elements that threads hold, a step after the other), and adds
to the accumulators, a vector of each thread's share. The instruction runs on after it was issued: its operands must
stay until a wait (``nvvm.wgmma.wait.group.sync.aligned``), its result may be used behind ``xtg.wgmma_wait``, which
gives the accumulators back.

Shared memory is in rows of 128 bytes (64, 32 where the tile is smaller) along the dim that is nearest in memory; the
16-byte pieces of a row are XORed with its number in eight; blocks of rows follow each other. What the instruction is
told about that (the distance of eight rows and of two blocks) is read off the layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xcc._mlir import Attribute, Operation, Value, arith_d, gpu_d, ir
from xcc.diagnostics import CompilerBug
from xcc.passes.gpu.layout.contraction import Contraction, column_bits
from xcc.passes.gpu.layout.linear import Layout, log2
from xcc.passes.gpu.layout.registers import from_registers, registers_of, select_registers
from xcc.passes.gpu.layout.staged_tile import StagedTile
from xcc.passes.gpu.layout.tile_ops import element_bytes
from xcc.passes.gpu.memory.extents import extent, only_sums, summed
from xcc.passes.gpu.vendor.truncated import nearest
from xcc.passes.shared.values import index, scalar_attr

if TYPE_CHECKING:
    from xcc.passes.gpu.exchange.thread_code import ThreadCode
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

MULTIPLY, WAIT = "xtg.wgmma", "xtg.wgmma_wait"
PIECE = 16          # bytes that the swizzle keeps together
ROW = 128           # bytes of the longest swizzled row
LEAST = 16          # columns of an instruction on any types
ROWS = 8            # rows after which the swizzle repeats
ALIGNMENT = ROW * ROWS
TURNED = ("f16", "bf16")        # types whose rows may lie along m and n


def matrix_memory(plan: Contraction, operand: int, source: Layout, size: int) -> Layout:
    """Shared memory for operand 0 (m, k) or 1 (k, n), whose tile threads hold as `source`; `size` bytes an element."""
    dims = plan.maps[operand]
    shape = [plan.sizes[d] for d in dims]
    k = dims.index(plan.k[0])
    other = dims.index((plan.m if operand == 0 else plan.n)[0])
    if not near_k(plan, operand, source):
        if operand == 1 and plan.run > 1:
            raise CompilerBug("columns of a product have an order of their own, but lie side by side in shared memory")
        return swizzled_rows(shape, other, k, size)
    bits = log2(shape[other])
    return swizzled_rows(shape, k, other, size, column_bits(plan.run, bits) if operand == 1 else range(bits))


def near_k(plan: Contraction, operand: int, source: Layout) -> bool:
    """Whether the rows of shared memory go along k, for a tile that threads hold as `source`; those must whose elements
    do not have two bytes."""
    if plan.instruction is not None and plan.types[0] not in TURNED:
        return True
    other = plan.maps[operand].index((plan.m if operand == 0 else plan.n)[0])
    unit = next((v for v in (*source.basis("register"), *source.basis("lane")) if 1 in v), None)
    return unit is None or unit[other] != 1


def swizzled_rows(shape: list[int], near: int, far: int, size: int, order: Sequence[int] = ()) -> Layout:
    """Rows of up to 128 bytes along dim `near`, one for each `far`; then the next block of rows.

    order: for each bit of `far` the bit of the row's number, where that is another.
    """
    row = min(ROW // size, shape[near])
    stride = {near: [1 << b for b in range(log2(row))], far: [row << b for b in order or range(log2(shape[far]))]}
    stride[near] += [row * shape[far] << b for b in range(log2(shape[near] // row))]
    pieces = log2(row * size // PIECE)

    def mix(offset: int) -> int:
        byte = offset * size
        return (byte ^ (byte >> 7 & ((1 << pieces) - 1)) * PIECE) // size

    return Layout.make([shape[near] * shape[far]],
                       {f"dim{d}": [[mix(o)] for o in stride.get(d, [])] for d in range(len(shape))})


@dataclass(frozen=True)
class _Operand:
    """Where the instruction finds one operand: in the memory of `tile`, whose dims are `k` and `other`.

    result: the number that `other` has as a dim of the result.
    """

    tile: StagedTile
    k: int
    other: int
    result: int

    def offset(self, dim: int, position: int) -> int:
        return self.tile.memory.at(**{f"dim{dim}": position})[0]

    def first(self, code: ThreadCode, plan: Contraction, position: tuple[int, ...]) -> Value:
        """The offset of this warpgroup's part for the accumulators at `position` of the result."""
        inside = log2(plan.instruction.warps) if plan.instruction is not None else 0
        parts = [[self.offset(self.other, v[self.result]) if n >= inside else 0]
                 for n, v in enumerate(plan.result.basis("warp"))]
        own = code.spread([(code.uniform_warp, [v[0] for v in parts])]) if any(v[0] for v in parts) else None
        at = index(self.offset(self.other, position[self.result]))
        if own is not None:     # other bits than those of the position
            at = arith_d.addi(own, at)
        return at if self.tile.start is None else arith_d.addi(at, self.tile.start)

    def attributes(self, depth: int, step: int) -> Attribute:
        """What ``xtg.wgmma`` says of the operand: sizes and distances in bytes, steps in elements."""
        size = element_bytes(self.tile.stored)
        near_k = self.offset(self.k, 1) == 1
        near, far = (self.k, self.other) if near_k else (self.other, self.k)
        length = 1 << len(self.tile.memory.basis(f"dim{near}"))
        row = min(ROW // size, length)

        def number(value: int) -> Attribute:
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)

        return ir.DictAttr.get({
            "near_k": ir.BoolAttr.get(near_k), "row": number(row * size),
            "rows": number(ROWS * row * size),
            "blocks": number(self.offset(near, row) * size if length > row else 0),
            "steps": ir.DenseI64ArrayAttr.get([self.offset(self.k, s) for s in range(0, depth, step)])})


def multiply(k: KernelBuilder, op: Operation, plan: Contraction) -> Value:
    """The accumulators after a contraction; in a loop that lets instructions run on, before they are finished."""
    i = plan.instruction
    assert i is not None
    numbers = [n for n in (0, 1) if (plan.lhs, plan.rhs)[n] is None]     # of the operands in shared memory
    staged = {n: tile for n in numbers if (tile := k.staged.get(op.operands[n])) is not None}
    alone = len(staged) < len(numbers)
    if alone:       # one may be there, and the other computed in registers, as decoded weights are
        staged |= _in_shared(k, op, plan, [n for n in numbers if n not in staged])
    others = (plan.m[0], plan.n[0])
    operands = {n: _Operand(tile, plan.maps[n].index(plan.k[0]), plan.maps[n].index(others[n]),
                            plan.maps[2].index(others[n])) for n, tile in sorted(staged.items())}
    value, layout, size = k.get(op.operands[2]), plan.result, i.c.registers
    i64 = ir.IntegerType.get_signless(64)
    attributes = {name: ir.IntegerAttr.get(i64, n) for name, n in (("m", i.m), ("n", i.n), ("k", i.k))}
    attributes["types"] = ir.ArrayAttr.get([ir.StringAttr.get(t) for t in i.types[:2]])
    columns, depth = _columns(op, plan), summed(op, plan)
    attributes |= {"ab"[n]: o.attributes(depth, i.k) for n, o in operands.items()}
    parts: dict[int, Value] = {}        # by the first of their registers
    for first in range(0, layout.registers, size):
        position = layout.at(register=first)
        n = max(0, min(i.n, columns - position[plan.maps[2].index(others[1])]))
        if not n:
            continue
        part = select_registers(value, range(first, first + size * n // i.n))
        inputs = [] if 0 in operands else [_held(plan, k.get(op.operands[0]), position, depth)]
        for o in operands.values():
            inputs += [o.tile.buffer, o.first(k.code, plan, position)]
        attributes["n"] = ir.IntegerAttr.get(i64, n)
        parts[first] = ir.Operation.create(MULTIPLY, results=[part.type], operands=[part, *inputs],
                                           attributes=attributes).results[0]
    ir.Operation.create("nvvm.wgmma.commit.group.sync.aligned")
    k.run_deferred()
    if k.in_flight and not alone:
        ir.Operation.create("nvvm.wgmma.wait.group.sync.aligned", attributes={"group": ir.IntegerAttr.get(i64, 1)})
    else:
        parts = dict(zip(parts, wait(list(parts.values())), strict=True))
    return _joined(value, parts, columns < plan.sizes[plan.n[0]] and only_sums(op))


def _joined(value: Value, parts: dict[int, Value], zeros: bool) -> Value:
    """The registers of `value`, or zeros, with those of `parts` from their first ones on."""
    made = list(parts.values())
    if len(made) == 1 and made[0].type == value.type:
        return made[0]
    registers = registers_of(value)
    if zeros:       # nobody keeps them
        element = registers[0].type
        registers = [arith_d.constant(element, scalar_attr(element, 0))] * len(registers)
    for first, part in parts.items():
        own = registers_of(part)
        registers[first:first + len(own)] = own
    return from_registers(registers)


def _columns(op: Operation, plan: Contraction) -> int:
    """The columns of the result for which the right operand has elements: those past them are 0."""
    unit = max(LEAST, 4 * plan.run)     # that the order of columns keeps together
    return -(-extent(op, plan, 1, plan.n[0]) // unit) * unit


def _held(plan: Contraction, value: Value, position: tuple[int, ...], depth: int) -> Value:
    """The registers of A for the accumulators at `position` of the result, a step along k after the other, as far as
    `depth`."""
    i, layout = plan.instruction, plan.lhs
    assert i is not None and layout is not None
    m, k = (plan.maps[0].index(d) for d in (plan.m[0], plan.k[0]))
    row = position[plan.maps[2].index(plan.m[0])]
    held = {layout.at(register=r): r for r in reversed(range(layout.registers))}
    chosen = []
    for step in range(0, depth, i.k):
        for r in range(i.a.registers):
            at = i.a.at(register=r)
            where = [0] * len(layout.shape)
            where[m], where[k] = row + at[0], step + at[1]
            chosen.append(held[tuple(where)])
    return select_registers(value, chosen)


def wait(accumulators: list[Value]) -> list[Value]:
    """The accumulators when all instructions issued so far are finished."""
    return list(ir.Operation.create(WAIT, results=[v.type for v in accumulators], operands=accumulators).results)


def fence_writes() -> None:
    """Lets instructions that read shared memory behind the next barrier see what this thread wrote."""
    ir.Operation.create("nvvm.fence.proxy", attributes={
        "kind": ir.Attribute.parse("#nvvm.proxy_kind<async.shared>"),
        "space": ir.Attribute.parse("#nvvm.shared_space<cta>")})


def _in_shared(k: Any, op: Operation, plan: Contraction, numbers: list[int]) -> dict[int, StagedTile]:
    """Operands written to shared memory for this contraction alone."""
    k.shared.begin()
    tiles = {}
    offset = -k.shared.reserved % ALIGNMENT
    for n in numbers:
        value = op.operands[n]
        stored = ir.VectorType(value.type).element_type
        layout = k.layout(value)
        memory = matrix_memory(plan, n, layout, element_bytes(stored))
        tile = StagedTile(value, [], memory, stored, k.shared.buffer(memory.shape[0], stored, offset))
        k.shared.write(nearest(k.get(value)) if plan.truncates else k.get(value), tile.buffer, memory.compose(layout))
        tiles[n] = tile
        offset += -(-tile.slot_bytes // ALIGNMENT) * ALIGNMENT
    fence_writes()
    gpu_d.barrier()
    return tiles
