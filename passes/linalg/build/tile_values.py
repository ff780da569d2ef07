"""The vocabulary of the tile evaluator: axes, index expressions, tile values.

An *axis* is one dimension of vectors, with a static size and maybe a limit (lanes past it are invalid). An *index*
(:class:`Ix`) is ``base + const + sum(coef * axis)``: a scalar plus a known walk over axes; when it is not affine it is
a vector of indices instead. A *value* (:class:`V`) is an SSA scalar or vector with the axes of its dims.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xcc._mlir import Value
from xcc.symbolic import Dim

REDUCTION_ORDER = 1000
"""The order of a reduction's first axis: behind those of results."""


@dataclass(eq=False)
class Axis:
    """A vector dimension. `order` sorts axes when values combine; `limit` is an index SSA value, or None: all valid."""

    size: int
    order: int
    limit: Value | None = None


@dataclass(frozen=True)
class V:
    """An SSA value whose vector dims are `axes` (none: a scalar)."""

    value: Value
    axes: tuple[Axis, ...] = ()


@dataclass(frozen=True, eq=False)
class Ix:
    """An index: `base` (SSA or None) + `const` + sum of coef * lane over `coefs`; or the vector `vec` alone.

    `part` is (walk, n) for coordinate n of a walk over several dims as one.
    `walk` = (walk, low, high) says that `vec` is a walk over one axis by ones, clamped into [low, high] (scalars; None:
    not on this side).
    """

    base: Value | None = None
    const: int = 0
    coefs: tuple[tuple[Axis, int], ...] = ()
    vec: V | None = None
    part: tuple[Flat, int] | None = None
    walk: tuple[Ix, Any, Any] | None = None

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.vec.axes if self.vec is not None else tuple(a for a, _ in self.coefs)

    @property
    def is_scalar(self) -> bool:
        return not self.axes

    def is_const(self, n: int) -> bool:
        return self.base is None and self.vec is None and not self.coefs and self.const == n

    def key(self) -> tuple[Any, ...]:
        if self.vec is not None:
            return ("vec", self.vec.value, self.vec.axes)
        return (self.base, self.const, self.coefs)


@dataclass(frozen=True, eq=False)
class Flat:
    """A walk over neighbouring dims of `sizes` as if they were one: `index` is the position in their product."""

    index: Ix
    sizes: tuple[Dim, ...]
