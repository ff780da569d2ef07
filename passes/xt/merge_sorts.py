"""Sorts and top_k on GPUs: a workgroup sorts a row, or runs of a long one that are merged several at a time.

A row of up to ROW elements is one workgroup's (``xt.sort_rows``). Others become

    %k = %x as integers of the same order                       (descending: their complement)
    %s, %i = xt.sort_runs(%k) {run = 4096, keep = ...}
    %s, %i = xt.merge_runs(%s, %i) {run = 4096, ways = 4, keep = ...}   again with runs of 16384, ... until there is one
    %v = xt.gather_elements(%x, %i)

Runs are sorted by a network in registers (``passes/gpu/thread/sort.py``). Merges have a thread an element: its
place is that in its own run and, by binary searches side by side, how many of each other one come before it. For top_k
no run keeps more than the power of two that holds k, so that rows shrink from the first kernel on. Of a symbolic size
there are merges for the largest that it may have; those of a single run copy it. (Satish, Harris and Garland,
"Designing efficient sorting algorithms for manycore GPUs", 2009.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from xcc._mlir import Module, Operation, Value
from xcc.bounds import interval
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.dims import pow2_above
from xcc.passes.xt.graph.rewrite import dim_bounds, name_of, rewrite
from xcc.passes.xt.sizes.counted import MOST, require_countable
from xcc.symbolic import Dim, product

RUNS = (256, 1024, 4096)
ANY_RUN = 1024          # of a size that is known at run time alone
ROW = 4096              # elements of a row that a workgroup sorts
TILE = 1024             # elements that a workgroup sorts at least, of several rows
SHORT = 16              # elements that a thread a row, or counting, sorts as fast
LEAST = 16              # elements that a run keeps
WAYS = (2, 4, 8)
LAUNCH = 3e-6           # seconds of a merge of few elements: a launch, and a chain of reads
NETWORK = 35e-12        # of a core for an element in a step of a sorting network
FETCH = 0.11e-6         # of a step's code, some 1100 bytes that no loop runs again, from the L2 cache
ELEMENT = 6e-12         # of a merge for each element of a large GPU, which is read and written
PROBE = 0.35e-12        # and for each step of a search
COMPARE = 0.5e-12       # of a comparison of all pairs (rank-sorts)
STEP = 0.4e-6           # of a heap's step, a chain of reads from memory
ROWS = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "ui64", "ui32", "ui16", "ui8")  # types of sort_rows
Bounds = Mapping[str, tuple[int, int]]


@register_pass
class MergeSorts(Pass):
    """Has workgroups sort rows or runs where that takes less time than counting or a heap a row."""

    def run(self, module: Module, ctx: PassContext) -> None:
        bounds = dim_bounds(module)

        def merged(op: Operation) -> list[Value] | None:
            plan = _plan(op, ctx.chip.cores, bounds)
            if plan is None:
                return None
            require_countable(module, [xt.shape_of(op.operands[0])[xt.attrs_of(op).axis]], bounds)
            return _rebuilt(op, plan)

        rewrite(module, dict.fromkeys(("sort", "top_k"), merged))


@dataclass(frozen=True)
class _Plan:
    """How a sort is done: `size` and `keep` are the most elements of a row and of what is kept of it.

    run: elements that a workgroup sorts; 0: whole rows. ways: runs that are merged at a time.
    """

    size: int
    keep: int
    run: int = 0
    ways: int = 0

    @property
    def left(self) -> int:
        """The most elements that a run keeps."""
        return max(LEAST, pow2_above(self.keep))

    def levels(self) -> list[tuple[int, int]]:
        """(run, ways) of each merge."""
        size, run, out = _kept(self.size, self.run, self.left), min(self.run, self.left), []
        while size > run:
            ways = min(self.ways, MOST // run)
            out.append((run, ways))
            size, run = _kept(size, ways * run, self.left), min(ways * run, self.left)
        return out

    def seconds(self, rows: int, cores: int) -> float:
        """An estimate for a GPU of so many cores."""
        run = self.run or pow2_above(self.size)
        tiles = rows * -(-self.size // run) * run / max(run, TILE)
        steps = _steps(run, self.left)
        total = LAUNCH + steps * (FETCH + max(1.0, tiles / cores) * max(run, TILE) * NETWORK)
        if not self.run:
            return total
        total += 2 * LAUNCH         # keys, values
        size = _kept(self.size, run, self.left)
        for run, ways in self.levels():
            total += LAUNCH + rows * size * (ELEMENT + (ways - 1) * run.bit_length() * PROBE)
            size = _kept(size, ways * run, self.left)
        return total


def _kept(size: int, run: int, keep: int) -> int:
    """Elements that are left of `size` when each `run` keeps the first `keep`."""
    return size // run * min(run, keep) + min(size % run, keep)


def _steps(run: int, keep: int) -> int:
    """Steps of a network on all elements of a run: blocks of `keep` are sorted, then halved and merged."""
    bits = min(run, keep).bit_length() - 1
    return bits * (bits + 1) // 2 + (bits + 2 if keep < run else 0)


def _plan(op: Operation, cores: int, bounds: Bounds) -> _Plan | None:
    """None where another form is as fast."""
    axis = xt.attrs_of(op).axis
    shape, kept = xt.shape_of(op.operands[0]), xt.shape_of(op.results[0])[axis]
    rows: list[Dim] = [d for n, d in enumerate(shape) if n != axis]
    length = shape[axis]
    if isinstance(length, int) and length >= MOST:
        return None
    size, keep = (int(min(interval(bounds, d)[1], MOST)) for d in (shape[axis], kept))
    if size <= SHORT or not keep or any(d == 0 for d in rows):
        return None
    whole = isinstance(shape[axis], int) and isinstance(kept, int) and size <= ROW \
        and xt.TensorType.of(op.operands[0]).dtype in ROWS
    if not all(isinstance(d, int) for d in (*shape, kept)):
        return _Plan(size, keep) if whole else _Plan(size, keep, ANY_RUN, WAYS[-1])
    plans = [_Plan(size, keep)] if whole else []
    plans += [_Plan(size, keep, run, ways) for run in RUNS if run < size for ways in WAYS]
    count = math.prod(d for d in rows if isinstance(d, int))
    best = min(plans, key=lambda p: p.seconds(count, cores), default=None)
    counting = count * size * (size + keep) * COMPARE + 3 * LAUNCH
    heap = size * keep.bit_length() * max(1, count // (cores * 256)) * STEP
    return best if best is not None and best.seconds(count, cores) < min(counting, heap) else None


def _rebuilt(op: Operation, plan: _Plan) -> list[Value]:
    """Values and indices."""
    a, x = xt.attrs_of(op), op.operands[0]
    descending = a.descending if name_of(op) == "sort" else a.largest
    rank, kept = len(xt.shape_of(x)), xt.shape_of(op.results[0])[a.axis]
    order = (*(d for d in range(rank) if d != a.axis), a.axis)
    back = tuple(order.index(d) for d in range(rank))
    x = xt.transpose(x, perm=order)
    lead, size = xt.shape_of(x)[:-1], xt.shape_of(x)[-1]
    rows = xt.reshape(x, shape=(product(lead), size))
    if plan.run:
        made = _merged(rows, descending, plan, kept)
    else:
        assert isinstance(kept, int)
        made = xt.sort_rows(rows, keep=kept, descending=descending)
    return [xt.transpose(xt.reshape(v, shape=(*lead, kept)), perm=back) for v in made]


def _merged(x: Value, descending: bool, plan: _Plan, kept: Dim) -> list[Value]:
    """The first `kept` values of the rows of x [rows, n], and their i64 places."""
    keys, numbers = xt.sort_runs(_ordered(x, descending), run=plan.run, keep=min(plan.run, plan.left))
    for run, ways in plan.levels():
        keys, numbers = xt.merge_runs(keys, numbers, run=run, ways=ways, keep=plan.left)
    index = xt.convert(numbers, dtype="i64")
    rows, size = xt.shape_of(index)
    if size != kept:
        index = xt.slice(index, starts=(0, 0), limits=(rows, kept), strides=(1, 1))
    return [xt.gather_elements(x, index, axis=1), index]


def _ordered(x: Value, descending: bool) -> Value:
    """i32 or i64 in the order of `x`, in which zeros of both signs are equal and NaN is the largest."""
    dtype = xt.TensorType.of(x).dtype
    if xt.is_float(dtype):
        bits = 64 if dtype == "f64" else 32
        x = x if dtype == "f64" else xt.convert(x, dtype="f32")
        zero = xt.constant(0.0, dtype=f"f{bits}")
        kind, most = f"i{bits}", (1 << bits - 1) - 1
        raw = xt.bitcast(xt.select(xt.compare(x, zero, direction="eq"), zero, x), dtype=kind)
        sign = xt.shift_right(raw, xt.constant(bits - 1, dtype=kind))
        key = xt.xor(raw, getattr(xt, "and")(sign, xt.constant(most, dtype=kind)))
        key = xt.select(xt.is_nan(x), xt.constant(most, dtype=kind), key)
    elif dtype == "ui64":
        kind = "i64"
        key = xt.xor(xt.bitcast(x, dtype=kind), xt.constant(-(1 << 63), dtype=kind))
    else:
        kind = "i64" if dtype in ("i64", "ui32") else "i32"
        key = x if dtype == kind else xt.convert(x, dtype=kind)
    return xt.xor(key, xt.constant(-1, dtype=kind)) if descending else key
