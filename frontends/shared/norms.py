"""Means, variances and what normalisations do with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import along, convert, dim_scalar, element, rank_of, scalar


def moments(x: Value, axes: Sequence[int]) -> tuple[Any, Any]:
    """Mean and (biased) variance over `axes`, which keep a dim of 1.

    Computed as normalisations decompose, so that those of the same values share them.
    """
    center = _mean(x, axes)
    difference = xt.sub(x, center)
    return center, _mean(xt.mul(difference, difference), axes)


def _mean(x: Value, axes: Sequence[int]) -> Value:
    n = symbolic.product(xt.shape_of(x)[d] for d in axes)
    inverse = scalar(1.0 / n if n else float("nan"), x) if isinstance(n, int) else \
        xt.reciprocal(dim_scalar(n, element(x)))
    return xt.mul(xt.reduce(x, kind="sum", axes=tuple(axes), keepdims=True), inverse)


def inverse_deviation(variance: Any, eps: float) -> Value:
    """1 / sqrt(variance + eps)."""
    return xt.rsqrt(xt.add(variance, scalar(eps, variance)))


def affine_by_channel(x: Value, center: Value, inverse: Value, scale: Value | None, bias: Value | None) -> Value:
    """(x - center) * inverse * scale + bias as one multiply and one add, computed in the type of `center`.

    All but x are vectors, an entry a channel; scale and bias may be None.
    """
    rank = rank_of(x)
    kind = element(center)
    factor = inverse if scale is None else xt.mul(convert(scale, kind), inverse)
    offset = xt.mul(center, factor)
    offset = xt.neg(offset) if bias is None else xt.sub(convert(bias, kind), offset)
    axis = 1 if rank > 1 else 0
    wide = convert(x, kind)
    return convert(xt.add(xt.mul(wide, along(factor, axis, rank)), along(offset, axis, rank)), element(x))
