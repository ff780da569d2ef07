"""Tile sizes of kernels that rescale sums as a maximum grows, which is how attention is one kernel."""

from __future__ import annotations

import math

from xcc import symbolic
from xcc.passes.gpu.pipeline.loop_room import exchange_bytes
from xcc.passes.linalg.kernel.domain import Domain, element_bytes, estimate, volume
from xcc.passes.linalg.kernel.kernel import Access, Kernel, Tensor, bare_loop, loop_index
from xcc.passes.linalg.kernel.online import OnlineGroup, OnlineSum
from xcc.passes.linalg.kernel.reduction_body import loops_of, product_operands
from xcc.passes.linalg.schedule.schedule import GpuPart, Schedule
from xcc.passes.shared.dims import pow2_above
from xcc.passes.shared.instruction_tables import instructions_of
from xcc.symbolic import Dim
from xcc.targets.base import Chip
from xcc.targets.gpu_convolution import multiplied_type
from xcc.targets.gpu_operands import loaded_tensor

ROWS = 64       # queries of a tile; half of them where features need the registers
KEYS = 64       # keys of a step, likewise
WIDEST = 256    # features that a tile holds
LEAST = 16      # features of an instruction
WARP_ROWS = 16  # queries of a warp whose products take mma: scores are then an operand as they are
MOST_ROWS, MOST_KEYS = 128, 128     # of a tile of such warps
FEW_REGISTERS = 216     # of a thread, for scores, weights, results and queries
OTHER_REGISTERS = 56    # for addresses, masks and fragments of keys and values
MOST_PARTS = 64         # of the keys of a row
LONG = 4096             # keys where their number is not known
DRAWN = 1.75            # times its share of the memory's bandwidth that a core alone reads
FILLING = 2             # steps that a block takes until its first keys are there
MERGING = 3e-6          # seconds for a second launch
REACHED = 0.6           # share of the peak rate of matrix instructions
EQUAL = 1.02            # times that are no reason to leave cores without a block
LANE_REGISTERS = 256    # that an AMD instruction can name
SPARE_REGISTERS = 48    # of those, that an estimate leaves; half of them in waves of 32, whose estimates are closer
K_BYTES = 32            # along k of an AMD instruction
WORD, ADDRESS = 4, 2    # bytes of a register; registers of an address that lanes compute


