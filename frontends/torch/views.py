"""Results that share memory: views of inputs, and views of what is a result, too.

    relu = x.relu(); return relu, relu[0], x.t()     ->     the program makes relu; torch takes relu[0] and x.t() of it

A program gives each result its own memory. What eager gives as a view, of an input or of another result, stays a view:
torch applies these ops when the program has run, with the strides and offsets that only it knows. A view of what is
written to an input is one of that input:

    x[2:] *= 3; return x[:2]      ->     the program writes x; torch takes x[:2]
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from xcc.frontends.torch.compat import aliases_of_inputs
from xcc.frontends.torch.fx_facts import operand

__all__ = ["Finish", "base_of", "without_views"]

Finish = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


def without_views(module: torch.fx.GraphModule) -> tuple[Any, list[int], Finish | None]:
    """`module`, a flat graph of ATen ops, without results that are such views; what gives them back.

    The latter takes the arguments at the places that are returned, and the results of the rest; None, and `module`
    itself, where there is nothing to do.
    """
    output = next(n for n in module.graph.nodes if n.op == "output")
    results = list(output.args[0]) if isinstance(output.args[0], tuple | list) else [output.args[0]]
    bases: list[Any] = [base_of(r) if isinstance(r, torch.fx.Node) else None for r in results]
    written = {n.args[1]: n.args[0] for n in module.graph.nodes
               if n.target is torch.ops.aten.copy_.default and n.args[0].op == "placeholder"}
    aliases = aliases_of_inputs(len(results)) if written else ()
    stay = {b for n, b in enumerate(bases) if n not in aliases}         # they need the value, in memory of its own
    standing = {v: x for v, x in written.items() if v not in stay}
    bases = [standing.get(b, b) for b in bases]
    shared = Counter(bases)
    taken = [b is not None and b is not r and (b.op == "placeholder" or shared[b] > 1)
             for r, b in zip(results, bases, strict=True)]
    if not any(taken):
        return module, [], None
    made = list(dict.fromkeys(b if view and b.op != "placeholder" else r
                              for r, b, view in zip(results, bases, taken, strict=True)
                              if not view or b.op != "placeholder"))
    places, tail = _tail(module, results, made, [r for r, view in zip(results, taken, strict=True) if view], standing)
    graph = torch.fx.Graph()
    values: dict[torch.fx.Node, torch.fx.Node] = {}
    graph.graph_copy(module.graph, values)
    graph.output(tuple(values[r] if isinstance(r, torch.fx.Node) else r for r in made))
    graph.eliminate_dead_code()
    return torch.fx.GraphModule(module, graph), places, tail


def base_of(node: torch.fx.Node) -> torch.fx.Node:
    """What the value of `node` is a view of: itself, where it is none. A view of complex numbers that are computed is
    none: no result has them."""
    base = node
    while node.op == "call_function" and _is_view(node):
        node = operand(node)
        if not (isinstance(node.meta.get("val"), torch.Tensor) and node.meta["val"].is_complex()):
            base = node
    return base


def _is_view(node: torch.fx.Node) -> bool:
    if node.target is operator.getitem:
        return _is_view(operand(node))
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    returns = node.target._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def _tail(module: torch.fx.GraphModule, results: Sequence[Any], made: Sequence[Any], views: Sequence[torch.fx.Node],
          standing: Mapping[torch.fx.Node, torch.fx.Node]) -> tuple[list[int], Finish]:
    """The graph of the views, over the arguments that they need and what is `made`. standing: arguments that hold a
    value when the program has run."""
    needed: dict[torch.fx.Node, None] = {}

    def need(node: torch.fx.Node) -> None:
        if node in standing:
            needed[standing[node]] = None
        elif node not in needed and node not in made:
            for n in node.all_input_nodes:
                need(n)
            needed[node] = None

    for view in views:
        need(view)
    graph = torch.fx.Graph()
    values = {}
    places = []
    for place, n in enumerate(n for n in module.graph.nodes if n.op == "placeholder"):
        if n in needed:
            values[n] = graph.placeholder(n.name)
            places.append(place)
    values |= {v: values[x] for v, x in standing.items() if x in values}
    for number, n in enumerate(made):
        one = graph.placeholder(f"made{number}")
        if isinstance(n, torch.fx.Node):
            values[n] = one
    for n in needed:
        if n not in values:
            values[n] = graph.node_copy(n, values.__getitem__)
    graph.output([values[r] if isinstance(r, torch.fx.Node) else r for r in results])
    forward = torch.fx.GraphModule(module, graph).forward

    def finish(arguments: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        out: list[Any] = forward(*arguments, *results)
        return out

    return places, finish
