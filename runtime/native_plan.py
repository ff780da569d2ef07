"""Plans of runs on new sizes, made by ``xcc_plan_arena`` of the model's library: as xcc.runtime.arena does, a
hundred times as fast.

The function is the same in every model (targets/cpu/plan.ll). What is particular to one, its sizes and which buffers
are alive together, are tables that are made here from its program.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np

from xcc.runtime.arena import ArenaPlanner
from xcc.runtime.dim_values import DimValues
from xcc.symbolic import Dim

__all__ = ["NativePlanner", "native_planner"]

Array = np.ndarray[Any, Any]
_OPERATIONS: dict[Callable[[int, int], int], int] = {
    operator.add: 0, operator.mul: 1, operator.floordiv: 2, operator.mod: 3, max: 4, min: 5}
_FIELDS = ("symbols", "symbol_places", "steps", "step_table", "values", "dims", "dim_places", "dim_results",
           "buffers", "size_places", "sizes", "order", "begins", "ends", "firsts", "conflicts",
           "temps", "arena", "addresses")


class _Record(ctypes.Structure):
    """%Record of targets/cpu/plan.ll: counts and addresses."""

    _fields_ = [(name, ctypes.c_int64) for name in _FIELDS]


def native_planner(library: ctypes.CDLL, symbols: Sequence[str], planner: ArenaPlanner, dims: Sequence[Dim],
                   addresses: Any) -> NativePlanner | None:
    """A planner of the temporary buffers of `planner`, and of `dims`, for values of `symbols`; None for a library of
    an xcc that had none, or where a size needs what is no symbol. `addresses` has one a buffer of the program."""
    if not hasattr(library, "xcc_plan_arena"):
        return None
    values = DimValues((*dims, *planner.counts), planner.limits)
    if not set(values.symbols) <= set(symbols) or any(abs(n) >> 62 for n in values.leaves):
        return None
    return NativePlanner(library.xcc_plan_arena, symbols, planner, values, len(dims), addresses)


class NativePlanner:
    """Called with the array of the symbols' values, gives bytes of the arena, and writes the addresses of the buffers
    for an arena at `move_to`'s place; -1 where Python is to plan, as sizes are too large or a division by zero. `dims`
    has the values of the dims then, `begins` where in the arena the buffers are, in order."""

    def __init__(self, function: Any, symbols: Sequence[str], planner: ArenaPlanner, values: DimValues,
                 dims: int, addresses: Any) -> None:
        end = len(values) + len(values.leaves)      # a place from there counts back; symbols that no size has go there
        place = [*range(end)].__getitem__
        results = [place(at) for at in values.results]
        count = len(planner.temps)
        self.begins, self.dims = np.zeros(count, np.int64), (ctypes.c_int64 * dims)()
        self._tables: dict[str, Any] = {
            "symbol_places": _places(place(values.symbols[s]) if s in values.symbols else end for s in symbols),
            "step_table": _places(n for f, a, b in values.steps for n in (_OPERATIONS[f], place(a), place(b))),
            "values": np.array([*[0] * len(values), *values.leaves, 0], np.int64),
            "dim_places": _places(results[:dims]), "dim_results": self.dims,
            "size_places": _places(results[dims + n] for n in planner.count_of), "sizes": np.zeros(count, np.int64),
            "order": _places(range(count)), "begins": self.begins, "ends": np.zeros(count, np.int64),
            "firsts": _places(accumulate(map(len, planner.conflicts), initial=0)),
            "conflicts": _places(chain.from_iterable(planner.conflicts)), "temps": _places(planner.temps),
            "addresses": addresses}
        self._record = _Record(symbols=len(symbols), steps=len(values), dims=dims, buffers=count,
                               **{name: _address(a) for name, a in self._tables.items()})
        function.restype = ctypes.c_int64
        self._function, self._argument = function, ctypes.byref(self._record)

    def __call__(self, symbols: Any) -> int:
        size: int = self._function(self._argument, symbols)
        return size

    def move_to(self, address: int) -> None:
        """The arena is at `address` from now on."""
        self._record.arena = address


def _places(places: Iterable[int]) -> Array:
    return np.array([*places], np.int32)


def _address(table: Any) -> int:
    return table.ctypes.data if isinstance(table, np.ndarray) else ctypes.addressof(table)
