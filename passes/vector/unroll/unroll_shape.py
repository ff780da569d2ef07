"""unroll-vectors, data movement: broadcast, shape_cast, transpose, extract and insert."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xcc._mlir import Operation, Type, Value, ir
from xcc.passes.shared.transposes import transpose_block
from xcc.passes.shared.values import pack, splat
from xcc.passes.vector.unroll.tiles import Key, ScalarTile, SplatTile, Tile
from xcc.passes.vector.unroll.unroller import Unroller, unrolls


class Transposed(Tile):
    """A tile whose dimension i is dimension permutation[i] of `source`; transposed when a chunk is first wanted."""

    def __init__(self, source: Tile, permutation: Sequence[int]) -> None:
        super().__init__([source.shape[p] for p in permutation], source.elem, source.lanes)
        self.source, self.permutation, self.at = source, list(permutation), ir.InsertionPoint.current

    def chunk(self, key: Key) -> Value:
        if not self.chunks:
            with self.at:
                self.chunks = _transposed(self, self.source, self.permutation)
        return self.chunks[key]


def transposed(tile: Tile, permutation: Sequence[int]) -> Tile:
    """The tile whose dimension i is dimension permutation[i] of `tile`."""
    if isinstance(tile, Transposed):
        permutation, tile = [tile.permutation[p] for p in permutation], tile.source
    return tile if list(permutation) == list(range(len(permutation))) else Transposed(tile, permutation)


def _transposed(out: Tile, tile: Tile, permutation: Sequence[int]) -> dict[Key, Value]:
    """The chunks of `out`."""
    if permutation[-1] == len(permutation) - 1:
        return {key: tile.chunk(_permute_back(key, permutation)) for key in out.keys()}
    row, chunks = list(permutation).index(len(permutation) - 1), dict[Key, Value]()
    blocks: dict[Key, list[Value]] = {}
    for key in out.keys():
        base = _permute_back(key[:-1] + (0,), permutation)
        first = key[-1] * tile.lanes
        column, lane = divmod(base[-1], tile.lanes)
        source = permutation[-1]
        rows = [base[:source] + (first + i,) + base[source + 1:-1] + (column,) for i in range(out.width(key))]
        corner = key[:row] + (column,) + key[row + 1:]
        if corner not in blocks:
            blocks[corner] = transpose_block([tile.chunk(r) for r in rows])
        chunks[key] = blocks[corner][lane]
    return chunks


def _permute_back(at: Key, permutation: Sequence[int]) -> Key:
    back = [0] * len(at)
    for i, p in enumerate(permutation):
        back[p] = at[i]
    return tuple(back)


def rebuilt(u: Unroller, shape: Sequence[int], elem: Type, scalar: Callable[[Key], Any]) -> Tile:
    """A tile packed from scalars."""
    out = Tile(shape, elem, u.lanes)
    for key in out.keys():
        out.chunks[key] = pack([scalar(at) for at in out.coordinates(key)])
    return out


@unrolls("vector.transpose")
def _transpose(u: Unroller, o: Operation) -> None:
    u.set(o, transposed(u.tiles[o.operands[0]], list(ir.DenseI64ArrayAttr(o.attributes["permutation"]))))


@unrolls("vector.broadcast")
def _broadcast(u: Unroller, o: Operation) -> None:
    """From a scalar, prepending dimensions, or stretching unit dimensions."""
    out = u.new(o.results[0])
    source = u.tiles.get(o.operands[0])
    if source is None:
        scalar = o.operands[0]
        chunks = {w: splat(scalar, w) for w in {out.width(k) for k in out.keys()}}
        out.chunks = {k: chunks[out.width(k)] for k in out.keys()}
        u.set(o, out)
        return
    lead = len(out.shape) - len(source.shape)

    def origin(at: Key) -> Key:
        return tuple(0 if d == 1 else k for d, k in zip(source.shape, at[lead:], strict=True))

    if source.inner == 1 and out.inner != 1:
        u.set(o, SplatTile(out.shape, out.elem, u.lanes, Shared(lambda at: source.lane(origin(at)), origin),
                           u.anchor(o)))
        return
    for key in out.keys():
        out.chunks[key] = source.chunk(origin(key) if source.shape else (0,))
    u.set(o, out)


class Shared:
    """A scalar function that is evaluated once for coordinates that come from the same `origin`."""

    def __init__(self, scalar: Callable[[Key], Any], origin: Callable[[Key], Key]) -> None:
        self.scalar, self.origin = scalar, origin
        self.values: dict[Key, Value] = {}

    def __call__(self, at: Key) -> Value:
        key = self.origin(at)
        if key not in self.values:
            self.values[key] = self.scalar(at)
        return self.values[key]


@unrolls("vector.shape_cast")
def _shape_cast(u: Unroller, o: Operation) -> None:
    source, out = u.tiles[o.operands[0]], u.new(o.results[0])
    if source.inner == out.inner:
        for key, old in zip(out.keys(), source.keys(), strict=True):
            out.chunks[key] = source.chunk(old)
        u.set(o, out)
        return
    flat = list(_all_coordinates(source.shape))
    where = dict(zip(_all_coordinates(out.shape), flat, strict=True))
    u.set(o, ScalarTile(out.shape, out.elem, u.lanes, lambda at: source.lane(where[at]), u.anchor(o)))


def _all_coordinates(shape: Sequence[int]) -> list[Key]:
    import itertools

    return list(itertools.product(*(range(d) for d in shape)))


def _static_position(o: Operation) -> Key:
    return tuple(ir.DenseI64ArrayAttr(o.attributes["static_position"]))


@unrolls("vector.extract")
def _extract(u: Unroller, o: Operation) -> None:
    """A sub-vector or a scalar at a static position."""
    source, position = u.tiles[o.operands[0]], _static_position(o)
    if not isinstance(o.results[0].type, ir.VectorType):
        u.replace(o, [source.lane(position)])
        return
    out = u.new(o.results[0])
    if len(position) == len(source.shape):
        out.chunks = {(0,): pack([source.lane(position)])}
    else:
        out.chunks = {k: source.chunk(position + k) for k in out.keys()}
    u.set(o, out)


@unrolls("vector.insert")
def _insert(u: Unroller, o: Operation) -> None:
    """A sub-vector or a scalar put at a static position."""
    dest, position = u.tiles[o.operands[1]], _static_position(o)
    out = Tile(dest.shape, dest.elem, u.lanes, {k: dest.chunk(k) for k in dest.keys()})
    value = u.tiles.get(o.operands[0])
    if len(position) < len(dest.shape):
        assert value is not None
        for k in value.keys():
            out.chunks[position + k] = value.chunk(k)
    else:
        scalar = o.operands[0] if value is None else value.lane(())
        key = position[:-1] + ((position[-1] if position else 0) // u.lanes,)
        lanes = [dest.lane(at) for at in dest.coordinates(key)]
        lanes[(position[-1] if position else 0) % u.lanes] = scalar
        out.chunks[key] = pack(lanes)
    u.set(o, out)


@unrolls("vector.from_elements")
def _from_elements(u: Unroller, o: Operation) -> None:
    shape = ir.VectorType(o.results[0].type).shape
    where = dict(zip(_all_coordinates(shape), o.operands, strict=True))
    u.set(o, rebuilt(u, shape, ir.VectorType(o.results[0].type).element_type, lambda at: where[at]))


@unrolls("vector.to_elements")
def _to_elements(u: Unroller, o: Operation) -> None:
    source = u.tiles[o.operands[0]]
    u.replace(o, [source.lane(at) for at in _all_coordinates(source.shape)])
