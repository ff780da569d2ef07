"""The tile program of one kernel: its signature, then a nest of loops for the results of each shape.

Reductions that are cut in parts have nests of their own ahead of those that need their results.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from xcc import symbolic
from xcc._mlir import AttributeMap, Block, Module, Operation, Value, func_d, ir
from xcc.dialects.xt.base import dims_attr
from xcc.passes.linalg.build.buffers import memref_type
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.build.tile_memory import Memory
from xcc.passes.linalg.evaluate.online_parts import KeyParts, partial_results, parts_of
from xcc.passes.linalg.evaluate.row_parts import RowParts, levels_of
from xcc.passes.linalg.evaluate.tile_eval import Evaluator
from xcc.passes.linalg.kernel.domain import element_bytes
from xcc.passes.linalg.kernel.kernel import Kernel, ops_behind
from xcc.passes.linalg.nests.border import BorderedResult
from xcc.passes.linalg.nests.forall import forall
from xcc.passes.linalg.nests.inserted import bordered_result, stored_dims
from xcc.passes.linalg.nests.nests import Nest, Result
from xcc.passes.linalg.nests.part_nests import PartsNest, RowPartsNest
from xcc.passes.linalg.nests.row_results import go_with_rows
from xcc.passes.linalg.nests.streamed import Streamed, workspace_dims
from xcc.passes.linalg.schedule.decisions import OF_LOOPS, decided
from xcc.passes.linalg.schedule.schedule import GpuPart, Schedule
from xcc.symbolic import Dim

MOST_LANES = 256
"""Of the sums of a second result's tile on a core: some vectors."""

MERGED = 32
"""Elements of parts that a thread adds up."""

SECTOR = 8
"""The fewest columns that are merged together, of 4 bytes each."""

REPLACED = ("sym_name", "function_type", "xt.arg_dims", "xt.result_dims", "res_attrs", "arg_attrs", *OF_LOOPS)


