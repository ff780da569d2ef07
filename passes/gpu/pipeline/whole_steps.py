"""Steps of a loop all of whose elements there are: what masks say that is known of them.

    %n = arith.subi %bound, %iv ... vector.create_mask %n      64 rows, where %iv + 64 <= %bound
    arith.cmpi slt, %iv + (0 .. 63), %bound                    true, likewise
    arith.cmpi sle, %iv + (0 .. 63), %row + (0 .. 63)          true where %iv + 63 <= %row
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from xcc._mlir import Block, Operation, Value, arith_d, ir, maker
from xcc.passes.gpu.index.index_vectors import line_of, scalar_of
from xcc.passes.gpu.layout.tile_ops import shape_of
from xcc.passes.gpu.pipeline.loop_steps import Steps
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.values import index, is_vector, vec

if TYPE_CHECKING:
    from xcc.passes.gpu.pipeline.loads_ahead import LoadsAhead
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

WHOLE = "xcc.whole"     # on an scf.for: its whole steps have a loop of their own
_I = arith_d.CmpIPredicate
_ORDER = {_I.slt.value: (0, 1, 0), _I.sle.value: (0, 1, 1), _I.sgt.value: (1, 0, 0), _I.sge.value: (1, 0, 1)}
"""Of comparisons: the operand that shall be below the other, that one, and whether it may be equal."""


@dataclass(frozen=True)
class WholeSteps:
    """The operations of a loop's body that compare a step's elements with bounds, which the loop does not change.

    Attributes:
        sizes: (an arith.subi of a bound and the step's first element, elements of a tile).
        tests: (an arith.cmpi of the step's elements and a bound, that or the least of several, how far behind a step's
            first element the bound is where all hold).
    """

    sizes: tuple[tuple[Operation, int], ...]
    tests: tuple[tuple[Operation, Value, int], ...]

    @staticmethod
    def of(loop: Operation) -> WholeSteps:
        block = loop.regions[0].blocks[0]
        iv = block.arguments[0]
        sizes: list[tuple[Operation, int]] = []
        tests: list[tuple[Operation, Value, int]] = []
        for op in (o.operation for o in block.operations):
            if op.name == "arith.subi" and op.operands[1] == iv and _ahead(op.operands[0], block):
                elements = _masked(op.results[0])
                if elements:
                    sizes.append((op, elements))
            elif op.name == "arith.cmpi" and is_vector(op.results[0]):
                found = _limited(op, iv)
                if found and all(_ahead(bound, block) for bound, _ in found):
                    tests += [(op, *limit) for limit in found]
        return WholeSteps(tuple(sizes), tuple(tests))

    def __bool__(self) -> bool:
        return bool(self.sizes or self.tests)

    def end(self, k: KernelBuilder, plan: LoadsAhead, steps: Steps, end: Value, asked: bool) -> Value:
        """Where the steps of `steps` that lie ahead of `end` end of which all is there, and of what is loaded in them
        for later ones. `asked`: whether there is a later step is asked in each, so that all are such steps where all
        are whole."""
        loaded = {op for _, t in plan.staged for op in t.slice}
        early = [(k.get(op.operands[0]), n) for op, n in self.sizes]
        early += [(k.get(bound), n) for op, bound, n in self.tests if op in loaded]
        late = [(k.get(bound), n) for op, bound, n in self.tests if op not in loaded]
        rest = arith_d.maxsi(arith_d.subi(end, steps.lower), index(0))
        counts = [_whole(steps, bounds) for bounds in (early, late) if bounds]
        if early:
            whole, every = counts[0], arith_d.ceildivui(rest, steps.step)
            counts[0] = arith_d.minsi(arith_d.maxsi(arith_d.subi(whole, index(plan.ahead)), index(0)),
                                      arith_d.divui(rest, steps.step))
            if asked:
                counts[0] = arith_d.select(arith_d.cmpi(_I.sge, whole, every), every, counts[0])
        else:
            counts.append(arith_d.divui(rest, steps.step))
        count = reduce(arith_d.minsi, counts)
        return arith_d.addi(steps.lower, arith_d.muli(count, steps.step))

    def known(self, k: KernelBuilder, op: Operation) -> Value | None:
        """The value of `op` in a whole step; None where that is not known ahead."""
        for of, elements in self.sizes:
            if of == op:
                return index(elements)
        if any(of == op for of, _, _ in self.tests):
            kind = vec(k.layout(op.results[0]).registers, ir.IntegerType.get_signless(1))
            return arith_d.constant(kind, ir.DenseElementsAttr.get_splat(kind, ir.BoolAttr.get(True)))
        return None


def _whole(steps: Steps, bounds: list[tuple[Value, int]]) -> Value:
    """How many of the first steps lie as many elements below all bounds as these say."""
    last = reduce(arith_d.minsi, [arith_d.subi(bound, index(n)) for bound, n in bounds])
    reach = arith_d.maxsi(arith_d.subi(steps.later(last, 1), steps.lower), index(0))
    return arith_d.divui(reach, steps.step)


def _limited(op: Operation, iv: Value) -> list[tuple[Value, int]]:
    """(a bound, n) for each one where the arith.cmpi `op` holds of all elements of a step that begins at `iv` n below
    all bounds; none where they are not known."""
    order = _ORDER.get(ir.IntegerAttr(op.attributes["predicate"]).value)
    if order is None:
        return []
    low, high = (op.operands[n] for n in order[:2])
    line, bounds = line_of(low), [_least(v) for v in _bounds(high)]
    if line is None or line[0] != iv:
        return []
    found = [b for b in bounds if b is not None and isinstance(b.type, ir.IndexType)]
    return [(b, line[1] - order[2]) for b in found] if len(found) == len(bounds) else []


def _bounds(value: Value) -> list[Value]:
    """Those of which `value` is the least."""
    op = maker(value, "vector.broadcast", "arith.minsi")
    if op is None or op.name == "vector.broadcast" and maker(op.operands[0], "vector.broadcast", "arith.minsi") is None:
        return [value]
    return [b for v in op.operands for b in _bounds(v)]


def _least(bounds: Value) -> Value | None:
    """The first of a line of bounds, or the one that all are."""
    line = line_of(bounds)
    return scalar_of(bounds) if line is None else line[0]


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
    if user.name == "arith.select" and number == 1 and int_constant(user.operands[2]) == 0:
        return _masked(user.results[0])
    return 0
