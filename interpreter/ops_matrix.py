"""Matrix instructions of a warp: mma.sync (NVIDIA), MFMA (CDNA), WMMA (RDNA).

Each instruction is a table that says which matrix element every (lane, element of the lane's vector) holds. The tables
are written here from the vendors' ISA documents on their own, so that they check those that code generation uses:
PTX ISA, "Matrix fragments for mma"; "AMD Instinct MI300 ISA" and "RDNA3 / RDNA4 ISA", chapters on matrix instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from xcc._mlir import Operation, ir
from xcc.diagnostics import UserError
from xcc.interpreter.machine import Machine
from xcc.interpreter.registry import Runner, op
from xcc.interpreter.types import dtype_of, vector_shape

if TYPE_CHECKING:
    from xcc.interpreter.kernel import Kernel

Array = np.ndarray[Any, Any]
Place = Callable[[Array, Array], tuple[Array, Array]]    # (lane, element) -> (row, column)


@dataclass(frozen=True)
class Fragment:
    """Rows and columns of the elements that each of `lanes` lanes holds: arrays (lanes, elements)."""

    shape: tuple[int, int]
    row: Array
    column: Array

    @staticmethod
    def make(shape: tuple[int, int], lanes: int, elements: int, place: Place) -> Fragment:
        row, column = place(np.arange(lanes)[:, None], np.arange(elements)[None, :])
        return Fragment(shape, *np.broadcast_arrays(row, column))

    def gather(self, value: Array) -> Array:
        """(warps, lanes, elements) as matrices (warps, rows, columns)."""
        out = np.zeros((value.shape[0], *self.shape), value.dtype)
        out[:, self.row, self.column] = value
        return out

    def scatter(self, matrix: Array) -> Array:
        """Matrices (warps, rows, columns) as (warps, lanes, elements)."""
        return matrix[:, self.row, self.column]


def multiply(machine: Machine, a: tuple[Array, Fragment], b: tuple[Array, Fragment], c: tuple[Array, Fragment],
             lanes: int, saturate: bool = False) -> Array:
    """a @ b + c of every warp; products summed in float64 (int64), rounded once.

    Integers wrap around, or stop at the ends of their range where the instruction does: `saturate`.
    """
    if machine.options.warp != lanes:
        raise UserError(f"a matrix instruction of {lanes} lanes needs Options(warp={lanes})")
    warps = machine.mask.reshape(-1, lanes)
    if (warps.any(axis=1) != warps.all(axis=1)).any():
        raise machine.fault("divergent-matrix-op", "only some lanes of a warp reach the instruction")
    matrices = []
    for value, fragment in (a, b, c):
        flat = value.reshape(value.shape[0], -1)
        held = np.broadcast_to(flat, (machine.count, flat.shape[1])).reshape(-1, lanes, flat.shape[1])
        wide = np.float64 if held.dtype.kind not in "iu" else np.int64
        matrices.append(fragment.gather(held).astype(wide))
    product = matrices[0] @ matrices[1] + matrices[2]
    if saturate and c[0].dtype.kind in "iu":
        limits = np.iinfo(c[0].dtype)
        product = np.clip(product, limits.min, limits.max)
    return c[1].scatter(product.astype(c[0].dtype)).reshape(machine.count, *c[0].shape[1:])


def as_read(value: Array, name: str) -> Array:
    """The bits of `value` as the instruction reads them: element type `name`."""
    if value.dtype == np.float32:
        return round_tf32(value)
    return np.ascontiguousarray(value).view(np.uint8 if name == "ui8" else np.int8) if name in ("i8", "ui8") else value


def round_tf32(value: Array) -> Array:
    """float32 with the 10-bit mantissa that tf32 units read (the low bits are ignored)."""
    return (np.ascontiguousarray(value).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


# mma.sync m16n8k*: a lane is 4 * group + member; a register holds 4 bytes of one row.

def _mma_a(per_register: int) -> Place:
    def place(lane: Array, e: Array) -> tuple[Array, Array]:
        register, inner = e // per_register, e % per_register
        return lane // 4 + 8 * (register % 2), (lane % 4) * per_register + inner + 4 * per_register * (register // 2)
    return place


def _mma_b(per_register: int) -> Place:
    def place(lane: Array, e: Array) -> tuple[Array, Array]:
        return (lane % 4) * per_register + e % per_register + 4 * per_register * (e // per_register), lane // 4 + 0 * e
    return place


def _mma_c(lane: Array, e: Array) -> tuple[Array, Array]:
    return lane // 4 + 8 * (e // 2), (lane % 4) * 2 + e % 2


def _mma_f64_c(lane: Array, e: Array) -> tuple[Array, Array]:
    return lane // 4 + 0 * e, (lane % 4) * 2 + e


@cache
def mma_fragments(m: int, n: int, k: int, itemsize: int) -> tuple[Fragment, Fragment, Fragment]:
    """Fragments of A, B and C of mma.sync.m{m}n{n}k{k} with elements of `itemsize` bytes."""
    if (m, n, k, itemsize) == (8, 8, 4, 8):
        return (Fragment.make((8, 4), 32, 1, lambda lane, e: (lane // 4 + 0 * e, lane % 4 + 0 * e)),
                Fragment.make((4, 8), 32, 1, lambda lane, e: (lane % 4 + 0 * e, lane // 4 + 0 * e)),
                Fragment.make((8, 8), 32, 2, _mma_f64_c))
    if (m, n) != (16, 8) or itemsize not in (1, 2, 4):
        raise UserError(f"the interpreter has no mma.sync of m{m}n{n}k{k} with {itemsize}-byte elements")
    per_register = 4 // itemsize
    return (Fragment.make((16, k), 32, 16 * k // 32, _mma_a(per_register)),
            Fragment.make((k, 8), 32, 8 * k // 32, _mma_b(per_register)),
            Fragment.make((16, 8), 32, 4, _mma_c))


@op("nvgpu.mma.sync")
def _mma_sync(source: Operation, _: Kernel) -> Runner:
    m, n, k = (ir.IntegerAttr(a).value for a in source.attributes["mmaShape"])
    dtype = dtype_of(source.operands[0].type)
    fragments = mma_fragments(m, n, k, dtype.itemsize)

    def run(machine: Machine, a: Array, b: Array, c: Array) -> Array:
        if dtype == np.float32:
            a, b = round_tf32(a), round_tf32(b)
        # the dialect's lowering asks for .satfinite
        return multiply(machine, (a, fragments[0]), (b, fragments[1]), (c, fragments[2]), 32, saturate=True)
    return run


@op("xtg.mma")
def _mma_of_warp(source: Operation, _: Kernel) -> Runner:
    m, n, k = (int(ir.IntegerAttr(source.attributes[name]).value) for name in "mnk")
    fragments = mma_fragments(m, n, k, dtype_of(source.operands[0].type).itemsize)
    left, right = (ir.StringAttr(t).value for t in source.attributes["types"])

    def run(machine: Machine, a: Array, b: Array, c: Array) -> Array:
        a, b = as_read(a, left), as_read(b, right)
        return multiply(machine, (a, fragments[0]), (b, fragments[1]), (c, fragments[2]), 32)
    return run


# MFMA with one block: lane = size * group + line; a lane holds consecutive k of one row of A (column of B).

@cache
def mfma_fragments(m: int, n: int, k: int, double: bool) -> tuple[Fragment, Fragment, Fragment]:
    """Fragments of A, B and C of v_mfma_*_{m}x{n}x{k} with one block."""
    if (m, n) not in ((16, 16), (32, 32)):
        raise UserError(f"the interpreter has no MFMA of {m}x{n}x{k}")
    per_lane = k * m // 64

    def place_a(lane: Array, e: Array) -> tuple[Array, Array]:
        return lane % m + 0 * e, per_lane * (lane // m) + e

    def place_b(lane: Array, e: Array) -> tuple[Array, Array]:
        return per_lane * (lane // n) + e, lane % n + 0 * e

    def place_c(lane: Array, e: Array) -> tuple[Array, Array]:
        groups = 64 // n
        row = 4 * e + lane // n if double else 4 * groups * (e // 4) + 4 * (lane // n) + e % 4
        return row, lane % n + 0 * e
    return (Fragment.make((m, k), 64, per_lane, place_a), Fragment.make((k, n), 64, per_lane, place_b),
            Fragment.make((m, n), 64, m * n // 64, place_c))


@op("amdgpu.mfma")
def _mfma(source: Operation, _: Kernel) -> Runner:
    m, n, k, blocks = (int(ir.IntegerAttr(source.attributes[name]).value) for name in ("m", "n", "k", "blocks"))
    if blocks != 1:
        raise UserError(f"the interpreter has MFMA with one block only: {source}")
    fragments = mfma_fragments(m, n, k, dtype_of(source.operands[2].type) == np.float64)
    reduced = "reducePrecision" in source.attributes

    def run(machine: Machine, a: Array, b: Array, c: Array) -> Array:
        if reduced:
            a, b = round_tf32(a), round_tf32(b)
        return multiply(machine, (a, fragments[0]), (b, fragments[1]), (c, fragments[2]), 64)
    return run


# WMMA 16x16x16, wave32. RDNA3: both halves of the wave hold whole rows of A, rows of C alternate between the halves.
# RDNA4: each half holds half of k, and eight consecutive rows of C.

@cache
def wmma_fragments(k: int, elements: int) -> tuple[Fragment, Fragment, Fragment]:
    """Fragments of A, B and C of v_wmma_*_16x16x{k} whose lanes hold `elements` of A each."""
    whole = elements == k

    def place_a(lane: Array, e: Array) -> tuple[Array, Array]:
        return lane % 16 + 0 * e, e + (0 * lane if whole else elements * (lane // 16))

    def place_c(lane: Array, e: Array) -> tuple[Array, Array]:
        return (2 * e + lane // 16 if whole else e + 8 * (lane // 16)), lane % 16 + 0 * e
    a = Fragment.make((16, k), 32, elements, place_a)
    return a, Fragment((k, 16), a.column, a.row), Fragment.make((16, 16), 32, 8, place_c)


@op("amdgpu.wmma")
def _wmma(source: Operation, _: Kernel) -> Runner:
    k = int(ir.IntegerAttr(source.attributes["k"]).value)
    elements, results = vector_shape(source.operands[0].type)[0], vector_shape(source.result.type)[0]
    fragments = wmma_fragments(k, elements)
    half = int(ir.IntegerAttr(source.attributes["subwordOffset"]).value)
    packed = results == 16
    whole = dtype_of(source.operands[0].type).kind in "iu"
    signs = [("ui8" if f"unsigned{side}" in source.attributes else "i8") if whole else "" for side in "AB"]
    saturate = "clamp" in source.attributes

    def run(machine: Machine, a: Array, b: Array, c: Array) -> Array:
        a, b = as_read(a, signs[0]), as_read(b, signs[1])
        if not packed:
            return multiply(machine, (a, fragments[0]), (b, fragments[1]), (c, fragments[2]), 32, saturate)
        out = np.broadcast_to(c, (machine.count, 16)).copy()
        out[:, half::2] = multiply(machine, (a, fragments[0]), (b, fragments[1]), (out[:, half::2], fragments[2]), 32)
        return out
    return run
