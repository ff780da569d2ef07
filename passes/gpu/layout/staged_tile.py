"""A tile in shared memory from which a contraction reads an operand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Type, Value, ir
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.tile_ops import element_bytes

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

ASYNC, REGISTERS, ONCE = "async", "registers", "once"


@dataclass
class StagedTile:
    """An operand of a contraction in shared memory.

    Attributes:
        value: the tile as it is loaded.
        slice: the operations of a loop's body that make it, in order.
        memory: from a position in the tile to its offset in a slot.
        stored: its element type there.
        load: copied asynchronously, through registers, or made before the loop and the same in all steps; else "".
        buffer: all slots; `start` is the offset of the slot that this step reads.
        offset: in bytes, where the slots begin.
        truncated: its instruction reads it there and ignores bits, for which it is rounded first.
    """

    value: Value
    slice: list[Operation]
    memory: Layout
    stored: Type
    buffer: Any = None
    start: Any = None
    load: str = ""
    slots: int = 0
    offset: int = 0
    truncated: bool = False

    @property
    def elements(self) -> int:
        return self.memory.shape[0]

    @property
    def slot_bytes(self) -> int:
        return self.elements * element_bytes(self.stored)

    @property
    def end(self) -> int:
        """The byte behind its slots."""
        return self.offset + -(-self.slots * self.slot_bytes // 16) * 16

    def read(self, k: KernelBuilder, layout: Layout, position: dict[str, int]) -> Value:
        """The elements of `layout` of this step's tile, moved by `position` (dim0, ...), in registers."""
        return k.shared.read_tile(self.buffer, self.memory.compose(layout),
                                ir.VectorType(self.value.type).element_type, self.start,
                                self.memory.at(**position)[0])
