"""Functional collectives of a graph (``_c10d_functional.all_reduce``), and the process groups that they are of."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree

from xcc.diagnostics import UserError
from xcc.frontends.torch import compat
from xcc.frontends.torch.dtypes import NAMES
from xcc.frontends.torch.fx_facts import operand, source_of
from xcc.frontends.torch.group_mesh import mesh_of_groups
from xcc.runtime.mesh import Mesh
from xcc.runtime.program import COMBINED_TYPES

__all__ = ["REDUCE_OPS", "Groups", "groups_of", "is_collective", "is_compiled", "is_wait", "known_groups"]

REDUCE_OPS = ("avg", "max", "min", "product", "sum")
"""What ranks combine by, as torch calls it, where all libraries of collectives have it."""

_NAMESPACES = ("_c10d_functional", "_c10d_functional_autograd")


@dataclass(frozen=True)
class Groups:
    """The mesh of all ranks, and the axes in which those of each group differ, by torch's name of the group."""

    mesh: Mesh
    axes: Mapping[str, tuple[str, ...]]


def is_collective(node: torch.fx.Node) -> bool:
    """Whether ranks do it together, or wait for what they do."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target.namespace in _NAMESPACES


def known_groups(graph: torch.fx.Graph) -> Groups | None:
    """Those of the graph's collectives; None where this process knows one of them not, or they form no mesh."""
    try:
        return groups_of(graph)
    except UserError:
        return None


def groups_of(graph: torch.fx.Graph) -> Groups:
    """Those of the graph's collectives; UserError where this process knows one of them not, or they form no mesh."""
    found: dict[str, tuple[int, ...]] = {}
    first: torch.fx.Node | None = None
    for node, name in _named(graph):
        ranks = compat.group_ranks(name)
        if ranks is None:
            raise UserError(f"{source_of(node)}: {node.target}: this process has no process group '{name}': call "
                            "torch.distributed.init_process_group, and make the groups as the program has them, before "
                            "it is compiled")
        found[name] = ranks
        first = first or node
    if first is None:
        return Groups(Mesh(), {})
    made = mesh_of_groups(*compat.rank_and_size(), found)
    if made is None:
        listing = ", ".join(f"'{name}' of ranks {ranks}" for name, ranks in found.items())
        raise UserError(f"{source_of(first)}: {first.target}: the process groups {listing} are no axes of a mesh: make "
                        "them with torch.distributed.device_mesh, or leave these ops to torch: torch.compile("
                        "backend='xcc')")
    return Groups(*made) if any(made[1].values()) else Groups(Mesh(), made[1])


def is_compiled(node: torch.fx.Node) -> bool:
    """Whether compiled code does the collective, or has done what it waits for. What another graph or eager code has
    begun, parts of other sizes, and what few libraries combine, are torch's."""
    source = _source(node)
    if source is not node:
        return is_collective(source) and is_compiled(source)
    given = _arguments(node)
    sizes = [*given.get("input_split_sizes", ()), *given.get("output_split_sizes", ())]
    if any(str(s) != str(sizes[0]) for s in sizes):
        return False
    combine = str(given.get("reduce_op", "")).lower()
    tensors = [t for t in _pytree.tree_leaves(node.meta.get("val")) if isinstance(t, torch.Tensor)]
    return not combine or combine in REDUCE_OPS and all(_combined(t.dtype, combine) for t in tensors)


def is_wait(node: torch.fx.Node) -> bool:
    """Whether the node waits for a collective."""
    return str(node.target) == "_c10d_functional.wait_tensor.default"


def _source(node: torch.fx.Node) -> torch.fx.Node:
    """What a node waits for; the node itself where it does not wait."""
    if not is_wait(node):
        return node
    source = operand(node)
    while source.target is operator.getitem:
        source = operand(source)
    return source


def _combined(dtype: torch.dtype, combine: str) -> bool:
    name = NAMES.get(dtype, "")
    if name == "i1":
        return combine in ("min", "max")
    return name in COMBINED_TYPES and (combine != "avg" or dtype.is_floating_point)


def _arguments(node: torch.fx.Node) -> dict[str, Any]:
    assert isinstance(node.target, torch._ops.OpOverload)
    names = [a.name for a in node.target._schema.arguments]
    return dict(zip(names, node.args, strict=False)) | node.kwargs


def _named(graph: torch.fx.Graph) -> Iterator[tuple[torch.fx.Node, str]]:
    """Collectives, each with the name of its group."""
    for node in graph.nodes:
        given = _arguments(node) if node.op == "call_function" and is_collective(node) else {}
        if "group_name" in given:
            yield node, compat.group_name(given["group_name"])
