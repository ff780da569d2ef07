"""What loops over blocks of keys share: keys that only some rows see, what is read ahead of the loop.

Keys that only some rows see (causal masks, the end of odd lengths) are hidden in the blocks of keys that have such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xcc import symbolic
from xcc._mlir import Type, Value, ir, scf_d
from xcc.passes.linalg.build.tile_values import Ix, V
from xcc.passes.linalg.evaluate.online_powers import Powers
from xcc.passes.linalg.kernel.kernel import Access, Tensor
from xcc.passes.linalg.kernel.online import Read, hidden, multiple, seen_steps
from xcc.passes.shared.values import predicate
from xcc.symbolic import Dim

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.tile_eval import Evaluator

Ends = tuple[Dim | None, Dim | None]


class KeyLoop:
    """A loop over `size` keys, number `loop` of an op, `lanes` at a time; `row_env` has the op's other loops.

    element: of what is exponentiated.
    """

    def __init__(self, ev: Evaluator, loop: int, size: Dim, lanes: int, row_env: dict[str, Ix], element: Type) -> None:
        self.ev, self.b, self.loop, self.lanes, self.row_env = ev, ev.b, loop, lanes, row_env
        self.element, self.powers, self.end = element, Powers(ev.b, element), ev.b.dim(size)

    def scaled(self, t: Tensor, access: Access, env: dict[str, Ix]) -> tuple[V, float]:
        """(y, c) with t[access] = y * c at the keys of the step that `env` has, for a constant c > 0."""
        product = multiple(t, access) if self.element == ir.F32Type.get() else None
        if product is not None:
            y, factor = self.scaled(*product[0], env)
            return y, factor * product[1]
        choice = hidden(t, access)
        if choice is None:
            return self.ev.tile(t, [self.b.access(e, env) for e in access]), 1.0
        test, source = choice
        y, factor = self.scaled(*source, env)
        first, last = map(self._of_rows, seen_steps(self.ev.kernel, self.loop, test))
        key, row = env[f"i{self.loop}"], first or last
        if row is None:
            return self.where(None, y, lambda: self.ev.tile(test[0], [self.b.access(e, env) for e in test[1]])), factor
        up_to = first is None
        return self.where(self._some_hidden(row, key, up_to), y, lambda: self._seen(row, key, up_to)), factor

    def hide_past_limits(self, x: V, key: Ix) -> V:
        """`x` with -inf behind the last key."""
        for limit, lanes in ((a.limit, a.size) for a in key.axes if a.limit is not None):
            needed = self.b.op("arith.cmpi", self.b.i1, [limit, self.b.int(lanes)], predicate=predicate("slt"))
            x = self.where(needed, x, lambda: self.b.mask(key.axes))
        return x

    def bounds(self, ends: Ends) -> tuple[Value, Value]:
        """Where the loop may begin and end: not at keys that all rows of the tile hide, which see those between `ends`.
        """
        b, (first, last) = self.b, map(self._of_rows, ends)
        low, high = b.int(0), self.end
        if first is not None:
            low = b.binary("arith.maxsi", low, b.add(b.scalar(first), b.int(_extent(first, -1))))
            low = b.mul(b.binary("arith.divui", low, b.int(self.lanes)), b.int(self.lanes))
        if last is not None:
            high = b.binary("arith.minsi", high, b.add(b.scalar(last), b.int(_extent(last, 1) + 1)))
        return low, high

    def _of_rows(self, end: Dim | None) -> Ix | None:
        """`end` for the rows of the tile, where it is a sum of numbers of lanes."""
        row = self.b.access(end, self.row_env) if end is not None else None
        return None if row is None or row.vec is not None else row

    def _some_hidden(self, end: Ix, key: Ix, up_to: bool) -> Value:
        """Whether a row does not see all keys of this step, where it sees those `up_to` `end`, or from it on."""
        b = self.b
        if not up_to:
            most = b.add(b.scalar(end), b.int(_extent(end, 1)))
            return b.op("arith.cmpi", b.i1, [b.scalar(key), most], predicate=predicate("slt"))
        least = b.add(b.scalar(end), b.int(_extent(end, -1)))
        return b.op("arith.cmpi", b.i1, [b.add(b.scalar(key), b.int(_lanes(key) - 1)), least],
                    predicate=predicate("sgt"))

    def _seen(self, end: Ix, key: Ix, up_to: bool) -> V:
        """Which keys of this step are on the right side of `end`, as numbers of lanes, which are small."""
        b = self.b
        ahead = b.vector(b.ix_add(end, b.ix_scale(Ix(base=key.base), -1)))
        for name, bound in (("arith.maxsi", -1), ("arith.minsi", _lanes(key))):
            ahead = b.elementwise(name, b.index, [ahead, V(b.int(bound))], {})
        i32 = ir.IntegerType.get_signless(32)
        small = [b.elementwise("arith.index_cast", i32, [v], {}) for v in (b.vector(Ix(coefs=key.coefs)), ahead)]
        return b.elementwise("arith.cmpi", b.i1, small, {"predicate": predicate("sle" if up_to else "sge")})

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

    def prefetch(self, t: Tensor, access: Access, env: dict[str, Ix], seen: set[Read]) -> None:
        """Reads before the loop what does not change in it: operands of products behind `t` that no key walks."""
        op = t.producer
        if op is None or (t, access) in seen:
            return
        seen.add((t, access))
        inner = op.loops_at(access, t.index)
        outer: dict[str, Ix] = dict(env)
        for p, r in enumerate(op.reduction):
            size, lanes = op.loops[p], self.ev.reduce[op].get(p, 0) if op.is_reduction else 0
            if r and isinstance(size, int) and 1 < lanes and size <= lanes:
                name = f"whole{id(op)}_{p}"
                outer[name] = Ix(coefs=((self.ev.full_axis(size, lanes, []), 1),))
                inner[f"i{p}"] = symbolic.sym(name)
        for s, at in op.reads(inner):
            known = all(n in outer or n in self.ev.kernel.symbols for e in at for n in symbolic.symbols_of(e))
            if s.producer is None and op.is_reduction and known:
                self.ev.tile(s, [self.b.access(e, outer) for e in at])
            elif s.producer is not None:
                self.prefetch(s, at, outer, seen)


def _extent(i: Ix, sign: int) -> int:
    """By how much the lanes of `i` go up (`sign` 1) or down (-1) from its first."""
    return sum((a.size - 1) * c for a, c in i.coefs if c * sign > 0)

def _lanes(key: Ix) -> int:
    """How many keys a step has."""
    return key.axes[0].size if key.axes else 1