class TileProgram:
    """What `schedule` makes of `kernel`.

    Attributes:
        stored: the dims of each result's buffer.
        main: the largest result, of which the schedule speaks.
        parts, levels, scratch: of reductions that are cut, in how many parts, which ones after which, and what they
            leave.
        spaces: dims and element type of each workspace.
    """

    def __init__(self, kernel: Kernel, schedule: Schedule) -> None:
        self.kernel = kernel
        schedule = self.schedule = decided(kernel, schedule)
        self.stored = [stored_dims(t, border) for t, border in zip(kernel.results, kernel.borders, strict=True)]
        self.main = max(kernel.results, key=lambda t: _volume(t.dims))
        self.parts = parts_of(schedule, self.main.dims) if schedule.gpu.splits > 1 else 1
        self.levels = levels_of(kernel) if self.parts != 1 and not schedule.online else []
        self.scratch = partial_results(kernel, self.parts, self.levels) if self.parts != 1 else []
        self.spaces = [(p.stored.dims, p.stored.element) for p in self.scratch]
        if schedule.gpu.streamed:
            self.spaces.append(workspace_dims(kernel, schedule))

    def declare(self, name: str, attributes: AttributeMap) -> Operation:
        """The function at the insertion point, without a body, with those of `attributes` that stay as they are."""
        kernel = self.kernel
        types = [*(memref_type(t.dims, t.element) for t in kernel.args),
                 *(memref_type(dims, t.element) for t, dims in zip(kernel.results, self.stored, strict=True)),
                 *(memref_type(dims, element) for dims, element in self.spaces)]
        new = func_d.FuncOp(name, ([*types, *([ir.IndexType.get()] * len(kernel.symbols))], []))
        for key, attr in attributes.items():
            if key not in REPLACED:
                new.attributes[key] = attr
        for key, shapes in (("xt.arg_dims", [t.dims for t in kernel.args]), ("xt.result_dims", self.stored)):
            new.attributes[key] = ir.ArrayAttr.get([dims_attr(dims) for dims in shapes])
        if self.spaces:
            new.attributes["xt.scratch_dims"] = ir.ArrayAttr.get([dims_attr(dims) for dims, _ in self.spaces])
            new.attributes["xcc.scratch"] = ir.ArrayAttr.get([ir.StringAttr.get(str(
                symbolic.product(dims) * element_bytes(element))) for dims, element in self.spaces])
        return new

    def emit(self, entry: Block, module: Module) -> None:
        """The body, in the block `entry`."""
        kernel, arguments = self.kernel, iter(entry.arguments)
        args = [next(arguments) for _ in kernel.args]
        outputs = [next(arguments) for _ in kernel.results]
        workspaces = [next(arguments) for _ in self.spaces]
        builder = Builder(entry, dict(zip(kernel.symbols, arguments, strict=True)))
        memory = Memory(builder, module, self.schedule.access)
        for t, memref in zip(kernel.args, args, strict=True):
            memory.bind(t, memref)
        results = [Result(t, memref, bordered_result(memory, t, memref, border))
                   for t, memref, border in zip(kernel.results, outputs, kernel.borders, strict=True)]
        ev = Evaluator(kernel, builder, memory, self.schedule)
        for size in dict.fromkeys(d for op in kernel.ops for d in op.loops):
            builder.dim(size)
        groups: dict[tuple[Dim, ...], list[Result]] = {}
        for r in results:
            groups.setdefault(r.t.dims, []).append(r)
            if isinstance(r.bordered, BorderedResult):
                _fill_border(builder, r.bordered)
        if self.levels:
            self._rows_in_parts(ev, workspaces)
        rows = self._taken_rows(groups)
        for group in groups.values():
            self._nest(ev, group, workspaces, rows)

    def _rows_in_parts(self, ev: Evaluator, workspaces: list[Any]) -> None:
        """The nests of reductions that are cut, level by level."""
        ev.row_parts = RowParts(ev, self.levels, self.parts, list(zip(self.scratch, workspaces, strict=False)))
        for number, ops in enumerate(self.levels):
            ev.row_parts.level = number
            for op in ops:
                dims = op.results[0].dims
                like = self.schedule if dims == self.main.dims else _points(self.schedule, len(dims))
                with ev.b.scope():
                    RowPartsNest(ev, like, op, self.parts).emit()
        ev.row_parts.level = None

    def _taken_rows(self, groups: dict[tuple[Dim, ...], list[Result]]) -> list[Result]:
        """The results that the nest of the largest stores beside it, taken out of `groups`."""
        if self.parts != 1 or self.schedule.gpu.streamed:
            return []
        taken = [r for group in groups.values() for r in group
                 if r.bordered is None and go_with_rows(self.kernel, self.schedule, self.main, r.t)]
        for r in taken:
            groups[r.t.dims].remove(r)
        for dims in [dims for dims, group in groups.items() if not group]:
            del groups[dims]
        return taken

    def _nest(self, ev: Evaluator, group: list[Result], workspaces: list[Value], rows: list[Result]) -> None:
        """The nest of results of one shape; `rows`: those that go with the largest."""
        dims = group[0].t.dims
        is_main = dims == self.main.dims
        schedule = self.schedule if is_main else _default(group, self.kernel, self.schedule)
        ev.parking.buffer = group[0].memref if is_main else None
        if is_main and self.scratch and not self.levels:
            ev.online.parts = KeyParts(ev.b, ev.memory, schedule, self.parts,
                                       list(zip(self.scratch, workspaces, strict=False)))
            with ev.b.scope():
                PartsNest(ev, schedule, dims, group, self.parts).emit()
            schedule = _rows(schedule)
        elif is_main and dims and any(op.results[0].dims == dims for ops in self.levels for op in ops):
            assert isinstance(self.parts, int)
            schedule = _rows(schedule, max(SECTOR, MERGED * schedule.gpu.threads // self.parts))
        with ev.b.scope():
            nest = Nest(ev, schedule, dims, group, rows=rows if is_main else ())
            if schedule.gpu.streamed:
                Streamed(nest, self.kernel, workspaces[-1]).emit()
            else:
                nest.emit()


def _points(like: Schedule, rank: int) -> Schedule:
    """A result a workgroup, for results of `rank` dims."""
    ones = (1,) * rank
    return replace(like, block=ones, vector=ones, order=tuple(range(rank)), chunks=(), flatten=())


def _rows(like: Schedule, most: int = 0) -> Schedule:
    """Merges the parts of what `like` cuts, a row a workgroup; with `most`, not more columns of it than that."""
    columns = min(like.vector[-1], 1 << most.bit_length() - 1) if most else like.vector[-1]
    tile = (*(1 for _ in like.vector[:-1]), columns)
    return replace(like, block=tile, vector=tile)


def _fill_border(b: Builder, bordered: BorderedResult) -> None:
    loop = forall([1], [], [1], False)
    with ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]), b.scope():
        bordered.fill()


def _volume(dims: tuple[Dim, ...]) -> tuple[int, int]:
    static = 1
    for d in dims:
        static *= d if isinstance(d, int) else 64
    return (len(dims), static) if static else (0, 0)


def _default(group: list[Result], kernel: Kernel, like: Schedule) -> Schedule:
    """A plain schedule for smaller second results of one shape: vectors along the last dim.

    As many elements as have room beside the lanes that each sums: of a workgroup's tile (access "gather"), or of the
    registers.
    """
    n = len(group[0].t.dims)
    behind = {op for r in group for op in ops_behind(r.t)}
    reductions = [op for op in kernel.ops if op.is_reduction]
    gathers = like.access == "gather"
    lanes = max((math.prod(max(1, n) for n in own) for op, own in zip(reductions, like.reduce, strict=True)
                 if gathers or op in behind), default=1)
    width = like.vector[-1] if like.vector else 1
    if lanes > 1:
        width = max(1, min(width, (math.prod(like.vector) if gathers else MOST_LANES) // lanes))
    vector = tuple(width if d == n - 1 else 1 for d in range(n))
    return Schedule(vector if n and gathers else (0,) * n, vector, tuple(range(n)), like.reduce,
                    like.tail, like.access, joined=like.joined, gpu=GpuPart(threads=like.gpu.threads))
