"""Branches and loops as blocks of Python: what is built inside is in their body, which ends behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from xcc._mlir import Attribute, Operation, Type, Value, ir, scf_d


@contextmanager
def when(condition: Value) -> Iterator[None]:
    """An scf.if without results."""
    with ir.InsertionPoint(scf_d.IfOp(condition).then_block):
        yield
        scf_d.yield_([])


@contextmanager
def for_loop(low: Value, high: Value, step: Value) -> Iterator[Value]:
    """An scf.for that carries nothing; gives its induction variable."""
    made = scf_d.ForOp(low, high, step, [])
    with ir.InsertionPoint(made.body):
        yield made.induction_variable
        scf_d.yield_([])


def repeat(starts: Sequence[Value], condition: Callable[[list[Value]], Value],
           body: Callable[[list[Value]], Sequence[Value]]) -> list[Value]:
    """An scf.while: carries values while `condition` of them holds."""
    kinds = [v.type for v in starts]
    loop = scf_d.WhileOp(kinds, list(starts))
    before, after = loop.before.blocks.append(*kinds), loop.after.blocks.append(*kinds)
    with ir.InsertionPoint(before):
        values = list(before.arguments)
        scf_d.ConditionOp(condition(values), values)
    with ir.InsertionPoint(after):
        scf_d.yield_(list(body(list(after.arguments))))
    return list(loop.results)


def either(condition: Value, kind: Type, first: Callable[[], Value], second: Callable[[], Value]) -> Value:
    """An scf.if: what `first` gives where the condition holds, else what `second` gives, of type `kind`."""
    return any_of(condition, [kind], lambda: [first()], lambda: [second()])[0]


def any_of(condition: Value, kinds: Sequence[Type], first: Callable[[], Sequence[Value]],
           second: Callable[[], Sequence[Value]]) -> list[Value]:
    """As `either`, of several values."""
    branch = scf_d.IfOp(condition, list(kinds), has_else=True)
    for block, make in ((branch.then_block, first), (branch.else_block, second)):
        with ir.InsertionPoint(block):
            scf_d.yield_(list(make()))
    return list(branch.results)


def one_dim(forall: Operation, without: str = "") -> dict[str, Attribute]:
    """The attributes of `forall`, but for one, over one dim from 0 on whose end is an operand."""
    one = ir.DenseI64ArrayAttr.get
    own = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 1, 0, 0]), "staticLowerBound": one([0]),
           "staticUpperBound": one([ir.ShapedType.get_dynamic_size()]), "staticStep": one([1])}
    return {name: forall.attributes[name] for name in forall.attributes if name != without} | own
