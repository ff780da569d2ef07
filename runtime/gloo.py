"""Collectives between CPUs: gloo, through torch.distributed, in process groups that are a model's own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from xcc.diagnostics import UserError
from xcc.runtime.group_collectives import GroupCollectives
from xcc.runtime.immortal import keep_forever
from xcc.runtime.mesh import Mesh
from xcc.runtime.world import World

__all__ = ["Gloo"]

_LOOKS = timedelta(seconds=0.5)         # between looks at whether all others are still there
_HEARD = 2.0                            # seconds: by then the world has said which rank it is that gloo misses
_LIMIT = timedelta(hours=24)            # gloo's own; who is gone is heard of
_STORES: dict[int, Any] = {}            # of each world, as long as the process


class Gloo(GroupCollectives):
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
        super().__init__(torch)
        self._world = world
        rank = world.place.rank
        store = _store(world, distributed)
        self._groups: dict[tuple[str, ...], tuple[Any, int, int]] = {}
        for axes in groups:
            ranks = mesh.group(rank, axes)
            prefix = self._distributed.PrefixStore(f"xcc {world.meetings} {axes} {ranks}", store)
            place = ranks.index(rank)
            group = self._distributed.ProcessGroupGloo(prefix, place, len(ranks), _LIMIT)
            self._groups[axes] = group, place, len(ranks)

    def group(self, axes: tuple[str, ...]) -> tuple[Any, int, int]:
        return self._groups[axes]

    def wait(self, work: Any) -> None:
        """Until it is done. What has failed here while it waits for others is left behind: a group's destructor waits,
        too, and two ranks would wait for each other."""
        try:
            self._wait(work)
        except BaseException:
            if not work.is_completed():
                keep_forever(work, *self._groups.values())
            raise

    def _wait(self, work: Any) -> None:
        while True:
            try:
                work.wait(_LOOKS)
                return
            except RuntimeError as e:
                ended = work.is_completed()
                self._world.check(_HEARD if ended else 0)
                if ended:
                    raise UserError(f"gloo: {e}") from None


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
