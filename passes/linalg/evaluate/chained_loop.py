"""Evaluates sums of products of products in one loop over blocks (passes/linalg/kernel/chained.py).

A step of attention's gradients, for a tile of keys and a block of queries:

    s = k q^T;  p = exp2(s * c - top);  dv = dv + p grad
    ds = p * (v grad^T - delta);        dk = dk + ds q

The loop begins and ends where rows of the tile see anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc import symbolic
from xcc._mlir import Value, ir, scf_d
from xcc.passes.linalg.build.tile_values import REDUCTION_ORDER, Axis, Ix, V
from xcc.passes.linalg.evaluate.key_loop import KeyLoop
from xcc.passes.linalg.evaluate.reduction import Reduction
from xcc.passes.linalg.kernel.chained import ChainedSum
from xcc.passes.linalg.kernel.kernel import Access, Op, Tensor, ops_behind
from xcc.passes.linalg.kernel.online import Read
from xcc.passes.linalg.kernel.reduction_body import narrow, product_operands

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.tile_eval import Evaluator

Wanted = dict[Op, dict[str, Ix]]


class ChainedLoop(KeyLoop):
    """The loop of the sums of one group that are wanted, each at its output tile."""

    def __init__(self, ev: Evaluator, sums: list[ChainedSum], wanted: Wanted) -> None:
        first = sums[0]
        super().__init__(ev, first.loop, first.op.loops[first.loop], ev.reduce[first.op][first.loop], wanted[first.op],
                         first.x[0].element)
        self.sums, self.wanted = sorted(sums, key=lambda s: len(list(ops_behind(s.op.results[0])))), wanted

    def emit(self) -> None:
        """Evaluates the sums, which are then found."""
        b, reductions = self.b, []
        for s in self.sums:
            env = self.wanted[s.op]
            axes = tuple(sorted({a for i in env.values() for a in i.axes}, key=lambda a: a.order))
            reductions.append(Reduction(self.ev, s.op, env, axes))
            for t, access in s.op.inputs:
                self.prefetch(t, access, env, set())
            self._evaluate(s, env, products=False)
            if not any(f"i{s.loop}" in symbolic.symbols_of(e) for e in s.top[1]):
                self._top(s, env)
        accs = [r.neutral(0, r.out_axes) for r in reductions]
        low, high = self.bounds(self.sums[0].visible(self.ev.kernel))
        loop = scf_d.ForOp(low, high, b.int(self.lanes), [a.value for a in accs])
        with ir.InsertionPoint(loop.body), b.scope():
            key = self._keys(loop.induction_variable)
            before = [V(v, a.axes) for v, a in zip(loop.inner_iter_args, accs, strict=True)]
            envs = [{**self.wanted[s.op], f"i{s.loop}": key} for s in self.sums]
            for products in (False, True):
                for s, env in zip(self.sums, envs, strict=True):
                    self._evaluate(s, env, products)
            after = []
            for s, env, r, acc in zip(self.sums, envs, reductions, before, strict=True):
                self._exponentiate(s, env)
                after.append(r.step.contraction(env, acc, set(key.axes)))
            scf_d.YieldOp([v.value for v in after])
        for s, v, a in zip(self.sums, loop.results, accs, strict=True):
            place = tuple(self.wanted[s.op][str(o)].key() for o in s.op.outs[0])
            b.remember(("tile", s.op.results[0], place), V(v, a.axes))

    def _keys(self, at: Value) -> Ix:
        """Those of the step at `at`."""
        size = self.sums[0].op.loops[self.loop]
        whole = isinstance(size, int) and size % self.lanes == 0
        limit = None if whole else self.b.binary("arith.minsi", self.b.int(self.lanes), self.b.sub(self.end, at))
        return Ix(base=at, coefs=((Axis(self.lanes, REDUCTION_ORDER + 100, limit), 1),))

    def _exponentiate(self, s: ChainedSum, env: dict[str, Ix]) -> None:
        """Evaluates the exponentials that `s` reads, which it then finds, and says where its factors are 0."""
        t, access = s.power
        place = ("tile", t, tuple(self.b.access(e, env).key() for e in access))
        if self.b.recall(place) is None:
            key = env[f"i{s.loop}"]
            x, factor = self.scaled(*s.x, env)
            power = self.powers.relative(self.hide_past_limits(x, key), factor, *self._top(s, env))
            self.b.remember(place, power)
            self.ev.zero_past_limits.add(power.value)
        for v in product_operands(s.op) or ():
            read = narrow(v)
            if isinstance(read.owner, ir.Block) and s.op.inputs[ir.BlockArgument(read).arg_number][0].producer:
                t, access = s.op.inputs[ir.BlockArgument(read).arg_number]
                self._spread_zeros(self.ev.tile(t, [self.b.access(e, env) for e in access]).value)

    def _top(self, s: ChainedSum, env: dict[str, Ix]) -> tuple[V, V]:
        """What the exponentials of `s` are relative to, and its negated form."""
        t, place = s.top[0], [self.b.access(e, env) for e in s.top[1]]
        key = ("negated", t, tuple(i.key() for i in place))
        top = self.ev.tile(t, place)
        return top, self.b.recall(key) or self.b.remember(key, self.powers.negated(top))

    def _spread_zeros(self, value: Value) -> None:
        """A product with exponentials is 0 where these are."""
        while not isinstance(value.owner, ir.Block) and value.owner.name in ("arith.extf", "arith.truncf"):
            value = value.owner.operands[0]
        if not isinstance(value.owner, ir.Block) and value.owner.name == "arith.mulf" \
                and any(v in self.ev.zero_past_limits for v in value.owner.operands):
            self.ev.zero_past_limits.add(value)

    def _behind(self, t: Tensor, access: Access, env: dict[str, Ix], seen: set[Read], found: list[Read]) -> list[Read]:
        """What `t` is made of without products, and these: arguments and products whose coordinates `env` gives."""
        op = t.producer
        if (t, access) in seen:
            return found
        seen.add((t, access))
        if op is None or op.is_reduction:
            known = all(n in env or n in self.ev.kernel.symbols for e in access for n in symbolic.symbols_of(e))
            return [*found, (t, access)] if known and (op is not None or t.arg >= 0) else found
        for s, a in op.reads(op.loops_at(access, t.index)):
            found = self._behind(s, a, env, seen, found)
        return found

    def _evaluate(self, s: ChainedSum, env: dict[str, Ix], products: bool) -> None:
        """Evaluates at `env` what the factors of `s` are made of: arguments, or products, which run as others begin."""
        for read, access in s.op.inputs:
            if read.producer is not None:
                for t, at in self._behind(read, access, env, set(), []):
                    if (t.producer is not None) == products:
                        self.ev.tile(t, [self.b.access(e, env) for e in at])
