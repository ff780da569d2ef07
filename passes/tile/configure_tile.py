"""configure-tile: how many threads an instance of a tile program has on a GPU, how far its loads run ahead, and how
instances share workgroups.

    func.func @k(...) attributes {tile.grid = [...]}
    ->  attributes {tile.grid = [...], xcc.config = {gpu = {stages = 3 : i64, threads = 128 : i64}}}

What the program says itself in ``xcc.config`` stays.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod

from xcc._mlir import Block, Module, Operation, Value, ir
from xcc.dialects import tile as tile_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.dims import pow2_above
from xcc.passes.shared.updates import UPDATES
from xcc.passes.walk import ops_where
from xcc.targets.base import Chip

ROW = 8         # elements of a thread, of the largest tile
MOST = 512      # threads, of a program without products, as xcc's own kernels of rows have
REDUCED = 32    # elements of a thread, of the largest tile, where tiles are reduced: a warp waits for no other
ROW_REGISTERS = 64      # of such a thread, of a row in one step: its elements as they are read, and computed with
SHARED = 16     # likewise where several warps have it
PRODUCT = 64    # sums of a thread's, of a product's tile
COPIES = 8      # workgroups of a core, at most, that keep copies of buffers in shared memory, which they update
LIVE = 4        # tiles of a row's size that are wanted at a time, at most, where it shall have so few
MOST_THREADS = 1024     # of these workgroups
TOGETHER = 4    # instances of a workgroup, where a warp has each; of the largest two
STAGES = 3      # of a loop whose products are loaded ahead of
IN_REGISTERS = 2        # of a loop without products
MOST_STAGES = 6     # likewise of warpgroups, whose products run on into the next step


@register_pass
class ConfigureTile(Pass):
    """Chooses threads and stages for tile programs that do not say them."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for func in tile_d.programs_in(module):
            _configure(func.operation, ctx.chip)

    def acts_on(self, chip: Chip | None) -> bool:
        return bool(getattr(chip, "warp", 0))


