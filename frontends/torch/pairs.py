"""Complex numbers between what xcc compiles and what torch runs: a compiled part is given real pairs, and gives them.

    x: c64[N] -> mul     becomes     x -> view_as_real, in torch -> f32[N, 2] -> view_as_complex -> mul
"""

from __future__ import annotations

from collections.abc import Callable

import torch

__all__ = ["IN_TORCH", "meet_in_pairs"]

IN_TORCH = "xcc_in_torch"
"""Key of a node's meta: torch runs the node, which gives memory another type."""


def meet_in_pairs(module: torch.fx.GraphModule, compiled: Callable[[torch.fx.Node], bool]) -> None:
    """Has all complex numbers that go between `compiled` nodes and others be real pairs on the way."""
    changed = False
    for node in list(module.graph.nodes):
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or not value.is_complex() or value.layout != torch.strided:
            continue
        inside = _is_inside(node, compiled)
        users = [u for u in node.users if _is_inside(u, compiled) != inside]
        if users:
            _meet(module.graph, node, users, inside)
            changed = True
    if changed:
        module.recompile()


def _is_inside(node: torch.fx.Node, compiled: Callable[[torch.fx.Node], bool]) -> bool:
    return node.op == "call_function" and compiled(node)


def _meet(graph: torch.fx.Graph, node: torch.fx.Node, users: list[torch.fx.Node], inside: bool) -> None:
    """Has `users` read `node` by way of pairs, of which torch makes them, or takes them where `node` is `inside`."""
    aten = torch.ops.aten
    steps = ((aten.resolve_conj.default, not inside), (aten.view_as_real.default, not inside),
             (aten.view_as_complex.default, inside))
    at, made = node, node
    if node.op == "placeholder":
        at = next(n for n in graph.nodes if n.op != "placeholder").prev
    for op, in_torch in steps:
        with graph.inserting_after(at):
            new = graph.call_function(op, (made,))
        new.meta = {"val": op(made.meta["val"]), "stack_trace": users[0].meta.get("stack_trace"), IN_TORCH: in_torch}
        at = made = new
    for user in users:
        user.replace_input_with(node, made)
