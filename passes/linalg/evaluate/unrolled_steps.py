"""Steps of a product's sum that read the same bytes, or a scale in common, written out in groups.

Of 4-bit weights with a scale for each block of 32 steps, ``xcc.unrolled = 16``::

    for group of 16 steps:
      part = x[k] * w[k] + x[k + 1] * w[k + 1] + ...       # w[k] and w[k + 1]: two halves of one byte, read once
      acc = acc + part * scale[group]

One step at a time reads and shifts each byte twice, and multiplies each weight by its scale. Where the operand is no
product with a scale that all steps of a group share, the group is written out alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xcc import symbolic
from xcc._mlir import Value, ir
from xcc.passes.linalg.build.tile_values import Ix, V
from xcc.passes.linalg.evaluate.body import Body
from xcc.passes.linalg.kernel.kernel import Access, Op, Tensor
from xcc.passes.linalg.kernel.reduction_body import product_operands
from xcc.symbolic import Dim

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.tile_eval import Evaluator


def alike_steps(t: Tensor, access: Access, loop: str) -> set[int]:
    """How many steps of `loop` are alike in what `t` at `access` is made of: n for a read at floordiv(loop, n), 1 for
    one at the loop's variable itself."""
    if t.producer is None:
        return set().union(*(_quotients(e, loop) for e in access), set())
    op, loops = t.producer, t.producer.loops_at(access, t.index)
    found = set().union(*(alike_steps(s, a, loop) for s, a in op.reads(loops)), set())
    for inner in op.block.operations if op.operation is not None else ():
        if inner.name == "tensor.extract":
            found.add(1)
        if inner.name == "linalg.index":
            found |= _quotients(loops.get(f"i{int(inner.attributes['dim'].value)}", 0), loop)
    return found


def _quotients(e: Dim, loop: str) -> set[int]:
    if not isinstance(e, symbolic.Expr) or loop not in symbolic.symbols_of(e):
        return set()
    found = set[int]()
    for atom in (atom for monomial, _ in e.terms for atom in monomial):
        if len(atom) == 1:
            found |= {1} if atom[0] == loop else set()
        elif atom[0] == "floordiv" and str(atom[1]) == loop and isinstance(atom[2], int):
            found.add(atom[2])
        elif loop in {*symbolic.symbols_of(atom[1]), *symbolic.symbols_of(atom[2])}:
            found.add(1)
    return found


@dataclass(frozen=True)
class Scale:
    """A factor of a product that is the element of `t` at `access`, which `t`'s op makes as `rest` * `scale` (values of
    its body)."""

    factor: Value
    t: Tensor
    access: Access
    rest: Value
    scale: Value

    def tile(self, ev: Evaluator, env: dict[str, Ix], part: Value) -> V:
        """`rest` or `scale` at the loops `env` of the product."""
        op = self.t.producer
        assert op is not None
        place = {str(o): ev.b.access(e, env) for o, e in zip(op.outs[self.t.index], self.access, strict=True)}
        return Body(ev, op, place).value(part)


def common_scale(op: Op, loop: str, steps: int) -> Scale | None:
    """The scale of an f32 factor of the product `op` that is alike in `steps` steps of `loop`."""
    for factor in product_operands(op) or ():
        if isinstance(factor.owner, ir.Block) and isinstance(factor.type, ir.F32Type):
            t, access = op.inputs[ir.BlockArgument(factor).arg_number]
            made = t.producer.yielded[t.index].owner if t.producer is not None and not t.producer.is_reduction \
                and t.producer.operation is not None else None
            if made is None or isinstance(made, ir.Block) or made.name != "arith.mulf":
                continue
            for rest, scale in (list(made.operands), list(made.operands)[::-1]):
                if _is_shared(t, access, scale, loop, steps) and not _is_shared(t, access, rest, loop, steps):
                    return Scale(factor, t, access, rest, scale)
    return None


def _is_shared(t: Tensor, access: Access, value: Value, loop: str, steps: int) -> bool:
    """Whether an input of the op of `t` is alike in `steps` steps."""
    op = t.producer
    if op is None or not isinstance(value.owner, ir.Block) or value.owner != op.block:
        return False
    s, at = op.reads(op.loops_at(access, t.index))[ir.BlockArgument(value).arg_number]
    return all(n % steps == 0 for n in alike_steps(s, at, loop))


def grouped(ev: Evaluator, low: Value, high: Value, count: int, groups: Callable[[Value], list[V]],
            rest: Callable[[list[V], Value], list[V]]) -> list[V]:
    """`groups` of `count` steps from `low`, to the value that it is given; then the `rest`, from there."""
    size = ev.b.sub(high, low)
    known = ev.b.as_int(size)
    left = ev.b.int(known % count) if known is not None else ev.b.binary("arith.remui", size, ev.b.int(count))
    if ev.b.as_int(left) == 0:
        return groups(high)
    whole = ev.b.sub(high, left)
    return rest(groups(whole), whole)
