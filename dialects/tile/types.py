"""Types of tile programs as plain data: tiles, scalars and buffers.

A tile is an MLIR vector of static sizes, each a power of two; a tile without dims is a scalar. A buffer is a memref. An
element type's name is MLIR's: ``f32``, ``bf16``, ``i1``, ``i32``, ``index``. Integers are signless: ops say how they
read them. """

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from xcc._mlir import Type, ir
from xcc.dialects.xt.reading import InferError
from xcc.dialects.xt.types import NUMPY_DTYPES, is_float, is_integer

__all__ = ["ELEMENTS", "MOST", "TileType", "check_shape", "is_float", "is_integer", "view_type"]

MOST = 1 << 20      # elements of a tile
ELEMENTS = tuple(n for n in NUMPY_DTYPES if not n.startswith("ui") and n not in ("i2", "i4", "f4E2M1FN", "f8E8M0FNU"))
"""What a buffer's elements may be."""


@dataclass(frozen=True)
class TileType:
    """kind: "tile" (a scalar where `shape` is empty) or "buffer", whose unknown sizes are -1. `text` is MLIR's."""

    shape: tuple[int, ...]
    dtype: str
    kind: str = "tile"
    text: str = ""

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def is_buffer(self) -> bool:
        return self.kind == "buffer"

    def with_shape(self, shape: Sequence[int]) -> "TileType":
        return TileType(tuple(shape), self.dtype)

    def with_dtype(self, dtype: str) -> "TileType":
        return TileType(self.shape, dtype)

    def mlir(self) -> Type:
        """The MLIR type, in the current context."""
        if self.is_buffer:
            return ir.Type.parse(self.text)
        element = ir.Type.parse(self.dtype)
        return ir.VectorType.get(list(self.shape), element) if self.shape else element

    @staticmethod
    def of(value_or_type: Any) -> "TileType":
        """The type of an MLIR value or of an MLIR type."""
        t = value_or_type if isinstance(value_or_type, ir.Type) else value_or_type.type
        if isinstance(t, ir.VectorType):
            return TileType(tuple(t.shape), str(t.element_type))
        if isinstance(t, ir.MemRefType):
            return TileType(tuple(max(-1, n) for n in t.shape), str(t.element_type), "buffer", str(t))
        return TileType((), str(t))

    def __str__(self) -> str:
        sizes = ", ".join("?" if n < 0 else str(n) for n in self.shape)
        return f"buffer of {self.dtype}[{sizes}]" if self.is_buffer else f"{self.dtype}[{sizes}]" if self.shape \
            else self.dtype


def check_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """`shape`; InferError where it is no tile's."""
    for n in shape:
        if n < 1 or n & n - 1:
            raise InferError(f"a size of {n} is no power of two; take the next one, and mask what is too much")
    if prod(shape) > MOST:
        raise InferError(f"a tile of {prod(shape)} elements is more than the {MOST} that one may have")
    return tuple(shape)


def view_type(dtype: str, rank: int) -> TileType:
    """A buffer of any sizes, strides and start."""
    sizes, strides = "?x" * rank, ", ".join("?" * rank)
    return TileType((-1,) * rank, dtype, "buffer", f"memref<{sizes}{dtype}, strided<[{strides}], offset: ?>>")
