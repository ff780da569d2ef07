"""Losses by class."""

from __future__ import annotations

from typing import Any

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import element, scalar, squeeze, unsqueeze


def picked_loss(scores: Value, target: Value, weight: Any, ignore: int | None) -> tuple[Any, Any]:
    """-scores[n, target[n], ...] times the class's weight, 0 where the target is `ignore`: (loss, factor or None).

    scores [N, C, ...], target i64 [N, ...], weight [C] or None.
    """
    ignored = xt.compare(target, xt.scalar(ignore, "i64"), direction="eq") if ignore is not None else None
    safe = target if ignored is None else xt.select(ignored, scalar(0, target), target)
    picked = squeeze(xt.gather_elements(scores, unsqueeze(safe, [1]), axis=1), [1])
    factor = xt.gather(weight, safe, axis=0) if weight is not None else None
    if ignored is None:
        return xt.neg(picked if factor is None else xt.mul(picked, factor)), factor
    factor = xt.select(ignored, scalar(0, scores), scalar(1, scores) if factor is None else factor)
    return xt.select(ignored, scalar(0, scores), xt.neg(xt.mul(picked, factor))), factor


def total(x: Value) -> Value:
    """The sum of all elements."""
    return xt.reduce(x, kind="sum") if xt.shape_of(x) else x


def weight_sum(factor: Any, like: Any) -> Value:
    """The sum of the factors, which broadcast to `like`."""
    assert element(factor) == element(like)
    return total(xt.broadcast(factor, shape=xt.shape_of(like)))
