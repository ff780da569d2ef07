"""Tiles of contractions for AMX: which fit its registers, and how many rows and columns they take.

Eight registers of 16 rows x 64 bytes: four of sums (two rows of registers by two columns, 32 x 32 sums), two of each
operand. One step multiplies 64 bytes of k.
"""

from __future__ import annotations

from xcc import symbolic
from xcc.passes.linalg.kernel.domain import element_bytes, volume
from xcc.passes.linalg.kernel.kernel import Access, Op, Tensor, bare_loop, is_packed
from xcc.passes.shared.packing import tile_step
from xcc.symbolic import Dim
from xcc.targets.base import Chip

ROWS = 16           # of a register
SUMS = 4            # registers
GROUP_BYTES = 4
STRIP = 4           # rows of sums that the rest of a kernel takes at once: eight vectors
MATRIX_READ = 4     # tiles that are multiplied while a panel of weights comes from the L3 cache
LEAST_GROUPS = {2: 1, 4: 3}     # of a step, by their elements: it takes as long as one of 16, as two groups of bytes by
                                # dot products, or half a group of bf16
LEAST_ROWS = 4      # below that weights are read once or twice: reading them is all the time there is


def matrix_tile(op: Op, dims: tuple[Dim, ...], m_dims: list[int], n_loop: int, columns: int, group: int,
                chip: Chip) -> tuple[list[int], tuple[int, ...]] | None:
    """Vector lanes of each dim and of each reduction loop of `op`; None where it does not fit.

    n_loop: the loop over columns. group: that over the elements of a group, which lie together in both operands.
    """
    right = next((access for t, access in op.inputs if _panels(t, access, n_loop, group, columns)), None)
    left = next((t for t, access in op.inputs if access is not right), None)
    if "amx" not in chip.matrix or right is None or left is None or left.producer is not None or not m_dims \
            or columns not in (ROWS, 2 * ROWS):
        return None
    size, groups = op.loops[group], bare_loop(right[-3])
    depth = None if groups is None else op.loops[groups]
    if groups is None or not isinstance(depth, int) or not depth or not isinstance(size, int) \
            or size * element_bytes(left.element) != GROUP_BYTES or tile_step(depth) < LEAST_GROUPS[size]:
        return None
    vector, room = [1] * len(dims), min(2, SUMS * ROWS // columns)
    inner, *outer = m_dims
    vector[-1] = columns
    vector[inner] = _rows(dims[inner], ROWS * room)
    room //= -(-vector[inner] // ROWS)
    if outer and room > 1 and dims[inner] == vector[inner]:
        vector[outer[0]] = _rows(dims[outer[0]], room)
    if volume(dims[d] for d in m_dims) < LEAST_ROWS:
        return None
    lanes = {group: size, groups: tile_step(depth)}
    return vector, tuple(lanes.get(p, 1) for p, r in enumerate(op.reduction) if r)


def _rows(extent: Dim, most: int) -> int:
    """Rows of a tile where the last one overlaps the one before: as few tiles as can be, and these as small."""
    return -(-extent // -(-extent // most)) if isinstance(extent, int) else most


def _panels(t: Tensor, access: Access, n_loop: int, group: int, columns: int) -> bool:
    """Whether whole tiles of `columns` columns of groups lie next to each other: (n floordiv P, ..., k, n mod P, group)
    with zeros behind the last column, or (..., k, n, group) with nothing left."""
    if len(access) < 3 or bare_loop(access[-1]) != group or f"i{n_loop}" not in symbolic.symbols_of(access[-2]):
        return False
    n = t.dims[-2]
    return is_packed(access[:-1]) or isinstance(n, int) and n % columns == 0
