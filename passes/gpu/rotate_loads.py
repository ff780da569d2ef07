"""Loads of a loop without products start a step ahead, in registers (software pipelining, rotation of the loop).

    scf.for %k ... {                        %a = transfer_read %x[%first], mask
      %t = transfer_read %x[%k]      ->     scf.for %k ... iter_args(%t = %a) {
      ... }                                   %b = transfer_read %x[%k + step], mask
                                              ...
                                              yield %b }

A step then does not wait for its own loads, where instances that run beside it are all in the same place: prefix sums
of 4096x4096 on an H100 25.0 -> 24.6 us, norms of rows in two loops 74 -> 67. Only of programs whose schedule gives
their loops two stages, of reads that places alone decide, where registers suffice, and no array that the loop writes
to: what instances read through one argument is read before it is written through another. Masks leave out what is
behind the last step.
"""

from __future__ import annotations

from math import prod

from xcc._mlir import Module, Operation, Value, arith_d, ir, maker, scf_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.distribute import writes_memory
from xcc.passes.gpu.layout.tile_kernel import TileKernel, tile_kernels
from xcc.passes.gpu.layout.tile_ops import config_int, element_bytes, shape_of, step_of
from xcc.passes.shared.values import index
from xcc.passes.shared.values import op as op_of
from xcc.passes.walk import walk

MOST = 72       # bytes of a thread that wait for the next step: of two rows, and numbers of theirs
LEAST = 32      # below that compilers unroll a loop, and ask for what several steps read at once
CHEAP = ("arith.", "vector.create_mask", "vector.broadcast", "vector.step", "vector.shape_cast")


@register_pass
class RotateLoads(Pass):
    """Starts the loads of loops a step ahead, in registers, where the schedule gives them stages."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for k in tile_kernels(module, ctx.chip):
            for loop in list(k.ops("scf.for")) if config_int(k.func, "stages", 0) > 1 else []:
                reads = _early(k, loop)
                if reads:
                    _rotate(loop, reads)


def _early(k: TileKernel, loop: Operation) -> dict[Operation, list[Operation]]:
    """The reads that may start a step ahead, each with the operations of the body that it needs."""
    block = loop.regions[0].blocks[0]
    inside = list(walk(block))
    if any(op.name == "vector.contract" for op in inside):
        return {}
    written = {v for op in inside if writes_memory(op) for v in op.operands}
    found: dict[Operation, list[Operation]] = {}
    room = MOST * k.threads
    for read in (op.operation for op in block.operations):
        if read.name != "vector.transfer_read" or read.operands[0] in written:
            continue
        steps = [step_of(v, block, lambda op: op.name.startswith(CHEAP)) for v in read.operands]
        room -= _bytes(read)
        if _is_masked(read) and maker(read.operands[0]) is None and None not in steps and room >= 0:
            needed = {op for step in steps for op in step or ()}
            found[read] = [op.operation for op in block.operations if op.operation in needed]
    return found if sum(map(_bytes, found)) >= LEAST * k.threads else {}


def _bytes(read: Operation) -> int:
    """Of all threads."""
    return prod(shape_of(read.results[0])) * element_bytes(ir.VectorType(read.results[0].type).element_type)


def _is_masked(read: Operation) -> bool:
    """Whether a mask says which elements there are."""
    kind = read.operands[len(read.operands) - 1].type
    return isinstance(kind, ir.VectorType) and str(kind.element_type) == "i1"


def _rotate(loop: Operation, reads: dict[Operation, list[Operation]]) -> None:
    block = loop.regions[0].blocks[0]
    lower, upper, step, *init = loop.operands
    with loop.location, ir.InsertionPoint(loop):
        first = [_read_at(read, needed, lower, upper) for read, needed in reads.items()]
        made = scf_d.ForOp(lower, upper, step, [*init, *first])
    iv, *carried = made.body.arguments
    *operations, yielded = [op.operation for op in block.operations]
    with loop.location, ir.InsertionPoint(operations[0]):
        after = arith_d.addi(block.arguments[0], step)
        later = [_read_at(read, needed, after, upper) for read, needed in reads.items()]
    with yielded.location, ir.InsertionPoint(made.body):
        end = scf_d.yield_([*yielded.operands, *later])
    for op in [op.operation for op in block.operations][:-1]:
        op.move_before(end.operation)
    for old, new in zip(block.arguments, [iv, *carried], strict=False):
        old.replace_all_uses_with(new)
    for read, value in zip(reads, carried[len(init):], strict=True):
        read.results[0].replace_all_uses_with(value)
        read.erase()
    for old, new in zip(loop.results, made.operation.results, strict=False):
        old.replace_all_uses_with(new)
    loop.erase()


def _read_at(read: Operation, needed: list[Operation], iv: Value, upper: Value) -> Value:
    """The read as of step `iv`, of nothing where there is none; it is made at the insertion point."""
    values: dict[Value, Value] = {read.block.arguments[0]: iv}
    last = len(read.operands) - 1
    for op in needed:
        values.update(zip(op.results, _again(op, values).results, strict=True))
    inside = arith_d.cmpi(arith_d.CmpIPredicate.slt, iv, upper)
    mask = values.get(read.operands[last], read.operands[last])
    sizes = maker(mask)
    if sizes is not None and sizes.name == "vector.create_mask":
        first, *others = sizes.operands
        mask = op_of("vector.create_mask", [mask.type], [arith_d.select(inside, first, index(0)), *others])
    else:
        mask = arith_d.andi(mask, op_of("vector.broadcast", [mask.type], [inside]))
    made = _again(read, values)
    made.operands[last] = mask
    return made.results[0]


def _again(op: Operation, values: dict[Value, Value]) -> Operation:
    """`op` on other values, at the insertion point."""
    made = op.clone()
    for n, v in enumerate(op.operands):
        made.operands[n] = values.get(v, v)
    return made
