"""The memory side of a tile's reads and writes: what a layout's accesses are aligned to, and how well they coalesce."""

from __future__ import annotations

import math

from xcc import symbolic
from xcc._mlir import Operation, Value, ir
from xcc.passes.gpu.index.index_values import divisor
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.tile_ops import element_bytes

HALF = 2        # bytes of an element of which several are a register
SECTOR = 32     # bytes that memory is read by
WORDS = 16      # of a row of a tile, at least, where they are of several lanes: what is at its ends is stored alone


def map_dims(op: Operation) -> list[int]:
    """For each vector dim of a transfer op the memory dim it walks, -1 where it broadcasts."""
    amap = op.attributes["permutation_map"].value
    return [e.position if isinstance(e, ir.AffineDimExpr) else -1 for e in amap.results]


class Access:
    """The memory side of a vector.transfer_read or transfer_write.

    Attributes:
        dims: for each vector dim the memory dim it walks, -1 for a broadcast.
        aligned: elements; every row start and index is a multiple of it.
        along: the vector dim that walks neighbours in memory, -1 where there is none.
        widest: elements of an access of several lanes' elements (passes/gpu/exchange/row_stores.py), or `aligned`.
    """

    def __init__(self, op: Operation, max_bytes: int) -> None:
        write = op.operation.name == "vector.transfer_write"
        self.memref = op.operands[1] if write else op.operands[0]
        vector = ir.VectorType(op.operands[0].type if write else op.results[0].type)
        self.shape = tuple(vector.shape)
        self.bytes = element_bytes(vector.element_type)
        self.dims = map_dims(op)
        memory = ir.MemRefType(self.memref.type)
        self.sizes = list(memory.shape)
        first = 2 if write else 1
        self.indices = list(op.operands)[first:first + len(self.sizes)]
        self.element = vector.element_type
        self.aligned = self._alignment(max(1, max_bytes // self.bytes))
        self.along = next((i for i, d in enumerate(self.dims) if d == len(self.sizes) - 1), -1)
        word = max(1, max_bytes // self.bytes)
        shifts = write and self.bytes == HALF and self.along >= 0 and self.shape[self.along] >= WORDS * word \
            and all(n >= 0 for n in self.sizes[1:]) \
            and memory.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(len(self.sizes)))
        self.widest = word if shifts else self.aligned

    def _alignment(self, limit: int) -> int:
        if not self.sizes:
            return 1
        known = math.gcd(limit, divisor(self.indices[-1]))
        stride = 1
        for d in reversed(range(1, len(self.sizes))):
            stride = stride * (self.sizes[d] if self.sizes[d] >= 0 else _known_multiple(self.memref, d))
            index = divisor(self.indices[d - 1])
            walked = d - 1 in self.dims
            known = math.gcd(known, stride if walked else stride * index)
        return known & -known

    @property
    def splits_sectors(self) -> bool:
        """Whether rows that the tile walks begin within sectors, as far as sizes are known: two lanes that share one
        there are two requests where they go past the L1 cache."""
        strides = [math.prod(self.sizes[d + 1:]) for d in self.dims if 0 <= d < len(self.sizes) - 1
                   and min(self.sizes[d + 1:]) > 0]
        return any(n * self.bytes % SECTOR for n in strides)

    @property
    def order(self) -> list[int]:
        """The vector dims by distance in memory, nearest first; broadcast dims come last."""
        return sorted(range(len(self.dims)), key=lambda i: -self.dims[i] if self.dims[i] >= 0 else 1)

    def _stride(self, memory_dim: int) -> int:
        stride = 1
        for s in self.sizes[memory_dim + 1:]:
            stride *= s if s >= 0 else 1 << 12
        return stride

    def run(self, layout: Layout) -> tuple[int, list[int]]:
        """The widest vector access of `layout` here: elements, and the register bits that span it."""
        last = len(self.sizes) - 1
        along = [i for i, d in enumerate(self.dims) if d == last]
        return layout.contiguous(self.aligned, along[0]) if along else (1, [])

    def shifted(self, layout: Layout) -> tuple[int, int]:
        """Elements of words that begin anywhere in rows, of what two lanes hold, and lanes along a row; (0, 0) where
        accesses of `layout` are as wide as its rows allow."""
        if self.widest == self.aligned:
            return 0, 0
        run, _ = layout.contiguous(self.widest, self.along)
        unit = [run if d == self.along else 0 for d in range(len(layout.shape))]
        lanes = 0
        for v in layout.basis("lane"):
            if list(v) != [n << lanes for n in unit]:
                break
            lanes += 1
        rest = [v[self.along] for v in layout.basis("lane")[lanes:]]
        return (run, 1 << lanes) if run > self.aligned and lanes and not any(rest) else (0, 0)

    def efficiency(self, layout: Layout) -> float:
        """Bytes a warp asks for over the bytes of the 32-byte sectors it touches, for its first access."""
        width = max(self.shifted(layout)[0], self.run(layout)[0])
        wanted: set[int] = set()
        for lane in range(layout.size("lane")):
            position = layout.at(lane=lane)
            offset = sum(c * self._stride(d) for c, d in zip(position, self.dims, strict=True) if d >= 0)
            wanted.update(range(offset * self.bytes, (offset + width) * self.bytes))
        sectors = {b // 32 for b in wanted}
        return len(wanted) / (32 * len(sectors))


def _known_multiple(memref: Value, dim: int) -> int:
    """What the size of an argument's dim is known to be a multiple of: the kernel says how its symbols make it."""
    if not isinstance(memref.owner, ir.Block):
        return 1
    func, number = memref.owner.owner, ir.BlockArgument(memref).arg_number
    attributes = func.operation.attributes if hasattr(func, "operation") else {}
    if func is None or "xt.arg_dims" not in attributes:
        return 1
    given = list(ir.ArrayAttr(attributes["xt.arg_dims"]))
    if number >= len(given):
        return 1
    text = list(ir.ArrayAttr(given[number]))[dim]
    size = symbolic.parse(text.value) if isinstance(text, ir.StringAttr) else 1
    return 1 if isinstance(size, int) else math.gcd(*(c for _, c in size.terms))


def neighbours_in_registers(layout: Layout, access: Access) -> Layout:
    """`layout` with lane bits along the nearest dim changed for register bits, so that a thread's accesses are wide."""
    return _exchanged(layout, access, "register", 1, access.widest)


def neighbours_in_lanes(layout: Layout, access: Access) -> Layout:
    """`layout` with register bits along the nearest dim changed for lane bits, so that a warp's narrow accesses lie
    side by side. Elements of one word stay in one thread: they change lanes together."""
    width = max(access.aligned, 4 // access.bytes, 1)
    return _exchanged(layout, access, "lane", width, width * layout.size("lane"))


def _exchanged(layout: Layout, access: Access, to: str, low: int, high: int) -> Layout:
    """`layout` where bits along the nearest dim from step `low` to `high` are of `to`, "register" or "lane". Other
    registers along that dim, or lanes that are across, take their places."""
    dim = next((i for i, d in enumerate(access.dims) if d == len(access.sizes) - 1), None)
    if dim is None:
        return layout
    bases = {"register": list(layout.basis("register")), "lane": list(layout.basis("lane"))}
    taker, giver = bases[to], bases["lane" if to == "register" else "register"]

    def along(v: tuple[int, ...]) -> bool:
        return v[dim] > 0 and not any(c for d, c in enumerate(v) if d != dim)

    wanted = [tuple(s if d == dim else 0 for d in range(len(layout.shape)))
              for s in (1 << b for b in range(low.bit_length() - 1, (high - 1).bit_length()))]
    spare = [n for n, v in enumerate(taker) if v not in wanted and any(v)
             and (to == "register" and v[dim] >= high if along(v) else to == "lane")]
    for v in wanted:
        if v not in taker:
            if v not in giver or not spare:
                break
            n, m = spare.pop(0), giver.index(v)
            taker[n], giver[m] = giver[m], taker[n]
    return Layout(layout.shape, tuple((name, tuple(bases.get(name, vectors))) for name, vectors in layout.bases))


def mask_layout(op: Operation, layout: Layout) -> Layout:
    """The layout of the mask of a transfer op whose vector has `layout`: its dims are in the memory's order."""
    access = Access(op, 1)
    kept = [i for i, d in enumerate(access.dims) if d >= 0]
    order = sorted(range(len(kept)), key=lambda j: access.dims[kept[j]])
    return layout.sliced([i for i, d in enumerate(access.dims) if d < 0]).permuted(order)
