"""ldmatrix: 8x8 tiles of 16-bit elements from shared memory straight into the fragments of mma.sync.

Each lane names one row of 16 bytes; lane l then holds elements 2 * (l % 4) and the next one of row l / 4 of each tile,
or, transposed, of column l / 4 (PTX ISA, "ldmatrix"). A read fits when its offsets have that form. Of bytes, a lane
holds four neighbours of a row; they cannot be transposed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xcc._mlir import Type, Value, ir, vector_d
from xcc.passes.gpu.layout.linear import Layout, log2

if TYPE_CHECKING:
    from xcc.passes.gpu.exchange.thread_code import ThreadCode
    from xcc.targets.base import Chip

ROW, WORD = 16, 4       # bytes of a row of a tile, and of what a lane holds of it


def loads_matrices(chip: Chip, element_type: Type) -> bool:
    """Whether ldmatrix may read elements of this type on `chip`; its op has no f8."""
    wanted = 16 if isinstance(element_type, ir.FloatType) else 8
    return bool(chip.has_matrix_loads) and not isinstance(element_type, ir.IndexType) and element_type.width == wanted


@dataclass(frozen=True)
class MatrixLoad:
    """How a read is done with ldmatrix.

    Attributes:
        addresses: inputs register (one value a load), lane (which row this lane names) and warp to the row's offset.
        groups: for each load the registers that it fills, tile by tile.
        tiles: 1, 2 or 4.
        size: bytes of an element, 2 or 1.
    """

    addresses: Layout
    groups: tuple[tuple[int, ...], ...]
    tiles: int
    transposed: bool
    size: int = 2

    @property
    def cycles(self) -> int:
        """Cycles of a warp: one to issue each load, one a tile, more where rows share banks."""
        return len(self.groups) * (1 + self.tiles * (1 + self.addresses.bank_conflicts(ROW // self.size, self.size)))

    def emit(self, code: ThreadCode, buffer: Value, element: Type, start: Value | None = None, fixed: int = 0) -> Value:
        """The register vector; `fixed` is XORed into all offsets, then `start` is added."""
        out: list[Any] = [None] * sum(len(g) for g in self.groups)
        i32, held = ir.IntegerType.get_signless(32), WORD // self.size
        for number, group in enumerate(self.groups):
            op = ir.Operation.create(
                "nvgpu.ldmatrix", results=[ir.VectorType.get([self.tiles, held], element)],
                operands=[buffer, code.offset_of(self.addresses, number, fixed, start)],
                attributes={"numTiles": ir.IntegerAttr.get(i32, self.tiles),
                            "transpose": ir.BoolAttr.get(self.transposed)})
            for i, register in enumerate(group):
                out[register] = vector_d.extract(op.results[0], [], [i // held, i % held])
        return vector_d.from_elements(ir.VectorType.get([len(out)], element), out)


def matrix_load(offsets: Layout, size: int) -> MatrixLoad | None:
    """The plan for reading registers at 1-D `offsets` of elements of `size` bytes; None when the form does not fit."""
    lane = [v[0] for v in offsets.basis("lane")]
    register = [v[0] for v in offsets.basis("register")]
    warp = [v[0] for v in offsets.basis("warp")]
    if len(lane) != 5 or not register:
        return None
    held = WORD // size
    neighbours = [1 << b for b in range(log2(held))]
    if lane[:2] == [held, 2 * held] and all(v in register for v in neighbours):
        word, rows, transposed = [register.index(v) for v in neighbours], lane[2:], False
    elif lane[2:] == [1, 2, 4] and size == 2:
        word, transposed = [0], True
        rows = [register[0], *lane[:2]]
    else:
        return None
    others = [i for i in range(len(register)) if i not in word]
    low = [*rows, *warp, *(register[i] for i in others)]
    if any(v % (ROW // size) for v in low):
        return None
    select, outer = others[:2], others[2:]
    names = [*rows, *(register[i] for i in select)]
    names += [0] * (5 - len(names))
    addresses = Layout.make(offsets.shape, {"register": [[register[i]] for i in outer], "lane": [[v] for v in names],
                                            "warp": [[v] for v in warp]})
    groups = []
    for number in range(1 << len(outer)):
        base = sum(1 << outer[i] for i in range(len(outer)) if number >> i & 1)
        group = []
        for tile in range(1 << len(select)):
            first = base + sum(1 << select[i] for i in range(len(select)) if tile >> i & 1)
            group += [first + sum(1 << b for i, b in enumerate(word) if n >> i & 1) for n in range(held)]
        groups.append(tuple(group))
    return MatrixLoad(addresses, tuple(groups), 1 << len(select), transposed, size)
