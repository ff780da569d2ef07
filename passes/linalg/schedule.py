"""The schedule of one kernel: what a strategy chooses and the tile pass obeys, as an attribute in the IR.

``xcc.config`` on a kernel function at stage linalg::

    {block = array<i64: 56, 0>, vector = array<i64: 14, 32>, order = array<i64: 1, 0>,
     reduce = [array<i64: 1>], tail = "peel", access = "rows", parallel = true}

All entries speak of dims *after* normalisation (passes/linalg/merge_dims.py), of the kernel's largest result:

- flatten: how many neighbouring dims make each tile dim; block, vector and order then speak of tile dims. Lanes walk
  the product of the dims, whose coordinates are found by division. Without it every dim is a tile dim.
- block: tile of each dim for the outer ``scf.forall``; 0 leaves the dim out of it.
- vector: lanes of each dim (1: no vector dim).
- order: the dims from the outermost loop to the innermost.
- chunks: the dims of the forall from the slowest to the fastest; empty: as in order.
- parts: the chunks of a matrix's rows are dealt out to so many parts, of which each walks the chunks of columns and in
  each of them its rows: threads that have a part each read the same columns at about the same time (CPU). 0: no parts.
- reduce: for each reduction op, for each of its reduction loops, the lanes: 1 is a scalar loop, 0 unrolls it; lanes not
  below the loop's size make it one step, without a loop.
- joined: for each reduction op the reduction loops, outermost first, that are walked as one loop over their product,
  with the lanes of the last of them; empty: none. Either all of its loops or none.
- tail: "peel" gives full tiles a loop without masks and the rest code of its own; "mask" masks every tile.
- access: "rows" reads non-affine and strided tiles row by row (CPU); "gather" by index vectors (GPU).
- park: the number of an op whose result a reduction over a row and the kernel's result both need and which is dear to
  compute twice: it is written to the result's own row by the first and read back by the second. -1: none.
- shares: each tile of rows of a panel asks for 1 / shares (a power of two) of the next panel (CPU;
  passes/linalg/fetch_ahead.py); 0: none does.
- dot: the lanes of the contraction's reduction loop are elements that one dot product instruction sums (CPU): they
  make a vector.contract even where only one operand walks the result's lanes.
- strips: the contraction's tile of the main result goes to a buffer on the stack, from where the rest of the kernel is
  computed in strips of so many rows: for tiles of more accumulators than vector registers hold (CPU); 0: it stays.
- depth: the contraction's loop is walked in blocks of so many steps, outside the loops over tiles of a chunk, with
  `parts` outside those over chunks; sums wait in the result's buffer between them (CPU; passes/linalg/depth_blocks.py).
  0: in one go.
- staged: the rows of a product's left operand that a chunk (and a block of depth) needs are copied together on the
  stack, along the loops of its first panel's tiles (CPU; passes/linalg/staged_rows.py).
- decoded: the panel of a product's right operand that is decoded from narrow weights is written to the stack, once for
  all tiles of rows of a chunk, where it has several (CPU; passes/linalg/decoded_panels.py).
- online: a maximum and the sums of exponentials relative to it share one loop (passes/linalg/online.py).
- splits: in how many parts, of blocks of their own, that loop is cut at most; a second nest merges what they leave
  (passes/linalg/online_parts.py). Without `online` each reduction is cut (passes/linalg/row_parts.py). Below 2: none
  (GPU).
- busy: where the number of tiles is not known, that of blocks from which on more parts gain nothing.
- prefetch: in the loop over a product's packed operand, how many rows of a panel ahead of the one being read to fetch;
  the rows of the next panel follow those of this one. 0: none.
- ahead: at each stored tile, how many elements further on the arguments that lie as the result does are fetched into
  the cache (CPU); 0: none.
- stream: the largest result is written past the caches, where its buffer begins at a vector's alignment (CPU).
- kept: values that each chunk computes before its tiles, into memory of its own (CPU; passes/linalg/keep.py): the op's
  number, and vector and order of the nest that computes it, over the op's result dims.
- parallel: whether the forall is worth more than one thread (CPU).
- threads: workgroup size (GPU).
- stages: tiles of a contraction's operands that are in shared memory at once, loads running ahead of the compute (GPU);
  below 2: no pipelining.
- descending: a tile dim whose last tiles are launched first, because work grows along it (GPU); -1: none.
- warpgroup: contractions by instructions that several warps issue together and that read shared memory themselves
  (wgmma), where the chip has them for these types and the tile fits (GPU).
- persistent: how many workgroups compute all tiles, one after the other (GPU; passes/gpu/rounds.py); 0: each one tile.
- streamed: (tiles, workers): the sums of the last tiles, in the order of launch, are dealt out to so many workgroups
  (GPU; passes/linalg/streamed.py); empty: every tile is one workgroup's.
- group: tiles of the last dim but one that neighbouring workgroups walk before they go on along the last (GPU).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.passes.linalg.kernel import Kernel, Op

NUMBERS = ("threads", "stages", "group", "park", "descending", "prefetch", "shares", "splits", "busy", "strips",
           "ahead", "persistent", "depth", "parts")
ARRAYS = ("flatten", "chunks", "streamed")
FLAGS = ("online", "dot", "warpgroup", "stream", "staged", "decoded")


@dataclass(frozen=True)
class Kept:
    """How a chunk computes what it keeps of the result of op number `op`."""

    op: int
    vector: tuple[int, ...]
    order: tuple[int, ...]

    def to_attr(self) -> Any:
        i64 = ir.DenseI64ArrayAttr.get
        return ir.DictAttr.get({"op": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.op),
                                "vector": i64(list(self.vector)), "order": i64(list(self.order))})

    @staticmethod
    def from_attr(attr: Any) -> Kept:
        d = ir.DictAttr(attr)
        return Kept(int(d["op"].value), *(tuple(ir.DenseI64ArrayAttr(d[k])) for k in ("vector", "order")))


@dataclass(frozen=True)
class Schedule:
    """See the module's docstring."""

    block: tuple[int, ...]
    vector: tuple[int, ...]
    order: tuple[int, ...]
    reduce: tuple[tuple[int, ...], ...] = ()
    tail: str = "peel"
    access: str = "rows"
    park: int = -1
    parallel: bool = False
    threads: int = 0
    flatten: tuple[int, ...] = ()
    joined: tuple[tuple[int, ...], ...] = ()
    stages: int = 0
    group: int = 0
    online: bool = False
    descending: int = -1
    dot: bool = False
    shares: int = 0
    strips: int = 0
    warpgroup: bool = False
    chunks: tuple[int, ...] = ()
    prefetch: int = 0
    splits: int = 0
    busy: int = 0
    ahead: int = 0
    depth: int = 0
    stream: bool = False
    streamed: tuple[int, ...] = ()
    persistent: int = 0
    kept: tuple[Kept, ...] = ()
    staged: bool = False
    decoded: bool = False
    parts: int = 0

    def __post_init__(self) -> None:
        if not len(self.block) == len(self.vector) == len(self.order):
            raise UserError("xcc.config: block, vector and order must have one entry a dim")
        if sorted(self.order) != list(range(len(self.order))):
            raise UserError(f"xcc.config: order {self.order} is not a permutation")
        if self.chunks and sorted(self.chunks) != sorted(self.order):
            raise UserError(f"xcc.config: chunks {self.chunks} is not a permutation")
        for t, v in zip(self.block, self.vector, strict=True):
            if v < 1 or t < 0 or t % v:
                raise UserError(f"xcc.config: block {t} is not a multiple of vector {v}")
        if self.flatten and (len(self.flatten) != len(self.block) or min(self.flatten) < 1):
            raise UserError(f"xcc.config: flatten {self.flatten} must have a number of dims for each entry of block")
        if self.joined and len(self.joined) != len(self.reduce):
            raise UserError("xcc.config: joined and reduce must have one entry a reduction")
        if self.park >= 0 and (not self.block or self.block[-1]):
            raise UserError("xcc.config: park needs rows that are whole in a chunk (block of the last dim 0)")
        if self.splits > 1 and not all(self.block):
            raise UserError("xcc.config: splits are of tiles of the outer forall, no entry of block is 0")
        if self.shares < 0 or self.shares & (self.shares - 1):
            raise UserError(f"xcc.config: shares {self.shares} is no power of two")
        if self.streamed and (len(self.streamed) != 2 or len(self.block) != 2 or self.block != self.vector
                              or not 0 < self.streamed[0] <= self.streamed[1] or self.flatten or any(self.joined)):
            raise UserError(f"xcc.config: streamed {self.streamed} must be tiles and as many workers or more, of a "
                            "product with two dims and a workgroup a tile")
        if self.staged and (not self.block or not self.block[0]):
            raise UserError("xcc.config: staged needs chunks of rows (block of the first dim above 0)")
        if self.parts and (self.parts < 0 or len(self.block) != 2 or not all(self.block) or self.flatten):
            raise UserError(f"xcc.config: parts {self.parts} needs two dims that are both cut into chunks")
        if self.tail not in ("peel", "mask"):
            raise UserError(f"xcc.config: tail '{self.tail}' is neither 'peel' nor 'mask'")
        if self.access not in ("rows", "gather"):
            raise UserError(f"xcc.config: access '{self.access}' is neither 'rows' nor 'gather'")

    def to_attr(self) -> Any:
        i64 = ir.DenseI64ArrayAttr.get
        entries = {"block": i64(list(self.block)), "vector": i64(list(self.vector)), "order": i64(list(self.order)),
                   "reduce": ir.ArrayAttr.get([i64(list(r)) for r in self.reduce]),
                   "tail": ir.StringAttr.get(self.tail), "access": ir.StringAttr.get(self.access),
                   "parallel": ir.BoolAttr.get(self.parallel)}
        if self.joined:
            entries["joined"] = ir.ArrayAttr.get([i64(list(r)) for r in self.joined])
        if self.kept:
            entries["kept"] = ir.ArrayAttr.get([k.to_attr() for k in self.kept])
        chosen = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        entries |= {k: i64(list(chosen[k])) for k in ARRAYS if k in chosen}
        entries |= {k: ir.BoolAttr.get(chosen[k]) for k in FLAGS if k in chosen}
        entries |= {k: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), chosen[k]) for k in NUMBERS if k in chosen}
        return ir.DictAttr.get(entries)

    @staticmethod
    def from_attr(attr: Any) -> Schedule:
        """Reads ``xcc.config``; UserError when an entry is missing or wrong."""
        entries = ir.DictAttr(attr)
        d = {entries[n].name: entries[n].attr for n in range(len(entries))}
        try:
            arrays: dict[str, Any] = {k: tuple(ir.DenseI64ArrayAttr(d[k])) for k in ("block", "vector", "order")}
            arrays |= {k: tuple(ir.DenseI64ArrayAttr(d[k])) for k in ARRAYS if k in d}
            numbers: dict[str, Any] = {k: int(d[k].value) for k in NUMBERS if k in d}
            flags: dict[str, Any] = {k: bool(d[k].value) for k in FLAGS if k in d}
            return Schedule(
                **arrays, reduce=tuple(tuple(ir.DenseI64ArrayAttr(r)) for r in d.get("reduce", [])),
                tail=d["tail"].value if "tail" in d else "peel",
                access=d["access"].value if "access" in d else "rows",
                parallel=bool(d["parallel"].value) if "parallel" in d else False,
                joined=tuple(tuple(ir.DenseI64ArrayAttr(r)) for r in d.get("joined", [])),
                kept=tuple(Kept.from_attr(k) for k in d.get("kept", [])), **numbers, **flags)
        except (KeyError, ValueError) as e:
            raise UserError(f"xcc.config: {e}") from None


def joined_loops(kernel: Kernel, schedule: Schedule) -> dict[Op, tuple[int, ...]]:
    """The reduction ops whose loops are walked as one, with these loops, outermost first."""
    ops = [op for op in kernel.ops if op.is_reduction]
    found = {op: loops for op, loops in zip(ops, schedule.joined, strict=False) if loops}
    for op, loops in found.items():
        wanted = {p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1}
        if len(loops) != len(set(loops)) or set(loops) != wanted:
            raise UserError(f"xcc.config of {kernel.name}: joined {loops} are not the reduction loops {sorted(wanted)}")
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
