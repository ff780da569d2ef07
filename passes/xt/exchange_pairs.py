"""Sums and gathers among two ranks become an exchange of what each has, and arithmetic that fuses with what follows.

    %s = xt.all_reduce(%p) {axes = ["tp"], combine = "add"}    %q = xt.permute(%p) {axes = ["tp"], pairs = [0, 1, 1, 0]}
    %y = xt.add(%s, %x)                                     -> %s = xt.add(%p, %q)
                                                               %y = xt.add(%s, %x)

Two ranks send as many bytes so as any other way, and a sum of two numbers is the same in either order, so that both
ranks still have the same bits. What is added to the sum, %x here, one of the two adds to its part before, where the
product that makes %p waits for the link: it reads %x meanwhile, and the kernel behind reads less. They take turns.

On chips whose kernels write into each other's memory, the kernel that makes %p sends it (push-results), and the one
that reads the sum adds: what is left of the collective is a meeting.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value, ir
from xcc.dialects import xt
from xcc.dialects.xt.collective import mesh_of
from xcc.dialects.xt.types import TensorType
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.host.placement.places import main_of
from xcc.passes.xt.graph.rewrite import at, dim_bounds, name_of, producer, replace, same_type
from xcc.passes.xt.sharding.cost import Costs
from xcc.passes.xt.sharding.factors import OpView

SWAP = (0, 1, 1, 0)
"""`pairs` of an xt.permute in which two ranks send to each other."""


@register_pass
class ExchangePairs(Pass):
    """Rewrites the collectives of @main over groups of two, on a chip that maps the memory of others.

    rank: which of the mesh's this is, where the compilation does not say it. Without it, as of a program that is the
        same on all ranks, sums alone are exchanged: of a gather each rank puts what came on its own side.
    """

    rank: int = -1

    def run(self, module: Module, ctx: PassContext) -> None:
        mesh = mesh_of(module)
        if mesh is None or ctx.chip is None or not ctx.chip.maps_peers:
            return
        told: str = getattr(ctx.options, "mesh", "")
        rank = ctx.options.rank if told and self.rank < 0 else self.rank
        sums, costs = 0, Costs(ctx.chip, 2, dim_bounds(module))
        for op in [o.operation for o in main_of(module).regions[0].blocks[0].operations]:
            name = name_of(op)
            if name not in ("all_reduce", "all_gather") or mesh.group_size(xt.attrs_of(op).axes) != 2:
                continue
            place = mesh.place(rank, xt.attrs_of(op).axes) if rank >= 0 else -1
            if name == "all_gather" and place >= 0:
                _gather(op, place)
            elif name == "all_reduce" and xt.attrs_of(op).combine == "add":
                sums += _sum(op, place, sums % 2, costs)


def _gather(op: Operation, place: int) -> None:
    a, own = xt.attrs_of(op), op.operands[0]
    with at(op):
        came = xt.permute(own, axes=a.axes, pairs=SWAP)
        y = xt.concatenate(*((came, own) if place else (own, came)), axis=a.dim)
    replace(op, [y])


def _sum(op: Operation, place: int, turn: int, costs: Costs) -> bool:
    """Whether the rank at place `turn` has added to its part what is added to the sum."""
    a, own = xt.attrs_of(op), op.operands[0]
    behind = _added(op) if place >= 0 and _waits_for_link(own, costs) else None
    with at(op):
        if behind is not None and place == turn:
            own = xt.add(own, behind[1])
        y = xt.add(own, xt.permute(own, axes=a.axes, pairs=SWAP))
    if behind is not None:
        replace(behind[0], [y])
        op.erase()
    else:
        replace(op, [y])
    return behind is not None


def _waits_for_link(value: Value, costs: Costs) -> bool:
    """Whether `value` is a product that takes no longer than sending it."""
    product = producer(value, "dot_general")
    return product is not None and costs.seconds(OpView.of(product)) <= costs.nbytes(TensorType.of(value)) / costs.link


def _added(op: Operation) -> tuple[Operation, Value] | None:
    """The addition that alone reads the sum `op`, and what it adds, of the same type, if that is there before."""
    uses = list(op.results[0].uses)
    user = uses[0].owner.operation if len(uses) == 1 else None
    if user is None or name_of(user) != "add" or user.block != op.block:
        return None
    other = next((v for v in user.operands if v != op.results[0]), None)
    if other is None or not same_type(other, op.results[0]):
        return None
    made = other.owner
    return (user, other) if isinstance(made, ir.Block) or made.operation.is_before_in_block(op) else None
