"""Evaluates one reduction at one output tile: loops, accumulators, and their lanes combined at the end."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING, Any

from xcc import symbolic
from xcc._mlir import Value, ir, owner_op, scf_d
from xcc.dim_functions import ceildiv
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.build.tile_values import REDUCTION_ORDER, Axis, Ix, V
from xcc.passes.linalg.evaluate.blocked_sums import blocks_of
from xcc.passes.linalg.evaluate.depth_blocks import prior_lines, with_prior
from xcc.passes.linalg.evaluate.reduction_step import Step
from xcc.passes.linalg.evaluate.unrolled_steps import common_scale, grouped
from xcc.passes.linalg.kernel.kernel import Op
from xcc.passes.linalg.kernel.reduction_body import KINDS, combiner, loops_of, product_operands
from xcc.passes.linalg.schedule.decisions import BLOCKED, UNROLLED, count_of
from xcc.symbolic import Dim

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.tile_eval import Evaluator

LINE = 16           # steps in f32 of a cache line

Index = Callable[[Any], Ix]
"""The index of a loop at its variable."""


class Reduction:
    """One reduction evaluated at one output tile: loops, accumulators, final combination across lanes."""

    def __init__(self, ev: Evaluator, op: Op, env: dict[str, Ix], out_axes: tuple[Axis, ...]) -> None:
        self.ev, self.b, self.op, self.env, self.out_axes = ev, ev.b, op, env, out_axes
        self.loops = [p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1]
        self.block = ev.block if ev.block is not None and ev.block.op is op else None
        self.combiners = [combiner(op, n) for n in range(len(op.results))]
        self.product = product_operands(op)
        lanes = ev.reduce[op]
        if any(c is None for c in self.combiners):
            lanes = {p: min(n, 1) for p, n in lanes.items()}
        self.joined = ev.joined.get(op, ())
        if self.joined:
            self.loops = [self.joined[-1], *(p for p in self.loops if p not in self.joined)]
        self.lanes = {p: lanes[p] for p in self.loops}
        self.sizes = {p: op.loops[p] for p in self.loops}
        if self.joined:
            self.sizes[self.joined[-1]] = symbolic.product([op.loops[p] for p in self.joined])
        most = count_of(op, BLOCKED)
        steps = self.sizes if self.block is None else dict.fromkeys(self.loops, self.block.size)
        self.blocks = blocks_of(self.loops, steps, self.lanes, most, self.product is not None) if most else {}
        self.axes: dict[int, Axis] = {}
        taken = list(out_axes)
        for p in self.loops:
            n, size = self.lanes[p], self.sizes[p]
            if n > 1:
                whole = isinstance(size, int) and size <= n
                self.axes[p] = ev.full_axis(size, n, taken) if whole else Axis(n, REDUCTION_ORDER + 100 + p)
                taken.append(self.axes[p])
        self.contract = self.product is not None and bool(self.axes) and not ev.schedule.cpu.along \
            and (ev.schedule.cpu.dot or self._two_sided())
        self.acc_axes = out_axes if self.contract else (*out_axes, *self.axes.values())
        self.step = Step(ev, op, self.axes, self.product, self.contract)
        kept = any(t in ev.kept for t, _ in op.inputs)
        single = [at for at, p in enumerate(self.loops) if self.lanes[p] <= 1]
        self.steps_at = single[-1] if single and (self.contract or not self.axes) else -1
        self.unrolled = count_of(op, UNROLLED) if self.steps_at >= 0 and not kept and not self.joined else 0
        self.fetches = list(ev.fetches)
        self.current = dict(self.axes)      # the axes at the step that is being built: limited ones where masked

    def _two_sided(self) -> bool:
        """Whether each factor walks an axis of the result that the other does not: a matrix product, not a dot.

        In a loop over blocks (online) the second factor may do so alone: each block is a vector times a matrix.
        """
        assert self.product is not None
        used = [loops_of(self.op, v) for v in self.product]
        walked = {p for p in range(len(self.op.loops)) if f"i{p}" in self.env and self.env[f"i{p}"].axes}
        return bool(walked & (used[1] - used[0])) and (bool(walked & (used[0] - used[1])) or self.ev.schedule.online)

    def emit(self) -> list[V]:
        """The results' tiles, over the axes of the output tile."""
        accs = [self.neutral(n, self.acc_axes) for n in range(len(self.op.results))]
        if self.block is not None and self.block.prior:
            indices = [self.env[str(e)] for e in self.op.outs[0]]
            self.fetches.append(prior_lines(self.b, self.block, indices, gcd(self.block.size, LINE)))
            accs = [with_prior(self.ev, self._run(0, dict(self.env), accs)[0], indices)]
        else:
            accs = self._run(0, dict(self.env), accs)
        if self.contract or not self.axes:
            return accs
        return [self._combine_lanes(n, a) for n, a in enumerate(accs)]

    def neutral(self, n: int, axes: tuple[Axis, ...]) -> V:
        """What result n's accumulator begins with, over `axes`."""
        fill = self.op.neutral[n]
        constant = owner_op(fill).attributes["value"]
        return self.b.broadcast(V(self.b.constant(constant, fill.type)), axes)

    def _run(self, at: int, env: dict[str, Ix], accs: list[V]) -> list[V]:
        """The loops from number `at` on."""
        if at == 1 and self.joined:
            parts = self.b.parts(env[f"i{self.joined[-1]}"], [self.op.loops[p] for p in self.joined])
            env = {**env, **{f"i{p}": i for p, i in zip(self.joined, parts, strict=True)}}
        if at == len(self.loops):
            return self.step.accumulate(env, accs, self.current)
        p = self.loops[at]
        size, n, name = self.sizes[p], self.lanes[p], f"i{p}"
        if n == 0 and isinstance(size, int):
            return self._written(at, env, accs, size)
        part = self.ev.row_parts.range(self.op, size, n) if self.ev.row_parts is not None and at == 0 else None
        if part is not None:
            end = None if n == 1 or isinstance(size, int) and size % n == 0 else self.b.dim(size)
            return self._loop(at, env, accs, *part, n, self._walk(p, end))
        if n <= 1:
            low, high = self.b.int(0), self.b.dim(size)
            if self.block is not None:
                low, high = self.block.low, self.b.add(self.block.low, self.b.int(self.block.size))
            steps = size if self.block is None else self.block.size
            if self.fetches and isinstance(steps, int):
                return self._by_lines(at, env, accs, low, high, gcd(steps, LINE))
            return self._loop(at, env, accs, low, high, 1, lambda iv: Ix(base=iv))
        if self.ev.bounds is not None and self.contract:
            end = None if isinstance(size, int) and size % n == 0 else self.b.dim(size)
            return self._loop(at, env, accs, *self.ev.bounds, n, self._walk(p, end))
        if isinstance(size, int) and size <= n:
            return self._run(at + 1, {**env, name: Ix(coefs=((self.axes[p], 1),))}, accs)
        apart = isinstance(size, int) and bool(self.out_axes) and not self.contract
        if self.ev.schedule.tail == "mask" and not (isinstance(size, int) and (apart or size % n == 0)):
            return self._loop(at, env, accs, self.b.int(0), self.b.dim(size), n, self._walk(p, self.b.dim(size)))
        whole = size - symbolic.mod(size, n)
        if whole != 0:
            accs = self._loop(at, env, accs, self.b.int(0), self.b.dim(whole), n, self._walk(p, None))
        if isinstance(size, int) and size % n:
            axis = self.current[p] = Axis(n, self.axes[p].order, self.b.int(size % n))
            return self._run(at + 1, {**env, name: Ix(const=size - size % n, coefs=((axis, 1),))}, accs)
        if not isinstance(size, int) and symbolic.mod(size, n) != 0:
            accs = self._steps(at, env, accs, self.b.dim(whole), self.b.dim(size), n, self._walk(p, self.b.dim(size)))
        return accs

    def _written(self, at: int, env: dict[str, Ix], accs: list[V], size: int) -> list[V]:
        """Loop number `at`, of `size` steps: written out, or in a loop over as many of them as the schedule says."""
        name, n = f"i{self.loops[at]}", self.ev.schedule.written or max(1, size)

        def steps(first: Ix, count: int, accs: list[V], around: dict[str, Ix]) -> list[V]:
            for i in range(count):
                accs = self._run(at + 1, {**around, name: self.b.ix_add(first, Ix(const=i))}, accs)
            return accs

        whole = size - size % n
        if whole > n:
            accs = self._carried(accs, self.b.int(0), self.b.int(whole), n, lambda iv, own: steps(
                Ix(base=iv), n, own, env))
        elif whole:
            accs = steps(Ix(), n, accs, env)
        return steps(Ix(const=whole), size - whole, accs, env)

    def _by_lines(self, at: int, env: dict[str, Ix], accs: list[V], low: Value, high: Value, steps: int) -> list[V]:
        """Loop number `at`, single steps, with the calls of `fetches` every so many steps."""
        def block(first: Value, inner: list[V]) -> list[V]:
            for fetch in self.fetches:
                fetch(self.b.sub(first, low))
            return self._steps(at, env, inner, first, self.b.add(first, self.b.int(steps)), 1, lambda iv: Ix(base=iv))

        return self._blocked(at, accs, low, high, steps, lambda own, first, end: self._carried(
            own, first, end, steps, block))

    def _walk(self, p: int, end: Value | None) -> Index:
        """The index of loop p at a loop variable: a fresh axis, limited by `end` when given."""
        if p not in self.axes:
            return lambda iv: Ix(base=iv)

        def at(iv: Value) -> Ix:
            n = self.axes[p].size
            limit = None
            if end is not None:
                limit = self.b.binary("arith.minsi", self.b.int(n), self.b.sub(end, iv))
            self.current[p] = Axis(n, self.axes[p].order, limit)
            return Ix(base=iv, coefs=((self.current[p], 1),))
        return at

    def _loop(self, at: int, env: dict[str, Ix], accs: list[V], low: Value, high: Value, step: int,
              index: Index) -> list[V]:
        """Loop number `at` from `low` to `high` around the others; `index` is its index at the loop's variable."""
        return self._blocked(at, accs, low, high, step, lambda own, first, end: self._steps(
            at, env, own, first, end, step, index))

    def _blocked(self, at: int, accs: list[V], low: Value, high: Value, step: int,
                 loop: Callable[[list[V], Value, Value], list[V]], levels: tuple[Dim, ...] | None = None) -> list[V]:
        """`loop`, number `at`, which carries accumulators from place to place, in blocks whose sums are added up."""
        levels = self.blocks.get(self.loops[at], ()) if levels is None else levels
        if not levels:
            return loop(accs, low, high)
        *inner, each = levels
        size = ceildiv(each * max(1, self.lanes[self.loops[at]]), step) * step
        first, end = self.b.as_int(low), self.b.as_int(high)
        known = None if first is None or end is None else end - first
        if known is not None and isinstance(size, int) and known <= size:
            return self._blocked(at, accs, low, high, step, loop, tuple(inner))

        def block(iv: Value, own: list[V]) -> list[V]:
            last = self.b.add(iv, self.b.dim(size))
            if not isinstance(size, int) or size > step and (known is None or known % size):
                last = self.b.binary("arith.minsi", last, high)
            starts = [self.neutral(n, a.axes) for n, a in enumerate(own)]
            parts = self._blocked(at, starts, iv, last, step, loop, tuple(inner))
            return [self.b.elementwise(str(c), r.element, [a, p], {})
                    for c, r, a, p in zip(self.combiners, self.op.results, own, parts, strict=True)]

        return self._carried(accs, low, high, size, block)

    def _steps(self, at: int, env: dict[str, Ix], accs: list[V], low: Value, high: Value, step: int,
               index: Index) -> list[V]:
        """Loop number `at` from `low` to `high`, in one go."""
        first, end = self.b.as_int(low), self.b.as_int(high)
        if first is not None and end is not None and end - first == step:
            return self._run(at + 1, {**env, f"i{self.loops[at]}": _fixed(self.b, index(low))}, accs)
        if self.unrolled and at == self.steps_at and self.b.multiple(low) % self.unrolled == 0:
            n = self.unrolled
            return grouped(self.ev, low, high, n, lambda end: self._carried(
                accs, low, end, n, lambda iv, own: self._group(at, env, own, iv)),
                lambda own, first: self._single(at, env, own, first, high, 1, index))
        return self._single(at, env, accs, low, high, step, index)

    def _group(self, at: int, env: dict[str, Ix], accs: list[V], first: Value) -> list[V]:
        """Steps from `first` on of loop number `at`, written out; a scale that they have in common is multiplied once.
        """
        name = f"i{self.loops[at]}"
        self.step.scale = common_scale(self.op, name, self.unrolled)
        own = accs if self.step.scale is None else [self.neutral(n, a.axes) for n, a in enumerate(accs)]
        for i in range(self.unrolled):
            own = self._run(at + 1, {**env, name: Ix(base=first, const=i)}, own)
        if self.step.scale is not None:
            own = [self.step.scaled({**env, name: Ix(base=first)}, own[0], accs[0])]
            self.step.scale = None
        return own

    def _single(self, at: int, env: dict[str, Ix], accs: list[V], low: Value, high: Value, step: int,
                index: Index) -> list[V]:
        """Loop number `at` from `low` to `high`, a step at a time."""
        def steps(iv: Value, inner: list[V]) -> list[V]:
            around = {**env, f"i{self.loops[at]}": index(iv)}
            if not self.joined:
                self.ev.hoist(self.op.inputs, around)
            return self._run(at + 1, around, inner)

        return self._carried(accs, low, high, step, steps)

    def _carried(self, accs: list[V], low: Value, high: Value, step: Dim,
                 body: Callable[[Value, list[V]], list[V]]) -> list[V]:
        """A loop that carries the accumulators; `body` gives the next ones at its variable."""
        loop = scf_d.ForOp(low, high, self.b.dim(step), [a.value for a in accs])
        if isinstance(step, int):
            self.b.multiples[loop.induction_variable] = gcd(self.b.multiple(low), step)
        with ir.InsertionPoint(loop.body), self.b.scope():
            inner = [V(v, a.axes) for v, a in zip(loop.inner_iter_args, accs, strict=True)]
            scf_d.YieldOp([v.value for v in body(loop.induction_variable, inner)])
        return [V(v, a.axes) for v, a in zip(loop.results, accs, strict=True)]

    def _combine_lanes(self, n: int, acc: V) -> V:
        """Reduces the accumulator's reduction axes to the output axes."""
        kind = KINDS[str(self.combiners[n])]
        lanes = set(self.axes.values())
        dims = [d for d, a in enumerate(acc.axes) if a in lanes]
        element = ir.VectorType(acc.value.type).element_type
        rest = tuple(a for a in acc.axes if a not in lanes)
        start = self.neutral(n, rest)
        result = ir.VectorType.get([a.size for a in rest], element) if rest else element
        value = self.b.op("vector.multi_reduction", result, [acc.value, start.value],
                          kind=ir.Attribute.parse(f"#vector.kind<{kind}>"),
                          reduction_dims=ir.DenseI64ArrayAttr.get(dims),
                          **({"xcc.numbers": ir.UnitAttr.get()} if self.op in self.ev.number_maxima else {}))
        return V(value, rest)


def _fixed(b: Builder, i: Ix) -> Ix:
    """A constant base as `const`, so that equal coordinates have equal keys."""
    n = None if i.base is None else b.as_int(i.base)
    return i if n is None else Ix(None, i.const + n, i.coefs)
