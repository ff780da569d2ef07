"""Evaluates tiles of a kernel's values on demand.

``tile(t, indices)`` gives the vector of tensor `t` at one index per dim, each index walking over axes. Kernel
arguments become reads; results of parallel ops become their body applied to the tiles of their operands; results of
reductions become loops with vector accumulators. Whatever was evaluated at the same coordinates in the scope is
reused, so a row that fits in registers is read once however many ops use it (demand-driven evaluation in the manner of
Halide's compute_at, with the schedule given as data).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from xcc import symbolic
from xcc._mlir import Value, ir
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.build.tile_memory import Memory
from xcc.passes.linalg.build.tile_values import REDUCTION_ORDER, Axis, Ix, V
from xcc.passes.linalg.evaluate.body import Body
from xcc.passes.linalg.evaluate.depth_blocks import DepthBlock
from xcc.passes.linalg.evaluate.keep import Part
from xcc.passes.linalg.evaluate.online_loops import OnlineLoops
from xcc.passes.linalg.evaluate.parking import Parking
from xcc.passes.linalg.evaluate.pieces import InPiece
from xcc.passes.linalg.evaluate.reduction import Reduction
from xcc.passes.linalg.evaluate.row_parts import RowParts
from xcc.passes.linalg.evaluate.staged_rows import StagedRows
from xcc.passes.linalg.kernel.chained import find_chained
from xcc.passes.linalg.kernel.domain import domain
from xcc.passes.linalg.kernel.kernel import Kernel, Op, Tensor
from xcc.passes.linalg.kernel.number_maximum import number_maxima
from xcc.passes.linalg.kernel.online import find_groups
from xcc.passes.linalg.schedule.schedule import Schedule, joined_loops, reduce_plan
from xcc.passes.shared.values import scalar_attr
from xcc.symbolic import Dim


class Evaluator:
    """Evaluates tiles of `kernel` with `builder` at its insertion point, as `schedule` says."""

    def __init__(self, kernel: Kernel, builder: Builder, memory: Memory, schedule: Schedule) -> None:
        self.kernel = kernel
        self.b = builder
        self.memory = memory
        self.schedule = schedule
        self.reduce = reduce_plan(kernel, schedule)
        self.joined = joined_loops(kernel, schedule)
        self.full_axes: dict[tuple[str, int, int], Axis] = {}
        park = schedule.cpu.park
        self.parking = Parking(builder, memory, kernel.ops[park].results[0] if park >= 0 else None)
        self.bounds: tuple[Value, Value] | None = None      # of the loop over a product's sum; None: all of it
        self.given: tuple[Op, Callable[[tuple[Axis, ...]], V]] | None = None    # an op whose tiles come from elsewhere
        self.zero_past_limits: set[Value] = set()     # values that are 0 in the lanes past their axes' limits
        self.kept: dict[Tensor, Part] = {}     # values that the chunk has in memory of its own
        self.block: DepthBlock | None = None    # the steps of the contraction that are evaluated; None: all
        self.staged: StagedRows | None = None       # what the first tiles copy along their loops
        self.fetches: list[Callable[[Any], None]] = []      # called along a product's loop, each time a line's steps on
        self.progress: Any = None              # the tile of rows of the panel, an index, for fetch_ahead
        self.row_parts: RowParts | None = None
        self.in_piece: dict[Op, InPiece] = {}   # concatenations of which the loop around walks one piece
        self.online = OnlineLoops(self, *((find_groups(kernel), find_chained(kernel)) if schedule.online else ([], [])))
        self.number_maxima = number_maxima(kernel) if schedule.access == "rows" else set()

    # values ----------------------------------------------------------------------------------------------------
    def tile(self, t: Tensor, indices: Sequence[Ix]) -> V:
        """The tile of `t` at `indices` (one per dim)."""
        key = ("tile", t, tuple(i.key() for i in indices))
        found = self.b.recall(key)
        if found is not None:
            assert isinstance(found, V)
            return found
        if t in self.kept:
            return self.b.remember(key, self.kept[t].load(self.b, self.memory, indices))
        if t.producer is None:
            return self.b.remember(key, self._leaf(t, indices))
        waiting = self.parking.find(t, indices)
        if waiting is not None:
            return self.b.remember(key, waiting)
        results = self._op(t.producer, t.index, indices)
        self.parking.keep(t, results[0], indices)
        for n, r in enumerate(t.producer.results):
            self.b.remember(("tile", r, key[2]), results[n])
        return results[t.index]

    def alike(self, result: Tensor) -> list[Tensor]:
        """The arguments of the shape of `result` that lie as it does: read at its coordinates but for the last."""
        place = domain(self.kernel)
        if place.dims != result.dims:
            return []
        outer = tuple(symbolic.sym(f"i{d}") for d in range(len(place.dims) - 1))
        return list(dict.fromkeys(t for t, access in place.reads if t.arg >= 0 and t.dims == result.dims
                                  and tuple(access[:-1]) == outer))

    def _leaf(self, t: Tensor, indices: Sequence[Ix]) -> V:
        if t.constant is not None and t.constant.is_splat:
            return V(self.b.constant(t.constant.get_splat_value(), t.element))
        if t.constant is not None and all(i.base is None and i.vec is None for i in indices):
            return self._known(t, indices)
        return self.memory.load(t, indices)

    def _known(self, t: Tensor, indices: Sequence[Ix]) -> V:
        """Elements of a constant at known places, as a constant; past an axis's limit the last one counts."""
        axes = tuple(dict.fromkeys(a for i in indices for a in i.axes))
        sizes = [d for d in t.dims if isinstance(d, int)]
        elements = list(t.constant)
        values = []
        for at in itertools.product(*(range(a.size) for a in axes)):
            lane, place = dict(zip(axes, at, strict=True)), 0
            for i, size in zip(indices, sizes, strict=True):
                place = place * size + min(i.const + sum(c * lane[a] for a, c in i.coefs), size - 1)
            values.append(elements[place])
        if not axes:
            return V(self.b.constant(scalar_attr(t.element, values[0]), t.element))
        kind = ir.VectorType.get([a.size for a in axes], t.element)
        attr = ir.DenseElementsAttr.get([scalar_attr(t.element, v) for v in values], kind)
        return V(self.b.constant(attr, kind), axes)

    def _op(self, op: Op, result: int, indices: Sequence[Ix]) -> list[V]:
        env = {str(e): i for e, i in zip(op.outs[result], indices, strict=True)}
        if op.operation is None:  # unit reshape
            t, access = op.inputs[0]
            return [self.tile(t, [self.b.access(e, env) for e in access])]
        if not op.is_reduction:
            return Body(self, op, env).yielded()
        return self._reduce(op, env, tuple(dict.fromkeys(a for i in indices for a in i.axes)))

    def _reduce(self, op: Op, env: dict[str, Ix], out_axes: tuple[Axis, ...]) -> list[V]:
        out_axes = tuple(sorted(out_axes, key=lambda a: a.order))
        if self.given is not None and op is self.given[0]:
            return [self.given[1](out_axes)]
        if self.row_parts is not None:
            merged = self.row_parts.merged(op, [env[str(o)] for o in op.outs[0]])
            if merged is not None:
                return [merged]
        reduction = Reduction(self, op, env, out_axes)
        self.hoist(op.inputs, env)
        with self.parking.filling(op, env):
            return reduction.emit()

    def hoist(self, reads: Sequence[tuple[Tensor, tuple[Dim, ...]]], env: dict[str, Ix]) -> None:
        """Evaluates here the reductions behind `reads` whose coordinates `env` already gives.

        Later, inside a loop, they are found instead of computed again.
        """
        self._hoist(reads, env, set())
        self.online.hoist(reads, env)

    def _hoist(self, reads: Sequence[tuple[Tensor, tuple[Dim, ...]]], env: dict[str, Ix],
               seen: set[tuple[Tensor, tuple[Dim, ...]]]) -> None:
        for t, access in reads:
            op = t.producer
            if op is None or t in self.kept or (t, access) in seen:
                continue
            seen.add((t, access))
            if op.is_reduction:
                if op in self.online.ops:
                    continue
                if all(name in env or name in self.kernel.symbols for e in access for name in symbolic.symbols_of(e)):
                    self.tile(t, [self.b.access(e, env) for e in access])
                continue
            self._hoist(op.reads(op.loops_at(access, t.index)), env, seen)

    def full_axis(self, size: Dim, lanes: int, taken: Sequence[Axis]) -> Axis:
        """The axis that holds a whole dim; the same object for equal dims, unless it is `taken`."""
        variant = 0
        while True:
            key = (str(size), lanes, variant)
            if key not in self.full_axes:
                limit = None if size == lanes else self.b.dim(size)
                self.full_axes[key] = Axis(lanes, REDUCTION_ORDER + variant, limit)
            if self.full_axes[key] not in taken:
                return self.full_axes[key]
            variant += 1
