"""Element and tile types of kernels, and which type the result of two operands has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xcc.runtime.dtypes import name_of, numpy_dtype

__all__ = ["DTYPES", "NUMBER_FLOAT", "NUMBER_INT", "DType", "Number", "TileType", "broadcast_shapes", "dtype_of",
           "number_type", "promote"]

Number = bool | int | float


@dataclass(frozen=True)
class DType:
    """An element type: `kind` is "bool", "int", "uint" or "float"."""

    name: str
    kind: str
    bits: int

    def __eq__(self, other: object) -> bool:
        """Also where `other` names it, as numpy's and torch's types do."""
        found = other if isinstance(other, DType) else dtype_of(other)
        return found is not None and found.name == self.name

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    @property
    def numpy(self) -> Any:
        """The same type in numpy; bf16 and the 8-bit floats are those of ml_dtypes."""
        return numpy_dtype(self.name)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")


def _all() -> dict[str, DType]:
    found = [DType("i1", "bool", 1)]
    found += [DType(f"{p}{bits}", kind, bits) for p, kind in (("i", "int"), ("ui", "uint")) for bits in (8, 16, 32, 64)]
    found += [DType(name, "float", bits) for name, bits in
              (("f64", 64), ("f32", 32), ("f16", 16), ("bf16", 16), ("f8E4M3FN", 8), ("f8E5M2", 8))]
    return {d.name: d for d in found}


DTYPES = _all()
"""By name; ``xcc.f32`` and the like are these."""

_NUMPY_NAMES = {np.dtype(d.numpy).name: d for d in DTYPES.values()}
globals().update(DTYPES)


def dtype_of(value: Any) -> DType | None:
    """The type that `value` names: a DType, a type of numpy's or torch's, or the name of one; None where it is none."""
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        return DTYPES.get(value) or _NUMPY_NAMES.get(value)
    if type(value).__module__ == "torch":
        return _NUMPY_NAMES.get(str(value).removeprefix("torch."))
    try:
        return DTYPES.get(name_of(np.dtype(value)))
    except TypeError:
        return None


@dataclass(frozen=True)
class TileType:
    """A tile's element type and shape; a shape of () is a scalar.

    `weak`: a number of Python's, a size, a program's index or a loop's counter. It takes the type of the tile that it
    meets, as in ``tile * 2``.
    """

    dtype: DType
    shape: tuple[int, ...] = ()
    weak: bool = False

    def __str__(self) -> str:
        if self.weak:
            return "a number" if self.dtype.is_float else "an integer"
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]" if self.shape else f"{self.dtype} scalar"

    def of(self, dtype: DType) -> TileType:
        """The type of as many elements of `dtype`."""
        return replace(self, dtype=dtype, weak=False)

    def shaped(self, shape: tuple[int, ...]) -> TileType:
        """The type of such elements in `shape`."""
        return TileType(self.dtype, shape)


NUMBER_INT = TileType(DTYPES["i64"], weak=True)
NUMBER_FLOAT = TileType(DTYPES["f64"], weak=True)


def number_type(value: bool | int | float) -> TileType:
    """The type of a number of Python's."""
    if isinstance(value, bool):
        return TileType(DTYPES["i1"])
    return NUMBER_INT if isinstance(value, int) else NUMBER_FLOAT


def promote(a: TileType, b: TileType) -> DType | None:
    """The element type in which `a` and `b` meet, as torch has it; None where one of them is to be converted first.

    A number takes the other's type; a float does before an integer, more bits before fewer; f16 and bf16 meet in f32;
    signed and unsigned integers in the signed one if that has more bits.
    """
    if a.dtype == b.dtype:
        return a.dtype
    if a.weak != b.weak:
        number, tile = (a, b) if a.weak else (b, a)
        if number.dtype.is_float and not tile.dtype.is_float:
            return DTYPES["f32"] if tile.dtype.is_integer else None
        return tile.dtype if tile.dtype.kind != "bool" else None
    if "bool" in (a.dtype.kind, b.dtype.kind):
        return None
    if a.dtype.is_float != b.dtype.is_float:
        return a.dtype if a.dtype.is_float else b.dtype
    return _wider(a.dtype, b.dtype)


def _wider(a: DType, b: DType) -> DType | None:
    if a.bits == b.bits and a.is_float:
        return DTYPES["f32"]
    wide, narrow = (a, b) if a.bits > b.bits else (b, a)
    if wide.kind == narrow.kind or (wide.kind == "int" and wide.bits > narrow.bits):
        return wide
    return None


def broadcast_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that both stretch to, by numpy's rule; None where they do not fit."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if any(m != n and 1 not in (m, n) for m, n in zip(a, b, strict=True)):
        return None
    return tuple(n if m == 1 else m for m, n in zip(a, b, strict=True))
