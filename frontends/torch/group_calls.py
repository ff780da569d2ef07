"""Collectives of a compiled graph, through the process groups of torch's that the graph names."""

from __future__ import annotations

from typing import Any

import torch

from xcc.diagnostics import UserError
from xcc.frontends.torch import compat
from xcc.frontends.torch.graph import TorchGraph
from xcc.runtime.group_collectives import GroupCollectives
from xcc.runtime.mesh import Mesh
from xcc.runtime.program import Collective

__all__ = ["TorchGroups"]


class TorchGroups(GroupCollectives):
    """Executes the collectives of `graph`. A group's collectives, those of eager code among them, are in the order in
    which they are called."""

    def __init__(self, graph: TorchGraph) -> None:
        super().__init__(torch)
        self._mesh = Mesh.parse(graph.mesh)
        self._names = {axes: name for name, axes in graph.groups}

    def size(self, s: Collective) -> int:
        """How many ranks communicate in `s`."""
        return self._mesh.group_size(s.axes)

    def group(self, axes: tuple[str, ...]) -> tuple[Any, int, int]:
        """Looked up in each run, as it may be another one of that name. UserError where there is none any more."""
        group = compat.process_group(self._names[axes])
        if group is None:
            raise UserError(f"there is no process group '{self._names[axes]}' any more, which the graph is for")
        return group, group.rank(), group.size()
