"""Sums and gathers among two ranks become an exchange of what each has, and arithmetic that fuses with what follows.

    %s = xt.all_reduce(%p) {axes = ["tp"], combine = "add"}    %q = xt.permute(%p) {axes = ["tp"], pairs = [0, 1, 1, 0]}
    %y = xt.add(%s, %x)                                     -> %s = xt.add(%p, %q)
                                                               %y = xt.add(%s, %x)

Two ranks send as many bytes so as any other way, and a sum of two numbers is the same in either order, so that both
ranks still have the same bits. On chips whose kernels write into each other's memory, the kernel that makes %p sends it
(push-results), and the one that reads the sum adds: what is left of the collective is a meeting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xcc._mlir import Module, Operation
from xcc.dialects import xt
from xcc.dialects.xt.collective import mesh_of
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.host.placement.places import main_of
from xcc.passes.xt.graph.rewrite import at, name_of, replace

__all__ = ["SWAP", "ExchangePairs"]

SWAP = (0, 1, 1, 0)
"""`pairs` of an xt.permute in which two ranks send to each other."""


@register_pass
@dataclass(frozen=True)
class ExchangePairs(Pass):
    """Rewrites the collectives of @main over groups of two, on a chip that maps the memory of others.

    rank: which of the mesh's this is, where the compilation does not say it. A gather needs it: each rank puts what
        came on its own side.
    """

    name: ClassVar[str] = "exchange-pairs"
    rank: int = -1

    def run(self, module: Module, ctx: PassContext) -> None:
        mesh = mesh_of(module)
        if mesh is None or ctx.chip is None or not ctx.chip.maps_peers:
            return
        told: str = getattr(ctx.options, "mesh", "")
        rank = ctx.options.rank if told and self.rank < 0 else self.rank
        with module.context:
            for op in [o.operation for o in main_of(module).regions[0].blocks[0].operations]:
                if name_of(op) in ("all_reduce", "all_gather") and mesh.group_size(xt.attrs_of(op).axes) == 2:
                    self._exchange(op, mesh, rank)

    def _exchange(self, op: Operation, mesh: Any, rank: int) -> None:
        a, own = xt.attrs_of(op), op.operands[0]
        gathers = name_of(op) == "all_gather"
        if gathers and rank < 0 or not gathers and a.combine != "add":
            return
        with at(op):
            came = xt.permute(own, axes=a.axes, pairs=SWAP)
            if gathers:
                parts = (came, own) if mesh.place(rank, a.axes) else (own, came)
                y = xt.concatenate(*parts, axis=a.dim)
            else:
                y = xt.add(own, came)
        replace(op, [y])
