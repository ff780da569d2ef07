"""Keys and values of an online loop that lie in several buffers, as past and new ones do: a loop for each buffer.

    %k = arith.select %after, %new[%key - 2048], %past[%key]        with %after = "key >= 2048": a concatenation
    ->
    scf.for %key = 0 to 2048 ... { reads of %past }
    scf.for %key = 2048 to 2049 ... { reads of %new }

What the loops carry goes on from one to the next (passes/linalg/evaluate/online_loops.py). Nothing is copied to lie
together, and each read is of one buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from xcc import symbolic
from xcc._mlir import Operation, Value, ir
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.build.tile_values import REDUCTION_ORDER, Axis, Ix
from xcc.passes.linalg.evaluate.body import Body
from xcc.passes.linalg.evaluate.pieces import Pieces
from xcc.passes.linalg.kernel.kernel import Access, Op, Tensor, loop
from xcc.passes.linalg.kernel.online import OnlineGroup, OnlineSum

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.tile_eval import Evaluator

KEY = symbolic.sym("key")
LEAST = 16      # keys of a step: as many as matrix instructions take


@dataclass(frozen=True, eq=False)
class Piece:
    """Keys from `low` to `high`, taken `lanes` at a time: piece `number` of `count` of what the ops `of` walk.

    aligned: steps from `low` on end where those from 0 on do. whole: each has as many keys as it takes.
    """

    of: Iterable[Op]
    number: int
    count: int
    low: Value
    high: Value
    lanes: int
    aligned: bool
    whole: bool

    def part(self, b: Builder, low: Value, high: Value) -> tuple[Value, Value]:
        """Of the keys from `low` to `high`, which lie among all, those of the piece."""
        if self.number:
            low = b.binary("arith.maxsi", low, self.low)
        return low, high if self.number == self.count - 1 else b.binary("arith.minsi", high, self.high)

    def keys(self, b: Builder, at: Value, high: Value) -> Ix:
        """Those of the step at `at`, in a loop that ends at `high`: a walk, unless there is only one."""
        if self.lanes == 1:
            return Ix(base=at)
        limit = None if self.whole else b.binary(
            "arith.minsi", b.int(self.lanes), b.sub(self.high if self.aligned else high, at))
        return Ix(base=at, coefs=((Axis(self.lanes, REDUCTION_ORDER + 100, limit), 1),))


def key_pieces(ev: Evaluator, g: OnlineGroup, sums: Sequence[OnlineSum], lanes: int, end: Value) -> Iterator[Piece]:
    """The pieces that the keys of `g` lie in, up to `end`; one, where they lie together."""
    b, found = ev.b, concatenations(g, sums)
    bounds = [[b.scalar(Body(ev, op, {}).index(v)) for v in p.bounds] for op, p in found.items()]
    if any([b.as_int(v) or v for v in each] != [b.as_int(v) or v for v in bounds[0]] for each in bounds):
        found, bounds = {}, []
    starts = [b.int(0), *(bounds[0] if bounds else ()), end]
    for n, (low, high) in enumerate(pairwise(starts)):
        first, last = b.as_int(low), b.as_int(high)
        size = 0 if first is None or last is None else last - first
        own = lanes if not found or not size else 1 if size == 1 else min(
            lanes, max(LEAST, 1 << (size - 1).bit_length()))
        aligned = first is not None and first % lanes == 0
        yield Piece(found, n, len(starts) - 1, low, high, own, aligned, aligned and size > 0 and size % own == 0)


def concatenations(g: OnlineGroup, sums: Sequence[OnlineSum]) -> dict[Op, Pieces]:
    """The ops behind the maximum and the sums whose elements come from one of several pieces, by the key."""
    found: dict[Op, Pieces] = {}
    reads = [(t, _at_keys(access, n)) for t, access, n in (
        (g.x, g.x_access, g.loop), *((t, access, s.loop) for s in sums for t, access in s.op.inputs))]
    seen: set[tuple[Tensor, Access]] = set()
    while reads:
        t, access = reads.pop()
        op = t.producer
        if op is None or (t, access) in seen or KEY not in access:
            continue
        seen.add((t, access))
        at = op.loops_at(access, t.index)
        reads += op.reads(at)
        pieces = None if op.operation is None or op.is_reduction else Pieces.of(_yielded(op))
        if pieces is not None and at.get(str(loop(pieces.loop))) == KEY:
            found[op] = pieces
    return found


def _at_keys(access: Access, key: int) -> Access:
    return tuple(symbolic.substitute(e, {str(loop(key)): KEY}) for e in access)


def _yielded(op: Op) -> Operation | None:
    made = op.yielded[0].owner
    return None if isinstance(made, ir.Block) else made.operation
