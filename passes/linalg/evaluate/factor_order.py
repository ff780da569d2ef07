"""The order of the dims of a product's factor that is gathered: last the one along which its elements lie in memory.

The dims of a tile are in the order of their axes, those of a sum last. Of windows whose elements lie along the columns
of the result, as where the gradient of a filter is summed over pixels, the axis of the columns has a place behind the
sum's while the factor is evaluated: neighbours are read together, and the contraction takes either order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from xcc._mlir import Value, ir
from xcc.passes.linalg.build.tile_values import REDUCTION_ORDER, Axis, Flat, Ix, V
from xcc.passes.linalg.evaluate.body import Body
from xcc.passes.linalg.kernel.kernel import Op, captured_tensors
from xcc.passes.linalg.kernel.reduction_body import narrow

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.tile_eval import Evaluator

LAST = 2 * REDUCTION_ORDER


def factor_tile(ev: Evaluator, op: Op, env: Mapping[str, Ix], factor: Value) -> V:
    """The tile of the value `factor` of the body of `op` at `env`."""
    axis = _neighbours(ev, op, env, factor)
    if axis is None:
        return Body(ev, op, dict(env)).value(factor)
    moved = _Moved(axis)
    tile = Body(ev, op, {name: moved.index(i) for name, i in env.items()}).value(factor)
    return V(tile.value, tuple(axis if a is moved.new else a for a in tile.axes))


def _neighbours(ev: Evaluator, op: Op, env: Mapping[str, Ix], factor: Value) -> Axis | None:
    """The axis of the result that walks the last dim of the input behind `factor`, where that is gathered."""
    argument = narrow(factor)
    if ev.memory.access != "gather" or not isinstance(argument.owner, ir.Block) or argument.owner != op.block:
        return None
    t, access = op.inputs[ir.BlockArgument(argument).arg_number]
    walked = env.get(str(access[-1])) if access else None
    if walked is None or len(walked.axes) != 1 or walked.axes[0].order >= REDUCTION_ORDER:
        return None
    places = [ev.b.access(e, dict(env)) for e in access]
    if not any(a.order >= REDUCTION_ORDER for i in places for a in i.axes):
        return None         # nothing is summed side by side
    gathered = next(captured_tensors(t.producer, ev.kernel), None) is not None if t.producer is not None else \
        ev.memory.gathers(t, places)
    return walked.axes[0] if gathered else None


class _Moved:
    """Indices over a `new` axis behind those of sums in the place of an `old` one."""

    def __init__(self, old: Axis) -> None:
        self.old, self.new = old, replace(old, order=LAST)
        self.walks: dict[int, Flat] = {}

    def index(self, i: Ix) -> Ix:
        if self.old not in i.axes:
            return i
        coefs = tuple((self.axis(a), c) for a, c in i.coefs)
        vec = None if i.vec is None else V(i.vec.value, tuple(map(self.axis, i.vec.axes)))
        walk = None if i.walk is None else (self.index(i.walk[0]), *i.walk[1:])
        return replace(i, coefs=coefs, vec=vec, walk=walk, part=None if i.part is None else self.part(*i.part))

    def axis(self, a: Axis) -> Axis:
        return self.new if a is self.old else a

    def part(self, flat: Flat, n: int) -> tuple[Flat, int]:
        """Those of one walk are of one again."""
        if id(flat) not in self.walks:
            self.walks[id(flat)] = replace(flat, index=self.index(flat.index))
        return self.walks[id(flat)], n
