"""How what a forward saves for its backward lies in memory: as convolutions make it, channels last, and whole.

AOTAutograd promises a model's results in the layout that eager gives them; of what the two graphs hand to each other
nobody else knows. Channels last in both, nothing is turned in the forward to be turned back in the backward. Of several
parts of one tensor, as queries, keys and values of one product are, the whole is saved for each:

    save(q = qkv[..., :64].transpose(1, 2), k = ..., v = ...)    ->    save(qkv, qkv, qkv); the backward takes the parts

Parts do not lie densely: each would be copied ahead of the backward. Where they are of a copy of the whole, as
nn.MultiheadAttention makes one, the forward need not make it.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch.fx import Graph, Node

from xcc.frontends.torch import compat
from xcc.frontends.torch.fx_facts import ORDER, memory_order
from xcc.frontends.torch.layout import order_of
from xcc.frontends.torch.views import base_of

__all__ = ["SavedLayouts"]

_OTHER_DIMS = frozenset({"permute", "transpose", "t", "view", "reshape", "_unsafe_view", "expand", "unsqueeze",
                         "squeeze", "movedim", "as_strided"})
"""Ops of which a result's dims are not those of its operand."""


class SavedLayouts:
    """What one forward saves, as it is told to its backward."""

    def __init__(self) -> None:
        self._orders: dict[str, tuple[int, ...]] = {}
        self._parts: dict[str, list[Node]] = {}      # by name, from the whole on, the nodes that make it

    def forward(self, module: Any) -> None:
        """Marks what is saved, and made by convolutions or behind them from dim to dim; saves wholes for parts."""
        output = next(n for n in module.graph.nodes if n.op == "output")
        results = list(output.args[0]) if isinstance(output.args[0], tuple | list) else [output.args[0]]
        shared = Counter(base_of(r) for r in results if isinstance(r, torch.fx.Node))
        made = _made_by_convolutions(module.graph)
        saved = list(enumerate(results))[compat.saved_for_backward(len(results))]
        alone = Counter(base_of(r) for _, r in saved)
        for n, r in saved:
            base = base_of(r)
            steps = _steps(r, copies=shared[base] == alone[base]) if shared[base] > 1 else []
            if steps:
                self._parts[r.name] = steps
                results[n] = steps[0]
            if r in made and shared[r] == 1 and _rank(r) >= 4 and not memory_order(r.meta["val"]) \
                    and r.meta["val"].is_contiguous():
                self._orders[r.name] = r.meta[ORDER] = (0, *range(2, _rank(r)), 1)
        if self._parts:
            output.args = (tuple(results),)
            module.recompile()

    def backward(self, module: Any) -> None:
        """Marks the same tensors among the backward's inputs, which have the names of what is saved."""
        for node in module.graph.nodes:
            order = self._orders.get(node.name) if node.op == "placeholder" else None
            if order is not None and len(order) == _rank(node):
                node.meta[ORDER] = order
            elif node.name in self._parts and node.op == "placeholder":
                _take_part(module.graph, node, self._parts[node.name])
        if self._parts:
            module.recompile()


def _steps(part: Any, copies: bool) -> list[Node]:
    """From the whole of which `part` is a view, or with `copies` one of a copy, the nodes that make it. None where one
    of them is not known ahead of the run, the whole is an argument, or `part` lies densely and nothing is copied."""
    nodes, shape, strides = _from_base(part), part.meta["val"].shape, part.meta["val"].stride()
    if not all(isinstance(d, int) for d in (*shape, *strides)):
        return []
    copied = nodes[0]
    if copies and getattr(copied.target, "_opname", "") == "clone":
        whole = _from_base(copied.args[0])
        nodes = [*whole, *nodes] if whole[0].meta["val"].numel() == copied.meta["val"].numel() else nodes
    known = nodes[0].op == "call_function" and all(n.all_input_nodes == [before] for before, n in pairwise(nodes))
    return nodes if known and (nodes[0] is not copied or order_of(shape, strides) is None) else []


def _from_base(node: Any) -> list[Node]:
    """The views of which `node` is the last, behind what it is a view of."""
    nodes = [node]
    while nodes[0] is not base_of(node):
        nodes.insert(0, nodes[0].args[0])
    return nodes


def _take_part(graph: Graph, node: Node, steps: Sequence[Node]) -> None:
    """Has the argument `node` be the whole, of which `steps` make what it was."""
    users, last = list(node.users), node
    node.meta["val"] = steps[0].meta["val"]
    with graph.inserting_before(next(n for n in graph.nodes if n.op != "placeholder")):
        for before, step in pairwise(steps):
            made = graph.node_copy(step, {before: last}.__getitem__)
            last = made
    for user in users:
        user.replace_input_with(node, last)


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
