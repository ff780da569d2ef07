"""Products of narrow elements by tile registers (AMX): contractions of blocks of packed operands, which ``amx-tiles``
finds.

    %x = vector.transfer_read %rows[%0, %k, %0] : vector<32x16x2xbf16>        rows x groups x 2
    %w = vector.transfer_read %panel[%k, %0, %0] : vector<16x32x2xbf16>       groups x columns x 2
    %r = vector.contract %x, %w, %sums : vector<32x32xf32>
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, ir
from xcc.passes.shared.patterns import splat_of
from xcc.passes.shared.values import index, op, scalar_attr, splat_constant, whole_transfer
from xcc.passes.tile.nests.kept import Coords, Kept
from xcc.passes.tile.nests.loops import loops
from xcc.passes.tile.nests.lying import Rows
from xcc.passes.tile.nests.needed import Needed

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler

ROWS = 32           # of a block of sums: two registers, by as many columns
LANES = 16          # columns of a register
GROUPS = 16         # of a step: a register's row
GROUP_BYTES = 4
LEAST_ROWS = 4      # of what fills registers to so small a part dot products make as much
LEAST_BYTES = 16    # of a row of the left operand
_SUMS = {"bf16": "f32", "i8": "i32"}


def tile_group(r: Retiler, product: Operation) -> int:
    """Elements of a group of k of a product by tile registers; 0 where there are none for its types and sizes."""
    lhs, rhs, acc = (ir.VectorType(v.type) for v in product.operands)
    if not r.tiles or _SUMS.get(str(lhs.element_type)) != str(acc.element_type):
        return 0
    width = lhs.element_type.width // 8
    large = lhs.shape[-2] >= LEAST_ROWS and lhs.shape[-1] * width >= LEAST_BYTES and rhs.shape[-1] >= LANES
    return GROUP_BYTES // width if large else 0


def multiply_tiles(r: Retiler, source: Operation, group: int, a: Kept | Rows, b: Kept, target: Kept) -> None:
    """`target` = acc + a @ b, a block of sums after the other."""
    acc, kind = source.operands[2], ir.VectorType(source.operands[2].type)
    fresh = splat_of(acc) == 0
    if not fresh and (acc not in r.kept or r.kept[acc].memref != target.memref):
        r.fill(target, acc)
    *batch, m, n = kind.shape
    height, width, depth = min(m, ROWS), b.panel, a.shape[-1] // group
    needed = Needed(r, source.results[0], [kind.rank - 2, kind.rank - 1])

    def block(places: list[Value]) -> None:
        *lead, column, row = places
        with needed.block(row, column):
            sums_of(lead, column, row)

    def sums_of(lead: list[Value], column: Value, row: Value) -> None:
        left = _view(a, (*lead, row, 0), [height, depth, group], [a.stride(len(lead)), group, 1])
        right = _view(b, (*lead, 0, column), [depth, width, group], [width * group, group, 1])
        sums = _view(target, (*lead, row, column), [height, width], [target.stride(len(lead)), 1])
        start = splat_constant(ir.VectorType.get([height, width], kind.element_type), 0) if fresh \
            else _read(sums, [height, width], [index(0)] * 2)
        made = _over_depth(depth, start, lambda k, s: _step(source, left, right, k, s, [height, width, group, depth]))
        op("vector.transfer_write", [], [made, sums, index(0), index(0)], **whole_transfer(2, [1, 1, 2, 0]))

    loops(r.wholes, [*batch, n, m], [*[1] * len(batch), width, height], block)


def _over_depth(depth: int, start: Value, step: Callable[[Value, Value], Value]) -> Value:
    """The sums behind all steps, from `start` on."""
    if depth <= GROUPS:
        return step(index(0), start)
    loop = ir.Operation.create("scf.for", results=[start.type], regions=1,
                               operands=[index(0), index(depth), index(GROUPS), start])
    with ir.InsertionPoint(loop.regions[0].blocks.append(ir.IndexType.get(), start.type)) as at:
        place, sums = at.block.arguments
        ir.Operation.create("scf.yield", operands=[step(place, sums)])
    return loop.results[0]


def _step(source: Operation, left: Value, right: Value, k: Value, sums: Value, sizes: list[int]) -> Value:
    """The sums with what a register's groups of k, from `k` on, add."""
    height, width, group, depth = sizes
    groups, zero = min(depth, GROUPS), index(0)
    x = _read(left, [height, groups, group], [zero, k, zero])
    w = _read(right, [groups, width, group], [k, zero, zero])
    maps = [ir.AffineMap.get(4, 0, [ir.AffineDimExpr.get(d) for d in dims]) for dims in ((0, 2, 3), (2, 1, 3), (0, 1))]
    kinds = [ir.Attribute.parse(f"#vector.iterator_type<{'parallel' if d < 2 else 'reduction'}>") for d in range(4)]
    signs = {n: source.attributes[n] for n in source.attributes if n == "xcc.unsigned"}
    return op("vector.contract", [sums.type], [x, w, sums], kind=source.attributes["kind"],
              indexing_maps=ir.ArrayAttr.get([ir.AffineMapAttr.get(v) for v in maps]),
              iterator_types=ir.ArrayAttr.get(kinds), **signs)


def _view(kept: Kept | Rows, coords: Coords, sizes: Sequence[int], strides: Sequence[Value | int]) -> Value:
    """What is kept from `coords` on, as a memref of `sizes`."""
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    known = [n if isinstance(n, int) else dynamic for n in strides]
    kind = ir.MemRefType.get(sizes, kept.element, layout=ir.StridedLayoutAttr.get(dynamic, known))
    others = [n for n in strides if not isinstance(n, int)]
    return op("memref.reinterpret_cast", [kind], [kept.memref, kept.offset(coords), *others],
              operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 1, 0, len(others)]),
              static_offsets=ir.DenseI64ArrayAttr.get([dynamic]),
              static_sizes=ir.DenseI64ArrayAttr.get(list(sizes)),
              static_strides=ir.DenseI64ArrayAttr.get(known))


def _read(memref: Value, shape: list[int], places: list[Value]) -> Value:
    element = ir.MemRefType(memref.type).element_type
    pad = op("arith.constant", [element], [], value=scalar_attr(element, 0))
    return op("vector.transfer_read", [ir.VectorType.get(shape, element)], [memref, *places, pad],
              **whole_transfer(len(shape), [1, len(shape), 1, 0]))
