"""The rows of a large matrix, dealt out to parts, of which each walks the same chunks of columns (CPU).

    scf.forall (%part, %left, %number) = (0, 0, 0) to (parts, columns, a part's chunks of rows) step (1, width, 1)

Threads that have a part each read the same columns at about the same time. Parts differ by a tile of rows at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xcc._mlir import Value
from xcc.diagnostics import UserError
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.symbolic import Dim


@dataclass(frozen=True)
class DealtRows:
    """`schedule.cpu.parts` of so many rows, as code of `b`."""

    b: Builder
    schedule: Schedule
    rows: int
    columns: int

    @staticmethod
    def of(b: Builder, schedule: Schedule, dims: Sequence[Dim], outer: Sequence[Dim], name: str) -> DealtRows | None:
        """None where rows are not dealt out. UserError where `dims` are not a matrix of known size, or the forall has
        `outer` dims beside them; `name` is the kernel's."""
        if not schedule.cpu.parts:
            return None
        rows, columns = dims
        if outer or not isinstance(rows, int) or not isinstance(columns, int):
            raise UserError(f"xcc.config of {name}: parts needs a matrix of known size")
        return DealtRows(b, schedule, rows, columns)

    def forall(self) -> tuple[list[Value], list[int]]:
        """Sizes and steps."""
        height, width = self.schedule.block
        most = -(-self._tiles // self.schedule.cpu.parts) * self.schedule.vector[0]
        return [self.b.int(n) for n in (self.schedule.cpu.parts, self.columns, -(-most // height))], [1, width, 1]

    def chunk(self, part: Value, number: Value) -> tuple[Value, Value | None]:
        """Where the chunk of rows `number` of `part` begins, and where the part ends; None: no part ends in a chunk."""
        low = self.b.add(self._begin(part), self.b.mul(number, self.b.int(self.schedule.block[0])))
        whole = self.rows % (self.schedule.cpu.parts * self.schedule.block[0]) == 0
        return low, None if whole else self._begin(self.b.add(part, self.b.int(1)))

    @property
    def _tiles(self) -> int:
        return -(-self.rows // self.schedule.vector[0])

    def _begin(self, part: Value) -> Value:
        b, height, parts = self.b, self.schedule.vector[0], self.schedule.cpu.parts
        row = b.mul(b.binary("arith.divui", b.mul(part, b.int(self._tiles)), b.int(parts)), b.int(height))
        b.multiples[row] = height
        return row
