"""Loads that turn an operand: what lies along one dim in memory lies along another in shared memory.

Patches: neighbours in memory do not lie along k, where LDS is read along k. A lane of MFMA and WMMA holds neighbours
along k, and there is no LDS read that transposes (ldmatrix on NVIDIA, which does not for bytes). So a thread loads a
patch of `width` neighbours by `depth` rows along k, turns it in registers, which is choosing their order or, below 32
bits, one byte permutation a register, and writes runs of `depth` elements.

Copies: neighbours in memory lie along k, and FMAs read what has one k. Shared memory read along k gives four of k at a
time, which take four times the registers: half the workgroups. So asynchronous copies, of an element each, turn it.
"""

from __future__ import annotations

from xcc._mlir import Value, ir, maker
from xcc.passes.gpu.layout.contraction import Contraction
from xcc.passes.gpu.layout.tile_ops import element_bytes
from xcc.targets.base import Chip

RUN_BYTES = 16      # along k: every wave reads the tile, so that wide reads count for more than wide loads
LEAST_BYTES = 4     # of a load, and of an asynchronous copy


def patch(value: Value, near: int, width: int, threads: int, chip: Chip) -> tuple[int, int, int] | None:
    """(width, dim of k, depth) of the patch in which a thread loads the tile `value`, an operand of a contraction.

    near: the dim whose neighbours lie together in memory, at most `width` of them in one access. None where the tile is
    no such operand, has its neighbours along k, or the chip reads shared memory transposed.
    """
    if chip.has_matrix_loads and element_bytes(ir.VectorType(value.type).element_type) > 1:
        return None
    dim = _depth_dim(value, chip, threads // chip.warp, {})
    if dim is None or dim == near:
        return None
    t = ir.VectorType(value.type)
    own = 1
    for s in t.shape:
        own *= s
    own //= threads
    longest = min(RUN_BYTES // element_bytes(t.element_type), t.shape[dim])
    least = min(width, max(1, LEAST_BYTES // element_bytes(t.element_type)))
    depth = max(1, min(longest, own // least))
    return min(width, max(1, own // depth)), dim, depth


def turned_by_copies(value: Value, near: int, warps: int, chip: Chip) -> bool:
    """Whether the tile `value`, whose neighbours in memory lie along `near`, is for register-tiled products alone that
    sum along it, and asynchronous copies of its elements can turn it."""
    op, uses = maker(value), list(value.uses)
    if not chip.has_async_copies or element_bytes(ir.VectorType(value.type).element_type) < LEAST_BYTES:
        return False
    if not uses or op is None or op.parent.name != "scf.for":
        return False
    for use in uses:
        op = use.owner.operation
        if op.name != "vector.contract" or use.operand_number > 1:
            return False
        plan = Contraction(op, chip, warps)
        if plan.instruction is not None or plan.maps[use.operand_number][near] not in plan.k:
            return False
    return True


def _depth_dim(value: Value, chip: Chip, warps: int, known: dict[Value, int | None]) -> int | None:
    """The dim of `value` that becomes k of a matrix instruction, through elementwise operations alone.

    known: what was found; an elementwise operation may be reached on very many ways.
    """
    if value not in known:
        known[value] = _dim_of_users(value, chip, warps, known)
    return known[value]


def _dim_of_users(value: Value, chip: Chip, warps: int, known: dict[Value, int | None]) -> int | None:
    found = set()
    for use in value.uses:
        op = use.owner.operation
        if op.name == "vector.contract" and use.operand_number < 2:
            plan = Contraction(op, chip, warps)
            found.add(plan.maps[use.operand_number].index(plan.k[0]) if plan.instruction is not None else None)
        elif op.name.startswith("arith.") and len(op.results) == 1 and isinstance(op.results[0].type, ir.VectorType):
            found.add(_depth_dim(op.results[0], chip, warps, known))
        else:
            return None
    return found.pop() if len(found) == 1 else None
