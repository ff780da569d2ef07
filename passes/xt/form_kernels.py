"""Forms kernels: groups the ops of @main and outlines every group as a function (stage ``kernels``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from xcc._mlir import Module, Operation
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.fusion.beside import beside
from xcc.passes.xt.fusion.fusion import fuse
from xcc.passes.xt.fusion.fusion_cost import ByCost
from xcc.passes.xt.fusion.fusion_rules import FusionRules
from xcc.passes.xt.fusion.kernel_cost import FusionLimits
from xcc.passes.xt.fusion.kernel_summary import summarise
from xcc.passes.xt.fusion.outline import Group, Outliner
from xcc.passes.xt.fusion.scan_axes import scan_along_first_dim
from xcc.passes.xt.fusion.shared_updates import mark_shared_updates
from xcc.passes.xt.graph.op_graph import Graph, Node, is_inline
from xcc.passes.xt.graph.rewrite import dim_bounds, erase_dead
from xcc.symbolic import symbols_of


@register_pass
class FormKernels(FusionLimits, Pass):
    """Groups ops into kernels and replaces them by dispatches.

    fuse: "all", or "none" to make every op a kernel of its own.
    max-ops, max-buffers: how many ops a kernel may have, and inputs and outputs.
    max-row: the longest row (in elements) that a reduction shares a kernel with its full-size consumers for.
    flops-per-byte: how many operations cost as much as moving a byte; above it, recomputation loses.
    single: operations that take as long as reading an element that is no neighbour of the one before.
    piece: elements of a tile. One that lies in one operand of a concatenation evaluates that one alone; 0: all of them.
    prologue: ops that may be evaluated inside a contraction's loop over its operands; "widen" are converts to elements
        that are no narrower, but not of 16-bit floats that it takes one by one (its first operand). A narrowing convert
        belongs to what computes its operand: the product then copies what lies in memory, half as many bytes. "once":
        pointwise ops and gathers of rows that make the matrix of a product with a vector, which reads elements once.
        "slice": boxes at known places, of the left side of a product with panels.
    tile-row: the longest row (in elements) of a product that is reduced in the product's kernel; 0: none is.
    beside: microseconds of memory traffic below which kernels that do not depend on each other share a launch, on a
        chip that says its bandwidth; 0: none do.
    launch: operations in the time in which a kernel is started: so much more a kernel may cost than its parts.
    explain: print why dependent kernels were not made one; -v prints those that an estimate of their cost kept apart.
    """

    fuse: str = "all"
    beside: int = 0
    explain: bool = False

    def __post_init__(self) -> None:
        if self.fuse not in ("all", "none"):
            raise UserError(f"pass 'form-kernels' option 'fuse': '{self.fuse}' is neither all nor none")

    def run(self, module: Module, ctx: PassContext) -> None:
        bounds = dim_bounds(module)
        erase_dead(module)
        outliner = Outliner(module)
        known = _known_symbols(module)
        for function in list(module.body):
            if function.operation.name == "func.func" and "xt.kernel" not in function.attributes:
                self._regions(function.operation, outliner, lambda: FusionRules(self, bounds), ctx, known)
        mark_shared_updates(module)
        if getattr(ctx.options, "verbose", 0):
            ctx.verbose(str(summarise(module)))

    def _regions(self, op: Operation, outliner: Outliner, rules: Callable[[], FusionRules], ctx: PassContext,
                 known: set[str]) -> None:
        for region in op.regions:
            for block in region.blocks:
                for nested in list(block.operations):
                    self._regions(nested.operation, outliner, rules, ctx, known)
                for scan in [o.operation for o in block.operations if o.operation.name == "xtv.scan"]:
                    scan_along_first_dim(scan)
                graph = Graph(block)
                outliner.outline(graph, self._groups(graph, rules(), ctx, known))

    def _groups(self, graph: Graph, rules: FusionRules, ctx: PassContext, known: set[str]) -> list[Group]:
        if self.fuse == "none":
            alone = [n for n in graph.nodes if n.kind not in ("host", "source", "view", "unit_view")]
            return [_with_sources(Group([n])) for n in alone]
        fusion = fuse(graph, rules, explain=self.explain or getattr(ctx.options, "verbose", 0) > 0)
        for line in _explained(fusion.reasons, costs=not self.explain):
            ctx.verbose(line)
        most = self.beside * 1e-6 * (ctx.chip.bandwidth if ctx.chip is not None else 0.0)
        together = beside(graph, fusion.groups, fusion.copies, rules.cost, most, known) if most \
            else [[g] for g in fusion.groups]
        return [_joined([_with_sources(Group(g.nodes, fusion.copied_into(g), g.root().name)) for g in shared])
                for shared in together]


def _explained(reasons: Sequence[tuple[Node, Node, str]], *, costs: bool) -> list[str]:
    """Why kernels are not one, a line each; with `costs`, those that might be, and alike ones together."""
    if not costs:
        return [f"{p} not fused with {c}: {why}" for p, c, why in reasons]
    alike = Counter(f"{p.name} not fused with {c.name}: {why}" for p, c, why in reasons if isinstance(why, ByCost))
    return [f"{line}{f' ({times} times)' if times > 1 else ''}" for line, times in alike.items()]


def _known_symbols(module: Module) -> set[str]:
    """The symbols that the inputs of @main give: those of their shapes, and elements that are read before a run."""
    arguments = [a for op in module.body if op.operation.name == "func.func" and "xt.kernel" not in op.attributes
                 for a in op.operation.regions[0].blocks[0].arguments]
    shapes = {s for a in arguments for d in xt.shape_of(a) for s in symbols_of(d)}
    return shapes | {s for a in arguments for s in xt.value_symbols(a)}


def _joined(groups: list[Group]) -> Group:
    """One kernel of several that do not depend on each other."""
    if len(groups) == 1:
        return groups[0]
    nodes = sorted((n for g in groups for n in g.nodes), key=lambda n: n.index)
    return Group(nodes, [n for g in groups for n in g.clones], "beside",
                 [{n.index for n in g.nodes} for g in groups])


def _with_sources(group: Group) -> Group:
    """Adds the small constants and dims that the group reads; a loop kernel reads them from memory."""
    if any(n.kind == "opaque" for n in group.nodes):
        return group
    for n in group.body():
        group.clones += [p for p in n.producers if p is not None and is_inline(p)]
    return group
