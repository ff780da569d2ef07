"""Tiles of positions, and what moves elements or changes a tile's shape."""


import numpy as np

from xcc.dialects.tile.op import Attrs, InferError, TileOp
from xcc.dialects.tile.types import TileType, check_shape, is_integer
from xcc.dialects.xt.fields import dtype, integer, integers, operand
from xcc.dialects.xt.numeric import Array
from xcc.dialects.xt.types import numpy_dtype


class Iota(TileOp, name="iota"):
    """0, 1, 2, ... below `size`."""

    size = integer()
    dtype = dtype("i32")

    def infer(a: Attrs) -> TileType:
        if not is_integer(a.dtype):
            raise InferError(f"positions are no {a.dtype}")
        return TileType(check_shape((a.size,)), a.dtype)

    def evaluate(a: Attrs) -> Array:
        return np.arange(a.size, dtype=np.int64 if a.dtype == "index" else numpy_dtype(a.dtype))


class Broadcast(TileOp, name="broadcast"):
    """x stretched to `shape` as numpy does it: dims of size 1 are repeated, dims in front are added."""

    x = operand()
    shape = integers()

    def infer(a: Attrs, x: TileType) -> TileType:
        lead = len(a.shape) - x.rank
        if lead < 0 or any(n not in (1, m) for n, m in zip(x.shape, a.shape[lead:], strict=True)):
            raise InferError(f"{x} does not stretch to {list(a.shape)}")
        return x.with_shape(check_shape(a.shape))

    def evaluate(a: Attrs, x: Array) -> Array:
        return np.broadcast_to(x, a.shape)


class Reshape(TileOp, name="reshape"):
    """The elements of x in row-major order in another `shape` of as many; a single element may become a scalar."""

    x = operand()
    shape = integers()

    def infer(a: Attrs, x: TileType) -> TileType:
        if TileType(tuple(a.shape), x.dtype).size != x.size:
            raise InferError(f"{x} has {x.size} elements, the shape {list(a.shape)} has "
                             f"{TileType(tuple(a.shape), x.dtype).size}")
        return x.with_shape(check_shape(a.shape))

    def evaluate(a: Attrs, x: Array) -> Array:
        return np.reshape(x, a.shape)


class Transpose(TileOp, name="transpose"):
    """Dim i of the result is dim order[i] of x."""

    x = operand()
    order = integers(None)

    def normalize(a: Attrs, x: TileType) -> None:
        a.order = tuple(reversed(range(x.rank))) if a.order is None else tuple(d % max(1, x.rank) for d in a.order)

    def infer(a: Attrs, x: TileType) -> TileType:
        if sorted(a.order) != list(range(x.rank)):
            raise InferError(f"order {list(a.order)} is no order of the dims of {x}")
        return x.with_shape([x.shape[d] for d in a.order])

    def evaluate(a: Attrs, x: Array) -> Array:
        return np.transpose(x, a.order)


class Join(TileOp, name="join"):
    """a and b side by side along a new last dim of size 2."""

    a = operand()
    b = operand()

    def infer(a: Attrs, x: TileType, y: TileType) -> TileType:
        if x != y or x.is_buffer:
            raise InferError(f"{x} and {y} are joined; two alike are needed")
        return x.with_shape(check_shape((*x.shape, 2)))

    def evaluate(a: Attrs, x: Array, y: Array) -> Array:
        return np.stack([x, y], -1)


class Split(TileOp, name="split"):
    """The two halves of x along its last dim, which has size 2 and is left out."""

    x = operand()
    result_names = ("first", "second")

    def infer(a: Attrs, x: TileType) -> tuple[TileType, TileType]:
        if not x.shape or x.shape[-1] != 2:
            raise InferError(f"{x} is split; the last dim must be 2")
        return x.with_shape(x.shape[:-1]), x.with_shape(x.shape[:-1])

    def evaluate(a: Attrs, x: Array) -> tuple[Array, ...]:
        return x[..., 0], x[..., 1]
