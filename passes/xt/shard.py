"""The program of one rank of a mesh: which part of each value it has, and what it exchanges with the others.

    %h = xt.dot_general(%x, xt.weight @up : 64x256)       %h = xt.dot_general(%x, xt.weight @up.tp : 64x128)
    %g = xt.gelu(%h)                                      %g = xt.gelu(%h)
    %y = xt.dot_general(%g, xt.weight @down : 256x64)  -> %p = xt.dot_general(%g, xt.weight @down.tp : 128x64)
                                                          %y = xt.all_reduce(%p) {axes = ["tp"], combine = "add"}

Each axis of the mesh is one run: the module of the ranks at one place of it, with their shapes, is what the next axis
divides. Rules say which dims of an op's operands and results are the same loop index (passes/xt/sharding/factors.py);
what an op can do with a dim is carried on through the whole function (sites.py); and the cheapest way is searched, in
seconds of the chip and its links (choose.py, cost.py). A weight that each rank holds whole costs what sending it would,
and more where ranks would hold more than their shares, but not along an axis `dp`, along which each rank has a part of
the batch: of the inputs whose first dim is that of the first input, and of the outputs that have it. An axis `pp` comes
last: its ranks have the ops of a stage each (stages.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xcc._mlir import Module, Operation, Value, ir
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.dialects.xt.collective import MESH, mesh_attribute
from xcc.dialects.xt.reading import block_results
from xcc.dialects.xt.types import TensorType
from xcc.dialects.xt.updates import STATE
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.host.placement.places import main_of
from xcc.passes.xt.graph.rewrite import dim_bounds, erase_dead
from xcc.passes.xt.sharding.batch import spread_batch
from xcc.passes.xt.sharding.caches import caches
from xcc.passes.xt.sharding.choose import Choice, Search
from xcc.passes.xt.sharding.cost import Costs, costs_of
from xcc.passes.xt.sharding.divide import Divider
from xcc.passes.xt.sharding.free_values import FreeValues, Wanted
from xcc.passes.xt.sharding.micro_batches import copy_of, divisors, spread_over_parts
from xcc.passes.xt.sharding.moves import Mover, part_of
from xcc.passes.xt.sharding.placement import ANY, WHOLE, Placement, split
from xcc.passes.xt.sharding.report import AxisReport, axis_report
from xcc.passes.xt.sharding.sites import Sites
from xcc.passes.xt.sharding.stages import Stages
from xcc.passes.xt.sharding.wishes import Wish, check_wishes, name_of_value, parsed_wish, wished
from xcc.runtime.mesh import Mesh
from xcc.symbolic import Dim
from xcc.weights import WeightStore

if TYPE_CHECKING:
    pass

DATA, STAGES = "dp", "pp"
PARTS = "parts of the batch"        # one behind the other, on the same ranks
WORTH = 0.9         # of the seconds of a whole batch: parts that take less are made
SPARE = 1.125       # times its share of the weights a rank may hold
DEARER = 16.0       # times as much a byte costs when ranks hold more
TRIES = 6


@register_pass
class Shard(Pass):
    """Makes the module that of one rank of a mesh.

    mesh: "dp:2,tp:4"; that of the compilation where nothing is said.
    rank: which; the compilation's where it says the mesh.
    shard: "PATTERN=AXIS:DIM" or "PATTERN=whole", for inputs, outputs and weights whose names match.
    """

    mesh: tuple[str, ...] = ()
    rank: int = 0
    shard: tuple[str, ...] = ()

    def run(self, module: Module, ctx: PassContext) -> None:
        options = ctx.options
        mesh = Mesh.parse(",".join(self.mesh) or getattr(options, "mesh", ""))
        if mesh.size == 1:
            return
        rank = self.rank if self.mesh else options.rank
        if not 0 <= rank < mesh.size:
            raise UserError(f"rank {rank}: the mesh {mesh} has {mesh.size} ranks, from 0 on")
        reports = divide(module, ctx, mesh, rank, self.shard or getattr(options, "shard", ()))
        if getattr(options, "verbose", 0):
            for line in (line for report in reports for line in report.lines):
                ctx.verbose(line)


def divide(module: Module, ctx: PassContext, mesh: Mesh, rank: int, shard: Sequence[str]) -> list[AxisReport]:
    """Leaves the module of one rank of `mesh`; what was decided, axis by axis."""
    wishes = tuple(map(parsed_wish, shard))
    with module.context, ir.Location.unknown():
        check_wishes(module, mesh, wishes)
        module.operation.attributes[MESH] = mesh_attribute(mesh)
        places = zip(mesh.names, mesh.shape, mesh.coordinates(rank), strict=True)
        ordered = sorted(places, key=lambda a: a[0] == STAGES)     # the others first, in order
        return [_Axis(module, ctx, Mover(axis, ranks, place), wishes, mesh).run()
                for axis, ranks, place in ordered if ranks > 1]


class _Axis:
    """One axis, of the module of the ranks at one place of those before it."""

    def __init__(self, module: Module, ctx: PassContext, mover: Mover, wishes: tuple[Wish, ...], mesh: Mesh) -> None:
        self.module, self.ctx, self.mover, self.wishes, self.mesh = module, ctx, mover, wishes, mesh
        self.main = main_of(module)
        self.block = self.main.regions[0].blocks[0]
        self.batched = mover.axis in (DATA, PARTS)
        self.caches: dict[int, int] = {}

    def run(self) -> AxisReport:
        report = self._cut() if self.mover.axis == STAGES else self._divide()
        returned = [v.type for v in block_results(self.block)]
        kind = ir.FunctionType.get([v.type for v in self.block.arguments], returned)
        self.main.attributes["function_type"] = ir.TypeAttr.get(kind)
        erase_dead(self.module)
        return report

    def _costs(self) -> Costs:
        bounds = dim_bounds(self.module)
        if self.mover.axis == PARTS:
            return Costs(self.ctx.chip, self.mover.ranks, bounds)
        return costs_of(self.ctx.chip, self.mesh, (self.mover.axis,), bounds)

    def _cut(self) -> AxisReport:
        """Leaves a stage of a pipeline, of the batch in as many parts as make a run the shortest."""
        ranks = self.mover.ranks
        stages = Stages(Sites(self.block, ranks), self._costs(), self.mover)
        parts = self._parts()
        trial = copy_of(self.module)
        joins = None if parts == 1 else spread_over_parts(
            trial, parts, lambda module, n: not _Axis(module, self.ctx, Mover(PARTS, parts, n), (), self.mesh).run()
            .exchanged)
        if joins is not None:
            main = main_of(trial)
            turns = Stages(Sites(main.regions[0].blocks[0], ranks), self._costs(), self.mover, parts, joins)
            if turns.seconds < WORTH * stages.seconds:
                stages = turns
                self._take(main)
        stages.run()
        return stages.report()

    def _parts(self) -> int:
        """In how many parts the batch would go through a pipeline: that of a model that holds nothing."""
        first = next((t.shape[0] for t in map(TensorType.of, self.block.arguments) if t.rank), 1)
        holds = caches(self.main) or xt.initial_weights(self.main)
        return 1 if holds else divisors(first, 2 * self.mover.ranks)[-1]

    def _take(self, main: Operation) -> None:
        """`main`, of another module, is from now on the module's."""
        self.main.erase()
        self.module.body.append(main.detach_from_parent())
        self.main, self.block = main, main.regions[0].blocks[0]

    def _divide(self) -> AxisReport:
        """Leaves a rank's parts of values and ops."""
        batch = spread_batch(self.module, self.main, self.mover.ranks) if self.batched else None
        if self.batched and batch is None and not any(w[1] == self.mover.axis for w in self.wishes):
            first = next((t.shape[0] for t in map(TensorType.of, self.block.arguments) if t.rank), "none")
            raise UserError(f"axis {self.mover.axis}: the first dim of the first input, {first}, is not known to "
                            f"divide among {self.mover.ranks} ranks")
        costs = self._costs()
        sites = Sites(self.block, self.mover.ranks)
        self.caches = caches(self.main)
        arguments = {v: self._given(n, v, batch) for n, v in enumerate(self.block.arguments)}
        weights = self._weights(sites)
        given = [(v, p) for v, p in arguments.items() if p != ANY]
        sites.propagate([*given, *((s.results[0], weights[s.view.a.name]) for s in sites.all
                                   if s.view.name == "weight" and s.view.a.name in weights)])
        results = [self._returned(n, v, batch) for n, v in enumerate(sites.returned)]
        wanted, choice = self._choice(sites, costs, arguments, results, weights)
        store = WeightStore() if self.ctx.weights is None else self.ctx.weights
        inside = sites.nbytes_inside(costs.nbytes)
        divider = Divider(sites, choice, FreeValues(sites, costs, wanted), costs, self.mover, store)
        divider.run()
        self._cut_states(choice, store)
        return axis_report(self.mover, choice, divider.reports, sites.nbytes_of_weights(costs.nbytes), inside)

    def _choice(self, sites: Sites, costs: Costs, arguments: dict[Value, Placement], results: list[list[Placement]],
                weights: dict[str, Placement]) -> tuple[Wanted, Choice]:
        """The cheapest where ranks hold their shares of the weights: a byte costs more until they do."""
        share = self._share(sites, costs)
        price = 0.0 if self.batched else 1 / costs.link
        updates = {n: self.block.arguments[i] for n, i in self.caches.items()}
        search = Search(sites, costs)
        for _ in range(TRIES):
            wanted = Wanted(arguments, results, weights, price, updates)
            choice = search.choose(wanted)
            if self.batched or choice.weights <= SPARE * share:
                break
            price *= DEARER
        if not self.batched:
            wanted, choice = self._spent(sites, search, wanted, choice, SPARE * share)
        return wanted, choice

    def _spent(self, sites: Sites, search: Search, wanted: Wanted, choice: Choice, most: float,
               ) -> tuple[Wanted, Choice]:
        """With tables whole, which nothing is multiplied by, as those of embeddings: one by one, the largest first,
        where a rank holds no more than `most` bytes so, and the seconds that this saves are more than the memory is
        worth: those of sending so many bytes, times the share of the memory that the model's weights fill."""
        costs = search.costs
        filled = choice.weights / memory if (memory := getattr(self.ctx.chip, "memory_bytes", 0)) else 1.0
        tables = {s.view.a.name for s in sites.all if s.view.name == "weight"
                  and not any(user.free or costs.multiplies(user.view) for user in sites.users.get(s.results[0], ()))}
        divided = [(size, name) for (name, p), size in choice.parts.items() if p != WHOLE and name in tables]
        for size, name in sorted(divided, reverse=True)[:TRIES]:
            more = size * (costs.ranks - 1)
            if size < search.light[1] or choice.weights + more > most or name in wanted.weights:
                continue
            whole = replace(wanted, weights={**wanted.weights, name: WHOLE})
            found = search.choose(whole)
            if found.weights <= most and choice.seconds - found.seconds > more * min(filled, 1.0) / costs.link:
                wanted, choice = whole, found
        return wanted, choice

    def _share(self, sites: Sites, costs: Costs) -> float:
        """The fewest bytes of weights that a rank can hold."""
        sizes = {s.view.a.name: (costs.nbytes(s.view.results[0]), len(s.strategies) > 1)
                 for s in sites.all if s.view.name == "weight"}
        return sum(size / (self.mover.ranks if cut else 1) for size, cut in sizes.values())

    def _wish(self, name: str, t: TensorType, what: str) -> Placement | None:
        return wished(self.wishes, self.mover.axis, self.mover.ranks, name, t, what)

    def _given(self, n: int, v: Value, batch: Dim | None) -> Placement:
        t = TensorType.of(v)
        wish = self._wish(name_of_value(self.main, "arg_attrs", n), t, "input")
        later = next((o for o, i in self.caches.items() if i == n), None)
        if wish is None and later is not None:
            wish = self._wish(name_of_value(self.main, "res_attrs", later), t, "input")
        if wish is not None:
            return wish
        if batch is not None and t.rank and t.shape[0] - batch == 0:
            return split(0)
        return ANY if later is not None or n in xt.initial_weights(self.main) else WHOLE

    def _cut_states(self, choice: Choice, store: WeightStore) -> None:
        """What the model holds begins as the rank's part of it."""
        for n, name in xt.initial_weights(self.main).items():
            p = choice.arguments[self.block.arguments[n]]
            if p == WHOLE:
                continue
            entries = [ir.DictAttr(a) for a in ir.ArrayAttr(self.main.attributes["arg_attrs"])]
            part = store.add(f"{name}.{self.mover.axis}", lambda name=name, p=p: part_of(  # type: ignore[misc]
                store[name], p, self.mover.ranks, self.mover.place))
            own = {e.name: e.attr for e in entries[n]} | {STATE: ir.StringAttr.get(part)}
            entries[n] = ir.DictAttr.get(own)
            self.main.attributes["arg_attrs"] = ir.ArrayAttr.get(entries)

    def _returned(self, n: int, v: Value, batch: Dim | None) -> list[Placement]:
        """An output that takes an input's place lies as this does."""
        t = TensorType.of(v)
        updated = self.caches.get(n)
        if updated is not None:
            given = self._given(updated, self.block.arguments[updated], batch)
            return [WHOLE if given == ANY else given]
        wish = self._wish(name_of_value(self.main, "res_attrs", n), t, "output")
        if wish is not None:
            return [wish]
        return [split(0)] if batch is not None and t.rank and t.shape[0] - batch == 0 else [WHOLE]

    def _weights(self, sites: Sites) -> dict[str, Placement]:
        names = {s.view.a.name: s.view.results[0] for s in sites.all if s.view.name == "weight"}
        part = rf"(\.({'|'.join(self.mesh.names)})(\.\d+)?)*$"     # behind the name of the whole one
        original = {name: re.sub(part, "", name) for name in names}
        for name, t in sites.inside().items():
            if name not in original.values() and (self._wish(name, t, "weight") or WHOLE) != WHOLE:
                raise UserError(f"shard: weight '{name}' is read in a loop or a branch, which each rank computes "
                                "whole: say nothing of it, or whole")
        wishes = {name: self._wish(original[name], t, "weight") for name, t in names.items()}
        return {name: p for name, p in wishes.items() if p is not None}
