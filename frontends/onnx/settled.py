"""Sizes that the bounds of their symbols leave no choice become numbers, so that they broadcast and count as such.

    Slice(x, 0, 3, step 3) of x: [m]      floordiv(min(3, m) + 2, 3) is 1 for each m from 1 on: the result is [1]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xcc.bounds import number
from xcc.dialects import xt
from xcc.frontends.onnx.context import Tensor, TensorList, Value
from xcc.symbolic import Dim, Expr

if TYPE_CHECKING:
    from xcc.frontends.onnx.importer import ModelImporter

__all__ = ["Sizes"]


class Sizes:
    """What the dims of one model settle to. A dim of an input is at least 1, a size that a run counts at least 0."""

    def __init__(self, model: ModelImporter) -> None:
        self.model = model
        self._numbers: dict[Expr, Dim] = {}

    def settled(self, value: Value) -> Value:
        """`value` with numbers for the dims, of its shape and among its data, that are always the same number."""
        if isinstance(value, TensorList):
            return TensorList(tuple(map(self.tensor, value.elements)), value.dtype, value.name)
        return self.tensor(value) if isinstance(value, Tensor) else value

    def tensor(self, value: Tensor) -> Tensor:
        if value.data is not None:
            if value.data.dtype != object or not any(self.dim(d) is not d for d in value.data.flat):
                return value
            data = np.empty(value.data.shape, object)
            data.reshape(-1)[:] = [self.dim(d) for d in value.data.flat]
            return Tensor.of_dims(data, value.dtype)
        shape = tuple(map(self.dim, value.shape))
        return value if shape == value.shape else Tensor.of_value(xt.reshape(value.value, shape=shape))

    def dim(self, d: Dim) -> Dim:
        """`d`, or the number that it always is. What is no dim stays."""
        if not isinstance(d, Expr):
            return d
        if d not in self._numbers:
            self._numbers[d] = number(self.model.known, d)
        return self._numbers[d]
