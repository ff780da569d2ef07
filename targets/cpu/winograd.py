"""Schedules of convolutions in Winograd's form: a core makes the patches and the products of a few rows of tiles in its
own cache, then their results."""

from __future__ import annotations

from typing import Any

from xcc import symbolic
from xcc.passes.linalg.kernel.domain import Domain, estimate
from xcc.passes.linalg.kernel.kernel import Kernel, Op, Tensor, bare_loop
from xcc.passes.linalg.kernel.reduction_body import loops_of, product_operands
from xcc.passes.linalg.schedule.schedule import CpuPart, Kept, Schedule
from xcc.passes.xt.winograd import Shape, best_chunks
from xcc.targets.base import Chip

ACROSS = 4             # tiles of a chunk of images whose width is not known, at least
AHEAD = 8192           # bytes of the filter that are fetched ahead of the products


def winograd(kernel: Kernel, place: Domain, lanes: int, chip: Chip) -> Schedule | None:
    """None for any other kernel.

    Tiles of the dims that walk a constant matrix are whole and the sums over it unrolled, so that its elements are
    known where they are multiplied with.
    """
    reductions = [o for o in kernel.ops if o.is_reduction]
    ends = [o for o in reductions if any(_is_table(t) for t, _ in o.inputs)]
    products = next((o for o in reductions if o not in ends and product_operands(o) is not None), None)
    tiled = _tiled_dims(place)
    if products is None or len(ends) + 1 != len(reductions) or len(tiled) != 2:
        return None
    patches = next((t.producer for t, _ in products.inputs if t.producer is not None), None)
    if patches is None or patches not in ends:
        return None
    (down, tile), (across, _) = tiled
    last = len(place.dims) - 1
    panel, inputs = _panel(products), patches.results[0].dims[-1]
    rows = max(1, (chip.vector_registers - 4) // -(-panel // lanes))
    columns = place.dims[across]        # of a chunk: all of them, where that is a number
    columns = columns if isinstance(columns, int) else tile * max(ACROSS, rows // 2)
    shape = Shape(estimate(place.dims[0]) if down else 1, estimate(place.dims[down]), columns, estimate(inputs),
                  estimate(place.dims[last]), panel)
    chunks = best_chunks(shape, tile, chip)
    if chunks is None:
        return None
    block, vector = [0] * (last + 1), [1] * (last + 1)
    block[:down] = [1] * down
    vector[down] = vector[across] = tile
    vector[last] = lanes
    if chunks.rows * tile < shape.height or not isinstance(place.dims[down], int):
        block[down] = chunks.rows * tile
    if not isinstance(place.dims[across], int):
        block[across] = columns
    if chunks.outputs < shape.outputs:
        block[last] = chunks.outputs
    kept = (_patches(kernel, patches, lanes),
            _products(kernel, products, panel, rows, (-(-columns // tile), chunks.rows)))
    reduce = tuple(tuple(1 if o is products else 0 for r in o.reduction if r) for o in reductions)
    return Schedule(tuple(block), tuple(vector), tuple(range(last + 1)), reduce, "peel", "rows",
                    parallel=any(block), cpu=CpuPart(kept=kept, prefetch=AHEAD // (4 * panel)))


def _is_table(t: Tensor) -> bool:
    """Whether `t` is a constant whose elements differ."""
    return t.constant is not None and not t.constant.is_splat


def _tiled_dims(place: Domain) -> list[tuple[int, int]]:
    """The dims of the result that walk a table by their remainders, and the tile of each."""
    found: dict[int, int] = {}
    for t, access in place.reads:
        for e in access if _is_table(t) else ():
            atoms: list[Any] = [atom for monomial, _ in e.terms for atom in monomial] \
                if isinstance(e, symbolic.Expr) else []
            found |= {d: int(a[2]) for a in atoms
                      if a[0] == "mod" and isinstance(a[2], int) and (d := bare_loop(a[1])) is not None}
    return sorted(found.items())


def _panel(op: Op) -> int:
    """Columns of a panel of the filter; all of them where it has one."""
    t, access = next((t, a) for t, a in op.inputs if t.producer is None)
    atoms: list[Any] = [atom for monomial, _ in access[-1].terms for atom in monomial] \
        if isinstance(access[-1], symbolic.Expr) else []
    return next((int(a[2]) for a in atoms if a[0] == "mod"), estimate(t.dims[-1]))


def _patches(kernel: Kernel, op: Op, lanes: int) -> Kept:
    """A patch at a time, some channels of it; the table's dims come first."""
    dims = op.results[0].dims
    vector = (*(estimate(d) for d in dims[:2]), *[1] * (len(dims) - 3), lanes)
    return Kept(kernel.ops.index(op), vector, (*range(2, len(dims) - 1), 0, 1, len(dims) - 1))


def _products(kernel: Kernel, op: Op, panel: int, rows: int, chunk: tuple[int, int]) -> Kept:
    """A panel at a time, its rows in register tiles: neighbours across, then down; `chunk` has so many of them."""
    dims, loops = op.results[0].dims, op.out_loops()
    factors = product_operands(op)
    assert factors is not None
    walked = [loops_of(op, v) for v in factors]
    last = len(dims) - 1
    right = walked[1] if loops[last] in walked[1] else walked[0]
    free = [d for d in range(last) if loops[d] not in right]
    vector = [1] * (last + 1)
    vector[last] = panel
    left = rows
    for n, d in enumerate(reversed(free)):
        size = dims[d]
        extent = min(size, chunk[min(n, 1)]) if isinstance(size, int) else chunk[min(n, 1)]
        vector[d] = _row_tile(extent, left)
        left //= vector[d]
        if extent != vector[d] or left < 2 or n:
            break
    outer = [d for d in range(last) if d not in free]
    return Kept(kernel.ops.index(op), tuple(vector), (*outer, last, *free))


def _row_tile(extent: int, room: int) -> int:
    """Rows of a register tile: as many as there is room for in the fewest tiles, of nearly equal size."""
    return -(-extent // -(-extent // room))
