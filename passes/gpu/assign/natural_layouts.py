"""The layout that a value of a tile program has by itself, before its users are asked."""

from __future__ import annotations

import math

from xcc._mlir import Operation, Value, ir, maker, parent_op
from xcc.passes.gpu.assign.operand_patch import patch, turned_by_copies
from xcc.passes.gpu.index.index_vectors import gather_run
from xcc.passes.gpu.layout.contraction import Contraction
from xcc.passes.gpu.layout.forms import blocked
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.tile_ops import element_bytes, shape_of, yielded
from xcc.passes.gpu.memory.access import SECTOR, Access
from xcc.passes.gpu.thread.scan import columns_scan_layout, scan_layout
from xcc.passes.gpu.thread.sort import SORT, sorted_layout
from xcc.passes.shared.values import is_elementwise, is_vector
from xcc.targets.base import Chip

ANY, GATHER, MEMORY, SCAN, CONTRACTION = range(5)     # how strongly a layout is wanted
Ranked = tuple[Layout, int]


class NaturalLayouts:
    """Layouts of a kernel for workgroups of `threads`: a contraction takes its instruction's fragments, an access its
    coalesced form, other ops what their operands have."""

    def __init__(self, chip: Chip, threads: int, beside: int = 1) -> None:
        """`beside`: neighbours along the dims ahead of the last of what a thread reads (see GpuPart)."""
        self.chip, self.threads, self.beside = chip, threads, beside
        self.warps = threads // chip.warp
        self.known: dict[Value, Ranked] = {}
        self._active: set[Value] = set()

    def of(self, value: Value) -> Ranked | None:
        """The layout that `value` has by itself and how strongly it is wanted."""
        if value in self.known:
            return self.known[value]
        if value in self._active:
            return None
        self._active.add(value)
        found = self._natural(value)
        self._active.discard(value)
        if found is not None:
            self.known[value] = found
        return found

    def _best(self, values: list[Value]) -> Ranked | None:
        found = [n for n in (self.of(v) for v in values if is_vector(v)) if n is not None]
        return max(found, key=lambda n: n[1]) if found else None

    def _natural(self, value: Value) -> Ranked | None:
        op = maker(value)
        if op is None:
            parent = parent_op(value)
            if parent.name == "scf.while":
                return self._carried(parent, value)
            i = ir.BlockArgument(value).arg_number - 1
            return self._best([yielded(parent, i), parent.operands[3 + i]]) or (self._default(value), ANY)
        if op.name == "scf.while":
            return self.of(yielded(op, 1 + list(op.results).index(value)))
        if op.name in ("scf.for", "scf.if"):
            i = [r for r in op.results].index(value)
            if op.name == "scf.for":
                return self.of(op.regions[0].blocks[0].arguments[1 + i])
            return self._best([yielded(op, i), op.regions[1].blocks[0].operations[-1].operands[i]])
        if op.name == "vector.transfer_read":
            return self.coalesced(op), MEMORY
        if op.name == "vector.contract":
            return Contraction(op, self.chip, self.warps).result, CONTRACTION
        if op.name == "vector.multi_reduction":
            source = self.of(op.operands[0])
            return (source[0].sliced(list(op.attributes["reduction_dims"])), source[1]) if source else None
        if op.name == "vector.scan":
            layout = self.scanned(op)
            return layout if value == op.results[0] else layout.sliced([scan_dim(op)]), SCAN
        if op.name == SORT:
            return sorted_layout(value, self.threads, self.chip.warp, self.chip.vector_bytes), SCAN
        if op.name == "vector.transpose":
            source = self.of(op.operands[0])
            return (source[0].permuted(list(op.attributes["permutation"])), source[1]) if source else None
        if op.name == "vector.shape_cast":
            source = self.of(op.operands[0])
            return (source[0].reshaped(shape_of(value)), source[1]) if source else None
        if op.name == "vector.gather":
            run = gather_run(op, self.chip.vector_bytes)
            if run > 1:
                return self._rows_gathered(op, run), MEMORY
            found = self._best(list(op.operands))
            return found if found is not None and found[1] else (self._default(value), GATHER)
        if is_elementwise(op):
            return self._best(list(op.operands))
        return self._default(value), ANY

    def _carried(self, loop: Operation, argument: Value) -> Ranked:
        """Of an argument of a scf.while's regions: of what the loop starts with and what a turn gives."""
        i = ir.BlockArgument(argument).arg_number
        before, after = (r.blocks[0] for r in loop.regions)
        if argument.owner == after:
            found = self.of(yielded(loop, 1 + i))
        else:
            found = self._best([loop.operands[i], after.operations[len(after.operations) - 1].operands[i]])
        return found or (self._default(argument), ANY)

    def _default(self, value: Value) -> Layout:
        shape = shape_of(value)
        per_thread = max(1, math.prod(shape) // self.threads)
        width = max(1, self.chip.vector_bytes // max(4, element_bytes(ir.VectorType(value.type).element_type)))
        return blocked(shape, list(reversed(range(len(shape)))), min(width, per_thread), self.chip.warp, self.warps)

    def coalesced(self, op: Operation) -> Layout:
        """The layout of a transfer op in which neighbouring threads have neighbours in memory."""
        access = Access(op, self.chip.vector_bytes)
        order, width = access.order, 1
        if order and access.dims[order[0]] == len(access.sizes) - 1:
            width = min(access.aligned, access.shape[order[0]], self._width(access.shape))
            if op.results and turned_by_copies(op.results[0], order[0], self.warps, self.chip):
                return blocked(access.shape, order, 1, self.chip.warp, self.warps)
            turned = patch(op.results[0], order[0], width, self.threads, self.chip) if op.results else None
            if turned is not None:
                return blocked(access.shape, order, turned[0], self.chip.warp, self.warps, [turned[1:]])
            if order[0] == len(order) - 1:
                return blocked(access.shape, order, width, self.chip.warp, self.warps,
                               self._beside(access.shape, width))
        return blocked(access.shape, order, width, self.chip.warp, self.warps)

    def _rows_gathered(self, op: Operation, run: int) -> Layout:
        """The coalesced layout of a gather that reads `run` neighbours at once."""
        shape = shape_of(op.results[0])
        width = min(run, self._width(shape))
        return blocked(shape, list(reversed(range(len(shape)))), width, self.chip.warp, self.warps,
                       self._beside(shape, width))

    def _width(self, shape: tuple[int, ...]) -> int:
        """Neighbours along the last dim that a thread can hold of a tile, beside those along others."""
        return max(1, math.prod(shape) // self.threads // math.prod(n for _, n in self._beside(shape, 1)))

    def _beside(self, shape: tuple[int, ...], width: int) -> list[tuple[int, int]]:
        """The dims of a tile along which a thread holds neighbours besides `width` of the last, and how many."""
        room, found = min(self.beside, math.prod(shape) // self.threads // width), []
        for d in reversed(range(len(shape) - 1)):
            found.append((d, max(1, min(room, shape[d]))))
            room //= found[-1][1]
        return found

    def scanned(self, op: Operation) -> Layout:
        """The layout of a scan's operand and result: whole words of neighbours along the scan, or those that a thread
        reads at once."""
        shape = shape_of(op.operands[0])
        size = element_bytes(ir.VectorType(op.operands[0].type).element_type)
        most = max(1, math.prod(shape) // self.threads)
        width = min(max(1, self.chip.vector_bytes // size), most)
        source = self.of(op.operands[0])
        if source is not None and source[1] == MEMORY:
            width = max(width, source[0].contiguous(most, scan_dim(op))[0])
            near = _nearest(source[0])
            if near not in (None, scan_dim(op)):
                beside = source[0].contiguous(most, near)[0]
                lanes = max(SECTOR // self.chip.vector_bytes, SECTOR // (beside * size))
                return columns_scan_layout(shape, scan_dim(op), near, beside, lanes, self.chip.warp, self.warps)
        return scan_layout(shape, scan_dim(op), width, self.chip.warp, self.warps)


def _nearest(layout: Layout) -> int | None:
    """The dim along which neighbours are in one thread, or in lanes next to each other."""
    first = next((v for name in ("register", "lane") for v in layout.basis(name) if any(v)), ())
    return next((d for d, n in enumerate(first) if n), None)


def scan_dim(op: Operation) -> int:
    """The dim along which a vector.scan runs."""
    return int(ir.IntegerAttr(op.attributes["reduction_dim"]).value)
