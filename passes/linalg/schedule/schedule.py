"""The schedule of one kernel: what a strategy chooses, as an attribute in the IR.

``xcc.config`` on a kernel function at stage linalg::

    {block = array<i64: 56, 0>, vector = array<i64: 14, 32>, order = array<i64: 1, 0>,
     reduce = [array<i64: 1>], tail = "peel", access = "rows", parallel = true, cpu = {prefetch = 4 : i64}}

``cpu`` and ``gpu`` are what tile programs of one core, or of a workgroup, have alone (schedule_parts.py here): wishes,
which passes of their own turn into decisions (decisions.py here; docs/gpu.md). All targets share the rest, which speaks
of dims *after* normalisation (passes/linalg/kernel/merge_dims.py), of the kernel's largest result:

- flatten: how many neighbouring dims make each tile dim; block, vector and order then speak of tile dims. Lanes walk
  the product of the dims, whose coordinates are found by division. Without it every dim is a tile dim.
- block: tile of each dim for the outer ``scf.forall``; 0 leaves the dim out of it. Below `vector` (tail "mask") the
  lanes from there on are off, as of a tile of 192 columns in a vector of 256.
- vector: lanes of each dim (1: no vector dim).
- order: the dims from the outermost loop to the innermost.
- chunks: the dims of the forall from the slowest to the fastest; empty: as in order.
- reduce: for each reduction op, for each of its reduction loops, the lanes: 1 is a scalar loop, 0 unrolls it; lanes not
  below the loop's size make it one step, without a loop.
- written: steps that are written out of a reduction loop of 0 lanes, in a loop over so many at once; 0: all of them.
- joined: for each reduction op the reduction loops, outermost first, that are walked as one loop over their product,
  with the lanes of the last of them, around those that are not named; empty: none.
- tail: "peel" gives full tiles a loop without masks and the rest code of its own (``peel-tails``); "mask" masks every
  tile.
- access: "rows" reads non-affine and strided tiles row by row, "gather" by index vectors, as GPUs do.
- online: a maximum and the sums of exponentials relative to it share one loop (passes/linalg/kernel/online.py), and so
  do sums of products of products (passes/linalg/kernel/chained.py).
- parallel: whether the forall is worth more than one thread; a GPU's always is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from xcc._mlir import Attribute, ir
from xcc.diagnostics import UserError
from xcc.passes.linalg.kernel.kernel import Kernel, Op
from xcc.passes.linalg.schedule.schedule_parts import CpuPart, GpuPart, Kept, entries_of, values_of

__all__ = ["CpuPart", "GpuPart", "Kept", "Schedule", "joined_loops", "reduce_plan"]

WRITTEN = ("reduce", "tail", "access", "parallel")      # also where they are the defaults


@dataclass(frozen=True)
class Schedule:
    """See the module's docstring."""

    block: tuple[int, ...]
    vector: tuple[int, ...]
    order: tuple[int, ...]
    reduce: tuple[tuple[int, ...], ...] = ()
    tail: str = "peel"
    access: str = "rows"
    parallel: bool = False
    flatten: tuple[int, ...] = ()
    written: int = 0
    joined: tuple[tuple[int, ...], ...] = ()
    online: bool = False
    chunks: tuple[int, ...] = ()
    cpu: CpuPart = CpuPart()
    gpu: GpuPart = GpuPart()

    def __post_init__(self) -> None:
        if not len(self.block) == len(self.vector) == len(self.order):
            raise UserError("xcc.config: block, vector and order must have one entry a dim")
        if sorted(self.order) != list(range(len(self.order))):
            raise UserError(f"xcc.config: order {self.order} is not a permutation")
        if self.chunks and sorted(self.chunks) != sorted(self.order):
            raise UserError(f"xcc.config: chunks {self.chunks} is not a permutation")
        for t, v in zip(self.block, self.vector, strict=True):
            if v < 1 or t < 0 or t % v and (t > v or self.tail != "mask"):
                raise UserError(f"xcc.config: block {t} is not a multiple of vector {v}")
        if self.flatten and (len(self.flatten) != len(self.block) or min(self.flatten) < 1):
            raise UserError(f"xcc.config: flatten {self.flatten} must have a number of dims for each entry of block")
        if self.joined and len(self.joined) != len(self.reduce):
            raise UserError("xcc.config: joined and reduce must have one entry a reduction")
        if self.tail not in ("peel", "mask"):
            raise UserError(f"xcc.config: tail '{self.tail}' is neither 'peel' nor 'mask'")
        if self.access not in ("rows", "gather"):
            raise UserError(f"xcc.config: access '{self.access}' is neither 'rows' nor 'gather'")
        self._check_cpu(self.cpu)
        self._check_gpu(self.gpu)

    def _check_cpu(self, cpu: CpuPart) -> None:
        if cpu.park >= 0 and (not self.block or self.block[-1]):
            raise UserError("xcc.config: park needs rows that are whole in a chunk (block of the last dim 0)")
        if cpu.staged and (not self.block or not self.block[0]):
            raise UserError("xcc.config: staged needs chunks of rows (block of the first dim above 0)")
        if cpu.strips and (cpu.depth or cpu.staged):
            raise UserError("xcc.config: tiles in strips are summed in one go, from operands as they lie: neither "
                            "depth nor staged goes with strips")
        if cpu.parts and (cpu.parts < 0 or len(self.block) != 2 or not all(self.block) or self.flatten):
            raise UserError(f"xcc.config: parts {cpu.parts} needs two dims that are both cut into chunks")

    def _check_gpu(self, gpu: GpuPart) -> None:
        if gpu.splits > 1 and not all(self.block):
            raise UserError("xcc.config: splits are of tiles of the outer forall, no entry of block is 0")
        if gpu.streamed and (len(gpu.streamed) != 2 or len(self.block) != 2 or not all(self.block)
                             or not 0 < gpu.streamed[0] <= gpu.streamed[1]):
            raise UserError(f"xcc.config: streamed {gpu.streamed} must be tiles and as many workers or more, of a "
                            "product with two dims and a workgroup a tile")

    def with_cpu(self, **changed: Any) -> Schedule:
        """The same with other fields of `cpu`."""
        return replace(self, cpu=replace(self.cpu, **changed))

    def with_gpu(self, **changed: Any) -> Schedule:
        """The same with other fields of `gpu`."""
        return replace(self, gpu=replace(self.gpu, **changed))

    def to_attr(self) -> Attribute:
        return ir.DictAttr.get(entries_of(self, WRITTEN))

    @staticmethod
    def from_attr(attr: Attribute) -> Schedule:
        """Reads ``xcc.config``; UserError when an entry is missing or wrong."""
        return _schedule(attr)


