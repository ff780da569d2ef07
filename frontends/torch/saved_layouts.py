"""How what a forward saves for its backward lies in memory: as convolutions make it, channels last.

AOTAutograd promises a model's results in the layout that eager gives them; of what the two graphs hand to each other
nobody else knows. Channels last in both, nothing is turned in the forward to be turned back in the backward.
"""

from __future__ import annotations

import operator
from collections import Counter
from typing import Any

import torch

from xcc.frontends.torch import compat
from xcc.frontends.torch.fx_facts import ORDER, memory_order
from xcc.frontends.torch.views import base_of

__all__ = ["SavedLayouts"]

_OTHER_DIMS = frozenset({"permute", "transpose", "t", "view", "reshape", "_unsafe_view", "expand", "unsqueeze",
                         "squeeze", "movedim", "as_strided"})
"""Ops of which a result's dims are not those of its operand."""


class SavedLayouts:
    """What one forward saves, as it is told to its backward."""

    def __init__(self) -> None:
        self._orders: dict[str, tuple[int, ...]] = {}

    def forward(self, module: Any) -> None:
        """Marks what is saved, and made by convolutions or behind them from dim to dim."""
        output = next(n for n in module.graph.nodes if n.op == "output")
        results = list(output.args[0]) if isinstance(output.args[0], tuple | list) else [output.args[0]]
        shared = Counter(base_of(r) for r in results if isinstance(r, torch.fx.Node))
        made = _made_by_convolutions(module.graph)
        for r in results[compat.saved_for_backward(len(results))]:
            if r in made and shared[r] == 1 and _rank(r) >= 4 and not memory_order(r.meta["val"]) \
                    and r.meta["val"].is_contiguous():
                self._orders[r.name] = r.meta[ORDER] = (0, *range(2, _rank(r)), 1)

    def backward(self, module: Any) -> None:
        """Marks the same tensors among the backward's inputs, which have the names of what is saved."""
        for node in module.graph.nodes:
            order = self._orders.get(node.name) if node.op == "placeholder" else None
            if order is not None and len(order) == _rank(node):
                node.meta[ORDER] = order


def _made_by_convolutions(graph: Any) -> set[Any]:
    found: set[Any] = set()
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        name = getattr(node.target, "_opname", "")
        behind = any(a in found for a in node.all_input_nodes) and name not in _OTHER_DIMS
        if "conv" in name or (behind and (node.target is operator.getitem or _rank(node) >= 4 or _rank(node) < 0)):
            found.add(node)
    return found


def _rank(node: Any) -> int:
    """Of a tensor; -1 of anything else."""
    value = node.meta.get("val")
    return value.dim() if isinstance(value, torch.Tensor) else -1
