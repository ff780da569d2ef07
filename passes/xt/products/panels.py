"""Panels: the columns of a matrix in groups of one width, each row after row."""

from __future__ import annotations

from typing import Any

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.passes.shared.dot_instructions import dot_products_of
from xcc.targets.base import Chip

FILLED = 64     # columns of narrow weights for each that is filled with zeros


def multiplies(chip: Chip, dtype: str) -> bool:
    """Whether `chip` has an instruction that multiplies two values of `dtype`, a narrow type."""
    return any((dtype, dtype) in d.types for d in dot_products_of(chip))


def static_shape(value: Value) -> tuple[int, ...] | None:
    """None when a dim is symbolic."""
    dims = tuple(d for d in xt.shape_of(value) if isinstance(d, int))
    return dims if len(dims) == len(xt.shape_of(value)) else None


def panel_width(columns: int, most: int, thirds: bool = True) -> int:
    """Columns of a panel: `most`, two native vectors, or one where that holds all columns.

    With `thirds` also three, where the panels then have at least a sixteenth fewer columns.
    """
    half = most // 2
    if columns <= half:
        return half
    two, three = (-(-columns // p) * p for p in (most, most + half))
    return most + half if thirds and 16 * three <= 15 * two else most


def pack_columns(w: np.ndarray[Any, Any], width: int, group: int = 1, groups: int = 0) -> np.ndarray[Any, Any]:
    """[K, N] as panels [ceil(N / width), K, width], in groups [.., ceil(K / group), width, group]; zeros around.

    groups: how many, where more than the sums need.
    """
    depth, columns = w.shape
    w = np.pad(w, ((0, groups * group - depth if groups else -depth % group), (0, -columns % width)))
    panels = w.reshape(-1, group, w.shape[1] // width, width)
    packed = np.ascontiguousarray(panels.transpose(2, 0, 3, 1))
    return packed if group > 1 else packed.reshape(packed.shape[:3])
