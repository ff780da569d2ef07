"""Where AOTAutograd cuts the graph of forward and backward: what depends on no tensor is computed on both sides.

Positions and masks of sizes alone are constants when they are compiled. Saved for the backward graph, they would be
inputs there, of which nothing is known. A log-softmax is cut into what says something of each row and the differences,
which backward computes again of its input: of 4096 rows of 50257 logits, 0.8 GB of logarithms need not be kept.
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
    for node in joint.graph.find_nodes(op="call_function", target=torch.ops.aten._log_softmax.default):
        _by_rows(joint.graph, node)
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


def _by_rows(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """The log-softmax `node`, (x - maximum) - log(sum(exp(x - maximum))), in ops of their own; not of sizes that may
    be 0."""
    aten = torch.ops.aten
    x, dim = node.args[0], node.args[1]
    out = node.meta["val"]
    if not isinstance(x, torch.fx.Node) or not out.ndim or not isinstance(out.shape[dim], int) or not out.shape[dim]:
        return

    def add(op: torch._ops.OpOverload, *args: torch.fx.node.Argument, **named: torch.fx.node.Argument) -> torch.fx.Node:
        made = graph.call_function(op, args, named)
        given = torch.fx.map_arg(args, lambda n: n.meta["val"])
        made.meta = {k: v for k, v in node.meta.items() if k != "tensor_meta"} | {"val": op(*given, **named)}
        if made.meta["val"].shape == out.shape:
            made.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
        return made

    with graph.inserting_before(node):
        if x.meta["val"].dtype in (torch.float16, torch.bfloat16):
            x = add(aten._to_copy.default, x, dtype=torch.float32)
        less = add(aten.sub.Tensor, x, add(aten.amax.default, x, [dim], True))
        total = add(aten.sum.dim_IntList, add(aten.exp.default, less), [dim], True)
        made = add(aten.sub.Tensor, less, add(aten.log.default, total))
        if made.meta["val"].dtype != out.dtype:
            made = add(aten._to_copy.default, made, dtype=out.dtype)
    node.replace_all_uses_with(made)
    graph.erase_node(node)
