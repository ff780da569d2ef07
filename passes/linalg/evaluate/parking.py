"""Spilled, not computed again: a dear value that a reduction over a row needs, then the kernel's result.

The reduction writes its tiles to a buffer, the row of the result itself or one on the stack, from where they are read
back once the reduction is done (`park` in ``xcc.config``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from xcc._mlir import ir
from xcc.passes.linalg.build.buffers import LINE_BYTES
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.build.tile_memory import Memory
from xcc.passes.linalg.build.tile_values import Ix, V
from xcc.passes.linalg.kernel.kernel import Access, Op, Tensor


class Parking:
    """Where the tiles of `t` wait; no value does when `t` is None.

    Attributes:
        buffer: of the result, or of one row; None in nests of results that do not read `t`.
    """

    def __init__(self, b: Builder, memory: Memory, t: Tensor | None) -> None:
        self.b, self.memory, self.t = b, memory, t
        self.buffer: Any = None
        self._filling = False

    def on_stack(self) -> None:
        """Parks rows on the thread's stack: what is stored past the caches must not have been in them."""
        assert self.t is not None
        kind = ir.MemRefType.get([int(self.t.dims[-1])], self.t.element)  # type: ignore[arg-type]
        self.buffer = self.b.op("memref.alloca", kind, [], operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]),
                                alignment=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), LINE_BYTES))

    def find(self, t: Tensor, indices: Sequence[Ix]) -> V | None:
        """The tile of `t` at `indices`, where it waits."""
        if t is not self.t or not self.b.recall(_key(indices[:-1])):
            return None
        return self.memory.load_from(self.buffer, self._place(indices))

    def keep(self, t: Tensor, value: V, indices: Sequence[Ix]) -> None:
        """Writes a tile of `t`, where it is the value that waits and its row is being filled."""
        if t is self.t and self._filling:
            place = self._place(indices)
            self.memory.store(replace(t, dims=t.dims[-len(place):]), self.buffer, value, place)

    @contextmanager
    def filling(self, op: Op, env: dict[str, Ix]) -> Iterator[None]:
        """Inside, the reduction `op` at `env` is evaluated: it fills the row that it reads, unless that is there."""
        read = self._read_by(op)
        if read is None:
            yield
            return
        key = _key([self.b.access(e, env) for e in read[:-1]])
        self._filling = not self.b.recall(key)
        yield
        self._filling = False
        self.b.remember(key, True)

    def _read_by(self, op: Op) -> Access | None:
        """Where `op` reads the value that waits."""
        return None if self.buffer is None else next((a for t, a in op.inputs if t is self.t), None)

    def _place(self, indices: Sequence[Ix]) -> Sequence[Ix]:
        """Where in the buffer the tile at `indices` is."""
        return indices[len(indices) - ir.MemRefType(self.buffer.type).rank:]


def _key(row: Sequence[Ix]) -> Any:
    return ("parked", tuple(i.key() for i in row))
