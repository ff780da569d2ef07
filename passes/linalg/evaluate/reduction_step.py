"""One step of a reduction: what its body adds at some indices, combined into the accumulators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xcc._mlir import Attribute, Operation, Value, ir, owner_op
from xcc.passes.linalg.build.tile_values import Axis, Ix, V
from xcc.passes.linalg.evaluate.body import Body
from xcc.passes.linalg.evaluate.factor_order import factor_tile
from xcc.passes.linalg.evaluate.fetch_ahead import fetch_ahead
from xcc.passes.linalg.evaluate.unrolled_steps import Scale
from xcc.passes.linalg.kernel.kernel import Op, is_packed, rows_of_steps
from xcc.passes.linalg.kernel.reduction_body import combiner, is_lossy, is_zero, narrow
from xcc.passes.linalg.schedule.decisions import PREFETCH, SHARES, count_of
from xcc.passes.shared.lossy import LOSSY
from xcc.passes.shared.values import scalar_attr

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.tile_eval import Evaluator

ORDERED_GREATER = 2     # arith.cmpf's ogt


class Step:
    """Steps of the reduction `op`, whose loops walk `axes`; `contract`: as contractions of the factors `product`."""

    def __init__(self, ev: Evaluator, op: Op, axes: Mapping[int, Axis], product: tuple[Value, Value] | None,
                 contract: bool) -> None:
        self.ev, self.b, self.op, self.axes, self.product, self.contract = ev, ev.b, op, axes, product, contract
        self.ahead, self.shares = count_of(op, PREFETCH), count_of(op, SHARES)
        self.scale: Scale | None = None     # what a group of steps has in common, multiplied behind them
        self.sum = [combiner(op, n) for n in range(len(op.results))] == ["arith.addf"]

    def accumulate(self, env: dict[str, Ix], accs: list[V], current: Mapping[int, Axis]) -> list[V]:
        """The body at `env` combined into the accumulators; `current`: the axes of this step, limited where masked."""
        now = {self.axes[p]: current[p] for p in self.axes}
        back = {v: k for k, v in now.items()}
        tagged = [V(a.value, tuple(now.get(x, x) for x in a.axes)) for a in accs]
        if self.ahead:
            self._prefetch(env)
        if self.shares:
            fetch_ahead(self.ev, self.op, env, self.shares)
        if self.contract:
            new = [self.contraction(env, tagged[0], set(current.values()))]
        elif self.product is not None and self.sum:
            new = [self._multiply_add(env, tagged[0])]
        elif self.op in self.ev.number_maxima:
            new = [self._greater(env, tagged[0])]
        elif self._first_of_lanes(tagged[0]):
            new = [self._summand(env)]
        else:
            new = Body(self.ev, self.op, env, dict(enumerate(tagged))).yielded()
        out = []
        limited = tuple(a for a in now.values() if a.limit is not None)
        for a, v in zip(tagged, new, strict=True):
            v = self.b.broadcast(v, a.axes)
            if limited and not self.contract:
                mask = self.b.mask(limited)
                assert mask is not None
                lanes = self.b.broadcast(mask, a.axes)
                v = V(self.b.op("arith.select", v.value.type, [lanes.value, v.value, a.value]), a.axes)
            out.append(V(v.value, tuple(back.get(x, x) for x in v.axes)))
        return out

    def _first_of_lanes(self, acc: V) -> bool:
        """Whether lanes are summed up later and there is nothing yet but the zeros to start with."""
        zero = self.sum and is_zero(owner_op(self.op.neutral[0]).attributes["value"])
        return bool(self.axes) and zero and _is_fill(acc)

    def _multiply_add(self, env: dict[str, Ix], acc: V) -> V:
        """acc + the product at `env`."""
        assert self.product is not None
        p, q = (self.scale.tile(self.ev, env, self.scale.rest) if self.scale is not None and v == self.scale.factor else
                factor_tile(self.ev, self.op, env, v) for v in self.product)
        return self._fma(p, q, acc)

    def scaled(self, env: dict[str, Ix], part: V, acc: V) -> V:
        """acc + part * what the steps of a group have in common."""
        assert self.scale is not None
        return self._fma(part, self.scale.tile(self.ev, env, self.scale.scale), acc)

    def _fma(self, p: V, q: V, acc: V) -> V:
        return self.b.elementwise("math.fma", self.op.results[0].element,
                                  [self.b.broadcast(v, acc.axes) for v in (p, q)] + [acc],
                                  {k: v for k, v in self._total().attributes.items() if k == "fastmath"})

    def _total(self) -> Operation:
        """The op of the body that adds to the accumulator."""
        return owner_op(self.op.yielded[0])

    def _summand(self, env: dict[str, Ix]) -> V:
        """What the body adds to the accumulator at `env`."""
        accumulator = self.op.block.arguments[len(self.op.inputs)]
        return Body(self.ev, self.op, env).value(next(v for v in self._total().operands if v != accumulator))

    def _greater(self, env: dict[str, Ix], acc: V) -> V:
        """The greater of the summand at `env` and `acc`; either where one is NaN."""
        t, access = self.op.inputs[0]
        x = self.b.broadcast(self.ev.tile(t, [self.b.access(e, env) for e in access]), acc.axes)
        if _is_fill(acc):
            return x            # the first: there is nothing but the neutral element yet
        kind = acc.value.type
        bits = ir.VectorType.get(ir.VectorType(kind).shape, self.b.i1) if isinstance(kind, ir.VectorType) else self.b.i1
        above = self.b.op("arith.cmpf", bits, [x.value, acc.value],
                          predicate=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ORDERED_GREATER))
        return V(self.b.op("arith.select", kind, [above, x.value, acc.value]), acc.axes)

    def _prefetch(self, env: dict[str, Ix]) -> None:
        """Asks for the row of the operand in panels, or of steps, that will be read ``xcc.prefetch`` steps from now."""
        for t, access in self.op.inputs:
            if t.arg < 0 or t in self.ev.kept or not (is_packed(access) or rows_of_steps(self.op, access)):
                continue
            *outer, row, lane = (self.b.access(e, env) for e in access)
            if lane.axes and not any(i.axes for i in (*outer, row)) and lane.vec is None:
                ahead = self.b.add(self.b.scalar(row), self.b.int(self.ahead))
                self.ev.memory.prefetch(t, [*(self.b.scalar(i) for i in outer), ahead], lane)

    def contraction(self, env: dict[str, Ix], acc: V, reduced: set[Axis]) -> V:
        """acc + the product of two tiles summed over the axes `reduced`, as vector.contract."""
        assert self.product is not None
        same = len({narrow(v).type for v in self.product}) == 1
        factors = [factor_tile(self.ev, self.op, env, narrow(v) if same else v) for v in self.product]
        lhs, rhs = (self._zero_invalid(self._in_lanes(v, other, acc, reduced), reduced)
                    for v, other in (factors, factors[::-1]))
        axes = list(dict.fromkeys((*acc.axes, *lhs.axes, *rhs.axes)))
        maps = [ir.AffineMapAttr.get(ir.AffineMap.get(
            len(axes), 0, [ir.AffineDimExpr.get(axes.index(a)) for a in v.axes])) for v in (lhs, rhs, acc)]
        kinds = [ir.Attribute.parse(f"#vector.iterator_type<{'reduction' if a in reduced else 'parallel'}>")
                 for a in axes]
        value = self.b.op("vector.contract", acc.value.type, [lhs.value, rhs.value, acc.value],
                          indexing_maps=ir.ArrayAttr.get(maps), iterator_types=ir.ArrayAttr.get(kinds),
                          kind=ir.Attribute.parse("#vector.kind<add>"),
                          **({LOSSY: ir.UnitAttr.get()} if is_lossy(self.op) else {}), **self._signs())
        return V(value, acc.axes)

    def _in_lanes(self, v: V, other: V, acc: V, reduced: set[Axis]) -> V:
        """A factor; one that turned out to be a number alone (a splat behind a chain of ops) as a tile of it."""
        if v.axes:
            return v
        summed = [a for a in other.axes if a in reduced] or sorted(reduced, key=repr)
        return self.b.broadcast(v, (*summed, *(a for a in acc.axes if a not in other.axes)))

    def _signs(self) -> dict[str, Attribute]:
        """``xcc.unsigned``: the numbers of the operands whose elements are extended with zeros."""
        assert self.product is not None
        found = [n for n, v in enumerate(self.product)
                 if not isinstance(v.owner, ir.Block) and v.owner.name == "arith.extui"]
        return {"xcc.unsigned": ir.DenseI64ArrayAttr.get(found)} if found else {}

    def _zero_invalid(self, v: V, reduced: set[Axis]) -> V:
        """`v` with zeros in the lanes past the limits of the axes `reduced`."""
        limited = tuple(a for a in v.axes if a in reduced and a.limit is not None)
        source = v.value
        while not isinstance(source.owner, ir.Block) and source.owner.name in ("arith.extf", "arith.truncf"):
            source = source.owner.operands[0]
        if not limited or source in self.ev.zero_past_limits \
                or _is_read(v.value):       # masked lanes are 0
            return v
        mask = self.b.mask(limited)
        assert mask is not None
        element = ir.VectorType(v.value.type).element_type
        zero = self.b.splat(scalar_attr(element, 0), [a.size for a in v.axes])
        lanes = self.b.broadcast(mask, v.axes)
        return V(self.b.op("arith.select", v.value.type, [lanes.value, v.value, zero]), v.axes)


def _is_read(value: Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name in ("vector.transfer_read", "vector.gather")


def _is_fill(v: V) -> bool:
    """Whether `v` is what accumulators begin with."""
    return not isinstance(v.value.owner, ir.Block) and v.value.owner.name in ("arith.constant", "vector.broadcast")

