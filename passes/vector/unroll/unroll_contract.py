"""unroll-vectors, sums: contract as broadcast and fused multiply-add with the accumulators in registers; reductions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from xcc._mlir import Operation, Type, Value, ir
from xcc.diagnostics import CompilerBug
from xcc.passes.shared.transposes import is_block, transpose_block
from xcc.passes.shared.values import extract, op, pack, shuffle, splat, vec
from xcc.passes.vector.unroll.dot_products import dot_product
from xcc.passes.vector.unroll.group_tiles import grouped
from xcc.passes.vector.unroll.tiles import Key, Tile
from xcc.passes.vector.unroll.unroll_shape import transposed
from xcc.passes.vector.unroll.unroller import Unroller, unrolls

NUMBERS = "numbers"         # the maximum, where any lane serves that is not less than a number (xcc.numbers)
ORDERED_GREATER = 2         # arith.cmpf's ogt
_COMBINE = {"add": ("arith.addf", "arith.addi"), "mul": ("arith.mulf", "arith.muli"),
            "minsi": ("", "arith.minsi"), "minui": ("", "arith.minui"), "maxsi": ("", "arith.maxsi"),
            "maxui": ("", "arith.maxui"), "minimumf": ("arith.minimumf", ""), "maximumf": ("arith.maximumf", ""),
            "minnumf": ("arith.minnumf", ""), "maxnumf": ("arith.maxnumf", ""), "and": ("", "arith.andi"),
            "or": ("", "arith.ori"), "xor": ("", "arith.xori")}


def combine(kind: str, a: Value, b: Value) -> Value:
    """One step of the reduction `kind` on two values of one type."""
    if kind == NUMBERS:
        return _greater(a, b)
    elem = ir.VectorType(a.type).element_type if isinstance(a.type, ir.VectorType) else a.type
    name = _COMBINE[kind][0 if isinstance(elem, ir.FloatType) else 1]
    return op(name, [a.type], [a, b])


def _greater(a: Any, b: Any) -> Any:
    """The greater of two, either where one is NaN: one instruction on every machine."""
    i1, i64 = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(64)
    bits = vec(ir.VectorType(a.type).shape[0], i1) if isinstance(a.type, ir.VectorType) else i1
    above = op("arith.cmpf", [bits], [a, b], predicate=ir.IntegerAttr.get(i64, ORDERED_GREATER))
    return op("arith.select", [a.type], [above, a, b])


def combine_all(kind: str, values: Sequence[Value]) -> Value:
    """Pairwise, so that long sums keep their accuracy and have short dependency chains."""
    values = list(values)
    while len(values) > 1:
        pairs = [combine(kind, a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + ([values[-1]] if len(values) % 2 else [])
    return values[0]


def _kind(o: Operation) -> str:
    if "xcc.numbers" in o.attributes:
        return NUMBERS
    return str(o.attributes["kind"]).split("<")[-1].rstrip(">")


@unrolls("vector.reduction")
def _reduction(u: Unroller, o: Operation) -> None:
    tile = u.tiles[o.operands[0]]
    parts = [horizontal(_kind(o), _common_width(_kind(o), [tile.chunk(k) for k in tile.keys()]))]
    u.replace(o, [combine_all(_kind(o), parts + list(o.operands)[1:])])


def horizontal(kind: str, chunk: Value) -> Value:
    """All lanes of one chunk combined to a scalar."""
    t = ir.VectorType(chunk.type)
    if kind == NUMBERS:
        return _halved(chunk)
    attributes = {"kind": ir.Attribute.parse(f"#vector.kind<{kind}>")}
    if isinstance(t.element_type, ir.FloatType) and kind in ("add", "mul"):
        attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<reassoc>")
    return op("vector.reduction", [t.element_type], [chunk], **attributes)


def _halved(chunk: Value) -> Any:
    """The greatest lane: half of the lanes against the other half, until one is left."""
    width = ir.VectorType(chunk.type).shape[0]
    while width > 1:
        half = width // 2
        rest = [extract(chunk, width - 1)] if width % 2 else []
        low, high = shuffle(chunk, chunk, list(range(half))), shuffle(chunk, chunk, list(range(half, 2 * half)))
        chunk, width = combine(NUMBERS, low, high), half
        if rest:
            chunk = combine(NUMBERS, chunk, splat(rest[0], half))
    return extract(chunk, 0)


def _common_width(kind: str, chunks: list[Value]) -> Value:
    """All chunks combined to one; a shorter last chunk joins after the others are one."""
    by_width: dict[int, list[Value]] = {}
    for c in chunks:
        by_width.setdefault(ir.VectorType(c.type).shape[0], []).append(c)
    if len(by_width) == 1:
        return combine_all(kind, chunks)
    return pack([combine_all(kind, [horizontal(kind, combine_all(kind, group)) for group in by_width.values()])])


@unrolls("vector.multi_reduction")
def _multi_reduction(u: Unroller, o: Operation) -> None:
    kind = _kind(o)
    source = u.tiles[o.operands[0]]
    reduced = set(ir.DenseI64ArrayAttr(o.attributes["reduction_dims"]))
    rank = len(source.shape)
    kept = [d for d in range(rank) if d not in reduced]
    groups: dict[Key, list[Value]] = {}
    for key in source.keys():
        groups.setdefault(tuple(key[d] for d in kept), []).append(source.chunk(key))
    acc = u.tiles.get(o.operands[1])
    if rank - 1 not in reduced:
        assert acc is not None
        out = u.new(o.results[0])
        for key in out.keys():
            out.chunks[key] = combine(kind, combine_all(kind, groups[key]), acc.chunk(key))
        u.set(o, out)
        return
    totals = {k: _common_width(kind, g) for k, g in groups.items()}
    if acc is None:
        u.replace(o, [combine(kind, horizontal(kind, totals[()]), o.operands[1])])
        return
    out = u.new(o.results[0])
    for key in out.keys():
        rows = [totals[at] for at in out.coordinates(key)]
        out.chunks[key] = combine(kind, _reduce_rows(kind, rows), acc.chunk(key))
    u.set(o, out)


def _reduce_rows(kind: str, rows: list[Any]) -> Any:
    """Lane i of the result is row i reduced: the sum of columns, where these are few and the rows many."""
    width, height = ir.VectorType(rows[0].type).shape[0], len(rows)
    if height >= width and is_block(height, width):
        return combine_all(kind, transpose_block(rows))
    return pack([horizontal(kind, r) for r in rows])


class Contract:
    """The indexing of one vector.contract: `lane` is the loop dimension that runs along the result's lanes."""

    def __init__(self, o: Operation) -> None:
        maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(o.attributes["indexing_maps"])]
        self.maps = [[int(ir.AffineDimExpr(e).position) for e in m.results] for m in maps]
        self.sizes = [0] * maps[0].n_dims
        for value, m in zip(o.operands, self.maps, strict=True):
            if isinstance(value.type, ir.VectorType):
                for d, n in zip(m, ir.VectorType(value.type).shape, strict=True):
                    self.sizes[d] = n
        self.lane = self.maps[2][-1] if self.maps[2] else -1
        self.reduced = [d for d in range(len(self.sizes)) if d not in self.maps[2]]
        signs = ir.DenseI64ArrayAttr(o.attributes["xcc.unsigned"]) if "xcc.unsigned" in o.attributes else ()
        self.unsigned: set[int] = set(signs)
        self.group = self._group(o)

    def _group(self, o: Operation) -> int | None:
        """The reduced dimension whose few narrow elements lie next to each other in both operands, else None."""
        d = self.maps[0][-1] if self.maps[0] else -1
        if d not in self.reduced or self.maps[1][-1:] != [d] or self.lane < 0:
            return None
        elements = [ir.VectorType(v.type).element_type for v in list(o.operands)[:2]]
        if any(self.sizes[d] * e.width != 32 for e in elements):
            return None
        walks = [self.lane in m for m in self.maps[:2]]
        wide = self.maps[walks.index(True)] if sum(walks) == 1 else []
        return d if len(wide) > 1 and wide[-2] == self.lane else None

    def scalar_operand(self, number: int) -> bool:
        """True where the elements of operand `number` are broadcast along the lanes."""
        return number < 2 and self.lane not in self.maps[number] and self.lane >= 0


