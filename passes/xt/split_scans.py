"""Long scans are done in parts side by side, so that a GPU has more than one thread a row.

A workgroup scans rows, or parts of long ones, in registers, and so it does columns; parts begin at the scan of their
sums:

    %y = xt.cumulative(%x) {axis = 0, kind = "sum"} : 65536
becomes
    %t = xt.scan_parts(%x) {part = 4096} : 1x16           %o = xt.scan_rows(%t) {exclusive}
    %y = xt.scan_rows(%x, %o) {part = 4096}

(Blelloch, "Prefix sums and their applications", 1990). Narrow floats are scanned in f32.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.dims import pow2_above
from xcc.passes.xt.graph.rewrite import rewrite
from xcc.symbolic import Dim, ceildiv, product

KINDS = ("sum", "prod", "max", "min", "logsumexp")
SCANNED = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "ui64", "ui32", "ui16", "ui8")
SHORT = 16          # elements that a thread scans as fast as a workgroup
ROW = 4096          # elements of a part of a row
COLUMN = 128        # elements of a part of a column, at least
BESIDE = 64         # columns of a workgroup
BLOCKS = 4          # workgroups of a core that are enough


@register_pass
class SplitScans(Pass):
    """Makes cumulative ops scans of rows and columns, long ones in parts. part: elements of one; 0: as sizes want."""

    part: int = 0

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"cumulative": lambda op: _scan(op, self.part, ctx.chip.cores)})


def _scan(op: Operation, part: int, cores: int) -> Value | None:
    a, x = xt.attrs_of(op), op.operands[0]
    kind = xt.TensorType.of(x)
    size = kind.shape[a.axis]
    if a.kind not in KINDS or kind.dtype not in SCANNED or any(d == 0 for d in kind.shape) \
            or isinstance(size, int) and size <= SHORT:
        return None
    rows, columns = product(kind.shape[:a.axis]), product(kind.shape[a.axis + 1:])
    flat = xt.reshape(x, shape=(rows, size) if columns == 1 else (rows, size, columns))
    how = {"kind": a.kind, "exclusive": a.exclusive, "reverse": a.reverse}
    part = part or _part(rows, size, columns, cores)
    if not part or isinstance(size, int) and size <= part:
        return xt.reshape(xt.scan_rows(flat, **how), shape=kind.shape)
    sums = xt.scan_parts(flat, kind=a.kind, part=part)
    starts = xt.scan_rows(sums, kind=a.kind, exclusive=True, reverse=a.reverse)
    return xt.reshape(xt.scan_rows(flat, starts, part=part, **how), shape=kind.shape)


def _part(rows: Dim, size: Dim, columns: Dim, cores: int) -> int:
    """Elements of a part; 0: none, as a workgroup takes a whole row, or there are enough of them."""
    if columns == 1:
        whole = isinstance(size, int) and (size <= ROW or isinstance(rows, int) and rows >= 2 * cores)
        return 0 if whole else ROW
    if not isinstance(size, int):
        return ROW
    if size <= COLUMN:
        return 0
    blocks = rows * ceildiv(columns, BESIDE)
    parts = -(-BLOCKS * cores // blocks) if isinstance(blocks, int) else size
    return 0 if parts == 1 else max(COLUMN, pow2_above(-(-size // parts)))
