"""The shared memory of a gpu.func under construction: its bytes, its barriers, its reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcc._mlir import Type, Value, arith_d, gpu_d, ir, memref_d, vector_d
from xcc.diagnostics import NoRoom
from xcc.passes.gpu.exchange.thread_code import ThreadCode, Turn
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.registers import (
    from_memory,
    from_registers,
    guarded,
    memory_type,
    register_groups,
    registers_of,
    select_registers,
)
from xcc.passes.gpu.layout.tile_ops import element_bytes
from xcc.passes.gpu.vendor.ldmatrix import ROW, loads_matrices, matrix_load
from xcc.passes.shared.values import index, vec

SPACE = "#gpu.address_space<workgroup>"
TURNS_BYTES = 4096      # that conversions take turns with; a loop that keeps tiles here leaves them as much
Reads = tuple[int, int] | None
ANYTHING = (0, 1 << 30)


class SharedMemory:
    """The workgroup's shared memory.

    Attributes:
        bytes: the most that any point of the kernel uses, for one instance.
        reserved: bytes at the start that a pipelined loop around this point keeps its tiles in.
        reads: what threads may still be reading.
    """

    def __init__(self, code: ThreadCode, limit: int, finish: Callable[[], None]) -> None:
        self.code, self.limit = code, limit
        self.finish = finish         # waits for instructions that read shared memory by themselves
        self.bytes = 0
        self.reserved = 0
        self.reads: Reads = None
        self._whole: Any = None
        self._instance_bytes: Any = None    # a constant that `close` makes what an instance uses

    def buffer(self, count: int, element_type: Type, offset: int = 0) -> Value:
        """A view of `count` elements of the workgroup's shared memory at byte `offset` behind what is reserved."""
        offset += self.reserved
        self.bytes = max(self.bytes, offset + count * element_bytes(element_type))
        if self.all_bytes > self.limit:
            raise NoRoom(f"the kernel needs {self.all_bytes} bytes of shared memory, the chip has {self.limit}")
        space = ir.Attribute.parse(SPACE)
        with self.code.at_entry():
            if self._whole is None:
                self._whole = gpu_d.dynamic_shared_memory(
                    ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ir.IntegerType.get_signless(8),
                                      memory_space=space))
            return memref_d.view(ir.MemRefType.get([count], element_type, memory_space=space), self._whole,
                                 self._place(offset), [])

    def _place(self, offset: int) -> Value:
        if self.code.instances == 1:
            return index(offset)
        if self._instance_bytes is None:
            self._instance_bytes = index(0)
        return arith_d.addi(arith_d.muli(self.code.instance, self._instance_bytes), index(offset))

    @property
    def all_bytes(self) -> int:
        """Of all instances that the workgroup computes."""
        return self.bytes if self.code.instances == 1 else -(-self.bytes // 16) * 16 * self.code.instances

    def close(self) -> None:
        """When all code is there: instances lie behind each other."""
        if self._instance_bytes is not None:
            each = self.all_bytes // self.code.instances
            self._instance_bytes.owner.attributes["value"] = ir.IntegerAttr.get(ir.IndexType.get(), each)

    def barrier(self) -> None:
        """All threads have read and written shared memory."""
        self.code.barrier()

    def keep_reads(self) -> None:
        """Behind regions, and at the start of a loop's body: of what may be read only that it may be is known."""
        if self.reads is not None:
            self.reads = ANYTHING

    def free_place(self, size: int) -> int:
        """The byte offset of `size` bytes behind what is reserved that nobody reads; a barrier where all may be read.

        One conversion after the other takes turns with two places: the barrier between the writes and the reads of the
        second says that the first was read.
        """
        self.finish()
        size = -(-size // 16) * 16
        start = 0
        if self.reads is not None:
            low, high = self.reads
            start = 0 if size <= low else high
            if start + size > min(TURNS_BYTES, self.limit - self.reserved):
                self.barrier()
                start = 0
        self.reads = (start, start + size)
        return start

    def begin(self) -> None:
        """Waits until the last content of shared memory has been read."""
        self.finish()
        if self.reads is not None:
            self.barrier()
        self.reads = ANYTHING

    def write(self, value: Value, buffer: Value, offsets: Layout, start: Value | None = None, last_first: bool = False,
              fixed: int = 0, copies: Layout | None = None) -> None:
        """Stores a register vector; `offsets` maps register, lane and warp to elements of `buffer` from `start` on,
        XORed with `fixed`.

        last_first: what was loaded last is stored first, so that one wait serves all loads.
        copies: the layout that says which threads hold copies; None: `offsets`.
        """
        size = element_bytes(ir.VectorType(value.type).element_type)
        width, run = offsets.contiguous(max(1, 16 // size))
        if fixed & (width - 1):
            width, run = 1, []

        def store() -> None:
            groups = register_groups(offsets.registers, run)
            for group in reversed(groups) if last_first else groups:
                piece = select_registers(value, group)
                vector_d.store(piece, buffer, [self.code.offset_of(offsets, group[0], fixed, start)],
                               alignment=width * size)

        guarded(self.code.first_copy(copies or offsets), store)

    def read(self, buffer: Value, offsets: Layout, element_type: Type, fixed: int = 0, start: Value | None = None,
             turn: Turn = None) -> Value:
        """Loads a register vector; the opposite of `write`, at offsets XORed with `fixed` and `turn`."""
        size = element_bytes(element_type)
        width, run = offsets.contiguous(max(1, 16 // size))
        if (fixed | (turn[1] if turn else 0)) & (width - 1):
            width, run = 1, []
        out: list[Any] = [None] * offsets.registers
        pieces = []
        groups = register_groups(offsets.registers, run)
        for group in groups:
            pieces.append(vector_d.load(vec(width, element_type), buffer,
                                        [self.code.offset_of(offsets, group[0], fixed, start, turn)],
                                        alignment=width * size))
        if len(groups) == 1 and groups[0] == list(range(offsets.registers)):
            return pieces[0]
        for group, piece in zip(groups, pieces, strict=True):
            for r, s in zip(group, registers_of(piece), strict=True):
                out[r] = s
        return from_registers(out)

    def read_tile(self, buffer: Value, offsets: Layout, element: Type, start: Value | None = None,
                  fixed: int = 0) -> Value:
        """A register vector from shared memory, by ldmatrix where the offsets, XORed with `fixed`, have its form."""
        stored = memory_type(element)
        matrix = loads_matrices(self.code.chip, stored)
        size = element_bytes(stored)
        plan = matrix_load(offsets, size) if matrix and not fixed % (ROW // size) else None
        if plan is not None:
            return from_memory(plan.emit(self.code, buffer, stored, start, fixed), element)
        return from_memory(self.read(buffer, offsets, stored, fixed, start), element)
