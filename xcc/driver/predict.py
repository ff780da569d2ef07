"""The seconds of a run of a model on a mesh, by the formulas of cost.py: of meshes of any size, on no machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xcc._mlir import Module
from xcc.dialects import xt
from xcc.dialects.xt.collective import COLLECTIVES
from xcc.passes.base import PassContext
from xcc.passes.host.placement.places import main_of
from xcc.passes.xt.graph.rewrite import dim_bounds
from xcc.passes.xt.shard import DATA, STAGES, divide
from xcc.passes.xt.sharding.cost import Costs, costs_of
from xcc.passes.xt.sharding.sites import Site, Sites
from xcc.runtime.mesh import Mesh
from xcc.targets.base import Chip

__all__ = ["Prediction", "predict"]


@dataclass(frozen=True)
class Prediction:
    """Of one rank of `mesh`. seconds: of a run. exchanged: bytes of values in collectives, of which there are
    `collectives`. weights: bytes of them. batches: how many times as large the batch is as what a rank has, where its
    size is a symbol, which is then a rank's."""

    mesh: Mesh
    seconds: float
    weights: int
    collectives: int = 0
    exchanged: int = 0
    batches: int = 1

    @property
    def seconds_of_batch(self) -> float:
        """What one rank's batch takes of all ranks' time."""
        return self.seconds / self.batches


def predict(module: Module, ctx: PassContext, mesh: Mesh, shard: Sequence[str] = ()) -> Prediction:
    """What rank 0 of `mesh` is predicted to take; leaves its module. UserError where the model does not divide so."""
    block = main_of(module).regions[0].blocks[0]
    bounds = dim_bounds(module)
    first = [xt.TensorType.of(v).shape[0] for v in block.arguments if xt.TensorType.of(v).rank]
    symbolic = bool(first) and not isinstance(first[0], int)
    inner = Mesh(tuple(axis for axis in mesh.axes if axis[0] != STAGES))
    divide(module, ctx, inner, 0, shard)
    sites = Sites(block, 1)
    costs = Costs(ctx.chip, 1, bounds)
    weights = sites.nbytes_of_weights(costs.nbytes) + sites.nbytes_inside(costs.nbytes)
    seconds = sum(_seconds(site, costs, ctx.chip, mesh) for site in sites.all if not site.free)
    found = [s for s in sites.all if s.view.name in COLLECTIVES]
    exchanged = [costs.nbytes(s.view.results[0]) for s in found]
    stages = dict(mesh.axes).get(STAGES, 1)
    if stages > 1:
        between = costs_of(ctx.chip, mesh, (STAGES,), bounds)
        report, = divide(module, ctx, Mesh(((STAGES, stages),)), 0, shard)
        results = sum(between.collective(r.kind, r.nbytes) for r in report.exchanged if r.kind != "permute")
        seconds = report.seconds + results
        exchanged += [r.nbytes for r in report.exchanged]
        weights = -(-weights // stages)
    batches = dict(mesh.axes).get(DATA, 1) if symbolic else 1
    return Prediction(mesh, seconds, weights, len(exchanged), sum(exchanged), batches)


def _seconds(site: Site, costs: Costs, chip: Chip, mesh: Mesh) -> float:
    """Of an op as it is in a rank's module."""
    if site.view.name not in COLLECTIVES:
        return site.seconds(costs)
    whole = max(costs.nbytes(t) for t in (*site.view.operands, *site.view.results))
    return costs_of(chip, mesh, site.view.a.axes, costs.bounds).collective(site.view.name, whole)
