"""The buffers of the values of @main, and the copies between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xcc import symbolic
from xcc._mlir import Block, Operation, Value, owner_op
from xcc.dialects import xt
from xcc.passes.host.placement.block_memory import BlockMemory
from xcc.passes.host.placement.places import OWN, Place
from xcc.runtime.program import DTYPE_BYTES, Buffer, BufferKind, Copy, Statement
from xcc.symbolic import Dim


class ValueBuffers:
    """Buffers made so far, and the buffer of each value.

    Attributes:
        places: where results lie, of the blocks begun so far.
        targets: the buffer of each block's result, by number, that has a place of its own.
    """

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.buffer_of: dict[Value, int] = {}
        self.places: dict[Value, Place] = {}
        self.targets: dict[Block, Mapping[int, int]] = {}

    def begin(self, block: Block, targets: Mapping[int, int], replaced: Mapping[int, Value]) -> None:
        """Reads where the results of `block` lie. `targets`: the buffers of the block's own results, by number;
        `replaced`: the arguments of the block that lie there already."""
        self.places |= BlockMemory(block).checked_places({n: replaced.get(n) for n in targets})
        self.targets[block] = targets

    def new(self, like: Value, kind: BufferKind, name: str = "", base: int = -1, offset: Dim = 0) -> int:
        """A new buffer with the shape and dtype of the value `like`."""
        t = xt.TensorType.of(like)
        self.buffers.append(Buffer(kind, t.shape, t.dtype, name, base, offset))
        return len(self.buffers) - 1

    def target(self, value: Value) -> int:
        """The buffer that the result `value` is written to, as its place says."""
        op, place = owner_op(value), self.places.get(value, OWN)
        if place.kind == "own":
            self.buffer_of[value] = self.new(value, "temp")
        elif place.kind == "operand":
            self.buffer_of[value] = self.buffer_of[op.operands[place.number]]
        else:
            base = self.targets[op.block][place.number]
            same = self.buffers[base].shape == xt.shape_of(value) and self.buffers[base].dtype == dtype_of(value)
            self.buffer_of[value] = base if same else self.new(value, "alias", base=base)
        return self.buffer_of[value]

    def held(self, op: Operation, count: int) -> tuple[list[Statement], list[int]]:
        """The buffers of the first results of `op`, which hold the operands of these numbers when it begins, and the
        copies where they lie elsewhere."""
        out: list[Statement] = []
        targets = [self.target(v) for v in list(op.results)[:count]]
        for old, target in zip(op.operands, targets, strict=False):
            if self.root(self.buffer_of[old]) != self.root(target):
                out.append(Copy(self.buffer_of[old], target))
        return out, targets

    def next_state(self, values: Sequence[Any], carried: Sequence[int]) -> list[Statement]:
        """Copies `values` to `carried` as if at once: one that is another carried buffer goes through a temporary."""
        first: list[Statement] = []
        then: list[Statement] = []
        for v, t in zip(values, carried, strict=True):
            source = self.buffer_of[v]
            if self.root(source) == self.root(t):
                continue
            if self.root(source) in map(self.root, carried):
                saved = self.new(v, "temp")
                first.append(Copy(source, saved))
                source = saved
            then.append(Copy(source, t))
        return first + then

    def scalar(self) -> int:
        """A new temporary integer."""
        self.buffers.append(Buffer("temp", (), "i64"))
        return len(self.buffers) - 1

    def slice(self, like: Any, base: int, counter: Dim, trips: Dim, backwards: int) -> int:
        """Entry `counter` of `base` along its first dim, shaped as `like`."""
        size = symbolic.product(xt.shape_of(like)) * DTYPE_BYTES[dtype_of(like)]
        at = trips - 1 - counter if backwards else counter
        return self.new(like, "alias", base=base, offset=at * size)

    def root(self, buffer: int) -> int:
        """The buffer whose memory `buffer` is."""
        while self.buffers[buffer].kind == "alias":
            buffer = self.buffers[buffer].base
        return buffer


def dtype_of(value: Value) -> str:
    return str(xt.element_type_of(value))
