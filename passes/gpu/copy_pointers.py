"""Addresses of asynchronous copies in a loop of warpgroup instructions: one addition each.

    scf.for %k = %low to %high step %s {                 %p = opaque(address at %low)
      %p = address that is linear in %k             ->   %d = address at %low + %s less that at %low
      cp.async %slot, %p }                               scf.for %k ... iter_args(%o = 0) {
                                                           cp.async %slot, %p + %o
                                                           %next = opaque(%o + %d)
                                                           scf.yield %next }

Where a thread multiplies integers (IMAD, IMAD.WIDE), the matrix instructions that run on at the same time wait: with
twelve of them a step a product takes a fifth longer, whatever else the loop does (H100, f16, us: 4096^3 with both
operands turned 226 or 190; 512x4096x11008 84 or 69). Left alone, LLVM computes each address from coordinates, or splits
it into a shared pointer and sixteen times the lane. What it may not see through passes an asm statement without
instructions. Copies that move alike share an offset.
"""

from __future__ import annotations

from typing import Any

from xcc._mlir import Block, Module, Operation, Value, arith_d, ir, scf_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.layout.tile_ops import element_bytes, step_of
from xcc.passes.gpu.vendor.inline_asm import inline_asm
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.values import with_operands
from xcc.passes.walk import ops_where

COPY, GROUP = "nvvm.cp.async.shared.global", "nvvm.wgmma.commit.group.sync.aligned"
MOST = 16       # addresses of a loop, two registers each
LINEAR = ("arith.addi", "arith.subi", "arith.muli", "arith.index_cast", "builtin.unrealized_conversion_cast",
          "memref.cast", "memref.reinterpret_cast", "llvm.getelementptr", "llvm.addrspacecast", "llvm.insertvalue",
          "llvm.extractvalue", "llvm.add", "llvm.mul")
PRODUCTS = ("arith.muli", "llvm.mul")
OFFSET = 2      # of a descriptor's fields
Factor = dict[tuple[Any, ...], int]     # a sum of products of values, each with its number
ONE: Factor = {(): 1}
FIXED = ("arith.constant", "llvm.mlir.constant", "llvm.mlir.poison", "llvm.mlir.undef")


@register_pass
class CopyPointers(Pass):
    """Takes the multiplications out of the addresses of copies in loops of warpgroup instructions."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for loop in ops_where(module, _has_copies):
            with loop.location:
                _carry(loop)


def _has_copies(op: Operation) -> bool:
    return op.name == "scf.for" and any(o.operation.name == GROUP for o in op.regions[0].blocks[0].operations)


def _carry(loop: Operation) -> None:
    """Rewrites one loop, where its copies' addresses are linear."""
    block = loop.regions[0].blocks[0]
    found = []
    for op in block.operations:
        if op.operation.name == COPY:
            steps = _linear(op.operands[1], block)
            if steps is not None:
                found.append((op.operation, steps))
    if not found or len(found) > MOST:
        return
    lower, _, step = list(loop.operands)[:3]
    starts: list[Any] = []
    keys: list[Any] = []
    distances: dict[Any, Any] = {}      # by what a copy moves by for one of the counter, or the copy itself
    with ir.InsertionPoint(loop):
        after = arith_d.addi(lower, step)
        for number, (op, steps) in enumerate(found):
            first, second = (_integer(_copied(op.operands[1], steps, block.arguments[0], at)) for at in (lower, after))
            starts.append(_opaque(first))
            factor = _factor(op.operands[1], steps, block.arguments[0])
            keys.append(("copy", number) if factor is None else frozenset(factor.items()))
            distances.setdefault(keys[-1], arith_d.subi(second, first))
        zero = arith_d.constant(ir.IntegerType.get_signless(64), 0)
        made = scf_d.ForOp(*list(loop.operands)[:3], [*list(loop.operands)[3:], *[zero] * len(distances)])
    old = list(block.arguments)
    arguments = list(made.body.arguments)
    for a, b in zip(old, arguments, strict=False):
        a.replace_all_uses_with(b)
    offsets = dict(zip(distances, arguments[len(old):], strict=True))
    for (op, _), key, start in zip(found, keys, starts, strict=True):
        with ir.InsertionPoint(op):
            op.operands[1] = ir.Operation.create("llvm.inttoptr", results=[op.operands[1].type],
                                                 operands=[arith_d.addi(start, offsets[key])]).results[0]
    for op in list(block.operations):
        op.operation.detach_from_parent()
        made.body.append(op.operation)
    last = list(made.body.operations)[-1].operation
    with ir.InsertionPoint(last):
        scf_d.yield_([*last.operands, *[_opaque(arith_d.addi(offsets[key], d)) for key, d in distances.items()]])
    last.erase()
    for a, b in zip(loop.results, made.operation.results, strict=False):
        a.replace_all_uses_with(b)
    loop.erase()


