"""Memory of a CPU model's runs: its arena, and where its temporaries lie in it for the sizes of a run."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.runtime.arena import ArenaPlanner
from xcc.runtime.dim_values import DimValues
from xcc.runtime.large_pages import BLOCK, MOST_BYTES, address_of, reserve
from xcc.runtime.native_plan import native_planner
from xcc.runtime.program import Program

__all__ = ["RunMemory", "RunPlan"]

_CACHED = 64            # plans
_SPARE = 64             # times the arena of the smallest sizes: an image of 256 x 256 beside one of 32 x 32


@dataclass
class RunPlan:
    """What is fixed for one set of symbol values: shapes of outputs, bytes of the arena, and where in it temporaries
    are, if Python has placed them. `void`: where empty buffers are, 0 where none is (see ArenaPlan)."""

    outputs: list[tuple[int, ...]]
    arena: int
    offsets: np.ndarray[Any, Any] | None
    void: int = 0


class RunMemory:
    """Of `program`, whose code is `library`: plans runs, and writes the addresses of temporaries into `pointers`, and
    the values of the symbols that come with the inputs into `symbols`.

    Attributes:
        planner: plans in Python.
        ready_for: the symbols, the very mapping, of the plan made last, when it is placed: nothing is to be done for a
            run on them.
    """

    def __init__(self, program: Program, library: ctypes.CDLL, pointers: Any, symbols: Any) -> None:
        self.planner = ArenaPlanner(program)
        self.room = 0                                           # bytes of the arena
        self.plans: dict[tuple[int, ...], RunPlan] = {}         # by the symbols' values
        self._names, self._symbols = program.symbols, symbols
        self._arena, self._begin = np.empty(0, np.uint8), 0     # memory, and where in it the arena begins
        self._addresses = np.ndarray(len(pointers), np.uintp, memoryview(pointers))
        self._temporaries = np.array(self.planner.temps, np.intp)
        self._placed: RunPlan | None = None
        self.ready_for: Mapping[str, int] | None = None
        self._planned_for: Mapping[str, int] | None = None
        shapes = [program.buffers[i].shape for i in program.outputs]
        self._dims = [d for shape in shapes for d in shape]
        self._ends = list(pairwise(accumulate(map(len, shapes), initial=0)))    # of each output's dims among them
        given = [d for i in program.inputs for d in program.buffers[i].shape]
        self._given = DimValues([d for d in given if symbolic.bare_symbol(d) is None])
        empty = any(d == 0 for b in program.buffers for d in b.shape)       # always: Python says where that is
        self.native = None if empty else native_planner(library, self.planner, self._dims, pointers)

    def plan(self, symbols: Mapping[str, int]) -> RunPlan:
        """For a run on these values of symbols, which the host program gets, too."""
        self.ready_for, self._planned_for = None, symbols
        key = tuple([symbols[s] for s in self._names])
        self._symbols[:len(key)] = key
        return self.plans.get(key) or self._plan(key, symbols)

    def place(self, plan: RunPlan) -> None:
        """Points temporaries into the arena, which grows to the largest plan seen. `plan` is the one made last."""
        if self._placed is not plan:
            self._reserve(plan.arena, exact=False)
            if plan.offsets is not None:
                self._addresses[self._temporaries] = plan.offsets + np.uintp(self.address)
            elif self.native is not None:
                self.native(self._symbols)
            self._placed = plan
        self.ready_for = None if plan.void else self._planned_for

    def make_ready(self, plan: RunPlan, *, spare: bool) -> None:
        """Makes the arena, cleared. `spare`: and for larger sizes, as far as a large page goes."""
        room = max(plan.arena, min(_SPARE * plan.arena, BLOCK)) if spare and self._names else plan.arena
        self._reserve(room, exact=room == plan.arena)
        self._arena[self._begin:self._begin + self.room].fill(0)

    @property
    def address(self) -> int:
        """Of the arena."""
        return address_of(self._arena) + self._begin

    def poison(self, byte: int) -> None:
        """Fills the arena with it."""
        self._arena[self._begin:self._begin + self.room].fill(byte)

    def _plan(self, key: tuple[int, ...], symbols: Mapping[str, int]) -> RunPlan:
        fits = max(key, default=0) <= MOST_BYTES        # else no 64 bits hold them
        native = self.native if fits and min(key, default=1) > 0 and 0 not in self._given(symbols) else None
        if native is not None and (size := native(self._symbols)) >= 0:
            plan = RunPlan(self._output_shapes(native.dims[:]), size, None)
            self._placed = plan if size <= self.room else None
        else:
            plan = self._plan_in_python(symbols)
        if len(self.plans) >= _CACHED:
            self.plans.pop(next(iter(self.plans)))
        self.plans[key] = plan
        return plan

    def _plan_in_python(self, symbols: Mapping[str, int]) -> RunPlan:
        plan = self.planner.plan(symbols)
        if plan.size > MOST_BYTES:
            raise MemoryError(f"{plan.size} bytes")
        offsets = np.array([plan.offsets[b] for b in self.planner.temps], np.uintp)
        return RunPlan(self._output_shapes(self._sizes(symbols)), plan.size, offsets, plan.void)

    def _output_shapes(self, dims: list[int]) -> list[tuple[int, ...]]:
        return [tuple(dims[begin:end]) for begin, end in self._ends]

    @cached_property
    def _sizes(self) -> DimValues:
        return DimValues(self._dims, self.planner.limits)

    def _reserve(self, size: int, *, exact: bool) -> None:
        """An arena of at least `size` bytes; `exact` as for :func:`xcc.runtime.large_pages.reserve`."""
        if self.room < size:
            self._arena, self._begin = reserve(size, exact=exact)
            self.room, self._placed, self.ready_for = size, None, None
            if self.native is not None:
                self.native.move_to(self.address)
