"""Convolutions of groups of a few channels become ones of fewer, wider groups, for matrix instructions.

    %y = xt.convolution(%x, %w) {groups = 32} : 32x56x56x128, 3x3x4x128
becomes
    %z = %w where an output's own 4 of 16 channels are, 0 elsewhere : 3x3x16x128
    %y = xt.convolution(%x, %z) {groups = 8}

A group of 4 channels is 8 bytes of a pixel's line, of which memory gives no less than 32, and a quarter of what an
instruction multiplies. What is not finite in x makes NaN of the outputs that it is joined to.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.rewrite import rewrite

WIDE = 16       # channels: an instruction's, and a sector of memory


@register_pass
class JoinGroups(Pass):
    """Joins groups of channels of 16-bit floats until they are 16 wide."""

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"convolution": _joined})


def _joined(op: Operation) -> Value | None:
    a = xt.attrs_of(op)
    x, w = op.operands
    shape = xt.shape_of(w)
    if a.filter != "HWIO" or xt.TensorType.of(w).dtype not in ("f16", "bf16") or a.groups == 1 \
            or not all(isinstance(d, int) for d in shape[-2:]):
        return None
    *window, inputs, outputs = shape
    assert isinstance(inputs, int) and isinstance(outputs, int)
    own = outputs // a.groups
    together = max(n for n in range(1, a.groups + 1) if a.groups % n == 0 and (n == 1 or n * max(inputs, own) <= WIDE))
    if inputs == 1 or together == 1:        # channels on their own are no product
        return None
    parts = (*window, 1, inputs, a.groups // together, together, own)
    full = (*window, together, *parts[-4:])
    ones = (1,) * len(window)
    reader, owner = (xt.iota(shape=(*ones, *sizes), axis=len(window) + d, dtype="i32")
                     for d, sizes in ((0, (together, 1, 1, 1, 1)), (3, (1, 1, 1, together, 1))))
    spread = xt.select(xt.compare(reader, owner, direction="eq"), xt.broadcast(xt.reshape(w, shape=parts), shape=full),
                       xt.constant(0, dtype=xt.TensorType.of(w).dtype))
    joined = vars(a) | {"groups": a.groups // together}
    return xt.convolution(x, xt.reshape(spread, shape=(*window, together * inputs, outputs)), **joined)
