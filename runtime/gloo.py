"""Collectives between CPUs: gloo, through torch.distributed, in process groups that are a model's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from xcc.diagnostics import UserError
from xcc.runtime.mesh import Mesh
from xcc.runtime.program import Collective
from xcc.runtime.world import World

__all__ = ["Gloo"]

_LOOKS = timedelta(seconds=0.5)         # between looks at whether all others are still there
_LIMIT = timedelta(hours=24)            # gloo's own; who is gone is heard of
_STORES: dict[int, Any] = {}            # of each world, as long as the process


class Gloo:
    """Executes collectives over the axes sets `groups` of `mesh` on arrays in host memory. All ranks make it together.

    UserError where torch is not there, and in a call when another rank has failed.
    """

    def __init__(self, world: World, mesh: Mesh, groups: Sequence[tuple[str, ...]]) -> None:
        try:
            import torch
            import torch.distributed as distributed
        except ImportError:
            raise UserError("collectives between CPUs need torch.distributed with gloo: pip install torch") from None
        if not distributed.is_available() or not hasattr(distributed, "ProcessGroupGloo"):
            raise UserError("this torch was built without gloo, which collectives between CPUs need")
        self._torch, self._world = torch, world
        self._distributed: Any = distributed
        rank = world.place.rank
        store = _store(world, distributed)
        self._groups: dict[tuple[str, ...], tuple[Any, int, int]] = {}
        for axes in groups:
            ranks = mesh.group(rank, axes)
            prefix = self._distributed.PrefixStore(f"xcc {world.meetings} {axes} {ranks}", store)
            place = ranks.index(rank)
            group = self._distributed.ProcessGroupGloo(prefix, place, len(ranks), _LIMIT)
            self._groups[axes] = group, place, len(ranks)

    def __call__(self, s: Collective, source: np.ndarray[Any, Any], target: np.ndarray[Any, Any]) -> None:
        """Executes `s` on flat arrays; they may be the same memory where the statement allows it."""
        if not source.size and not target.size:
            return
        group, place, size = self._groups[s.axes]
        if s.kind in ("all_reduce", "broadcast") and source.ctypes.data != target.ctypes.data:
            target[...] = source
        self._wait(_CALLS[s.kind](self, s, group, self._tensor(source), self._tensor(target), place, size))
        if s.kind == "permute" and all(to != place for _, to in s.pairs):
            target[...] = np.zeros((), target.dtype)

    def _tensor(self, array: np.ndarray[Any, Any]) -> Any:
        """The array as a tensor on its memory, of its element type or another of its size that moves as well."""
        name = str(array.dtype)
        if name == "bfloat16":
            return self._torch.from_numpy(array.view(np.int16)).view(self._torch.bfloat16)
        if name in ("float64", "float32", "float16", "int64", "int32", "int8", "uint8"):
            return self._torch.from_numpy(array)
        return self._torch.from_numpy(array.view(np.uint8))

    def _combine(self, s: Collective) -> Any:
        ops = self._distributed.ReduceOp
        return {"add": ops.SUM, "max": ops.MAX, "min": ops.MIN, "mul": ops.PRODUCT}[s.combine]

    def _all_reduce(self, s: Collective, group: Any, source: Any, target: Any, place: int, size: int) -> Any:
        options = self._distributed.AllreduceOptions()
        options.reduceOp = self._combine(s)
        return group.allreduce([target], options)

    def _all_gather(self, s: Collective, group: Any, source: Any, target: Any, place: int, size: int) -> Any:
        return group._allgather_base(target, source)

    def _reduce_scatter(self, s: Collective, group: Any, source: Any, target: Any, place: int, size: int) -> Any:
        options = self._distributed.ReduceScatterOptions()
        options.reduceOp = self._combine(s)
        return group._reduce_scatter_base(target, source, options)

    def _all_to_all(self, s: Collective, group: Any, source: Any, target: Any, place: int, size: int) -> Any:
        return group.alltoall_base(target, source, [], [])

    def _permute(self, s: Collective, group: Any, source: Any, target: Any, place: int, size: int) -> Any:
        count = source.numel()
        sent = [count if (place, to) in s.pairs else 0 for to in range(size)]
        got = [count if (sender, place) in s.pairs else 0 for sender in range(size)]
        return group.alltoall_base(target[:sum(got)], source[:sum(sent)], got, sent)

    def _broadcast(self, s: Collective, group: Any, source: Any, target: Any, place: int, size: int) -> Any:
        options = self._distributed.BroadcastOptions()
        options.rootRank = s.root
        return group.broadcast([target], options)

    def _wait(self, work: Any) -> None:
        while True:
            try:
                work.wait(_LOOKS)
                return
            except RuntimeError as e:
                self._world.check()
                if work.is_completed():
                    raise UserError(f"gloo: {e}") from None


_CALLS: dict[str, Callable[..., Any]] = {
    "all_reduce": Gloo._all_reduce, "all_gather": Gloo._all_gather, "reduce_scatter": Gloo._reduce_scatter,
    "all_to_all": Gloo._all_to_all, "permute": Gloo._permute, "broadcast": Gloo._broadcast}


def _store(world: World, distributed: Any) -> Any:
    """Where gloo's ranks find each other: rank 0 serves it on a port of its own."""
    key = id(world)
    if key not in _STORES:
        place = world.place
        made = None
        if place.rank == 0:
            made = distributed.TCPStore(place.address, 0, None, True, wait_for_workers=False)
        port = world.exchange("gloo's store", made.port if made is not None else 0)[0]
        _STORES[key] = made or distributed.TCPStore(place.address, port, None, False, wait_for_workers=False)
    return _STORES[key]
