"""Which contractions of a chunk fit AMX's tile registers, decoded for passes/vector/amx_tiles.py."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from xcc._mlir import Operation, Value, ir, owner_op
from xcc.passes.shared.patterns import splat_of
from xcc.passes.vector.unroll.unroll_contract import Contract
from xcc.passes.walk import ops_where

ROWS = 16           # of a register
GROUP_BYTES = 4
MOST_SUMS = 4       # registers for sums; two are for the left operand, two for the right one
BUFFERS = ("memref.alloca", "memref.reinterpret_cast")      # of sums: memory of the kernel's own, or a part of it
INSTRUCTIONS = {frozenset(): "tdpbssd", frozenset({0}): "tdpbusd", frozenset({1}): "tdpbsud",
                frozenset({0, 1}): "tdpbuud"}
"""Of bytes, by the sides that are unsigned."""


@dataclass(frozen=True)
class Read:
    """An unmasked transfer_read; `dims[v]` is the memory dim of vector dim v, `strides` are of the memory's dims, None
    where they are known when the kernel runs."""

    memory: Any
    indices: list[Any]
    dims: tuple[int, ...]
    strides: tuple[int | None, ...]
    width: int


@dataclass(frozen=True)
class Step:
    """One contract: rows x groups of `left` with groups x columns of `right`."""

    contract: Any
    left: Read
    right: Read


@dataclass
class Chain:
    """Contracts that add up, in loops around them, from zeros or what a buffer has to a write into the buffer.

    pieces: of the rows, (coordinates in the result's dims but the last, number of rows). right: registers a row of
    the right operand takes. groups: of a step. first: the op before which the sums begin. start: the read of what the
    buffer has; None where sums begin as zeros.
    """

    write: Any
    pieces: list[tuple[tuple[int, ...], int]]
    right: int
    groups: int = 0
    instruction: str = ""
    first: Any = None
    start: Operation | None = None
    steps: list[Step] = field(default_factory=list)


def chains(forall: Operation) -> list[Chain]:
    """All that fit in one chunk's body."""
    writes = ops_where(forall, lambda o: o.name == "vector.transfer_write")
    return [c for c in map(_chain, writes) if c is not None]


def _chain(write: Operation) -> Chain | None:
    value, memory = write.operands[0], write.operands[1]
    t = ir.VectorType(value.type)
    shape = tuple(t.shape)
    whole = list(ir.MemRefType(memory.type).shape) == list(shape) and not _mask(write, 2)
    if not whole or isinstance(memory.owner, ir.Block) or memory.owner.name not in BUFFERS or len(shape) < 2 \
            or not _in_rows(memory) or shape[-1] not in (ROWS, 2 * ROWS) or not _alone(value):
        return None
    pieces = _pieces(shape[:-1])
    right = shape[-1] // ROWS
    same = len({n for _, n in pieces}) == 1
    if len(pieces) * right > MOST_SUMS or len(pieces) > 2 and not same:
        return None
    chain = Chain(write, pieces, right)
    return chain if _follow(chain, value) and chain.steps else None


def _in_rows(memory: Value) -> bool:
    """Whether neighbours of the last dim lie side by side, and rows as far apart as is known."""
    strides, _ = ir.MemRefType(memory.type).get_strides_and_offset()
    return strides[-1] == 1 and strides[-2] != ir.ShapedType.get_dynamic_stride_or_offset()


def _pieces(rows: tuple[int, ...]) -> list[tuple[tuple[int, ...], int]]:
    """Rows of the innermost dim in equal parts of at most 16."""
    parts = -(-rows[-1] // ROWS)
    cuts = [rows[-1] * n // parts for n in range(parts + 1)]
    return [((*outer, a), b - a) for outer in itertools.product(*(range(n) for n in rows[:-1]))
            for a, b in itertools.pairwise(cuts)]


def _follow(chain: Chain, value: Value, until: Value | None = None) -> bool:
    """Collects the steps behind `value`, back to `until` or to zeros, into `chain`; False where one does not fit."""
    while until is None or value != until:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return False
        if until is None and owner.name == "arith.constant":
            return splat_of(value) == 0 and chain.first is not None
        if until is None and chain.first is not None and _is_start(chain, owner):
            chain.start = owner
            return True
        if not _alone(value):
            return False
        if owner.name == "vector.contract":
            step = _step(chain, owner)
            if step is None:
                return False
            chain.steps.append(step)
            value = owner.operands[2]
        elif owner.name == "scf.for" and len(owner.results) == 1:
            block = owner.regions[0].blocks[0]
            if not _follow(chain, list(block.operations)[-1].operands[0], block.arguments[1]):
                return False
            value = owner.operands[3]
        else:
            return False
        if until is None:
            chain.first = owner
    return _alone(until)


def _is_start(chain: Chain, owner: Operation) -> bool:
    """Whether `owner` reads what the chain's write will write to, and nothing but reads and scalars are between."""
    if owner.name != "vector.transfer_read" or owner.operands[0] != chain.write.operands[1] or _mask(owner, 1) \
            or owner.operation.block != chain.first.operation.block:
        return False
    order = [o.operation for o in owner.operation.block.operations]
    between = order[order.index(owner.operation):order.index(chain.first.operation)]
    return all(o.name.startswith(("arith.", "vector.transfer_read", "memref.reinterpret_cast")) for o in between)


def _step(chain: Chain, o: Operation) -> Step | None:
    """One contract of the chain's shape whose operands are tiles of memory."""
    c = Contract(o)
    if "add" not in str(o.attributes["kind"]) or c.group is None or not c.maps[2] or len(c.reduced) != 2:
        return None
    number = next((n for n in (0, 1) if c.lane in c.maps[n]), 0)
    groups = next(d for d in c.reduced if d != c.group)
    rows = c.maps[2][:-1]
    if c.maps[number] != [groups, c.lane, c.group] or c.maps[1 - number] != [*rows, groups, c.group]:
        return None
    left, right = _read(o.operands[1 - number]), _read(o.operands[number])
    if left is None or right is None or left.width != right.width:
        return None
    group, steps = c.sizes[c.group], c.sizes[groups]
    if group * left.width != GROUP_BYTES or steps > ROWS or chain.groups not in (0, steps):
        return None
    fits = _steps(left)[-2:] == [group, 1] and _steps(right)[1:] == [group, 1]
    instruction = _instruction(o.operands[1 - number], {int(n != 1 - number) for n in c.unsigned})
    if not fits or not instruction or chain.instruction not in ("", instruction):
        return None
    chain.instruction, chain.groups = instruction, steps
    return Step(o, left, right)


def _steps(read: Read) -> list[int | None]:
    return [read.strides[d] for d in read.dims]


def _instruction(left: Value, unsigned: set[int]) -> str:
    elem = ir.VectorType(left.type).element_type
    if isinstance(elem, ir.BF16Type):
        return "tdpbf16ps"
    return INSTRUCTIONS[frozenset(unsigned)] if str(elem) == "i8" else ""


def _read(value: Value) -> Read | None:
    """The transfer_read that makes `value`, unmasked, each vector dim along a memory dim."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "vector.transfer_read" or not _alone(value) or _mask(owner, 1):
        return None
    memory = owner.operands[0]
    t = ir.MemRefType(memory.type)
    strides, _ = t.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    results = ir.AffineMapAttr(owner.attributes["permutation_map"]).value.results
    if not all(isinstance(r, ir.AffineDimExpr) for r in results):
        return None
    dims = tuple(int(ir.AffineDimExpr(r).position) for r in results)
    return Read(memory, list(owner.operands)[1:1 + t.rank], dims, tuple(None if s == dynamic else s for s in strides),
                t.element_type.width // 8)


def _mask(o: Operation, first_index: int) -> bool:
    """Whether a transfer has a mask; `first_index`: of its indices among its operands."""
    rank = ir.MemRefType(o.operands[first_index - 1].type).rank
    return len(o.operands) > first_index + rank + (1 if first_index == 1 else 0)


def _alone(value: Value) -> bool:
    return len(list(value.uses)) == 1


def drop(value: Value, until: Value | None = None) -> None:
    """Erases the contracts and reads behind `value`, back to `until` or to what sums begin with; loops carry nothing
    any more."""
    while until is None or value != until:
        owner = owner_op(value)
        if owner.name == "arith.constant":
            return
        if owner.name == "vector.transfer_read":
            owner.erase()
            return
        if owner.name == "vector.contract":
            left, right, value = owner.operands
            owner.erase()
            owner_op(left).erase()
            owner_op(right).erase()
        else:
            value = owner.operands[3]
            _drop_loop(owner)


def _drop_loop(loop: Operation) -> None:
    block = loop.regions[0].blocks[0]
    new = ir.Operation.create("scf.for", operands=list(loop.operands)[:3], regions=1, ip=ir.InsertionPoint(loop))
    body = new.regions[0].blocks.append(ir.IndexType.get())
    end = ir.Operation.create("scf.yield", ip=ir.InsertionPoint(body))
    block.arguments[0].replace_all_uses_with(body.arguments[0])
    *rest, old_end = [x.operation for x in block.operations]
    for o in rest:
        o.move_before(end)
    result = old_end.operands[0]
    old_end.erase()
    drop(result, block.arguments[1])
    loop.erase()
