"""deepen-products: on CPUs a loop over the steps of a product takes several steps at a time (the KC of BLIS).

    %s = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %none) -> (vector<64x128xf32>) {
      %x = "tile.load"(%a, %zero, %i, %k) {shape = [64, 64]}
      %y = "tile.load"(%b, %zero, %k, %j) {shape = [64, 128]}
      %r = "tile.contract"(%x, %y, %acc)
      scf.yield %r
    }
    ->
    %d = scf.for %k = %c0 to %end step %c256 iter_args(%acc = %none) {... {shape = [64, 256]} ... {shape = [256, 128]}}
    %s = scf.for %k = %end to %n step %c64 iter_args(%acc = %d) {... as before}

Sums stay in registers for as long as a step is, and wait in memory between steps. A step is as long as a quarter of the
L2 cache has both operands. It needs a loop of nothing but one product, whose operands are loaded along the loop. """

from __future__ import annotations

from typing import Any

from xcc._mlir import Attribute, Block, Module, Operation, Value, arith_d, ir
from xcc.dialects import tile as tile_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.values import index, with_operands
from xcc.passes.walk import ops_where
from xcc.targets.base import Chip

MOST_STEPS = 512
L2_PART = 4
_L2 = 1 << 20
Wider = dict[Any, int]      # the dim along which the tile that an operation makes has more elements


@register_pass
class DeepenProducts(Pass):
    """Takes several steps of a product's loop at a time."""

    steps: int = 0      # of the multiplication, a turn; 0: as many as the L2 cache has room for

    def run(self, module: Module, ctx: PassContext) -> None:
        for func in tile_d.programs_in(module):
            for loop in ops_where(func, lambda op: op.name == "scf.for"):
                self._deepen(loop, ctx.chip.l2_bytes if ctx.chip else _L2)

    def acts_on(self, chip: Chip | None) -> bool:
        return chip is None or not chip.has_threads

    def _deepen(self, loop: Operation, l2_bytes: int) -> None:
        found = _product_loop(loop)
        if found is None:
            return
        product, wider = found
        lhs, rhs, acc = (ir.VectorType(v.type) for v in product.operands)
        step = lhs.shape[-1]
        line = (lhs.shape[-2] + rhs.shape[-1]) * acc.element_type.width // 8
        most = self.steps or min(MOST_STEPS, l2_bytes // L2_PART // line)
        factor = 1 << max(0, (most // step).bit_length() - 1)
        if factor > 1:
            with ir.InsertionPoint(loop), loop.location:
                _cut(loop, wider, step, factor)


def _product_loop(loop: Operation) -> tuple[Operation, Wider] | None:
    """The product of a loop that does nothing else, and the tiles that are longer where a turn takes more steps."""
    block = loop.regions[0].blocks[0]
    *body, end = [o.operation for o in block.operations]
    products = [o for o in body if o.name == "tile.contract"]
    if len(products) != 1 or len(loop.results) != 1 or list(end.operands) != list(products[0].results):
        return None
    lhs, rhs, acc = products[0].operands
    rank = ir.VectorType(lhs.type).rank
    wider: Wider = {}
    if acc != block.arguments[1] or not _used_once(acc) or not _used_once(products[0].results[0]) \
            or int_constant(loop.operands[2]) != ir.VectorType(lhs.type).shape[-1] \
            or not _lengthen(lhs, rank - 1, block, wider) or not _lengthen(rhs, rank - 2, block, wider):
        return None
    others = [o for o in body if o not in wider and o != products[0]]
    return (products[0], wider) if all(map(_scalar, others)) else None


def _lengthen(value: Value, dim: int, block: Block, wider: Wider) -> bool:
    """Whether the next turn's tile is what follows this turn's along `dim`; notes what makes the tile."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.block != block or not _used_once(value):
        return False
    op = value.owner.operation
    if op.name == "tile.load":
        offsets = list(op.operands)[2:]
        found = offsets.pop(dim) == block.arguments[0] and all(_outside(v, block) for v in offsets)
    elif op.name == "tile.transpose":
        found = _lengthen(op.operands[0], tile_d.attrs_of(op).order[dim], block, wider)
    elif op.name == "tile.reshape":
        there = _dim_before(op, dim)
        found = there is not None and _lengthen(op.operands[0], there, block, wider)
    else:
        found = op.name.startswith("arith.") and len(op.operands) == 1 and _lengthen(op.operands[0], dim, block, wider)
    wider[op] = dim
    return found


def _dim_before(reshape: Operation, dim: int) -> int | None:
    """What dim `dim` is before a reshape that only adds or drops dims of size 1."""
    before, after = (list(ir.VectorType(v.type).shape) for v in (reshape.operands[0], reshape.results[0]))
    places = [d for d, n in enumerate(before) if n > 1]
    if [before[d] for d in places] != [n for n in after if n > 1] or after[dim] == 1:
        return None
    return places[sum(n > 1 for n in after[:dim])]


def _used_once(value: Value) -> bool:
    return sum(1 for _ in value.uses) == 1


def _outside(value: Value, block: Block) -> bool:
    if isinstance(value.owner, ir.Block):
        return bool(value.owner != block)
    return value.owner.operation.block != block or int_constant(value) is not None


def _scalar(op: Operation) -> bool:
    return op.name.startswith("arith.") and not any(isinstance(r.type, ir.VectorType) for r in op.results)


def _cut(loop: Operation, wider: Wider, step: int, factor: int) -> None:
    """A loop that takes `factor` turns at a time ahead of `loop`, which takes what is left."""
    low, high = loop.operands[0], loop.operands[1]
    kind = ir.IndexType.get()
    turns = arith_d.ceildivsi(arith_d.maxsi(arith_d.subi(high, low), index(0)), index(step))
    whole = arith_d.muli(arith_d.divsi(turns, index(factor)), index(step * factor))
    end = arith_d.addi(low, whole)
    deep = ir.Operation.create("scf.for", results=[loop.results[0].type], regions=1,
                               operands=[low, end, index(step * factor), loop.operands[3]])
    block = loop.regions[0].blocks[0]
    new = deep.regions[0].blocks.append(kind, loop.results[0].type)
    values = dict(zip(block.arguments, new.arguments, strict=True))
    with ir.InsertionPoint(new):
        for operation in block.operations:
            _again(operation.operation, values, wider, factor)
    loop.operands[0] = end
    loop.operands[3] = deep.result


def _again(op: Operation, values: dict[Value, Value], wider: Wider, factor: int) -> None:
    """The same operation of `values`, on tiles that are longer."""
    attributes = {n: op.attributes[n] for n in op.attributes}
    results = [r.type for r in op.results]
    if op in wider:
        kind = ir.VectorType(results[0])
        shape = list(kind.shape)
        shape[wider[op]] *= factor
        results = [ir.VectorType.get(shape, kind.element_type)]
        if op.name in ("tile.load", "tile.reshape"):
            attributes["shape"] = _like(attributes["shape"], shape)
    with op.location:
        made = with_operands(op, [values.get(v, v) for v in op.operands], results, attributes)
    values.update(zip(op.results, made.results, strict=True))


def _like(attribute: Attribute, shape: list[int]) -> Attribute:
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.IntegerAttr.get(i64, n) for n in shape])
