"""Forms kernels: groups the ops of @main and outlines every group as a function (stage ``kernels``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xcc._mlir import ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.op_graph import Graph, Node
from xcc.passes.xt.outline import Group, Outliner

__all__ = ["FormKernels"]


@register_pass
@dataclass(frozen=True)
class FormKernels(Pass):
    """Groups ops into kernels and replaces them by dispatches.

    fuse: "none" makes every op a kernel of its own.
    """

    name: ClassVar[str] = "form-kernels"
    fuse: str = "all"

    def run(self, module: Any, ctx: PassContext) -> None:
        outliner = Outliner(module)
        with module.context, ir.Location.unknown():
            for function in list(module.body):
                if function.operation.name == "func.func" and "xt.kernel" not in function.attributes:
                    for region in function.operation.regions:
                        self._region(region, outliner)

    def _region(self, region: Any, outliner: Outliner) -> None:
        for block in region.blocks:
            for op in block.operations:
                for nested in op.operation.regions:
                    self._region(nested, outliner)
            graph = Graph(block)
            outliner.outline(graph, [_with_sources(Group([n])) for n in graph.nodes
                                     if n.kind not in ("host", "source", "view", "unit_view")])


def _with_sources(group: Group) -> Group:
    """Adds the small constants and dims that the group reads."""
    for n in group.body():
        group.clones += [p for p in n.producers if p is not None and is_inline(p)]
    return group


def is_inline(n: Node) -> bool:
    """Sources that are copied into kernels: dims, and constants of one repeated value."""
    if n.name == "dim":
        return True
    return n.name == "constant" and (ir.DenseElementsAttr(n.op.attributes["value"]).is_splat)
