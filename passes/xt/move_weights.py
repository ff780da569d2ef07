"""The pass ``move-weights``."""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import name_of, rewrite
from xcc.passes.xt.products.panels import static_shape
from xcc.passes.xt.quant.decoded import Move, is_decoded, made_with, merge, permute, split


@register_pass
class MoveWeights(Pass):
    """Transposes and reshapes of what is decoded from narrow weights become those of the weights.

    Before: ``transpose(mul(convert(w), s))``, w: i8[K, N], s: f32[N]
    After:  ``mul(convert(transpose(w)), transpose(reshape(s)))``, which ``xt-fold`` does when it compiles
    """

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, dict.fromkeys(("transpose", "reshape"), _moved))


def _moved(op: Operation) -> Value | None:
    if not is_decoded(op.operands[0]):
        return None
    return _transposed(op) if name_of(op) == "transpose" else _reshaped(op)


def _transposed(op: Operation) -> Value | None:
    return made_with(op.operands[0], permute(len(xt.shape_of(op.operands[0])), xt.attrs_of(op).perm))


def _reshaped(op: Operation) -> Value | None:
    """A reshape, as one dim after the other that is cut in two, or two that become one."""
    value: Value | None = op.operands[0]
    target = static_shape(op.results[0])
    d = 0
    while value is not None and (shape := static_shape(value)) != target:
        if not shape or not target or 0 in shape:
            return None
        if d < min(len(shape), len(target)) and shape[d] == target[d]:
            d += 1
            continue
        value = made_with(value, _step(shape, target, d))
    return value


def _step(shape: tuple[int, ...], target: tuple[int, ...], d: int) -> Move:
    """The move that makes more of `shape` than its first `d` dims be those of `target`."""
    rank = len(shape)
    if d == rank:
        return split(rank, d - 1, 1)
    if d == len(target):
        return merge(rank, d - 1, (shape[d - 1], shape[d]))
    if shape[d] > target[d] and shape[d] % target[d] == 0:
        return split(rank, d, shape[d] // target[d])
    return merge(rank, d, (shape[d], shape[d + 1]))
