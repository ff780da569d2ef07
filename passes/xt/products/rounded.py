"""Which products of xt may round what they multiply, and which have no matrix instruction."""

from __future__ import annotations

from xcc._mlir import Operation
from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.shared.instruction_tables import instructions_of
from xcc.passes.shared.lossy import ROUNDED


def is_rounded(op: Operation, ctx: PassContext) -> bool:
    """Whether the dot_general or convolution `op` may round f32 operands to tf32: it says so, or the compilation's
    precision does."""
    return ROUNDED in (xt.attrs_of(op).precision, "" if ctx.options is None else ctx.options.precision)


def by_fma(op: Operation, ctx: PassContext) -> bool:
    """Whether the product `op` has no matrix instruction, on chips whose cores copy for others meanwhile."""
    dtype = xt.TensorType.of(op.operands[0]).dtype
    lossy = is_rounded(op, ctx)
    return ctx.chip.has_async_copies and not any(i.types[0] == dtype and (i.exact or lossy)
                                                 for i in instructions_of(ctx.chip))
