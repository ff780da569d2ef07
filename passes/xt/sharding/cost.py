"""Seconds: of an op on one rank, and of moving a value between placements, by latency and bandwidth of the links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log2, prod
from typing import Any

from xcc.dialects import xt
from xcc.dialects.xt.collective import COLLECTIVES
from xcc.dialects.xt.types import TensorType
from xcc.passes.xt.graph.op_graph import nominal_count
from xcc.passes.xt.sharding.factors import OpView
from xcc.passes.xt.sharding.placement import WHOLE, Placement
from xcc.runtime.mesh import Mesh
from xcc.targets.base import Chip

REACHED = 0.6       # of a chip's peak by its products
COPIED = 0.9        # of its memory's bandwidth, as by a copy
MATRIX = 1e11       # operations a second where a chip does not say
MEMORY = 2e10       # bytes a second, likewise
UPDATED = {"dynamic_update_slice": "update", "scatter_elements": "updates", "scatter_nd": "updates"}
"""Ops that change a part of an operand, mostly in place: the operand with that part."""
EXCHANGED = {"all_reduce": 0.42, "all_gather": 0.7}
"""Collectives that exchange-pairs makes exchanges of, where two ranks of one machine have them: how much of the time on
the link is left behind the product that makes what is sent, which sends while it still computes. Measured on two H100s:
49 us of 117 for the sum of 32 MiB, 40 of 57 for the gather of 31 MiB."""


@dataclass(frozen=True)
class Move:
    """How a value gets to a placement from one that it has: a collective, "slice", or "" where it is there."""

    source: Placement
    kind: str
    seconds: float


@dataclass(frozen=True)
class Costs:
    """What `ranks` chips with links between them take, or a network, where they are `afar`; `bounds` are those of
    symbols."""

    chip: Any
    ranks: int
    bounds: dict[str, tuple[int, int]]
    afar: bool = False

    def count(self, t: TensorType) -> int:
        return nominal_count(t.shape, self.bounds)

    def nbytes(self, t: TensorType) -> int:
        return self.count(t) * max(xt.width(t.dtype), 8) // 8

    @property
    def memory(self) -> float:
        """Bytes a second that ops read and write."""
        return COPIED * float(getattr(self.chip, "bandwidth", 0.0) or MEMORY)

    def seconds(self, v: OpView, given: Sequence[TensorType] = ()) -> float:
        """Of an op that is not divided: its products, or its memory where that takes longer. What fuses with a
        neighbour moves less, so that results count alone, where nothing is multiplied, and what of the operands no
        neighbour has made, `given` to the program: no more of each than results have, as a gather reads no more."""
        made = self.nbytes(v.operands[v.at[UPDATED[v.name]]]) if v.name in UPDATED else sum(map(self.nbytes, v.results))
        if v.name in COLLECTIVES:       # along another axis
            return made / self.link
        work = self.multiplies(v)
        if not work:
            return (made + sum(min(made, self.nbytes(t)) for t in given)) / self.memory
        return max(2 * work / self._rate(v.operands[0].dtype),
                   (made + sum(map(self.nbytes, v.operands))) / self.memory)

    def _rate(self, dtype: str) -> float:
        rates = dict(getattr(self.chip, "flops", ()))
        rate = rates.get(dtype) or rates.get("f32") or MATRIX
        cores = 1 if getattr(self.chip, "has_threads", False) else getattr(self.chip, "cores", 1)
        return REACHED * float(rate) * cores

    def multiplies(self, v: OpView) -> int:
        """How many pairs of numbers are multiplied."""
        sizes = [[nominal_count((d,), self.bounds) for d in t.shape] for t in (*v.operands, *v.results)]
        if v.name == "dot_general":
            return prod(sizes[-1]) * prod(sizes[0][d] for d in v.a.lhs_contract)
        if v.name == "convolution":
            outputs = sizes[-1][1 if v.a.layout == "NCHW" else -1]
            return prod(sizes[-1]) * prod(sizes[1]) // max(outputs, 1)
        if v.name in ("attention", "attention_with_sums"):
            return prod(sizes[0]) * sizes[1][2] * 2
        if v.name in ("attention_query_gradient", "attention_key_gradients"):
            return prod(sizes[1]) * sizes[2][2] * (2 + len(v.results))
        if v.name in ("lstm", "gru", "rnn"):
            return sizes[0][0] * sizes[0][1] * (prod(sizes[1]) + prod(sizes[2]))
        return 0

    def collective(self, kind: str, nbytes: float) -> float:
        """Of a value of `nbytes` in all: the bytes of ring algorithms, and the latency of trees, as the library's small
        ones go, or that of an exchange."""
        n = self.ranks
        share = {"all_reduce": 2 * (n - 1) / n, "all_gather": (n - 1) / n, "reduce_scatter": (n - 1) / n,
                 "all_to_all": (n - 1) / (n * n), "permute": 1.0, "collective_broadcast": 1.0}[kind]
        exchange = getattr(self.chip, "exchange_latency", 0)
        if exchange and kind in EXCHANGED and n == 2 and not self.afar:
            return exchange * 1e-9 + EXCHANGED[kind] * share * nbytes / self.link
        latency = getattr(self.chip, "network_latency" if self.afar else "link_latency", 0)
        return latency * 1e-9 * max(1.0, log2(n)) + share * nbytes / self.link

    @property
    def link(self) -> float:
        """Bytes a second between two ranks."""
        network = float(getattr(self.chip, "network_bandwidth", 0.0)) if self.afar else 0.0
        return network or float(getattr(self.chip, "link_bandwidth", 0.0) or MEMORY)

    def move(self, source: Placement, target: Placement, nbytes: int) -> Move:
        """From one placement to another; endless where there is no way."""
        if source == target:
            return Move(source, "", 0.0)
        if source == WHOLE and target.kind == "split":
            return Move(source, "slice", nbytes / self.ranks / self.memory)
        if target.kind == "partial" or source == WHOLE:
            return Move(source, "", inf)
        if source.kind == "partial":
            kind = "all_reduce" if target == WHOLE else "reduce_scatter"
        else:
            kind = "all_gather" if target == WHOLE else "all_to_all"
        if kind == "all_to_all" and source.dim == target.dim:       # other segments of the same dim
            return Move(source, "all_gather", self.collective("all_gather", nbytes))
        return Move(source, kind, self.collective(kind, nbytes))


def costs_of(chip: Chip | None, mesh: Mesh, axes: Sequence[str], bounds: dict[str, tuple[int, int]]) -> Costs:
    """Those of a group over `axes`: along the last axes of a mesh neighbours are on one machine, up to as many ranks as
    it has chips."""
    outermost = min(mesh.names.index(axis) for axis in axes)
    spread = prod(mesh.shape[outermost:])
    return Costs(chip, mesh.group_size(axes), bounds, spread > getattr(chip, "machine_ranks", spread))


def best_move(costs: Costs, have: Sequence[Placement], target: Placement, nbytes: int) -> Move:
    """The cheapest way to `target` from one of the placements that a value has."""
    if target in have:
        return Move(target, "", 0.0)
    return min((costs.move(p, target, nbytes) for p in have), key=lambda m: m.seconds)
