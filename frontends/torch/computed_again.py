"""Where AOTAutograd cuts the graph of forward and backward: what depends on no tensor is computed on both sides.

Positions and masks of sizes alone are constants when they are compiled. Saved for the backward graph, they would be
inputs there, of which nothing is known.
"""

from __future__ import annotations

from typing import Any

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch.fx import GraphModule
from torch.utils.checkpoint import CheckpointPolicy

from xcc.frontends.torch.guards import guard_numbers

__all__ = ["partition"]


def partition(joint: GraphModule, inputs: object, **rest: Any) -> tuple[GraphModule, GraphModule]:
    """The forward and the backward graph of `joint`, whose constants are numbers in both."""
    guard_numbers(joint)
    again: set[torch.fx.Node] = set()
    for node in joint.graph.nodes:
        if _of_sizes(node, again):
            again.add(node)
            node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
    return min_cut_rematerialization_partition(joint, inputs, **rest)


def _of_sizes(node: torch.fx.Node, known: set[torch.fx.Node]) -> bool:
    """Whether a tensor is computed of numbers, sizes and `known` nodes alone, always the same of the same ones."""
    return isinstance(node.target, torch._ops.OpOverload) and isinstance(node.meta.get("val"), torch.Tensor) \
        and torch.Tag.nondeterministic_seeded not in node.target.tags and not node.target._schema.is_mutable \
        and all(n in known or not isinstance(n.meta.get("val"), torch.Tensor) for n in node.all_input_nodes)
