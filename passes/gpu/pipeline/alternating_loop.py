"""A pipelined loop in which two warpgroups take turns: while one computes on what its first product gave (attention:
the exponentials), the other's products have the tensor cores.

    for iv { wait for full(iv); first product; this thread's copies of step iv + 1 are there: arrive at full(iv + 1);
             ...; second product; wait for free(iv); copies of step iv + slots - 1; arrive at free(iv + 1) }

One barrier a step would hold both at the same place. Of two barriers, to which a warpgroup comes half a step before it
waits for the other, one says that a step's tiles are there, one that the step before has been read. A warpgroup may
then be half a step ahead, and is, as the first products of both wait for the same units.

They are named barriers (PTX ISA, "bar.arrive"): each warpgroup waits at barriers of its own, for even and for odd
steps, to which the other comes without waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, arith_d, ir
from xcc.passes.gpu.pipeline.loads_ahead import LoadsAhead
from xcc.passes.gpu.pipeline.pipelined_loop import PipelinedLoop
from xcc.passes.gpu.pipeline.staging_rules import products
from xcc.passes.shared.values import index

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

WARPS = 4                   # of a warpgroup
FULL, FREE = 1, 5           # the first barriers: for two warpgroups, in even and odd steps


class AlternatingLoop(PipelinedLoop):
    """As PipelinedLoop, of a loop whose `plan` alternates."""

    def __init__(self, k: KernelBuilder, op: Operation, plan: LoadsAhead) -> None:
        super().__init__(k, op, plan)
        self.last = products(op)[-1]
        self.later: Callable[[], None] | None = None    # what is emitted behind the last product of a step

    def begin(self) -> list[Value]:
        super().begin()
        self.tiles.wait(self.tiles.ahead - 1)
        first = index(0)
        self._arrive(FULL, first)
        self._arrive(FREE, first)
        return [first, first]

    def end(self, counters: list[Value]) -> None:
        for first in (FULL, FREE):      # nobody waited there for what came behind the last step
            self._wait(first, counters[-1])
        super().end(counters)
        self.k.shared.barrier()     # else one could come to the next loop's ahead of that

    def begin_step(self, iv: Value, counters: list[Value], copy: Callable[[Value | None], None] | None) -> list[Value]:
        k, tiles, odd = self.k, self.tiles, counters[-1]
        freed, advanced = tiles.turn(counters[:1], waits=False)
        self._wait(FULL, odd)
        other = arith_d.xori(odd, index(1))

        def arrive() -> None:
            tiles.wait(tiles.ahead - 2)
            self._arrive(FULL, other)

        def load() -> None:
            self._wait(FREE, odd)
            tiles.copy_later(iv, freed)

        k.deferred.append(arrive)
        self.later = load
        return [*advanced, other]

    def emit_op(self, op: Operation) -> None:
        if op == self.last and self.later is not None:
            self.k.deferred.append(self.later)
            self.later = None
        super().emit_op(op)

    def end_step(self, counters: list[Value]) -> None:
        self._arrive(FREE, counters[-1])

    def _arrive(self, first: int, odd: Value) -> None:
        self._barrier("nvvm.barrier.arrive", first, odd, 1)

    def _wait(self, first: int, odd: Value) -> None:
        self._barrier("nvvm.barrier", first, odd, 0)

    def _barrier(self, name: str, first: int, odd: Value, whose: int) -> None:
        """`whose`: 0 for the own warpgroup's barrier, 1 for the other's."""
        own = arith_d.shrui(self.k.code.uniform_warp, index(WARPS.bit_length() - 1))
        group = arith_d.xori(own, index(1)) if whose else own
        i32 = ir.IntegerType.get_signless(32)
        number = arith_d.addi(arith_d.addi(arith_d.muli(group, index(2)), odd), index(first))
        sizes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])} if name == "nvvm.barrier" else {}
        ir.Operation.create(name, operands=[arith_d.index_cast(i32, number), arith_d.constant(i32, self.k.threads)],
                            attributes={"aligned": ir.BoolAttr.get(True), **sizes})
