"""The buffers of the values of @main (passes/host/lower_main.py)."""

from __future__ import annotations

from typing import Any

from xcc import symbolic
from xcc.dialects import xt
from xcc.runtime.program import DTYPE_BYTES, Buffer
from xcc.symbolic import Dim

__all__ = ["ValueBuffers", "dtype_of"]


class ValueBuffers:
    """Buffers made so far, and the buffer of each value.

    Attributes:
        wanted: the buffer where a value's user wants it.
    """

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.buffer_of: dict[Any, int] = {}
        self.wanted: dict[Any, int] = {}

    def new(self, like: Any, kind: Any, name: str = "", base: int = -1, offset: Dim = 0) -> int:
        """A new buffer with the shape and dtype of the value `like`."""
        t = xt.TensorType.of(like)
        self.buffers.append(Buffer(kind, t.shape, t.dtype, name, base, offset))
        return len(self.buffers) - 1

    def target(self, value: Any) -> int:
        """The buffer that the result `value` is written to: where its user wants it, else a new temporary."""
        if value in self.wanted:
            base = self.wanted[value]
            same = self.buffers[base].shape == xt.shape_of(value) and self.buffers[base].dtype == dtype_of(value)
            self.buffer_of[value] = base if same else self.new(value, "alias", base=base)
        else:
            self.buffer_of[value] = self.new(value, "temp")
        return self.buffer_of[value]

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


def dtype_of(value: Any) -> str:
    return str(xt.element_type_of(value))
