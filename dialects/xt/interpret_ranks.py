"""Runs the modules of all ranks of a mesh with numpy, in one process: what several machines together mean."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xcc._mlir import Module
from xcc.diagnostics import UserError
from xcc.dialects.xt.collective import mesh_of, statement_of
from xcc.dialects.xt.interpret import Array, Interpreter
from xcc.dialects.xt.op import Attrs
from xcc.runtime.collectives import Communicate, SimulatedRanks


def interpret_ranks(modules: Sequence[Module], inputs: Sequence[Sequence[Array] | Mapping[str, Array]],
                    weights: Sequence[Any] | None = None, function: str = "main",
                    symbols: Mapping[str, int] | None = None) -> list[list[Array]]:
    """For each rank the results of `function` of its module on its inputs, with its weights.

    Ranks are threads that wait for each other at each op that they do together. UserError where one fails, or where
    they do not meet.
    """
    mesh = mesh_of(modules[0])
    if mesh is None or any(mesh_of(m) != mesh for m in modules) or mesh.size != len(modules):
        raise UserError(f"{len(modules)} modules are not the ranks of one mesh, {mesh}")

    def run(rank: int, communicate: Communicate) -> list[Array]:
        own = _Rank(modules[rank], None if weights is None else weights[rank], communicate)
        with modules[rank].context, np.errstate(all="ignore"):
            return own.call(function, inputs[rank], dict(symbols or {}))

    return SimulatedRanks(mesh).run(run)


class _Rank(Interpreter):
    """One rank's run."""

    def __init__(self, module: Module, weights: Any, communicate: Communicate) -> None:
        super().__init__(module, weights)
        self.communicate = communicate

    def together(self, name: str, a: Attrs, x: Array) -> Array:
        """Parts lie one behind the other, in the order of the group: those that are sent, and those that come."""
        cut, joined = getattr(a, "split", getattr(a, "dim", 0)), getattr(a, "concat", getattr(a, "dim", 0))
        source = np.stack(np.split(x, a.ranks, cut)) if name in ("reduce_scatter", "all_to_all") else x
        shape = {"all_gather": (getattr(a, "ranks", 1), *x.shape), "reduce_scatter": source.shape[1:]}
        target = np.empty(shape.get(name, source.shape), x.dtype)
        self.communicate(statement_of(name, a), source, target)
        return np.concatenate(list(target), joined) if name in ("all_gather", "all_to_all") else target
