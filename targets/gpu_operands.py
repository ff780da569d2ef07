"""What a thread holds of a contraction's operands while it loads them: what lies in memory, not what is multiplied."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from xcc import symbolic
from xcc._mlir import ir
from xcc.passes.linalg.domain import element_bytes, volume
from xcc.passes.linalg.kernel import Access, Op, Tensor
from xcc.symbolic import Dim

__all__ = ["Loaded", "loaded", "loaded_tensor"]

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


def loaded(op: Op, factor: Any, size: int) -> Loaded:
    """What the value `factor` of the body of `op` is computed from, of all inputs that are as large as it.

    What is gathered counts as elements of `size` bytes, 16 bytes at a time.
    """
    found = [s for n in sorted(_arguments(op, factor)) for s in _sources(*op.inputs[n])]
    if not found:
        return Loaded.of(size)
    most = max(volume(t.dims) for t, _ in found)
    whole = {t: a for t, a in found if volume(t.dims) * 2 >= most}
    parts = [loaded_tensor(t, a) for t, a in whole.items()]
    return Loaded(sum(p.memory for p in parts), sum(p.registers for p in parts), sum(p.accesses for p in parts))


def _arguments(op: Op, value: Any) -> set[int]:
    """Numbers of the inputs of `op` that a value of its body is computed from."""
    if isinstance(value.owner, ir.Block):
        return {value.arg_number} if value.owner == op.block and value.arg_number < len(op.inputs) else set()
    return set().union(*(_arguments(op, v) for v in value.owner.operands))


def _sources(tensor: Tensor, access: Access) -> list[tuple[Tensor, Access]]:
    """The kernel's arguments behind `tensor`, and how they are read."""
    if tensor.producer is None:
        return [(tensor, access)] if tensor.arg >= 0 else []
    return [s for t, a in tensor.producer.inputs for s in _sources(t, a)]


def loaded_tensor(tensor: Tensor, access: Access) -> Loaded:
    """Of one tensor: elements alone where neighbours in memory may not lie in one access."""
    size = element_bytes(tensor.element)
    run = math.gcd(tensor.dims[-1], *_apart(access[-1])) if access and isinstance(tensor.dims[-1], int) else 1
    width = min(WIDEST, (run & -run) * size)
    return Loaded(size, size * WORD // width if width < WORD else size, size / width)


def _apart(e: Dim) -> list[int]:
    """Where neighbours of a dim lie together: what else `e` is made of, by its factors; [1] for any other."""
    factors = [c for _, c in e.terms] if isinstance(e, symbolic.Expr) else []
    if 1 not in factors:
        return [1]
    factors.remove(1)
    return factors
