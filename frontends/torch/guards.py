"""What a graph takes for granted of sizes, and Dynamo has not been told."""

from __future__ import annotations

import torch

from xcc.diagnostics import UserError
from xcc.frontends.torch.fx_facts import hint_of, source_of
from xcc.frontends.torch.oblivious import guarded
from xcc.frontends.torch.size_order import extreme_of_sizes

__all__ = ["guard_broadcasts", "guard_ranks"]


def guard_broadcasts(module: torch.fx.GraphModule) -> None:
    """Has Dynamo trace anew for no elements where what an op broadcasts is the last of n, ``n - max(n - 1, 0)``.

    torch takes such a size to be 1, as it is of all tensors that have elements, without a guard; it is 0 of none. So it
    does where the other size is 1, and the result's is that number."""
    for node in module.graph.nodes:
        made = node.meta.get("val")
        if node.op != "call_function" or not isinstance(made, torch.Tensor):
            continue
        for operand in node.all_input_nodes:
            value = operand.meta.get("val")
            own = value.shape if isinstance(value, torch.Tensor) else ()
            count = min(len(own), made.dim())
            for size, result in zip(own[len(own) - count:], made.shape[made.dim() - count:], strict=True):
                if extreme_of_sizes(size) and hint_of(size) == 1 and (hint_of(result) != 1 or isinstance(result, int)):
                    guarded(size == 1)


def guard_ranks(module: torch.fx.GraphModule) -> None:
    """Has Dynamo trace anew for a size of 1 that `squeeze` would drop, and one that is not 1 where it has dropped it.

    Where 1 is a size like any other (``xcc.torch.compile``), torch traces as if it were larger, without a guard, and a
    least of sizes (``x[:, :1]``) as if there were elements. UserError where that is not so in the very call that is
    traced: the graph has another rank than eager.
    """
    for node in module.graph.nodes:
        if node.op != "call_function" or not str(node.target).startswith("aten.squeeze."):
            continue
        value, made = node.args[0].meta["val"], node.meta["val"]
        given = node.args[1] if len(node.args) > 1 else range(value.dim())
        asked = [d for d in ((given,) if isinstance(given, int) else given) if value.dim()]
        open_dims = [d for d in asked if isinstance(value.shape[d], torch.SymInt)]
        dropped = value.dim() - made.dim() - sum(value.shape[d] == 1 for d in asked if d not in open_dims)
        for d in open_dims:
            if guarded(value.shape[d] == 1) != (dropped == len(open_dims)):
                place = source_of(node) or "the graph"
                raise UserError(f"{place}: squeeze of dim {d}, which is {hint_of(value.shape[d])} in this call and may "
                                "be another size in others: use torch.compile(model, backend='xcc'), which compiles "
                                "sizes of 1 apart")
