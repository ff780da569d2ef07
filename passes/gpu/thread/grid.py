"""Which iteration of a kernel's scf.forall a workgroup computes, or a thread of a loop kernel."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Operation, Value, arith_d, gpu_d
from xcc.passes.gpu.index.index_values import forall_bounds, kernel_symbols, symbolic_value
from xcc.passes.gpu.layout.registers import guarded
from xcc.passes.gpu.layout.tile_kernel import TileKernel
from xcc.passes.gpu.layout.tile_ops import int_attribute
from xcc.passes.gpu.pipeline.rounds import GROUP, PERSISTENT, Rounds
from xcc.passes.gpu.thread.kernel_builder import KernelBuilder
from xcc.passes.shared.values import index
from xcc.passes.walk import walk

INSTANCES = "xcc.instances"     # on an scf.forall: iterations that a workgroup computes, a warp each
WHOLE_WORKGROUP = ("memref.alloc", "tile.accumulate", "vector.contract")


def instances_problem(k: TileKernel, forall: Operation, instances: int) -> str:
    """Why a workgroup cannot compute so many iterations of `forall`, a warp each; empty where it can."""
    whole = {op.name for op in walk(forall.regions[0].blocks[0])}.intersection(WHOLE_WORKGROUP)
    if whole or PERSISTENT in forall.attributes:
        return f"an iteration has {', '.join(sorted(whole)) or PERSISTENT}, which is a workgroup's"
    if k.threads != k.chip.warp or k.threads * instances > k.chip.max_threads or instances & (instances - 1):
        return f"it has {k.threads} threads, a warp {k.chip.warp}, a workgroup {k.chip.max_threads} at most: a power " \
               "of two of warps"
    return ""


class Grid:
    """The iterations of `forall`: numbered from 0 on, the last dim fastest."""

    def __init__(self, k: KernelBuilder, forall: Operation) -> None:
        self.k, self.forall, self.block = k, forall, forall.regions[0].blocks[0]
        symbols = kernel_symbols(k.func)
        self.lower, upper, self.step = forall_bounds(forall)
        counts: list[symbolic.Dim] = []
        self.sizes: list[Value] = []
        for lo, up, by in zip(self.lower, upper, self.step, strict=True):
            low, high, stride = (symbolic_value(v, symbols) for v in (lo, up, by))
            counts.append(symbolic.ceildiv(high - low, stride))
            self.sizes.append(self._trips(lo, up, by))
        self.total = symbolic.product(counts)

    def emit(self) -> symbolic.Dim:
        """Emits the body for this workgroup or thread; returns the number of workgroups."""
        k = self.k
        number = gpu_d.block_id(gpu_d.Dimension.x)
        together = k.threads if k.loops else k.code.instances
        if together > 1:
            own = k.code.thread if k.loops else k.code.instance
            number = arith_d.addi(arith_d.muli(number, index(together)), own)
        count = self.sizes[0] if self.sizes else index(1)
        for size in self.sizes[1:]:
            count = arith_d.muli(count, size)
        if PERSISTENT in self.forall.attributes:
            k.rounds = Rounds(k, self.forall, self.place, count)
            k.rounds.emit()
            return symbolic.dim_min(self.total, k.rounds.workers)

        def iteration() -> None:
            self.place(number)
            k.block(self.block)

        whole = together == 1 or not k.loops and isinstance(self.total, int) and self.total % together == 0
        guarded(None if whole else arith_d.cmpi(arith_d.CmpIPredicate.ult, number, count), iteration)
        return symbolic.ceildiv(self.total, together)

    def place(self, number: Value) -> None:
        """Gives the body's arguments the coordinates of iteration `number`."""
        rest, outer = number, self.sizes
        coords: list[Value] = []      # from the last dim on
        group = int_attribute(self.forall, GROUP)
        if group > 1 and len(self.sizes) > 1:
            outer = self.sizes[:-2]
            plane = arith_d.muli(self.sizes[-2], self.sizes[-1])
            inside = arith_d.remui(rest, plane) if outer else rest
            rest = arith_d.divui(rest, plane) if outer else rest
            coords += reversed(_grouped(inside, self.sizes[-2], self.sizes[-1], group))
        for size in reversed(outer[1:]):
            coords.append(arith_d.remui(rest, size))
            rest = arith_d.divui(rest, size)
        if outer:
            coords.append(rest)
        for arg, c, lo, by in zip(self.block.arguments, reversed(coords), self.lower, self.step, strict=False):
            value = c if by == 1 else arith_d.muli(c, self._bound(by))
            self.k.values[arg] = value if lo == 0 else arith_d.addi(value, self._bound(lo))

    def _bound(self, value: Value | int) -> Value:
        return index(value) if isinstance(value, int) else self.k.values[value]

    def _trips(self, lower: Value | int, upper: Value | int, step: Value | int) -> Value:
        """The number of iterations along a dim."""
        if isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int):
            return index(-((lower - upper) // step))
        extent = self._bound(upper) if lower == 0 else arith_d.subi(self._bound(upper), self._bound(lower))
        return extent if step == 1 else arith_d.ceildivui(extent, self._bound(step))


def _grouped(number: Value, rows: Value, columns: Value, group: int) -> tuple[Value, Value]:
    """Row and column of a tile when workgroups walk `group` rows of a column, then the next column.

    Workgroups that run at the same time then share tiles of both operands in the L2 cache.
    """
    band = arith_d.muli(columns, index(group))
    first = arith_d.muli(arith_d.divui(number, band), index(group))
    inside = arith_d.remui(number, band)
    height = arith_d.minui(arith_d.subi(rows, first), index(group))
    return arith_d.addi(first, arith_d.remui(inside, height)), arith_d.divui(inside, height)
