"""A panel of a product's right operand in memory of the chunk's own, for all tiles of rows of the chunk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xcc._mlir import Value, ir, scf_d
from xcc.passes.linalg.build.buffers import LINE_BYTES, memref_type
from xcc.passes.linalg.build.tile_values import Ix
from xcc.passes.linalg.kernel.kernel import Tensor

if TYPE_CHECKING:
    from xcc.passes.linalg.nests.nests import Nest

_SGT = 4        # arith.cmpi's


def room_for(nest: Nest, stored: Tensor) -> Value:
    """The memory of `stored` at the insertion point, the chunk's top, on the stack."""
    memref = ir.Operation.create(
        "memref.alloca", results=[memref_type(stored.dims, stored.element)], operands=[], attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
            "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), LINE_BYTES)}).results[0]
    nest.ev.memory.bind(stored, memref)
    return memref


@dataclass(eq=False)
class Panel(ABC):
    """The memory of a chunk's panel. always: also where a chunk has one tile of rows. fits: whether there is room for
    it; None: there is."""

    nest: Nest
    always: bool = False
    fits: Value | None = None

    @abstractmethod
    def filled(self, at: dict[int, Ix], rows: Sequence[tuple[Value, int]]) -> AbstractContextManager[None]:
        """Fills it where the tile dims outside of `rows` stand `at`; inside, it is read from memory."""

    def around(self, at: dict[int, Ix], rows: Sequence[tuple[Value, int]], tiles: Callable[[], None]) -> None:
        """`tiles` of the panel `at`; `rows`: how many there are along some dims, and the rows of a tile."""
        b, several = self.nest.b, True if self.always else self._several(rows)
        if several is not None and self.fits is not None:
            several = self.fits if isinstance(several, bool) else b.pure("arith.andi", b.i1, [several, self.fits])
        if several is None:
            tiles()
        elif several is True:
            self._with(at, rows, tiles)
        else:
            branch = scf_d.IfOp(several, has_else=True)
            with ir.InsertionPoint(branch.then_block), self.nest.b.scope():
                self._with(at, rows, tiles)
                scf_d.YieldOp([])
            with ir.InsertionPoint(branch.else_block), self.nest.b.scope():
                tiles()
                scf_d.YieldOp([])

    def _with(self, at: dict[int, Ix], rows: Sequence[tuple[Value, int]], tiles: Callable[[], None]) -> None:
        with self.filled(at, rows):
            tiles()

    def _several(self, rows: Sequence[tuple[Value, int]]) -> Value | bool | None:
        """Whether there are several tiles of rows: True, None (there are not), or a condition."""
        b, several = self.nest.b, None
        for size, tile in rows:
            n = b.as_int(size)
            if n is not None and n <= tile:
                continue
            if n is not None:
                return True
            more = b.pure("arith.cmpi", b.i1, [size, b.int(tile)],
                          predicate=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _SGT))
            several = more if several is None else b.pure("arith.ori", b.i1, [several, more])
        return several
