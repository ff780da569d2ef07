"""Numbers that a kernel rounds to bytes and widens again stay floats in its registers.

Before::

    %q = xt.requantize(%x) {zero_point = 7} : ui8
    %y = xt.convert(xt.sub(xt.convert(%q) : i32, 7)) : f32

After, in a kernel that uses %q for nothing else::

    %y = xt.round_clamp(%x) {low = -7, high = 248}
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.numeric import integer_limits
from xcc.dialects.xt.op import attrs_of
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.match import dims_of, dtype_of, number, only_user
from xcc.passes.xt.graph.rewrite import producer, rewrite


@register_pass
class RequantisedFloats(Pass):
    """Replaces the way through bytes inside a kernel by a rounding and a clamp; for stage `linalg`."""

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"convert": _rounded})


def _rounded(op: Operation) -> Value | None:
    """The float form of an i32 that is a requantised number less its zero point; None when it is none."""
    value = op.operands[0]
    if attrs_of(op).dtype != "f32" or dtype_of(value) != "i32":
        return None
    zero, shifted = 0.0, producer(value, "sub")
    if shifted is not None:
        point = number(shifted.operands[1])
        if point is None or not only_user(value) or dims_of(shifted.operands[0]) != dims_of(value):
            return None
        zero, value = point, shifted.operands[0]
    wide = producer(value, "convert")
    made = producer(wide.operands[0], "requantize") if wide is not None else None
    if wide is None or made is None or not only_user(value) or not only_user(wide.operands[0]) \
            or attrs_of(made).zero_point != zero:
        return None
    low, high = integer_limits(attrs_of(made).dtype)
    return xt.round_clamp(made.operands[0], low=int(low - zero), high=int(high - zero))
