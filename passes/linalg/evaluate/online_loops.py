"""Evaluates a maximum and the sums of exponentials relative to it in one loop (passes/linalg/kernel/online.py).

Keys that lie in several buffers have a loop each (passes/linalg/evaluate/key_pieces.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xcc import symbolic
from xcc._mlir import Value, ir, scf_d
from xcc.passes.linalg.build.tile_values import Ix, V
from xcc.passes.linalg.evaluate.body import Body
from xcc.passes.linalg.evaluate.chained_loop import ChainedLoop
from xcc.passes.linalg.evaluate.key_loop import KeyLoop
from xcc.passes.linalg.evaluate.key_pieces import Piece, concatenations, key_pieces
from xcc.passes.linalg.evaluate.pieces import InPiece
from xcc.passes.linalg.evaluate.reduction import Reduction
from xcc.passes.linalg.kernel.chained import ChainedSum
from xcc.passes.linalg.kernel.domain import contraction_of
from xcc.passes.linalg.kernel.kernel import Op
from xcc.passes.linalg.kernel.online import OnlineGroup, OnlineSum, Read
from xcc.passes.linalg.kernel.reduction_body import product_operands

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.online_parts import KeyParts
    from xcc.passes.linalg.evaluate.tile_eval import Evaluator


ORDERED_EQUAL, UNORDERED = 1, 14     # predicates of arith.cmpf


class OnlineLoops:
    """Evaluates the groups of a kernel for an Evaluator."""

    def __init__(self, ev: Evaluator, groups: list[OnlineGroup], chained: list[list[ChainedSum]]) -> None:
        self.ev, self.b = ev, ev.b
        self.groups, self.chained = [g for g in groups if self._fits(g)], chained
        self.ops = {s.op for g in self.groups for s in g.sums} | {g.maximum for g in self.groups} \
            | {s.op for sums in chained for s in sums}
        self.parts: KeyParts | None = None      # where the loop is cut into parts

    def _fits(self, g: OnlineGroup) -> bool:
        """Whether the loop has more than one step, or several buffers to read, and is the same for all."""
        lanes = self.ev.reduce[g.maximum][g.loop]
        size = g.maximum.loops[g.loop]
        return lanes > 1 and (not (isinstance(size, int) and size <= lanes) or bool(concatenations(g, g.sums))) \
            and all(self.ev.reduce[s.op][s.loop] == lanes for s in g.sums)

    def hoist(self, reads: Sequence[Read], env: dict[str, Ix]) -> None:
        """Evaluates the groups behind `reads` all of whose sums `env` already gives the coordinates of."""
        wanted: dict[Op, dict[str, Ix]] = {}
        missing = self._collect(reads, env, wanted, set())
        for g in self.groups:
            sums = [s for s in g.sums if s.op in wanted]
            if sums and self.parts is None and missing.isdisjoint(s.op for s in g.sums):
                OnlineLoop(self.ev, g, sums, wanted).emit()

    def prepare(self, reads: Sequence[Read], env: dict[str, Ix]) -> None:
        """Evaluates the sums behind `reads` at `env`; they are found when asked for."""
        wanted: dict[Op, dict[str, Ix]] = {}
        self._collect(reads, env, wanted, set())
        for g in self.groups:
            sums = [s for s in g.sums if s.op in wanted]
            if sums:
                loop = OnlineLoop(self.ev, g, sums, wanted)
                if self.parts is None:
                    loop.emit()
                else:
                    self.parts.emit(loop)
        for together in self.chained:
            chained = [s for s in together if s.op in wanted]
            if chained:
                ChainedLoop(self.ev, chained, wanted).emit()

    def _collect(self, reads: Sequence[Read], env: dict[str, Ix], wanted: dict[Op, dict[str, Ix]],
                 seen: set[Read]) -> set[Op]:
        """The ops of groups behind `reads` that are to be evaluated, with their coordinates; gives those whose
        coordinates are not in `env` yet."""
        missing: set[Op] = set()
        for t, access in reads:
            op = t.producer
            if op is None or (t, access) in seen:
                continue
            seen.add((t, access))
            if not op.is_reduction:
                missing |= self._collect(op.reads(op.loops_at(access, t.index)), env, wanted, seen)
            elif op in self.ops and op not in wanted:
                if not all(n in env or n in self.ev.kernel.symbols for e in access for n in symbolic.symbols_of(e)):
                    missing.add(op)
                    continue
                indices = [self.b.access(e, env) for e in access]
                if self.b.recall(("tile", t, tuple(i.key() for i in indices))) is None:
                    wanted[op] = {str(o): i for o, i in zip(op.outs[t.index], indices, strict=True)}
        return missing


class OnlineLoop(KeyLoop):
    """The loop of one group for the sums that are wanted, each at its output tile."""

    def __init__(self, ev: Evaluator, g: OnlineGroup, sums: list[OnlineSum], wanted: dict[Op, dict[str, Ix]]) -> None:
        self.g, self.sums, self.wanted = g, sums, wanted
        self.rows = [ev.b.access(e, wanted[sums[0].op]) for e in sums[0].row]
        rows = {str(o): i for o, i in zip(g.maximum.outs[0], self.rows, strict=True)}
        super().__init__(ev, g.loop, g.maximum.loops[g.loop], ev.reduce[g.maximum][g.loop], rows,
                         g.maximum.results[0].element)

    def emit(self) -> None:
        """Evaluates the sums, which are then found."""
        (top, *sums), factor = self.run(self.b.int(0), self.last_end())
        self.remember(self._exact(top, sums), factor)

    def start(self) -> V:
        """What the maximum of each row begins with."""
        row_axes = tuple(dict.fromkeys(a for i in self.rows for a in i.axes))
        constant = self.b.constant(ir.FloatAttr.get(self.element, self.g.start), self.element)
        return self.b.broadcast(V(constant), row_axes)

    def run(self, low: Value, high: Value) -> tuple[list[V], float]:
        """The maximum divided by a constant factor, then the sums, of the keys from `low` to `high`; the factor."""
        ev, g = self.ev, self.g
        accs = [self.start()]
        reductions = []
        for s in self.sums:
            axes = tuple(sorted({a for i in self.wanted[s.op].values() for a in i.axes}, key=lambda a: a.order))
            reductions.append(Reduction(ev, s.op, self.wanted[s.op], axes))
        accs += [r.neutral(0, r.out_axes) for r in reductions]
        self.prefetch(g.x, g.x_access, self.row_env, set())
        factor = 1.0
        for piece in key_pieces(ev, g, self.sums, self.lanes, self.end):
            accs, factor = self._loop(piece, low, high, accs, reductions)
        ev.in_piece = {}
        return accs, factor

    def _loop(self, piece: Piece, low: Value, high: Value, accs: list[V], reductions: Sequence[Reduction]
              ) -> tuple[list[V], float]:
        """As `run`, of the keys of `piece` among those, on top of `accs`."""
        b, g = self.b, self.g
        low, high = piece.part(b, low, high)
        loop = scf_d.ForOp(low, high, b.int(piece.lanes), [a.value for a in accs])
        with ir.InsertionPoint(loop.body), b.scope():
            key = piece.keys(b, loop.induction_variable, high)
            self.ev.in_piece = dict.fromkeys(piece.of, InPiece(piece.number, key))
            old, *before = [V(v, a.axes) for v, a in zip(loop.inner_iter_args, accs, strict=True)]
            x, factor = self.scaled(g.x, g.x_access, {**self.row_env, f"i{g.loop}": key})
            x = self.hide_past_limits(x, key)
            new = self._reduced("maxnumf", x, old, key)      # a NaN comes back with its exponential
            self._remember_maximum(new, factor)
            self._evaluate_powers(x, new, factor, key)
            change = self.powers.change(old, new, factor)
            after = [new]
            for s, r, acc in zip(self.sums, reductions, before, strict=True):
                scaled = b.elementwise("arith.mulf", s.op.results[0].element, [acc, b.broadcast(change, acc.axes)], {})
                after.append(self._add(s, r, {**self.wanted[s.op], f"i{s.loop}": key}, scaled, key))
            scf_d.YieldOp([v.value for v in after])
        return [V(v, a.axes) for v, a in zip(loop.results, accs, strict=True)], factor

    def remember(self, results: Sequence[V], factor: float) -> None:
        """The maximum, divided by `factor`, and the sums are found from now on."""
        self._remember_maximum(results[0], factor)
        for s, v in zip(self.sums, results[1:], strict=True):
            self.b.remember(("tile", s.op.results[0], tuple(i.key() for i in self.indices(s))), v)

    def indices(self, s: OnlineSum) -> list[Ix]:
        """Where the result of `s` is wanted."""
        return [self.wanted[s.op][str(o)] for o in s.op.outs[0]]

    def last_end(self) -> Value:
        """Where the loop over keys may end: behind all, or before the first key that all rows of the tile hide."""
        return self.bounds((None, self.g.last_visible(self.ev.kernel)))[1]

    # -- exponentials -----------------------------------------------------------------------------------------------
    def _remember_maximum(self, v: V, factor: float) -> None:
        key = ("tile", self.g.maximum.results[0], tuple(i.key() for i in self.rows))
        self.b.remember(key, v if factor == 1.0 else self.powers.times(v, factor))

    def _exact(self, top: V, sums: list[V]) -> list[V]:
        """The maximum and the sums, but those of rows of -inf alone, where the loop begins with the lowest number, and
        of rows with NaN, which the maximum passes over: as a sum of the exponentials alone shows, 0 and NaN. Attention
        has such rows, which are 0, and gives no maxima."""
        b = self.b
        alone = [v for s, v in zip(self.sums, sums, strict=True)
                 if product_operands(s.op) is None and v.axes == top.axes]
        if contraction_of(self.ev.kernel) is not None or not alone:
            return [top, *sums]

        def where(predicate: int, x: V, y: float | None, then: float, other: V) -> V:
            """`then` where x, as it is to y, or to itself."""
            kind, left = (ir.VectorType(v.value.type).element_type if v.axes else v.value.type for v in (other, x))
            right = x if y is None else V(b.constant(ir.FloatAttr.get(left, y), left))
            test = b.elementwise("arith.cmpf", b.i1, [x, right], {
                "predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)})
            return b.elementwise("arith.select", kind, [test, V(b.constant(ir.FloatAttr.get(kind, then), kind)), other],
                                 {})

        total = alone[0]
        unknown = where(UNORDERED, total, None, math.nan, where(ORDERED_EQUAL, total, 0.0, -math.inf, top))
        return [where(ORDERED_EQUAL, top, math.inf, math.inf, unknown),
                *(where(ORDERED_EQUAL, total, 0.0, math.nan, v) for v in sums)]

    def _evaluate_powers(self, x: V, top: V, factor: float, key: Ix) -> None:
        """Evaluates the exponentials of this step, which the sums then find."""
        power = self.powers.power(x, top, factor)
        self.ev.zero_past_limits.add(power.value)
        for s in self.sums:
            t, access = s.power
            env = {**self.wanted[s.op], f"i{s.loop}": key}
            self.b.remember(("tile", t, tuple(self.b.access(e, env).key() for e in access)), power)

    # -- sums -------------------------------------------------------------------------------------------------------
    def _add(self, s: OnlineSum, r: Reduction, env: dict[str, Ix], acc: V, key: Ix) -> V:
        """acc + the sum over one block of keys."""
        if r.contract and key.axes:
            return r.step.contraction(env, acc, set(key.axes))
        element = s.op.results[0].element
        factors = product_operands(s.op)
        if factors is None:
            t, access = s.op.inputs[0]
            value = self.ev.tile(t, [self.b.access(e, env) for e in access])
        else:
            value = self.b.elementwise("arith.mulf", element, [Body(self.ev, s.op, env).value(v) for v in factors], {})
            if any(a.limit is not None for a in key.axes):      # what zeros are multiplied by may be infinite there
                value = self.where(None, value, lambda: self.b.mask(key.axes), 0.0)
        return self._reduced("add", value, acc, key)

    def _reduced(self, kind: str, value: V, acc: V, key: Ix) -> V:
        """The lanes of `key` of `value` reduced into `acc`; those past its limit are neutral already."""
        value = self.b.broadcast(value, (*acc.axes, *key.axes))
        if not key.axes:
            name = {"add": "arith.addf", "maxnumf": "arith.maxnumf"}[kind]
            return V(self.b.op(name, acc.value.type, [value.value, acc.value]), acc.axes)
        reduced = self.b.op("vector.multi_reduction", acc.value.type, [value.value, acc.value],
                            kind=ir.Attribute.parse(f"#vector.kind<{kind}>"),
                            reduction_dims=ir.DenseI64ArrayAttr.get([len(acc.axes)]))
        return V(reduced, acc.axes)