def _configure(func: Operation, chip: Chip) -> None:
    products = ops_where(func, lambda op: op.name == "tile.contract")
    sizes = [prod(ir.VectorType(r.type).shape) for op in ops_where(func, lambda op: bool(len(op.results)))
             for r in op.results if isinstance(r.type, ir.VectorType)]
    chosen: dict[str, int] = {}
    if products and chip.warpgroup_products and all(map(_for_warpgroups, products)):
        chosen = _warpgroups(products, chip)
    elif products:
        sums = max(prod(ir.VectorType(op.results[0].type).shape) for op in products)
        chosen["threads"] = min(256, max(128, pow2_above(sums // PRODUCT)))
        chosen["stages"] = max(2, min(STAGES if chip.has_async_copies else 2,
                                      chip.shared_bytes // max(map(_step_bytes, products))))
    else:
        chosen["threads"] = _threads(func, max(sizes, default=1), chip)
        if ops_where(func, lambda op: op.name == "scf.for"):
            chosen["stages"] = IN_REGISTERS
        if ops_where(func, lambda op: op.name in UPDATES):
            chosen["private"] = 1 << (chip.shared_bytes // COPIES).bit_length() - 1
            chosen["persistent"] = chip.cores * max(1, min(COPIES, MOST_THREADS // chosen["threads"]))
        elif chosen["threads"] == chip.warp:
            whole = max(sizes, default=1) > chip.warp * REDUCED // 2
            chosen["instances"] = TOGETHER // 2 if whole else TOGETHER
            if chip.core_registers and "stages" not in chosen and ops_where(func, lambda op: op.name == "tile.reduce") \
                    and _live(func.regions[0].blocks[0], max(sizes)) <= LIVE:
                chosen["resident"] = chip.core_registers // (chip.warp * ROW_REGISTERS)
    given = func.attributes["xcc.config"] if "xcc.config" in func.attributes else ir.DictAttr.get({})
    gpu = ir.DictAttr(given["gpu"]) if "gpu" in given else ir.DictAttr.get({})
    i64 = ir.IntegerType.get_signless(64)
    whole = {k: ir.IntegerAttr.get(i64, v) for k, v in chosen.items()} | {a.name: a.attr for a in gpu}
    rest = {a.name: a.attr for a in given if a.name != "gpu"}
    func.attributes["xcc.config"] = ir.DictAttr.get(rest | {"gpu": ir.DictAttr.get(whole)})


def _live(block: Block, size: int) -> int:
    """The most tiles of `size` elements that a block's ops have made and others still want."""
    ops = [o.operation for o in block.operations]
    number = {o: n for n, o in enumerate(ops)}
    change = [0] * (len(ops) + 1)
    for n, op in enumerate(ops):
        for r in op.results:
            used = [number.get(u.owner.operation, len(ops) - 1) for u in r.uses]
            if used and isinstance(r.type, ir.VectorType) and prod(ir.VectorType(r.type).shape) == size:
                change[n] += 1
                change[max(used)] -= 1
    return max(accumulate(change))


def _threads(func: Operation, elements: int, chip: Chip) -> int:
    """Of an instance without products, whose largest tile has so many elements."""
    if not ops_where(func, lambda op: op.name == "tile.reduce") \
            or ops_where(func, lambda op: op.name == "scf.for" and _sums_rows(op, elements)):
        return min(MOST, max(chip.warp, pow2_above(elements // ROW)))
    if elements <= chip.warp * REDUCED:
        return chip.warp
    return min(MOST, pow2_above(elements // SHARED))


def _sums_rows(loop: Operation, elements: int) -> bool:
    """Whether each step of a loop reduces a row and adds it to others (gradients of norms): few instances have many
    rows each, and are fast where many threads have one."""
    tiles = [ir.VectorType(r.type) for r in loop.results if isinstance(r.type, ir.VectorType)]
    return any(prod(t.shape) == elements for t in tiles) and bool(ops_where(loop, lambda op: op.name == "tile.reduce"))


def _warpgroups(products: list[Operation], chip: Chip) -> dict[str, int]:
    """Of instructions of warpgroups; what they multiply may be another product's (attention)."""
    rows = min(ir.VectorType(op.results[0].type).shape[-2] for op in products)
    chosen = {"threads": 128 * min(2, rows // 64), "warpgroup": 1}
    if not all(_loaded(v) for op in products for v in list(op.operands)[:2]):
        return chosen | {"stages": 2}
    bytes = max(map(_step_bytes, products))
    return chosen | {"stages": max(2, min(MOST_STAGES, chip.shared_bytes // bytes))}


def _step_bytes(product: Operation) -> int:
    """Shared memory of the operands of one product."""
    kinds = [ir.VectorType(v.type) for v in list(product.operands)[:2]]
    return sum(prod(k.shape) * k.element_type.width // 8 for k in kinds)


def _for_warpgroups(product: Operation) -> bool:
    """Whether a product's operands are whole blocks of what instructions of warpgroups read: as they are loaded, or,
    the left one, in the registers of another product of the loop."""
    lhs, rhs = (ir.VectorType(v.type) for v in list(product.operands)[:2])
    inside = product.parent.name == "scf.for" and _loaded(product.operands[1]) \
        and (_loaded(product.operands[0]) or _multiplied(product.operands[0], product.block))
    return inside and str(lhs.element_type) in ("f16", "bf16") and lhs.rank == 2 \
        and lhs.shape[0] % 64 == 0 and lhs.shape[1] % 32 == 0 and rhs.shape[1] % 32 == 0 and rhs.shape[1] <= 256


def _loaded(value: Value) -> bool:
    """Whether a tile is loaded, but for its shape."""
    if isinstance(value.owner, ir.Block):
        return False
    op = value.owner.operation
    return op.name == "tile.load" or (op.name in ("tile.reshape", "tile.transpose") and _loaded(op.operands[0]))


def _multiplied(value: Value, block: Block) -> bool:
    """Whether a tile is computed element by element of a product in `block`."""
    if isinstance(value.owner, ir.Block) or value.owner.operation.block != block:
        return False
    op = value.owner.operation
    return op.name == "tile.contract" or op.name.startswith(("arith.", "math.")) \
        and any(_multiplied(v, block) for v in op.operands)