def _factor(value: Value, steps: list[Operation], counter: Value) -> Factor | None:
    """What the pointer `value` moves by, in bytes, where the counter of a loop grows by one; None where that is not
    known. A descriptor moves by the elements of its offset."""
    moves: dict[Value, Factor | None] = {counter: ONE}

    def move(v: Value) -> Factor | None:
        return moves.get(v, {})

    for op in steps:
        parts = [move(v) for v in op.operands]
        if all(p == {} for p in parts):
            continue
        total = None
        known = [p for p in parts if p is not None]
        if len(known) == len(parts):
            if op.name in PRODUCTS:
                total = _times(known[0] or known[1], op.operands[0 if known[1] else 1])
            elif op.name == "arith.subi":
                total = _sum([known[0], _scaled(known[1], -1)])
            elif op.name == "llvm.getelementptr":
                size = element_bytes(ir.TypeAttr(op.attributes["elem_type"]).value)
                total = _sum([known[0], *(_scaled(p, size) for p in known[1:])])
            elif op.name == "llvm.extractvalue":    # pointers stay, the offset moves
                total = _sum(known) if list(ir.DenseI64ArrayAttr(op.attributes["position"])) == [OFFSET] else {}
            else:
                total = _sum(known)
        for r in op.results:
            moves[r] = total
    return move(value)


def _sum(parts: list[Factor]) -> Factor:
    out: Factor = {}
    for values, n in (item for p in parts for item in p.items()):
        out[values] = out.get(values, 0) + n
    return {values: n for values, n in out.items() if n}


def _scaled(factor: Factor, by: int) -> Factor:
    return {values: n * by for values, n in factor.items()}


def _times(factor: Factor, by: Value) -> Factor:
    """`factor` times a value that the loop does not change."""
    fixed = int_constant(by)
    if fixed is not None:
        return _scaled(factor, fixed)
    return {tuple(sorted((*values, by), key=hash)): n for values, n in factor.items()}


def _linear(value: Value, block: Block) -> list[Operation] | None:
    """The operations of `block` that `value` comes from; None where it is not linear in the loop's counter."""
    steps = step_of(value, block, lambda op: op.name in (*LINEAR, *FIXED))
    if steps is None:
        return None
    moving = {block.arguments[0]}
    for op in steps:
        dependent = [v in moving for v in op.operands]
        if op.name in PRODUCTS and all(dependent):
            return None
        if any(dependent):
            moving.update(op.results)
    return steps if value in moving else None


def _copied(value: Value, steps: list[Operation], counter: Value, at: Value) -> Value:
    """`value` computed at this point for the counter `at`."""
    values = {counter: at}
    for op in steps:
        copy = with_operands(op, [values.get(v, v) for v in op.operands])
        values.update(zip(op.results, copy.results, strict=True))
    return values[value]


def _integer(pointer: Value) -> Value:
    return ir.Operation.create("llvm.ptrtoint", results=[ir.IntegerType.get_signless(64)],
                               operands=[pointer]).results[0]


def _opaque(value: Value) -> Value | None:
    """`value`, of which the code generator knows nothing."""
    return inline_asm("mov.b64 $0, $1;", "=l,l", [value.type], [value], effects=False)
