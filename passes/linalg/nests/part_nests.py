"""The loops around the parts of reductions: what they leave is merged by a later nest."""

from __future__ import annotations

from typing import Any

from xcc._mlir import Value
from xcc.passes.linalg.build.tile_values import Ix
from xcc.passes.linalg.evaluate.tile_eval import Evaluator
from xcc.passes.linalg.kernel.kernel import Op
from xcc.passes.linalg.nests.nests import Nest, Result
from xcc.passes.linalg.schedule.schedule import Schedule
from xcc.symbolic import Dim


class PartsNest(Nest):
    """The loops around the parts of the online sums behind tiles: nothing but these is stored."""

    def __init__(self, ev: Evaluator, schedule: Schedule, dims: tuple[Dim, ...], results: list[Result],
                 parts: Dim) -> None:
        super().__init__(ev, schedule, dims, results)
        self.count = parts

    def _outer_dims(self) -> list[Dim]:
        return [self.count]

    def _enter(self, outer: list[Value]) -> None:
        assert self.ev.online.parts is not None
        (self.ev.online.parts.part,) = outer

    def store(self, at: dict[int, Ix]) -> None:
        self.prepare(at)
        assert self.ev.online.parts is not None
        self.ev.online.parts.part = None


class RowPartsNest(Nest):
    """The loops around the parts of the results of the reduction `op`."""

    def __init__(self, ev: Evaluator, schedule: Schedule, op: Op, parts: Dim) -> None:
        super().__init__(ev, schedule, op.results[0].dims, [Result(op.results[0], None, None)])
        self.count = parts

    def _outer_dims(self) -> list[Dim]:
        return [self.count]

    def _enter(self, outer: list[Any]) -> None:
        assert self.ev.row_parts is not None
        (self.ev.row_parts.part,) = outer

    def store(self, at: dict[int, Ix]) -> None:
        assert self.ev.row_parts is not None
        coordinates = self.coordinates(at)
        indices = [coordinates[d] for d in range(len(coordinates))]
        t = self.results[0].t
        self.ev.row_parts.store(t, self.ev.tile(t, indices), indices)
