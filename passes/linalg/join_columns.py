"""Reductions of columns that do not need each other share a loop: what they read alike is read once.

    %s = linalg.generic (sum of %dy over rows)               %s, %q = linalg.generic (both sums)
    %q = linalg.generic (sum of %dy * %x over rows)    ->

A row that registers hold is there for all reductions of it. Columns are walked in a loop, and each reduction would read
them anew.
"""

from __future__ import annotations

from xcc._mlir import AffineMap, Block, Module, Operation, Value, ir, linalg_d
from xcc.passes.base import Pass, PassContext, register_pass

Loops = tuple[str, ...]


@register_pass
class JoinColumns(Pass):
    """Makes one op of several results of a kernel's reductions over the same loops, where rows do not lie together."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for function in module.body.operations:
            if function.operation.name == "func.func" and "xt.kernel" in function.attributes:
                _join(function.regions[0].blocks[0])


def _join(block: Block) -> None:
    found: dict[Loops, Operation] = {}
    for op in [o.operation for o in block.operations]:
        loops = _column_loops(op)
        if not loops:
            continue
        first = found.get(loops)
        needed = _needed(op) if first is not None else set()
        if first is None or first in needed:
            found[loops] = op
            continue
        between = [o.operation for o in block.operations]
        for other in between[between.index(first) + 1:]:
            if other in needed:
                other.move_before(first)
        found[loops] = _joined(first, op)


def _column_loops(op: Operation) -> Loops:
    """The kinds and sizes of the loops of a reduction of columns, and where its results lie; () for other ops."""
    if op.name != "linalg.generic" or "reduction" not in str(op.attributes["iterator_types"]):
        return ()
    kinds, maps, inputs = list(op.attributes["iterator_types"]), _maps(op), _inputs(op)
    if not inputs:
        return ()
    shape = list(ir.RankedTensorType(inputs[0].type).shape)
    places = [ir.AffineDimExpr(e).position for e in maps[0].results if isinstance(e, ir.AffineDimExpr)]
    if sorted(places) != list(range(len(kinds))) or "reduction" in str(kinds[places[-1]]) or min(shape) < 0:
        return ()
    sizes = [shape[places.index(p)] for p in range(len(kinds))]
    return str(op.attributes["iterator_types"]), str(sizes), *sorted({str(m) for m in maps[len(inputs):]})


def _maps(op: Operation) -> list[AffineMap]:
    return [a.value for a in op.attributes["indexing_maps"]]


def _inputs(op: Operation) -> list[Value]:
    return list(op.operands)[:list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[0]]


def _needed(op: Operation) -> set[Operation]:
    """The ops of its block that `op` depends on."""
    found: set[Operation] = set()
    left = list(op.operands)
    while left:
        owner = left.pop().owner
        if not isinstance(owner, ir.Block) and owner not in found:
            found.add(owner)
            left += owner.operands
    return found


def _joined(a: Operation, b: Operation) -> Operation:
    """`a` and `b` as one op in the place of `a`."""
    inputs = [*_inputs(a), *_inputs(b)]
    starts = [v for op in (a, b) for v in list(op.operands)[len(_inputs(op)):]]
    maps = [m for op in (a, b) for m in _maps(op)[:len(_inputs(op))]]
    maps += [m for op in (a, b) for m in _maps(op)[len(_inputs(op)):]]
    with a.location, ir.InsertionPoint(a):
        op = linalg_d.GenericOp([v.type for v in starts], inputs, starts,
                                ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
                                a.attributes["iterator_types"]).operation
    block = op.regions[0].blocks.append(*(ir.RankedTensorType(v.type).element_type for v in (*inputs, *starts)))
    arguments = list(block.arguments)
    yielded: list[Value] = []
    with a.location, ir.InsertionPoint(block):
        for part in (a, b):
            given = len(_inputs(part))
            reads, arguments[:given] = arguments[:given], []
            sums = list(block.arguments)[len(inputs) + len(yielded):]
            own = part.regions[0].blocks[0]
            values = dict(zip(own.arguments, [*reads, *sums], strict=False))
            *body, end = [o.operation for o in own.operations]
            for inner in body:
                made = inner.clone()
                for n, v in enumerate(inner.operands):
                    made.operands[n] = values.get(v, v)
                values.update(zip(inner.results, made.results, strict=True))
            yielded += [values.get(v, v) for v in end.operands]
        linalg_d.YieldOp(yielded)
    for old, new in zip([*a.results, *b.results], op.results, strict=True):
        old.replace_all_uses_with(new)
    for part in (b, a):
        part.erase()
    return op
