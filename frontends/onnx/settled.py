"""Sizes that the bounds of their symbols leave no choice become numbers, so that they broadcast and count as such.

    Slice(x, 0, 3, step 3) of x: [m]      floordiv(min(3, m) + 2, 3) is 1 for each m from 1 on: the result is [1]

Sizes that are 0 or 1 (``x[0:1]`` of what a run counts) become 1 where a node broadcasts them: a run checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from xcc.bounds import interval, number
from xcc.dialects import xt
from xcc.frontends.onnx.context import Shape, Tensor, TensorList, Value
from xcc.symbolic import Dim, Expr, dim_max, dim_min, floordiv

if TYPE_CHECKING:
    from xcc.frontends.onnx.importer import ModelImporter

__all__ = ["Sizes"]


class Sizes:
    """What the dims of one model settle to. A dim of an input is at least 1, a size that a run counts at least 0."""

    def __init__(self, model: ModelImporter) -> None:
        self.model = model
        self._numbers: dict[Expr, Dim] = {}
        self._some: set[Expr] = set()       # sizes that are 1 or more, as they count the places of a window

    def settled(self, value: Value) -> Value:
        """`value` with numbers for the dims, of its shape and among its data, that are always the same number."""
        if isinstance(value, TensorList):
            return value.holding(tuple(map(self.tensor, value.tensors)))
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

    def windows(self, value: Tensor) -> None:
        """Notes that each size of `value`, which windows over images give, is at least 1."""
        self._some.update(d for d in value.shape if isinstance(d, Expr))

    def fits(self, a: Dim, b: Dim, place: str) -> bool:
        """Whether `a`, to be divided by the positive `b`, is not negative as else a window would not fit into an image.

        A run compares it, for the node `place`.
        """
        steps = floordiv(a, b)
        if not any(interval(self.model.known, steps - d)[0] >= -1 for d in self._some):
            return False
        xt.require(a, dim_max(a, 0), place)
        return True

    def is_single(self, d: Dim) -> bool:
        """Whether `d` is at most 1."""
        return interval(self.model.known, d)[1] <= 1

    def has_one(self, d: Dim) -> bool:
        """Whether `d` is at least 1."""
        return interval(self.model.known, d)[0] >= 1

    def beside(self, value: Tensor, shapes: Sequence[Shape], place: str) -> Tensor:
        """`value` with 1 for the dims that are at most 1 and stretch to another dim of `shapes`.

        A dim that is 0 then becomes 1 where the other one is 0 as well: a run compares them, for the node `place`.
        """
        rank = len(value.shape)
        missing: list[Dim] = [0] * rank
        for i, d in enumerate(value.shape):
            others = dict.fromkeys(s[i - rank] for s in shapes if len(s) >= rank - i)
            wide = [e for e in others if e != d and not self.is_single(e)]
            if wide and isinstance(d, Expr) and self.is_single(d):
                missing[i] = 1 - d
                for e in wide:
                    least: Dim = 1 if self.has_one(e) else dim_min(1, e)
                    if least != d:
                        xt.require(least if least == 1 else dim_max(d, least), d, place)
        if not any(missing):
            return value
        return Tensor.of_value(xt.pad(value.value, low=(0,) * rank, high=missing))

    def operands(self, inputs: tuple[Value | None, ...], place: str) -> tuple[Value | None, ...]:
        """The operands of the node `place`, which broadcasts them."""
        if not self.model.counted:
            return inputs
        shapes = [v.shape for v in inputs if isinstance(v, Tensor)]
        return tuple(self.beside(v, shapes, place) if isinstance(v, Tensor) else v for v in inputs)
