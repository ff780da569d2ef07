"""Runs sharded programs of all ranks in numpy, beside the program of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from kernel_cases import module_of

from xcc._mlir import ir
from xcc.dialects import xt
from xcc.dialects.xt.collective import MESH, mesh_attribute
from xcc.dialects.xt.interpret import interpret
from xcc.dialects.xt.interpret_ranks import interpret_ranks
from xcc.passes.base import PassContext
from xcc.passes.xt.shard import Shard
from xcc.passes.xt.sharding.choose import Choice
from xcc.passes.xt.sharding.cost import Costs
from xcc.passes.xt.sharding.divide import Divider
from xcc.passes.xt.sharding.factors import Strategy
from xcc.passes.xt.sharding.free_values import FreeValues, Wanted
from xcc.passes.xt.sharding.moves import Mover, part_of
from xcc.passes.xt.sharding.placement import WHOLE, Placement, partial
from xcc.passes.xt.sharding.sites import Sites
from xcc.runtime.mesh import Mesh
from xcc.targets.base import chip_of, get_target
from xcc.weights import WeightStore

Array = np.ndarray[Any, Any]
FAST = "sm_90a,link_latency=1,exchange_latency=1"
"""A chip whose links cost little, so that small models are divided as large ones are."""


def copy_of(module: Any) -> Any:
    with module.context:
        return ir.Module.parse(module.operation.get_asm(enable_debug_info=True))


def sharded(module: Any, mesh: str, weights: WeightStore | None = None, shard: Sequence[str] = (), chip: str = FAST,
            note: Callable[[str], None] = lambda _: None) -> tuple[list[Any], list[WeightStore]]:
    """The modules of all ranks, verified, each with its weights."""
    modules, stores = [], []
    for rank in range(Mesh.parse(mesh).size):
        own, store = copy_of(module), WeightStore()
        for name in weights or ():
            store.add(name, weights[name])  # type: ignore[index]
        ctx = PassContext(weights=store, chip=chip_of(get_target("nvptx"), chip), verbose=note)
        Shard(mesh=tuple(mesh.split(",")), rank=rank, shard=tuple(shard)).run(own, ctx)
        xt.verify(own)
        modules.append(own)
        stores.append(store)
    return modules, stores


def names_of(module: Any) -> list[str]:
    """The ops of @main, in order."""
    return [op.operation.name.partition(".")[2] for op in module.body.operations[0].operation.regions[0].blocks[0]]


def close(got: Array, want: Array, tolerance: float = 2e-5) -> None:
    """Equal, or floats that are within `tolerance` of the largest magnitude."""
    assert got.shape == want.shape and got.dtype == want.dtype
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
        return
    a, b = got.astype(np.float64), want.astype(np.float64)
    share = tolerance if want.dtype.itemsize >= 4 else 1e-2
    scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    np.testing.assert_allclose(a, b, rtol=share, atol=share * scale + 1e-12)


def check_model(module: Any, inputs: Sequence[Array], mesh: str, weights: WeightStore | None = None,
                shard: Sequence[str] = (), chip: str = FAST) -> list[str]:
    """Whole inputs to all ranks, whole outputs from each, but along dp its part of the batch, the first dim of the
    first input; gives the ops of rank 0."""
    want = interpret(module, inputs, weights)
    modules, stores = sharded(module, mesh, weights, shard, chip)
    axes = Mesh.parse(mesh)
    own = [[of_batch(a, inputs, axes, rank) for a in inputs] for rank in range(axes.size)]
    for rank, results in enumerate(interpret_ranks(modules, own, stores)):
        for got, wanted in zip(results, want, strict=True):
            close(got, of_batch(wanted, inputs, axes, rank))
    return names_of(modules[0])


def of_batch(array: Array, inputs: Sequence[Array], mesh: Mesh, rank: int) -> Array:
    ranks = dict(mesh.axes).get("dp", 1)
    batch = next((a.shape[0] for a in inputs if a.ndim), 0)
    if ranks == 1 or not array.ndim or array.shape[0] != batch or batch % ranks:
        return array
    return np.split(array, ranks)[mesh.coordinates(rank)[mesh.names.index("dp")]]


def strategies(build: Callable[..., Any], arrays: Sequence[Array], ranks: int) -> list[Strategy]:
    """The ways in which the last op that `build` makes can be divided."""
    module = _module(build, arrays)
    sites = _sites(module, ranks)
    site = [s for s in sites.all if not s.free][-1]
    linear = []
    for group in site.rule.linear:
        operands = tuple(partial("add") if n in group else WHOLE for n in range(len(site.operands)))
        linear.append(Strategy(operands, (partial("add"),) * len(site.results)))
    return [*site.strategies, *linear]


def check_strategy(build: Callable[..., Any], arrays: Sequence[Array], ranks: int, s: Strategy) -> str:
    """The last op divided so: each rank gets its parts of the arguments, and has the whole results. Gives the module
    of the last rank as text."""
    want = interpret(_module(build, arrays), arrays)
    modules, inputs = [], []
    for place in range(ranks):
        module = _module(build, arrays)
        sites = _sites(module, ranks)
        with module.context, ir.Location.unknown():
            module.operation.attributes[MESH] = mesh_attribute(Mesh((("tp", ranks),)))
            site = [e for e in sites.all if not e.free][-1]
            given = dict.fromkeys(sites.block.arguments, WHOLE)
            given |= {v: p for v, p in zip(site.operands, s.operands, strict=True) if v in given}
            wanted = Wanted(given, [(WHOLE,)] * len(sites.returned))
            costs = Costs(None, ranks, {})
            choice = Choice({e.op: e.whole for e in sites.all} | {site.op: s}, (WHOLE,) * len(sites.returned), 0.0,
                            given)
            Divider(sites, choice, FreeValues(sites, costs, wanted), costs, Mover("tp", ranks, place),
                    WeightStore()).run()
            main = module.body.operations[0].operation
            end = list(sites.block.operations)[-1].operation
            main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(
                [v.type for v in sites.block.arguments], [v.type for v in end.operands]))
        xt.verify(module)
        modules.append(module)
        inputs.append([_given(a, given[v], ranks, place)
                       for a, v in zip(arrays, sites.block.arguments, strict=True)])
    for results in interpret_ranks(modules, inputs):
        for got, wanted_ in zip(results, want, strict=True):
            close(got, wanted_)
    return str(modules[-1])


def _given(array: Array, p: Placement, ranks: int, place: int) -> Array:
    if p.kind == "split":
        return np.ascontiguousarray(part_of(array, p, ranks, place))
    if p.kind != "partial":
        return array
    noise = np.random.default_rng(99).standard_normal((ranks, *array.shape))
    noise -= noise.mean(0)
    return (array.astype(np.float64) / ranks + noise[place]).astype(array.dtype)


def _module(build: Callable[..., Any], arrays: Sequence[Array]) -> Any:
    return module_of(build, *(xt.TensorType(a.shape, xt.dtype_name(a.dtype)) for a in arrays))


def _sites(module: Any, ranks: int) -> Sites:
    with module.context:
        sites = Sites(module.body.operations[0].operation.regions[0].blocks[0], ranks)
        sites.propagate()
        return sites
