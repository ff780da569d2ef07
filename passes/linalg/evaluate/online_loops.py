"""Evaluates a maximum and the sums of exponentials relative to it in one loop (passes/linalg/kernel/online.py).

Keys that only some rows see (causal masks, the end of odd lengths) are hidden in the blocks of keys that have such.
Keys that lie in several buffers have a loop each (passes/linalg/evaluate/key_pieces.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xcc import symbolic
from xcc._mlir import Attribute, Value, arith_d, ir, scf_d
from xcc.passes.linalg.build.tile_values import Ix, V
from xcc.passes.linalg.evaluate.body import Body
from xcc.passes.linalg.evaluate.key_pieces import Piece, concatenations, key_pieces
from xcc.passes.linalg.evaluate.online_powers import Powers
from xcc.passes.linalg.evaluate.pieces import InPiece
from xcc.passes.linalg.evaluate.reduction import Reduction
from xcc.passes.linalg.kernel.kernel import Access, Op, Tensor
from xcc.passes.linalg.kernel.online import OnlineGroup, OnlineSum, Read, hidden, last_visible, multiple, visible_keys
from xcc.passes.linalg.kernel.reduction_body import product_operands
from xcc.symbolic import Dim

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.online_parts import KeyParts
    from xcc.passes.linalg.evaluate.tile_eval import Evaluator

__all__ = ["OnlineLoop", "OnlineLoops"]


class OnlineLoops:
    """Evaluates the groups of a kernel for an Evaluator."""

    def __init__(self, ev: Evaluator, groups: list[OnlineGroup]) -> None:
        self.ev, self.b = ev, ev.b
        self.groups = [g for g in groups if self._fits(g)]
        self.ops = {s.op for g in self.groups for s in g.sums} | {g.maximum for g in self.groups}
        self.parts: KeyParts | None = None      # where the loop is cut into parts

    def _fits(self, g: OnlineGroup) -> bool:
        """Whether the loop has more than one step, or several buffers to read, and is the same for all."""
        lanes = self.ev.reduce[g.maximum][g.loop]
        size = g.maximum.loops[g.loop]
        return lanes > 1 and (not (isinstance(size, int) and size <= lanes) or bool(concatenations(g, g.sums))) \
            and all(self.ev.reduce[s.op][s.loop] == lanes for s in g.sums)

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

    def _collect(self, reads: Sequence[Read], env: dict[str, Ix], wanted: dict[Op, dict[str, Ix]],
                 seen: set[Read]) -> None:
        for t, access in reads:
            op = t.producer
            if op is None or (t, access) in seen:
                continue
            seen.add((t, access))
            if op.is_reduction:
                if op in self.ops and op not in wanted:
                    wanted[op] = {str(o): self.b.access(e, env) for o, e in zip(op.outs[t.index], access, strict=True)}
                continue
            inner: dict[str, Dim] = {str(o): e for o, e in zip(op.outs[t.index], access, strict=True)}
            behind = [(s, tuple(symbolic.substitute(e, inner) for e in a)) for s, a in op.inputs]
            self._collect(behind, env, wanted, seen)


class OnlineLoop:
    """The loop of one group for the sums that are wanted, each at its output tile."""

    def __init__(self, ev: Evaluator, g: OnlineGroup, sums: list[OnlineSum], wanted: dict[Op, dict[str, Ix]]) -> None:
        self.ev, self.b, self.g, self.sums, self.wanted = ev, ev.b, g, sums, wanted
        self.rows = [self.b.access(e, wanted[sums[0].op]) for e in sums[0].row]
        self.row_env = {str(o): i for o, i in zip(g.maximum.outs[0], self.rows, strict=True)}
        self.element = g.maximum.results[0].element
        self.powers = Powers(self.b, self.element)
        self.lanes = ev.reduce[g.maximum][g.loop]
        self.end = self.b.dim(g.maximum.loops[g.loop])

    def emit(self) -> None:
        """Evaluates the sums, which are then found."""
        results, factor = self.run(self.b.int(0), self.last_end())
        self.remember(results, factor)

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
        self._prefetch(g.x, g.x_access, self.row_env, set())
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
            x, factor = self._scaled(g.x, g.x_access, {**self.row_env, f"i{g.loop}": key})
            for limit, lanes in ((a.limit, a.size) for a in key.axes if a.limit is not None):
                x = self.where(b.op("arith.cmpi", b.i1, [limit, b.int(lanes)], predicate=_predicate("slt")),
                                x, lambda: b.mask(key.axes))
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

    # -- what is reduced ------------------------------------------------------------------------------------------
    def _scaled(self, t: Tensor, access: Access, env: dict[str, Ix]) -> tuple[V, float]:
        """(y, c) with t[access] = y * c at the keys of the step that `env` has, for a constant c > 0."""
        product = multiple(t, access) if self.element == ir.F32Type.get() else None
        if product is not None:
            y, factor = self._scaled(*product[0], env)
            return y, factor * product[1]
        choice = hidden(t, access)
        if choice is None:
            return self.ev.tile(t, [self.b.access(e, env) for e in access]), 1.0
        test, source = choice
        y, factor = self._scaled(*source, env)
        last = last_visible(self.ev.kernel, self.g, test)
        row = self.b.access(last, self.row_env) if last is not None else None
        if row is None or row.vec is not None:
            return self.where(None, y, lambda: self.ev.tile(test[0], [self.b.access(e, env) for e in test[1]])), factor
        key = env[f"i{self.g.loop}"]
        return self.where(self._some_hidden(row, key), y, lambda: self._seen(row, key)), factor

    def _some_hidden(self, last: Ix, key: Ix) -> Value:
        """Whether a row does not see all keys of this step, where it sees those up to `last`."""
        b, lanes = self.b, _lanes(key)
        least = b.add(b.scalar(last), b.int(sum((a.size - 1) * c for a, c in last.coefs if c < 0)))
        return b.op("arith.cmpi", b.i1, [b.add(b.scalar(key), b.int(lanes - 1)), least], predicate=_predicate("sgt"))

    def _seen(self, last: Ix, key: Ix) -> V:
        """Which keys of this step are not behind `last`, as numbers of lanes, which are small."""
        b = self.b
        ahead = b.vector(b.ix_add(last, b.ix_scale(Ix(base=key.base), -1)))
        for name, bound in (("arith.maxsi", -1), ("arith.minsi", _lanes(key))):
            ahead = b.elementwise(name, b.index, [ahead, V(b.int(bound))], {})
        i32 = ir.IntegerType.get_signless(32)
        small = [b.elementwise("arith.index_cast", i32, [v], {}) for v in (b.vector(Ix(coefs=key.coefs)), ahead)]
        return b.elementwise("arith.cmpi", b.i1, small, {"predicate": _predicate("sle")})

    def where(self, needed: Value | None, y: V, mask: Callable[[], V | None], other: float = float("-inf")) -> V:
        """`y` where `mask` holds, else `other`; the mask holds everywhere unless `needed` (None: not known)."""
        b = self.b
        element = ir.VectorType(y.value.type).element_type if y.axes else y.value.type

        def masked() -> Value:
            test = mask()
            assert test is not None
            fill = b.broadcast(V(b.constant(ir.FloatAttr.get(element, other), element)), y.axes)
            return b.op("arith.select", y.value.type, [b.broadcast(test, y.axes).value, y.value, fill.value])

        if needed is None:
            return V(masked(), y.axes)
        branch = scf_d.IfOp(needed, [y.value.type], has_else=True)
        with ir.InsertionPoint(branch.then_block), b.scope():
            scf_d.yield_([masked()])
        with ir.InsertionPoint(branch.else_block):
            scf_d.yield_([y.value])
        return V(branch.results[0], y.axes)

    def last_end(self) -> Value:
        """Where the loop over keys may end: behind all, or before the first key that all rows of the tile hide."""
        last = visible_keys(self.ev.kernel, self.g)
        row = self.b.access(last, self.row_env) if last is not None else None
        if row is None or row.vec is not None:
            return self.end
        most = sum((a.size - 1) * c for a, c in row.coefs if c > 0)
        return self.b.binary("arith.minsi", self.end, self.b.add(self.b.scalar(row), self.b.int(most + 1)))

    # -- exponentials -----------------------------------------------------------------------------------------------
    def _remember_maximum(self, v: V, factor: float) -> None:
        key = ("tile", self.g.maximum.results[0], tuple(i.key() for i in self.rows))
        self.b.remember(key, v if factor == 1.0 else self.powers.times(v, factor))

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

    def _prefetch(self, t: Tensor, access: Access, env: dict[str, Ix], seen: set[Read]) -> None:
        """Reads before the loop what does not change in it: operands of products behind `t` that no key walks."""
        op = t.producer
        if op is None or (t, access) in seen:
            return
        seen.add((t, access))
        inner: dict[str, Dim] = {str(o): e for o, e in zip(op.outs[t.index], access, strict=True)}
        outer: dict[str, Ix] = dict(env)
        for p, r in enumerate(op.reduction):
            size, lanes = op.loops[p], self.ev.reduce[op].get(p, 0) if op.is_reduction else 0
            if r and isinstance(size, int) and 1 < lanes and size <= lanes:
                name = f"whole{id(op)}_{p}"
                outer[name] = Ix(coefs=((self.ev.full_axis(size, lanes, []), 1),))
                inner[f"i{p}"] = symbolic.sym(name)
        for s, a in op.inputs:
            at = tuple(symbolic.substitute(e, inner) for e in a)
            known = all(n in outer or n in self.ev.kernel.symbols for e in at for n in symbolic.symbols_of(e))
            if s.producer is None and op.is_reduction and known:
                self.ev.tile(s, [self.b.access(e, outer) for e in at])
            elif s.producer is not None:
                self._prefetch(s, at, outer, seen)


def _lanes(key: Ix) -> int:
    """How many keys a step has."""
    return key.axes[0].size if key.axes else 1


def _predicate(name: str) -> Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(getattr(arith_d.CmpIPredicate, name)))