def online_schedule(kernel: Kernel, place: Domain, group: OnlineGroup, chip: Chip) -> Schedule | None:
    """Rows x features in one tile, a block of keys a step, for a sum of products relative to a maximum (attention)."""
    found = next((s for s in group.sums if product_operands(s.op) is not None), None)
    factors = product_operands(found.op) if found is not None else None
    position = place.position.get(found.op) if found is not None else None
    if found is None or factors is None or position is None or any(bare_loop(e) is None for e in position):
        return None
    to_dim = {loop_index(o): bare_loop(e) for o, e in zip(found.op.outs[0], position, strict=True)}
    walked = {loop_index(o) for o, e in zip(found.op.outs[0], position, strict=True)}
    weights, values = (loops_of(found.op, v) & walked for v in factors)
    of_row = {n for e in found.row for s in symbolic.symbols_of(e) for n in [int(s[1:])]}
    if values - weights and not values - weights <= walked - of_row:
        weights, values = values, weights
    rows, columns = sorted(weights - values), sorted(values - weights)
    if len(columns) != 1:
        return None
    row, column = to_dim[rows[-1]] if rows else None, to_dim[columns[0]]
    size = found.op.loops[columns[0]]
    if column is None or not isinstance(size, int) or size > WIDEST:
        return None
    if row is None:
        return _one_row(kernel, place, group, found, column, chip) if not rows else None
    vector = [1] * len(place.dims)
    vector[column] = max(8, pow2_above(size))
    queries, length = (pow2_above(estimate(d)) for d in (place.dims[row], found.op.loops[found.loop]))
    if any(i.types[0] == str(multiplied_type(factors[0])) and i.exact and i.family in chip.chained_families
           for i in instructions_of(chip)):
        others = volume(d for n, d in enumerate(place.dims) if n not in (row, column))
        vector[row], keys, stages = _warp_rows(size, queries, length, others,
                                               group.last_visible(kernel) is not None, chip)
        return _in_parts(Schedule(
            tuple(vector), tuple(vector), tuple(range(len(vector))), _lanes(kernel, group, keys), "mask", "gather",
            parallel=True, online=True, gpu=GpuPart(
                threads=max(4, vector[row] // WARP_ROWS) * chip.warp, stages=stages,
                warpgroup=chip.warpgroup_products and vector[row] >= 4 * WARP_ROWS)),
            place, found.op.loops[found.loop], keys, element_bytes(multiplied_type(factors[0])), chip)
    element = str(multiplied_type(factors[0]))
    simt = not any(i.types[0] == element and i.exact for i in instructions_of(chip))
    if not simt:
        others = volume(d for n, d in enumerate(place.dims) if n not in (row, column))
        masks = {t: _read_alone(t, a, f"i{row}", found.op.loops[found.loop]) for t, a in place.reads}
        alone = sum(masks.values())     # each once: the maximum, the sums and the products compute the scores together
        vector[row], keys, threads, stages = _lane_rows(vector[column], queries, length, others,
                                                        element_bytes(multiplied_type(factors[0])), alone, chip)
        return Schedule(tuple(vector), tuple(vector), tuple(range(len(vector))), _lanes(kernel, group, keys), "mask",
                        "gather", parallel=True, online=True,
                        gpu=GpuPart(threads=threads, stages=stages))
    narrow, words = chip.narrow_waves, max(1, element_bytes(multiplied_type(factors[0])) // WORD)
    vector[row] = min(ROWS if size <= 128 and not narrow else ROWS // 2, max(16, queries))
    others = volume(d for n, d in enumerate(place.dims) if n not in (row, column))
    least = ROWS // 4 if size <= 64 and not narrow else ROWS // 2   # 16 results a thread in both products
    while vector[row] > least and -(-queries // vector[row]) * others < chip.cores:
        vector[row] //= 2
    keys = min((16 if narrow else KEYS if size <= 64 else KEYS // 2) // words, max(16, length))
    reduce = _lanes(kernel, group, keys)
    threads = 256 if narrow else min(128, 4 * vector[row]) if size <= 64 else 128
    return _in_parts(Schedule(
        tuple(vector), tuple(vector), tuple(range(len(vector))), reduce, "mask", "gather", parallel=True, online=True,
        gpu=GpuPart(threads=threads, stages=_stages(kernel, keys * vector[column], chip))),
        place, found.op.loops[found.loop], keys, element_bytes(multiplied_type(factors[0])), chip)


def _warp_rows(features: int, queries: int, length: int, others: int, uneven: bool, chip: Chip) -> tuple[int, int, int]:
    """Queries of a tile, keys of a step and stages where a warp keeps its rows to itself through both products.
    uneven: some queries see fewer keys (causal attention).

    Many rows share what is read of keys and values; many keys make the rescaling of the results rare. Instructions of
    warpgroups do without the former where features are few, and without the latter where a core has several
    workgroups: they then take turns with its units.
    """
    groups, padded = chip.warpgroup_products, pow2_above(features)
    features = -(-features // LEAST) * LEAST        # that instructions compute; memory has all of the tile's
    rows = max(WARP_ROWS, min(ROWS if groups and features <= 64 else MOST_ROWS, queries))
    # tiles of half the rows, which a core has no room for two of, take turns, but where some have less to do
    turns = 2 if groups and not uneven and 2 * 2 * (ROWS + 4 * KEYS) * padded > chip.shared_bytes else 1
    while rows > ROWS and -(-queries // rows) * others * turns < chip.cores:
        rows //= 2
    held = 3 * features // 4 + OTHER_REGISTERS      # results, and queries as fragments
    kept = 0
    if groups or held > FEW_REGISTERS:              # queries in shared memory
        held, kept = held - features // 4, 2 * rows * padded
    several = features > 64 or -(-queries // rows) * others > 2 * chip.cores
    keys = max(16, min(KEYS if groups and rows <= ROWS and several else MOST_KEYS, length))
    most = 2 if groups else 3

    def room(stages: int) -> bool:
        return kept + stages * 2 * keys * padded * 2 <= chip.shared_bytes * 7 // 8

    while keys > 16 and (held + keys // 2 > FEW_REGISTERS or not room(2)):
        keys //= 2
    return rows, keys, next((n for n in (most, 2) if room(n)), 0)


def _read_alone(tensor: Tensor, access: Access, row: str, length: Dim) -> int:
    """Registers a score needs that is read from `tensor` (a mask) by an access of its own, value and address."""
    walked = [d for d, e in zip(tensor.dims, access, strict=True) if any(n[0] == "r" for n in symbolic.symbols_of(e))]
    if length not in walked or row not in {n for e in access for n in symbolic.symbols_of(e)}:
        return 0
    read = loaded_tensor(tensor, access)
    return math.ceil(read.registers / WORD) + ADDRESS if read.accesses > 1 / 2 else 0


def _lane_rows(features: int, queries: int, length: int, others: int, size: int, alone: int, chip: Chip
               ) -> tuple[int, int, int, int]:
    """Queries of a tile, keys of a step, threads and stages where a lane keeps its row through both products (AMD).

    Fewer rows, for more cores, are for tiles whose few threads have room for the loads ahead; else a lane takes
    registers that only matrix instructions name, or half of the tile is idle. Where a row's results and operands do
    not fit into a wave's registers, the waves share its features instead, and several times the instructions.
    alone: registers that a score needs besides, for what is read with it.
    """
    rows = max(16, min(MOST_ROWS, queries))
    few = rows // 2 if rows > ROWS and -(-queries // rows) * others < chip.cores else rows
    named = min(LANE_REGISTERS, chip.vector_registers)
    spare = SPARE_REGISTERS if chip.warp > 32 else SPARE_REGISTERS // 2
    for tile, most in ((few, named), (rows, named), (few, chip.vector_registers), (min(MOST_ROWS, 2 * rows), named)):
        found = _lane_keys(tile, most - spare, features, length, size, alone, chip)
        if found is not None:
            return tile, *found
    side = min(few, _side(size, chip))
    rows, threads = (min(few, 2 * side), 256) if chip.warp > 32 else (32, 256) if features <= 128 else (16, 128)
    return rows, side, threads, 2 if (4 * side + rows) * features * size <= chip.shared_bytes else 0


def _side(size: int, chip: Chip) -> int:
    """Rows of a wave."""
    return 32 if chip.warp > 32 and size <= WORD else 16


def _lane_keys(rows: int, most: int, features: int, length: int, size: int, alone: int, chip: Chip
               ) -> tuple[int, int, int] | None:
    """Keys of a step, threads and stages of a tile of `rows` that needs no more than `most` registers of a lane."""
    side, words = min(rows, _side(size, chip)), max(1, size // WORD)
    threads = rows // side * chip.warp
    nameable = min(LANE_REGISTERS, chip.vector_registers)

    def held(r: int, columns: int) -> int:
        """Registers of an operand of r x columns in a wave."""
        return chip.fragment_copies * r * columns * size // (4 * chip.warp)

    def kept(keys: int) -> bool:
        """Whether the queries are in shared memory (as passes/gpu/pipeline/loads_ahead.py decides)."""
        return side * (features + keys) // chip.warp + held(side, features) + step(keys) \
            >= nameable - OTHER_REGISTERS

    def step(keys: int) -> int:
        """Registers of the keys or values of one instruction's k."""
        return held(max(features, keys), K_BYTES // size)

    def fits(keys: int, ahead: bool) -> bool:
        scores = side * keys // chip.warp
        registers = side * features * words // chip.warp + scores * (words + alone) + scores * size // 4 + step(keys) \
            + OTHER_REGISTERS + (0 if kept(keys) else held(side, features)) \
            + (2 * keys * features * size // (4 * threads) if ahead else 0)
        tiles = ((4 * keys if ahead else 0) + (rows if kept(keys) else 0)) * features * size
        return registers <= most and tiles + exchange_bytes(rows * keys * size) <= chip.shared_bytes

    if most > nameable:     # two workgroups of few waves are to find room in shared memory
        return next(((side, threads, n) for n in (2, 0) if fits(side, n > 0)), None)
    keys = max(side, min(KEYS, length))
    while keys > side and not fits(keys, True):
        keys //= 2
    return (keys, threads, 2) if fits(keys, True) else None


def _lanes(kernel: Kernel, group: OnlineGroup, keys: int) -> tuple[tuple[int, ...], ...]:
    """Lanes of all reductions: `keys` of those that share the loop, whole features of the products before."""
    shared = {group.maximum, *(s.op for s in group.sums)}
    return tuple(tuple(keys if o in shared else min(256, pow2_above(estimate(o.loops[p])))
                       for p, r in enumerate(o.reduction) if r) for o in kernel.ops if o.is_reduction)


def _one_row(kernel: Kernel, place: Domain, group: OnlineGroup, found: OnlineSum, column: int,
             chip: Chip) -> Schedule | None:
    """A query at a time (a step of decoding): all threads of a workgroup read its keys, ahead of the compute."""
    element = multiplied_type(product_operands(found.op)[1])    # type: ignore[index]
    if not any(i.types[0] == str(element) and i.exact for i in instructions_of(chip)):
        return None
    size = found.op.loops[next(loop_index(o) for o in found.op.outs[0][-1:])]
    assert isinstance(size, int)
    vector = [1] * len(place.dims)
    vector[column] = max(16, pow2_above(size))
    length = found.op.loops[found.loop]
    keys = min(KEYS, max(16, pow2_above(estimate(length))))
    return _in_parts(Schedule(
        tuple(vector), tuple(vector), tuple(range(len(vector))), _lanes(kernel, group, keys), "mask", "gather",
        parallel=True, online=True, gpu=GpuPart(threads=128, stages=_stages(kernel, keys * vector[column], chip))),
        place, length, keys, element_bytes(element), chip)


def _in_parts(one: Schedule, place: Domain, length: Dim, keys: int, width: int, chip: Chip) -> Schedule:
    """`one` with the loop over `length` keys, `keys` of `width` bytes a number at a time, cut into parts where its
    tiles leave cores idle and what a second launch costs is less than that.

    Where the keys of known queries are not, they are taken to be many: a cache that grows. Other unknown dims may be 1.
    """
    tiles = [symbolic.ceildiv(d, n) for d, n in zip(place.dims, one.block, strict=True)]
    known = symbolic.is_static(tiles)
    if any(n > 1 and not isinstance(d, int) for d, n in zip(place.dims, one.block, strict=True)):
        return one
    count = math.prod(d for d in tiles if isinstance(d, int))
    steps, features = -(-(length if isinstance(length, int) else LONG) // keys), one.vector[-1]
    rows = math.prod(one.vector) // features
    moved = 2.0 * keys * features * width
    rate = dict(chip.flops).get("f16" if width == 2 else "f32", 0.0) * REACHED
    compute = 4.0 * max(rows, WARP_ROWS) * keys * features / rate if rate else 0.0
    step = chip.cores * max(moved / (DRAWN * chip.bandwidth), compute)
    least = count * steps * max(moved / chip.bandwidth, compute)

    def seconds(parts: int) -> float:
        busiest = -(-count * parts // chip.cores) * (-(-steps // parts) + FILLING) * step
        merged = MERGING + 16.0 * rows * features * count * parts / chip.bandwidth if parts > 1 else 0.0
        return max(busiest, least) + merged

    choices = range(1, min(MOST_PARTS, steps) + 1)
    fastest = min(map(seconds, choices))
    parts = max((n for n in choices if seconds(n) <= EQUAL * fastest and count * n <= chip.cores),
                default=min(choices, key=seconds))
    parts = -(-steps // -(-steps // parts))     # as few as have that many steps
    return one.with_gpu(splits=parts, busy=0 if known else chip.cores) if parts > 1 else one


def _stages(kernel: Kernel, block: int, chip: Chip) -> int:
    """Blocks of keys and values in flight, where copies are asynchronous and shared memory holds them; 0: none."""
    if not chip.has_async_copies:
        return 0
    width = max(element_bytes(t.element) for t in kernel.args)
    return next((n for n in (3, 2) if n * 2 * block * width <= chip.shared_bytes * 3 // 4), 0)
