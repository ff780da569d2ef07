"""Which products of xt may round what they multiply."""

from __future__ import annotations

from xcc._mlir import Operation
from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.shared.lossy import ROUNDED


def is_rounded(op: Operation, ctx: PassContext) -> bool:
    """Whether the dot_general or convolution `op` may round f32 operands to tf32: it says so, or the compilation's
    precision does."""
    return ROUNDED in (xt.attrs_of(op).precision, "" if ctx.options is None else ctx.options.precision)
