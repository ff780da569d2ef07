"""What a thread holds of a contraction's operands while it loads them: what lies in memory, not what is multiplied."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xcc import symbolic
from xcc._mlir import Value, ir
from xcc.passes.linalg.kernel.domain import element_bytes, volume
from xcc.passes.linalg.kernel.kernel import Access, Op, Tensor, bare_loop
from xcc.passes.shared.patterns import int_constant
from xcc.symbolic import Dim

WORD, WIDEST = 4, 16        # bytes of a register and of the widest access


@dataclass(frozen=True)
class Loaded:
    """For each element of an operand: bytes read, bytes of registers that they take, and accesses."""

    memory: int
    registers: int
    accesses: float

    @staticmethod
    def of(size: int) -> Loaded:
        """Elements of `size` bytes that are read 16 bytes at a time."""
        return Loaded(size, size, size / WIDEST)


def loaded(op: Op, factor: Value, size: int) -> Loaded:
    """What the value `factor` of the body of `op` is computed from, of all inputs that are as large as it.

    Where nothing is known it counts as elements of `size` bytes, 16 bytes at a time.
    """
    seen: set[tuple[Tensor, Access]] = set()
    found = [s for n in sorted(_arguments(op, factor)) for s in _sources(*op.inputs[n], seen)]
    if not found:
        return Loaded.of(size)
    most = max(elements for _, elements, _ in found)
    parts = {value: part for value, elements, part in found if elements * 2 >= most}.values()
    return Loaded(sum(p.memory for p in parts), sum(p.registers for p in parts), sum(p.accesses for p in parts))


def along(op: Op, factor: Value, loops: set[int]) -> bool:
    """Whether all inputs that the value `factor` of the body of `op` is computed from are read along one of `loops`."""
    accesses = [op.inputs[n][1] for n in _arguments(op, factor)]
    return bool(accesses) and all(a and bare_loop(a[-1]) in loops for a in accesses)


def _arguments(op: Op, value: Value) -> set[int]:
    """Numbers of the inputs of `op` that a value of its body is computed from."""
    if isinstance(value.owner, ir.Block):
        return {value.arg_number} if value.owner == op.block and value.arg_number < len(op.inputs) else set()
    return set().union(*(_arguments(op, v) for v in value.owner.operands))


def _sources(tensor: Tensor, access: Access,
             seen: set[tuple[Tensor, Access]]) -> list[tuple[Value | None, int, Loaded]]:
    """The kernel's arguments behind `tensor`: each with its elements, and how they are read, each once."""
    if (tensor, access) in seen:
        return []
    seen.add((tensor, access))
    if tensor.producer is None:
        return [(tensor.value, volume(tensor.dims), loaded_tensor(tensor, access))] if tensor.arg >= 0 else []
    return [*_gathered(tensor, access), *(s for t, a in tensor.producer.inputs for s in _sources(t, a, seen))]


def _gathered(tensor: Tensor, access: Access) -> list[tuple[Value, int, Loaded]]:
    """What the body of the producer of `tensor` reads by tensor.extract, as many elements as the tensor has."""
    op = tensor.producer
    if op is None or op.operation is None:
        return []
    out = []
    for read in [o.operation for o in op.block.operations if o.operation.name == "tensor.extract"]:
        source = ir.RankedTensorType(read.operands[0].type)
        if not source.rank:
            continue
        run, moved = 1, _moved(read.operands[len(read.operands) - 1])
        if moved is not None and not source.is_dynamic_dim(source.rank - 1):
            at = [j for j, e in enumerate(op.outs[tensor.index]) if bare_loop(e) == moved[0]]
            run = math.gcd(source.shape[-1], moved[1], *_apart(access[at[0]])) if at else 1
        out.append((read.operands[0], volume(tensor.dims), _elements(element_bytes(source.element_type), run)))
    return out


def _moved(index: Value) -> tuple[int, int] | None:
    """(n, c) of a loop's number ``linalg.index n``, with c, a constant, added to it."""
    if isinstance(index.owner, ir.Block):
        return None
    if index.owner.name == "linalg.index":
        return int(index.owner.attributes["dim"].value), 0
    if index.owner.name in ("arith.addi", "arith.subi"):
        found, by = _moved(index.owner.operands[0]), int_constant(index.owner.operands[1])
        return None if found is None or by is None else (found[0], math.gcd(found[1], by))
    return None


def loaded_tensor(tensor: Tensor, access: Access) -> Loaded:
    """Of one tensor: elements alone where neighbours in memory may not lie in one access."""
    run = math.gcd(tensor.dims[-1] or 1, *_apart(access[-1])) if access and isinstance(tensor.dims[-1], int) else 1
    return _elements(element_bytes(tensor.element), run)


def _elements(size: int, run: int) -> Loaded:
    """Elements of `size` bytes, of which those lie together whose number `run` is a multiple of."""
    width = min(WIDEST, (run & -run) * size)
    return Loaded(size, size * WORD // width if width < WORD else size, size / width)


def _apart(e: Dim) -> list[int]:
    """Where neighbours of a dim lie together: what else `e` is made of, by its factors; [1] for any other."""
    factors = [c for _, c in e.terms] if isinstance(e, symbolic.Expr) else []
    if 1 not in factors:
        return [1]
    factors.remove(1)
    return factors
