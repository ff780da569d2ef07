"""The order in which a graph's nodes are imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from onnx import NodeProto

__all__ = ["names_read", "operands_first"]


def operands_first(nodes: Sequence[NodeProto]) -> Sequence[NodeProto]:
    """`nodes` with each behind those that make its operands, else in the order of the file.

    ONNX asks for this order, yet not all tools that rewrite graphs keep to it, and other runtimes sort. Where there is
    a cycle the order stays as it is, and the operand that is missing is reported.
    """
    maker = {name: n for n, node in reversed([*enumerate(nodes)]) for name in node.output if name}
    if _in_order(range(len(nodes)), nodes, maker):
        return nodes
    order: dict[int, None] = {}
    begun: set[int] = set()
    for root in range(len(nodes)):
        pending = [root]
        while pending:
            n = pending[-1]
            needed = (maker.get(name, n) for name in names_read(nodes[n])) if n not in begun else ()
            begun.add(n)
            missing = [m for m in needed if m not in begun]
            if missing:
                pending += reversed(missing)
                continue
            order[pending.pop()] = None
    return [nodes[n] for n in order] if _in_order(order, nodes, maker) else nodes


def _in_order(order: Iterable[int], nodes: Sequence[NodeProto], maker: Mapping[str, int]) -> bool:
    seen: set[int] = set()
    for n in order:
        if any(maker[name] not in seen for name in names_read(nodes[n]) if name in maker):
            return False
        seen.add(n)
    return True


def names_read(node: NodeProto) -> Iterator[str]:
    """Names that a node reads, also from inside its bodies."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield from (output.name for output in graph.output)
            for inner in graph.node:
                yield from names_read(inner)
