"""What a step of a loop (``scan``) keeps for its backward beside its results, where both are one tensor.

    return (h, y, h)    ->    return (h, y, clone(h))

torch takes what is given twice for an alias, which a loop must not have: to train a step that ends in ``tanh`` or
``exp``, which keep their results, is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import cast

import torch
from torch._higher_order_ops import partitioner

__all__ = ["copy_kept_results"]

Made = Callable[..., None]


@cache
def copy_kept_results() -> None:
    """From now on, in all traces."""
    graph = partitioner.HopPartitionedGraph
    graph.__init__ = _with_copies(graph.__init__)       # type: ignore[method-assign]


def _with_copies(function: Made) -> Made:
    def init(own: partitioner.HopPartitionedGraph, *args: object, **named: object) -> None:
        function(own, *args, **named)
        graph = own.fw_gm.graph
        output = graph.output_node()
        given = cast("tuple[torch.fx.Node, ...]", output.args[0])
        with graph.inserting_before(output):
            output.args = (tuple(_copied(graph, node) if node in given[:n] else node for n, node in enumerate(given)),)
        own.fw_gm.recompile()

    return init


def _copied(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    copy = graph.call_function(torch.ops.aten.clone.default, (node,))
    copy.meta = dict(node.meta)
    return copy
