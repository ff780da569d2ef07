"""`nvgpu` and `nvvm`: ldmatrix, asynchronous copies, warp barriers, shuffles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from xcc._mlir import Operation, ir
from xcc.diagnostics import UserError
from xcc.interpreter.clocks import PART
from xcc.interpreter.machine import Machine
from xcc.interpreter.memory import MemRef
from xcc.interpreter.ops_gpu import shuffle_source, shuffled
from xcc.interpreter.ops_memref import note_shared
from xcc.interpreter.registry import Runner, op
from xcc.interpreter.types import dtype_of

if TYPE_CHECKING:
    from xcc.interpreter.kernel import Kernel

Array = np.ndarray[Any, Any]


@op("nvvm.bar.warp.sync")
def _warp_barrier(source: Operation, _: Kernel) -> Runner:
    return lambda machine, mask: machine.warp_barrier()


@op("nvvm.barrier.arrive", "nvvm.barrier")
def _named_barrier(source: Operation, _: Kernel) -> Runner:
    waits = source.name == "nvvm.barrier"

    def run(machine: Machine, number: Array, count: Array) -> tuple[()]:
        parts = machine.local_thread // PART
        threads = np.stack([machine.local_group, np.broadcast_to(number, machine.count), parts,
                            np.broadcast_to(count, machine.count)], axis=1)[machine.mask]
        for group, barrier, wanted in np.unique(threads[:, [0, 1, 3]], axis=0):
            parts, come = np.unique(threads[(threads[:, :2] == (group, barrier)).all(axis=1), 2], return_counts=True)
            if not waits:
                for part, n in zip(parts, come, strict=True):
                    machine.clocks.come(group, barrier, part, n, machine.reading.waited())
                continue
            here, done = machine.clocks.wait(group, barrier, parts, int(come.sum()))
            if here != wanted:
                raise machine.fault("divergent-barrier", f"workgroup {int(machine.groups[group])}: {here} of "
                                    f"{int(wanted)} threads reach barrier {int(barrier)}")
            machine.reading.known(done)
        return ()
    return run


@op("nvvm.convert.float.to.tf32")
def _nearest_tf32(_: Operation, __: Kernel) -> Runner:
    """Rounded to nearest, ties away from zero; infinities and NaNs as they are."""
    def run(machine: Machine, x: Array) -> Array:
        bits = np.ascontiguousarray(x).view(np.uint32)
        rounded = bits + np.uint32(1 << 12) & np.uint32(0xFFFFE000)
        return np.where(np.isfinite(x), rounded, bits).view(np.int32)
    return run


@op("nvvm.shfl.sync")
def _shuffle(source: Operation, _: Kernel) -> Runner:
    mode = {"bfly": "xor", "up": "up", "down": "down", "idx": "idx"}[
        str(source.attributes["kind"]).removeprefix("#nvvm<shfl_kind ").rstrip(">")]

    def run(machine: Machine, mask: Array, value: Array, offset: Array, clamp: Array) -> Array:
        width = 32 - (clamp.astype(np.int64) >> 8)
        lanes, valid = shuffle_source(mode, machine.lane, offset.astype(np.int64), width)
        return shuffled(machine, value, lanes, valid)
    return run


@op("nvgpu.ldmatrix")
def _ldmatrix(source: Operation, kernel: Kernel) -> Runner:
    note_shared(kernel, source.operands[0].type)
    dtype = dtype_of(source.result.type)
    tiles = int(ir.IntegerAttr(source.attributes["numTiles"]).value)
    transposed = bool(ir.BoolAttr(source.attributes["transpose"]).value)
    if transposed and dtype.itemsize != 2:
        raise UserError(f"ldmatrix transposes elements of 16 bits alone: {source}")
    per_row = 16 // dtype.itemsize
    pair = 4 // dtype.itemsize

    def run(machine: Machine, ref: MemRef, *indices: Array) -> Array:
        giving = machine.lane < 8 * tiles
        with machine.masked(machine.mask & giving):
            at = machine.address(ref, list(indices), per_row)
            if machine.active((at - ref.base) * dtype.itemsize % 16 != 0).any():
                raise machine.fault("misaligned", "a row of ldmatrix does not start at a multiple of 16 bytes")
            rows = np.broadcast_to(machine.read(ref, at, per_row), (machine.count, per_row))
        # (warps, tile, row, column)
        matrices = rows.reshape(-1, 4, 8, per_row)[:, :tiles]
        if transposed:
            matrices = matrices.transpose(0, 1, 3, 2)
        lanes = matrices.reshape(len(matrices), tiles, 32, pair)
        return lanes.transpose(0, 2, 1, 3).reshape(machine.count, tiles, pair)
    return run


@dataclass
class PendingCopy:
    """A copy of `values` (threads, width) to elements `at` of `target`, done when its group has been waited for."""

    target: MemRef
    at: Array
    values: Array
    mask: Array
    group: int = -1

    def mark(self) -> None:
        """Notes what it writes in its buffer."""
        buffer, item = self.target.buffer, self.target.dtype.itemsize
        if buffer.copying is None:
            buffer.copying = np.zeros(len(buffer.data), np.bool_)
        first = np.broadcast_to(self.at, self.mask.shape)[self.mask] * item
        buffer.copying[first[:, None] + np.arange(self.values.shape[1] * item)] = True


@op("nvgpu.device_async_copy")
def _async_copy(source: Operation, kernel: Kernel) -> Runner:
    target_type, source_type = source.operands[0].type, source.attributes
    note_shared(kernel, target_type)
    segments = [int(s) for s in source_type["operandSegmentSizes"]]
    width = int(ir.IntegerAttr(source.attributes["dstElements"]).value)
    target_rank, source_rank = segments[1], segments[3]

    def run(machine: Machine, target: MemRef, *rest: Any) -> Array:
        to, (origin, *more) = list(rest[:target_rank]), rest[target_rank:]
        from_, limit = more[:source_rank], more[source_rank:]
        at = machine.address(target, to, width)
        count = np.broadcast_to(limit[0] if limit else width, (machine.count,))
        values = np.zeros((machine.count, width), target.dtype)
        if (count[machine.mask] >= width).all():
            values[...] = machine.read(origin, machine.address(origin, list(from_), width), width).reshape(-1, width)
        else:
            for column in range(width):
                with machine.masked(machine.mask & (column < count)):
                    where = [*from_[:-1], from_[-1] + column]
                    values[:, column] = machine.read(origin, machine.address(origin, where), 1)
            values[np.arange(width)[None] >= count[:, None]] = 0
        active = np.broadcast_to(at, (machine.count,))[machine.mask]
        machine.check_reads(target.buffer, active * target.dtype.itemsize, width * target.dtype.itemsize)
        machine.pending.append(PendingCopy(target, at, values, machine.mask.copy()))
        machine.pending[-1].mark()
        return np.zeros(1, np.int64)
    return run


@op("nvgpu.device_async_create_group", "nvvm.cp.async.commit.group")
def _create_group(source: Operation, _: Kernel) -> Runner:
    token = len(source.results) > 0

    def run(machine: Machine, *tokens: Array) -> Array | tuple[()]:
        machine.copy_groups += 1
        for copy in machine.pending:
            if copy.group < 0:
                copy.group = machine.copy_groups
        return np.zeros(1, np.int64) if token else ()
    return run


@op("nvgpu.device_async_wait", "nvvm.cp.async.wait.group")
def _async_wait(source: Operation, _: Kernel) -> Runner:
    attributes = source.attributes
    name = "numGroups" if "numGroups" in attributes else "n"
    left = int(ir.IntegerAttr(attributes[name]).value) if name in attributes else 0

    def run(machine: Machine, *tokens: np.ndarray[Any, Any]) -> tuple[()]:
        done = machine.copy_groups - left
        ready = [c for c in machine.pending if 0 <= c.group <= done]
        machine.pending = [c for c in machine.pending if not 0 <= c.group <= done]
        for copy in ready:
            copy.target.buffer.copying[:] = False
        for copy in machine.pending:
            copy.mark()
        for copy in ready:
            with machine.masked(copy.mask):
                machine.write(copy.target, copy.at, copy.values, copied=True)
        return ()
    return run
