"""What torch lets products of f32 be rounded to: TorchGraph.rounded as the attribute `precision` of xt's ops.

    torch.set_float32_matmul_precision("high")      %y = xt.dot_general(%a, %b) {precision = "tf32"}
"""

from __future__ import annotations

from collections.abc import Sequence

from xcc._mlir import Module, Operation, WalkResult, ir

KINDS = {"xt.convolution": "convolution", "xt.dot_general": "product"}


def precision_of(kind: str, rounded: Sequence[str]) -> str:
    """The precision of a "convolution" or a "product" where those of `rounded` may lose bits."""
    return "tf32" if kind in rounded else ""


def allow_rounding(module: Module, rounded: Sequence[str]) -> None:
    """Has the ops of `module` whose kind is in `rounded` say so."""
    def visit(op: Operation) -> WalkResult:
        kind = KINDS.get(op.name, "")
        if kind in rounded:
            op.attributes["precision"] = ir.StringAttr.get(precision_of(kind, rounded))
        return ir.WalkResult.ADVANCE

    if rounded:
        module.operation.walk(visit)
