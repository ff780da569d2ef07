"""A tile in shared memory from which a contraction reads an operand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xcc._mlir import ir
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.tile_ops import element_bytes

__all__ = ["StagedTile"]


@dataclass
class StagedTile:
    """An operand of a contraction that a pipelined loop keeps in shared memory.

    Attributes:
        value: the tile as it is loaded.
        slice: the operations of the loop's body that make it, in order.
        memory: from a position in the tile to its offset in a slot.
        direct: copied asynchronously, not through registers.
        kept: made before the loop and the same in all its steps.
        buffer: all slots; `start` is the offset of the slot that this step reads.
    """

    value: Any
    slice: list[Any]
    memory: Layout
    direct: bool
    stored: Any
    buffer: Any = None
    start: Any = None
    slots: int = 0
    offset: int = 0
    kept: bool = False

    @property
    def elements(self) -> int:
        return self.memory.shape[0]

    @property
    def slot_bytes(self) -> int:
        return self.elements * element_bytes(self.stored)

    def read(self, k: Any, layout: Layout, position: dict[str, int]) -> Any:
        """The elements of `layout` of this step's tile, moved by `position` (dim0, ...), in registers."""
        return k.shared.read_tile(self.buffer, self.memory.compose(layout),
                                ir.VectorType(self.value.type).element_type, self.start,
                                self.memory.at(**position)[0])
