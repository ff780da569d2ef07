"""The right operand of a kernel's product: where it is read, and whether its columns can be packed."""

from __future__ import annotations

from dataclasses import dataclass

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.passes.linalg.kernel.domain import contraction_of, domain, element_bytes
from xcc.passes.linalg.kernel.kernel import Access, Kernel, Op, Tensor, bare_loop
from xcc.passes.shared.packing import STACK
from xcc.symbolic import Dim


@dataclass(frozen=True, eq=False)
class Columns:
    """The right operand `t` of the product `op`, an argument.

    loops: what walks each dim of `t`, a loop of the kernel's domain; -1 for the sum, of so many `steps`.
    """

    op: Op
    t: Tensor
    loops: tuple[int, ...]
    steps: Dim

    @property
    def turned(self) -> bool:
        """Whether neighbours in memory are a column's steps, not a step's columns."""
        return self.loops[-1] == -1

    def room(self, wide: int) -> int:
        """Steps that there is memory for in a panel of so many columns: all, where their number is known. Longer sums
        read the operand as it lies."""
        return self.steps if isinstance(self.steps, int) else STACK // (wide * element_bytes(self.t.element))


def operands_at(kernel: Kernel) -> tuple[Op, list[tuple[Tensor, Access]]] | None:
    """The kernel's product and where it reads its operands, over the loops of the kernel's domain: i0, i1, ...; those
    of the sum are r<loop>."""
    op = contraction_of(kernel)
    position = domain(kernel).position.get(op) if op is not None else None
    if op is None or position is None:
        return None
    env: dict[str, Dim] = {f"i{p}": symbolic.sym(f"r{p}") for p in range(len(op.loops))}
    env |= op.loops_at(position)
    return op, op.reads(env)


def right_columns(kernel: Kernel) -> Columns | None:
    """The argument that the kernel's product reads at a step, a column and maybe numbers of a batch, each a dim, and
    that nothing else reads; one of step and column is the last dim."""
    found = operands_at(kernel)
    if found is None:
        return None
    op, operands = found
    last, sums = len(domain(kernel).dims) - 1, [p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1]
    steps = op.loops[sums[0]] if len(sums) == 1 else None
    if steps is None:
        return None
    for t, at in operands:
        readers = [s for o in kernel.ops for s, _ in o.inputs if s is t]
        loops = [-1 if str(e) == f"r{sums[0]}" else bare_loop(e) for e in at]
        known = tuple(d for d in loops if d is not None)
        if t.arg >= 0 and len(readers) == 1 and len(set(known)) == len(loops) and {-1, last} <= set(known) \
                and known[-1] in (-1, last) and t.dims[known.index(-1)] == steps:
            return Columns(op, t, known, steps)
    return None


def columns_packed(kernel: Kernel) -> Columns:
    """What is to be packed; UserError where there is nothing."""
    found = right_columns(kernel)
    if found is None:
        raise UserError(f"{kernel.function.location}: packed columns need a product whose right operand is an "
                        "argument, read once, at a step and a column")
    return found
