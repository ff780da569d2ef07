"""``--mesh=auto:8``: the mesh of so many ranks that a model is predicted to run fastest on.

Data, tensor and pipeline parallel axes in all ways that multiply to the number, of which a rank's weights fit into the
chip's memory. A pipeline is looked at where nothing else fits, as its stages wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from xcc.diagnostics import UserError
from xcc.driver.predict import Prediction, predict
from xcc.driver.sources import load_source
from xcc.driver.updates import mark_updates
from xcc.options import CompileOptions
from xcc.passes.base import PassContext, get_pass
from xcc.passes.xt.sharding.micro_batches import copy_of
from xcc.passes.xt.sizes.equal_dims import note_equal_dims
from xcc.runtime.mesh import Mesh
from xcc.targets.base import Chip, chip_of, get_target
from xcc.targets.chip_spec import split_specs

__all__ = ["AUTO", "choose_mesh", "table", "wants_choice"]

AUTO = "auto"
FILLED = 0.8        # of a chip's memory, by weights: the rest is for what runs need
ALIKE = 1.02        # times the seconds of the fastest mesh that another one may take that is as good


def wants_choice(options: CompileOptions) -> bool:
    """Whether the mesh says how many ranks there are, and no more."""
    return Mesh.parse(options.mesh).names == (AUTO,)


def choose_mesh(model: Any, options: CompileOptions) -> tuple[CompileOptions, list[Prediction]]:
    """The options with the best mesh, and what was predicted of each, the best first, one rank last. UserError where
    none fits."""
    ranks = Mesh.parse(options.mesh).size
    chip = chip_of(get_target(options.target), split_specs(options.chip)[0])
    source = load_source(model, options)
    if source.stage:
        raise UserError(f"{source.name}: a model is sharded in stage xt, this is behind '{source.stage}'")
    note_equal_dims(source.module)
    mark_updates(source.module, dict(options.updates))
    ctx = PassContext(weights=source.weights, chip=chip, options=options)
    get_pass("xt-simplify")().run(source.module, ctx)
    ctx = replace(ctx, weights=None)
    def of(mesh: Mesh) -> Prediction:
        with source.module.context:
            copy = copy_of(source.module)
        return predict(copy, ctx, mesh, options.shard)

    found, why = [], ""
    for meshes in (_meshes(ranks, 1), (m for stages in _divisors(ranks)[1:] for m in _meshes(ranks, stages))):
        for mesh in meshes:
            try:
                found.append(of(mesh))
            except UserError as e:
                why = str(e)
        if any(_fits(p, chip) for p in found):
            break
    fitting = [p for p in found if _fits(p, chip)]
    if not fitting:
        raise UserError(f"mesh {options.mesh}: no mesh of {ranks} ranks has room for the weights on {chip.name}"
                        + (f"; {why}" if why and not found else ""))
    fastest = min(p.seconds_of_batch for p in fitting)
    best = min((p for p in fitting if p.seconds_of_batch <= ALIKE * fastest), key=lambda p: (p.weights, str(p.mesh)))
    rest = sorted((p for p in found if p is not best), key=lambda p: p.seconds_of_batch)
    alone = predict(source.module, ctx, Mesh(), ())
    return replace(options, mesh=str(best.mesh)), [best, *rest, alone]


def table(predictions: Iterable[Prediction]) -> list[str]:
    """A line for each, for people."""
    head = f"{'mesh':22} {'us predicted':>12} {'a batch':>10} {'weights a rank':>15} {'collectives':>11} {'bytes':>12}"
    return [head, *(f"{str(p.mesh) or 'one rank':22} {p.seconds * 1e6:12.1f} {p.seconds_of_batch * 1e6:10.1f} "
                    f"{p.weights:15} {p.collectives:11} {p.exchanged:12}" for p in predictions)]


def _fits(p: Prediction, chip: Chip) -> bool:
    return not chip.memory_bytes or p.weights <= FILLED * chip.memory_bytes


def _divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def _meshes(ranks: int, stages: int) -> list[Mesh]:
    """Those with so many stages: what communicates most has neighbours as ranks."""
    each = ranks // stages
    return [Mesh(tuple(axis for axis in (("pp", stages), ("dp", each // tensor), ("tp", tensor)) if axis[1] > 1))
            for tensor in _divisors(each)]