def wants_scalars(o: Operation, number: int) -> bool:
    """True where `o` is a contract that broadcasts the elements of its operand `number` one by one."""
    o = o.operation
    return o.name == "vector.contract" and Contract(o).scalar_operand(number)


def wants_groups(o: Operation, number: int) -> bool:
    """True where `o` is a contract that takes its operand `number` in groups of elements that it sums."""
    o = o.operation
    return o.name == "vector.contract" and number < 2 and Contract(o).group is not None


@unrolls("vector.contract")
def _contract(u: Unroller, o: Operation) -> None:
    if _kind(o) != "add":
        raise CompilerBug(f"unroll-vectors: contract of kind {_kind(o)}")
    c = Contract(o)
    acc = u.tiles.get(o.operands[2])
    if acc is None:
        _dot(u, o, c)
        return
    if c.group is not None:
        u.set(o, grouped_contract(u, o, c, acc))
        return
    sides = [_lane_last(u.tiles[v], m, c.lane) for v, m in zip(o.operands, c.maps, strict=True)]
    out = Tile(acc.shape, acc.elem, u.lanes, {k: acc.chunk(k) for k in acc.keys()})
    splats: dict[tuple[int, Key, int], Any] = {}

    def side(n: int, at: dict[int, int], piece: int, width: int) -> Value:
        tile, dims = sides[n]
        if c.lane in dims:
            return tile.chunk(tuple(at[d] for d in dims[:-1]) + (piece,))
        where = tuple(at[d] for d in dims)
        if (n, where, width) not in splats:
            splats[n, where, width] = splat(extended(tile.lane(where), acc.elem, n in c.unsigned), width)
        return splats[n, where, width]

    outer = [d for d in c.maps[2] if d != c.lane]
    for point in itertools.product(*(range(c.sizes[d]) for d in c.reduced)):
        at = dict(zip(c.reduced, point, strict=True))
        for row in itertools.product(*(range(c.sizes[d]) for d in outer)):
            at.update(zip(outer, row, strict=True))
            for piece in range(-(-acc.inner // u.lanes)):
                key = row + (piece,)
                width = out.width(key)
                a, b = (extended(side(n, at, piece, width), acc.elem, n in c.unsigned) for n in (0, 1))
                out.chunks[key] = multiply_add(a, b, out.chunks[key])
    u.set(o, out)


def grouped_contract(u: Unroller, o: Operation, c: Contract, acc: Tile) -> Tile:
    """A contract of groups: each step sums a group of products into a lane of the accumulators."""
    assert c.group is not None
    sides = [grouped(u.tiles[v]) for v in list(o.operands)[:2]]
    out = Tile(acc.shape, acc.elem, u.lanes, {k: acc.chunk(k) for k in acc.keys()})
    broadcast = next(n for n in (0, 1) if c.lane not in c.maps[n])
    outer = [d for d in c.maps[2] if d != c.lane]
    rest = [d for d in c.reduced if d != c.group]
    for point in itertools.product(*(range(c.sizes[d]) for d in rest)):
        at = dict(zip(rest, point, strict=True))
        for row in itertools.product(*(range(c.sizes[d]) for d in outer)):
            at.update(zip(outer, row, strict=True))
            for piece in range(-(-acc.inner // u.lanes)):
                key = row + (piece,)
                width = out.width(key)
                values: list[Any] = [None, None]
                values[broadcast] = sides[broadcast].repeated(tuple(at[d] for d in c.maps[broadcast][:-1]), width)
                at[c.lane] = piece
                values[1 - broadcast] = sides[1 - broadcast].lanes_of(
                    tuple(at[d] for d in c.maps[1 - broadcast][:-1]), width)
                out.chunks[key] = dot_product(u.dot, out.chunks[key], values, c.unsigned)
    return out


def _lane_last(tile: Tile, dims: list[int], lane: int) -> tuple[Tile, list[int]]:
    """`tile` and its dims, transposed so that the lane dimension, where it is there, comes last."""
    if lane not in dims or dims[-1] == lane:
        return tile, dims
    order = [i for i, d in enumerate(dims) if d != lane] + [dims.index(lane)]
    return transposed(tile, order), [dims[i] for i in order]


def _dot(u: Unroller, o: Operation, c: Contract) -> None:
    """A contract to a scalar: lanes run along the last reduced dimension of the left operand."""
    lane = c.maps[0][-1]
    (a, a_dims), (b, b_dims) = (
        _lane_last(u.tiles[v], m, lane) for v, m in zip(list(o.operands)[:2], c.maps[:2], strict=True))
    elem = o.operands[2].type
    products = []
    for key in a.keys():
        at = dict(zip(a_dims, key, strict=True))
        x = extended(a.chunk(key), elem, 0 in c.unsigned)
        y = extended(b.chunk(tuple(at[d] for d in b_dims)), elem, 1 in c.unsigned)
        mul = "arith.mulf" if isinstance(elem, ir.FloatType) else "arith.muli"
        products.append(op(mul, [x.type], [x, y]))
    u.replace(o, [combine("add", horizontal("add", _common_width("add", products)), o.operands[2])])


def extended(value: Value, elem: Type, unsigned: bool = False) -> Value:
    """`value` (scalar or chunk) in the accumulator's element type."""
    is_vector = isinstance(value.type, ir.VectorType)
    have = ir.VectorType(value.type).element_type if is_vector else value.type
    if have == elem:
        return value
    t = vec(ir.VectorType(value.type).shape[0], elem) if is_vector else elem
    name = "arith.extf" if isinstance(elem, ir.FloatType) else "arith.extui" if unsigned else "arith.extsi"
    return op(name, [t], [value])


def multiply_add(a: Value, b: Value, acc: Value) -> Value:
    """a*b + acc, fused for f32 and f64."""
    elem = ir.VectorType(acc.type).element_type
    if isinstance(elem, (ir.F32Type, ir.F64Type)):
        return op("vector.fma", [acc.type], [a, b, acc])
    mul, add = ("arith.mulf", "arith.addf") if isinstance(elem, ir.FloatType) else ("arith.muli", "arith.addi")
    return op(add, [acc.type], [op(mul, [acc.type], [a, b]), acc])
