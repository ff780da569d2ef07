"""wgmma: four warps multiply from shared memory, at addresses that the instruction works out by itself.

Written from the PTX ISA ("Asynchronous Warpgroup Level Matrix Instructions": shared memory layouts, descriptors,
register fragments) apart from the code generator, so that it checks what that says of its tiles. An instruction reads
at once here; the bytes it reads must not be written before it was waited for and a barrier came, and what threads
stored there must be behind a fence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from xcc._mlir import Attribute, Operation, ir
from xcc.diagnostics import UserError
from xcc.interpreter.machine import Machine
from xcc.interpreter.memory import MemRef
from xcc.interpreter.ops_matrix import as_read
from xcc.interpreter.ops_memref import note_shared
from xcc.interpreter.registry import Runner, op
from xcc.interpreter.types import dtype_of, vector_shape

if TYPE_CHECKING:
    from xcc.interpreter.kernel import Kernel

Array = np.ndarray[Any, Any]
GROUP = 128         # threads
PIECE = 16          # bytes that lie together


@dataclass(frozen=True)
class Side:
    """An operand's place: bytes of a row, distances of eight rows and of blocks of rows, first elements of steps."""

    near_k: bool
    row: int
    rows: int
    blocks: int
    steps: tuple[int, ...]

    @staticmethod
    def read(attribute: Attribute) -> Side:
        d = ir.DictAttr(attribute)
        row, rows, blocks = (int(d[n].value) for n in ("row", "rows", "blocks"))
        return Side(bool(d["near_k"].value), row, rows, blocks, tuple(ir.DenseI64ArrayAttr(d["steps"])))

    def bytes_of(self, other: Array, k: Array, size: int) -> Array:
        """Distance from the first element, before the swizzle, of element (other, k)."""
        if self.near_k:
            return other // 8 * self.rows + other % 8 * self.row + k * size
        per_row = self.row // size
        return other // per_row * self.blocks + other % per_row * size + k // 8 * self.rows + k % 8 * self.row

    def swizzle(self, byte: Array) -> Array:
        return byte ^ (byte >> 7 & (self.row // PIECE - 1)) * PIECE


@op("xtg.wgmma")
def _wgmma(source: Operation, kernel: Kernel) -> Runner:
    m, n, k = (int(ir.IntegerAttr(source.attributes[name]).value) for name in "mnk")
    sides = [Side.read(source.attributes[name]) for name in "ab" if name in source.attributes]
    dtype = dtype_of(source.operands[len(source.operands) - 2].type)
    size = dtype.itemsize
    if m != 64 or k * size != 32 or vector_shape(source.results[0].type)[0] != n // 2:
        raise UserError(f"the interpreter has no wgmma of m{m}n{n}k{k}: {source}")
    types = [ir.StringAttr(t).value for t in source.attributes["types"]]
    if size == 1 and (len(sides) < 2 or not all(s.near_k for s in sides)):
        raise UserError(f"wgmma reads bytes from rows along k in shared memory alone: {source}")
    for number in range(1, len(source.operands), 2) if len(sides) == 2 else (2,):
        note_shared(kernel, source.operands[number].type)

    def run(machine: Machine, acc: Array, *operands: Any) -> Array:
        *a, b, b_at = operands
        total = acc
        for number, step in enumerate(sides[-1].steps):
            if len(a) == 2:
                left = matrix(machine, a[0], a[1] + sides[0].steps[number], sides[0], m, k, types[0])
            else:
                left = held_matrix(machine, a[0], number, m, k)
            right = matrix(machine, b, b_at + step, sides[-1], n, k, types[1])
            total = add_product(machine, total, left, right)
        return total
    return run


def add_product(machine: Machine, acc: Array, left: Array, right: Array) -> Array:
    """The accumulators (threads, n / 2) and the product of matrices (warpgroups, 64, k) and (warpgroups, n, k)."""
    groups = machine.mask.reshape(-1, GROUP)
    if machine.count % GROUP or (groups.any(axis=1) != groups.all(axis=1)).any():
        raise machine.fault("divergent-matrix-op", "only some warps of a warpgroup reach the instruction")
    n = right.shape[1]
    lane, e = np.arange(GROUP)[:, None], np.arange(n // 2)[None, :]
    rows, columns = np.broadcast_arrays(lane // 32 * 16 + lane % 32 // 4 + 8 * (e // 2 % 2),
                                        lane % 4 * 2 + e % 2 + 8 * (e // 4))
    held = np.broadcast_to(acc, (machine.count, n // 2)).reshape(-1, GROUP, n // 2)
    total = (left @ right.transpose(0, 2, 1))[:, rows, columns] + held      # of 64 bits
    return np.asarray(total.astype(acc.dtype).reshape(machine.count, n // 2))


def held_matrix(machine: Machine, value: Array, step: int, count: int, k: int) -> Array:
    """The matrices (warpgroups, count, k) of step `step` that threads hold: 8 elements each, rows 8 and k 8 apart."""
    lane, r = np.arange(GROUP)[:, None], np.arange(8)[None, :]
    rows, depth = np.broadcast_arrays(lane // 32 * 16 + lane % 32 // 4 + 8 * (r // 2 % 2),
                                      lane % 4 * 2 + r % 2 + r // 4 * 8)
    mine = np.broadcast_to(value, (machine.count, value.shape[-1])).reshape(-1, GROUP, value.shape[-1])
    out = np.zeros((len(mine), count, k))
    out[:, rows, depth] = mine[:, :, 8 * step:8 * step + 8]
    return out


def matrix(machine: Machine, ref: MemRef, at: Array, side: Side, count: int, k: int, kind: str) -> Array:
    """The matrices (warpgroups, count, k) whose first element is number `at`, the same in a whole warpgroup.

    kind: the element type as which the instruction reads them.
    """
    size = ref.dtype.itemsize
    first = np.broadcast_to(machine.address(ref, [at], 1) - ref.base, (machine.count,)).reshape(-1, GROUP)
    if (first != first[:, :1]).any():
        raise machine.fault("divergent-matrix-op", "the warps of a warpgroup name different tiles")
    width = PIECE // size
    if (first * size % PIECE).any():
        raise machine.fault("misaligned", "a tile of wgmma does not start at a multiple of 16 bytes")
    near, far = (k, count) if side.near_k else (count, k)
    pieces = near // width * far
    number = np.arange(pieces)
    far_at, near_at = number // (near // width), number % (near // width) * width
    other, depth = (far_at, near_at) if side.near_k else (near_at, far_at)
    out = np.zeros((len(first), far, near), np.int64 if kind in ("i8", "ui8") else np.float64)
    base = np.broadcast_to(ref.base, (machine.count,))
    for start in range(0, pieces, GROUP):
        mine = np.minimum(start + np.arange(GROUP), pieces - 1)
        byte = side.swizzle(first * size + side.bytes_of(other[mine], depth[mine], size)[None])
        element = byte.reshape(-1) // size + base
        asked = np.tile(start + np.arange(GROUP) < pieces, len(first))
        values = as_read(machine.read(ref, element, width, asked), kind).reshape(len(first), GROUP, width)
        machine.reads_on(ref.buffer, element[machine.mask & asked] * size, PIECE)
        for w in range(width):
            out[:, far_at[mine], near_at[mine] + w] = values[:, :, w]
    return out if side.near_k else out.transpose(0, 2, 1)


@op("nvvm.fence.proxy")
def _proxy(source: Operation, _: Kernel) -> Runner:
    return lambda machine: machine.fence_writes()


@op("nvvm.wgmma.commit.group.sync.aligned")
def _commit(source: Operation, _: Kernel) -> Runner:
    return lambda machine: machine.reading.close()


@op("nvvm.wgmma.wait.group.sync.aligned")
def _wait_group(source: Operation, _: Kernel) -> Runner:
    left = int(ir.IntegerAttr(source.attributes["group"]).value)
    return lambda machine: machine.reading.wait(left)


@op("xtg.wgmma_wait")
def _wait(source: Operation, _: Kernel) -> Runner:
    single = len(source.results) == 1

    def run(machine: Machine, *accumulators: Array) -> Array | tuple[Array, ...]:
        machine.reading.wait(0)
        return accumulators[0] if single else accumulators
    return run
