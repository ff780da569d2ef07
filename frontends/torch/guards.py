"""What a graph takes for granted of sizes, and Dynamo has not been told."""

from __future__ import annotations

import torch

from xcc.frontends.torch.fx_facts import hint_of
from xcc.frontends.torch.oblivious import guarded
from xcc.frontends.torch.size_order import extreme_of_sizes

__all__ = ["guard_broadcasts"]


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
