"""Steps of a loop all of whose elements there are: what masks say that is known of them.

    %n = arith.subi %bound, %iv ... vector.create_mask %n      64 rows, where %iv + 64 <= %bound
    arith.cmpi slt, %iv + (0 .. 63), %bound                    true, likewise
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any

from xcc._mlir import Block, Operation, Value, arith_d, ir
from xcc.passes.gpu.index.index_vectors import line_below
from xcc.passes.gpu.layout.registers import index, register_vector
from xcc.passes.gpu.layout.tile_ops import constant, is_vector, shape_of
from xcc.passes.gpu.pipeline.loop_steps import Steps

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

__all__ = ["WHOLE", "WholeSteps"]

WHOLE = "xcc.whole"     # on an scf.for: its whole steps have a loop of their own


@dataclass(frozen=True)
class WholeSteps:
    """The operations of a loop's body that compare a step's elements with bounds, which the loop does not change.

    Attributes:
        sizes: (an arith.subi of a bound and the step's first element, elements of a tile).
        tests: (an arith.cmpi of the step's elements and a bound, the bound, elements at most).
    """

    sizes: tuple[tuple[Operation, int], ...]
    tests: tuple[tuple[Any, Any, int], ...]

    @staticmethod
    def of(loop: Operation) -> WholeSteps:
        block = loop.regions[0].blocks[0]
        iv = block.arguments[0]
        sizes, tests = [], []
        for op in (o.operation for o in block.operations):
            if op.name == "arith.subi" and op.operands[1] == iv and _ahead(op.operands[0], block):
                elements = _masked(op.results[0])
                if elements:
                    sizes.append((op, elements))
            elif op.name == "arith.cmpi" and is_vector(op.results[0]):
                found = line_below(op)
                if found is not None and found[0] == iv and _ahead(found[1], block):
                    tests.append((op, found[1], prod(shape_of(op.results[0]))))
        return WholeSteps(tuple(sizes), tuple(tests))

    def __bool__(self) -> bool:
        return bool(self.sizes or self.tests)

    def end(self, k: KernelBuilder, steps: Steps, ahead: int, end: Value) -> Value:
        """Where the steps of `steps` that lie ahead of `end` end of which all is there, `ahead` steps later, too."""
        bounds = [arith_d.subi(k.get(op.operands[0]), index(n)) for op, n in self.sizes]
        bounds += [arith_d.subi(k.get(bound), index(n)) for _, bound, n in self.tests]
        last = reduce(arith_d.minsi, bounds)
        reach = arith_d.maxsi(arith_d.subi(steps.later(last, 1), steps.lower), index(0))
        whole = arith_d.divui(reach, steps.step)
        rest = arith_d.maxsi(arith_d.subi(end, steps.lower), index(0))
        count = arith_d.minsi(arith_d.maxsi(arith_d.subi(whole, index(ahead)), index(0)),
                              arith_d.divui(rest, steps.step))
        return arith_d.addi(steps.lower, arith_d.muli(count, steps.step))

    def known(self, k: KernelBuilder, op: Operation) -> Value | None:
        """The value of `op` in a whole step; None where that is not known ahead."""
        for of, elements in self.sizes:
            if of == op:
                return index(elements)
        if any(of == op for of, _, _ in self.tests):
            kind = register_vector(k.layout(op.results[0]).registers, ir.IntegerType.get_signless(1))
            return arith_d.constant(kind, ir.DenseElementsAttr.get_splat(kind, ir.BoolAttr.get(True)))
        return None


def _ahead(value: Value, block: Block) -> bool:
    """Whether `value` is known ahead of the loop with this block."""
    around: Block | None = value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block
    while around is not None and around != block:
        parent = around.owner
        around = None if parent.operation.name == "func.func" else parent.operation.block
    return around is None


def _masked(size: Value) -> int:
    """Elements of the tiles that `size` limits; 0 where it is used for something else."""
    found = [_limit(u.owner.operation, u.operand_number) for u in size.uses]
    return max(found) if found and all(found) else 0


def _limit(user: Operation, number: int) -> int:
    if user.name == "vector.create_mask":
        return int(shape_of(user.results[0])[number])
    if user.name == "arith.select" and number == 1 and constant(user.operands[2]) == 0:
        return _masked(user.results[0])
    return 0