@lru_cache(64)
def _schedule(attr: Attribute) -> Schedule:
    """Each pass of a kernel's stage ``schedule`` asks for the same."""
    values = values_of(Schedule, attr)
    missing = [name for name in ("block", "vector", "order") if name not in values]
    if missing:
        raise UserError(f"xcc.config: there is no entry '{missing[0]}'")
    return Schedule(**values)


def joined_loops(kernel: Kernel, schedule: Schedule) -> dict[Op, tuple[int, ...]]:
    """The reduction ops whose loops are walked as one, with these loops, outermost first."""
    ops = [op for op in kernel.ops if op.is_reduction]
    found = {op: loops for op, loops in zip(ops, schedule.joined, strict=False) if loops}
    for op, loops in found.items():
        wanted = {p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1}
        if len(loops) != len(set(loops)) or not set(loops) <= wanted:
            raise UserError(
                f"xcc.config of {kernel.name}: joined {loops} are none of the reduction loops {sorted(wanted)}")
    return found


def reduce_plan(kernel: Kernel, schedule: Schedule) -> dict[Op, dict[int, int]]:
    """For each reduction op, the lanes of each reduction loop."""
    ops = [op for op in kernel.ops if op.is_reduction]
    if len(ops) != len(schedule.reduce):
        raise UserError(f"xcc.config of {kernel.name}: {len(schedule.reduce)} reduce entries for {len(ops)} reductions")
    plan: dict[Op, dict[int, int]] = {}
    for op, lanes in zip(ops, schedule.reduce, strict=True):
        loops = [p for p, r in enumerate(op.reduction) if r]
        if len(loops) != len(lanes):
            raise UserError(f"xcc.config of {kernel.name}: {len(lanes)} lanes for {len(loops)} reduction loops")
        plan[op] = dict(zip(loops, lanes, strict=True))
    return plan
