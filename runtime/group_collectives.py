"""Collectives on host memory through process groups of torch.distributed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from xcc.runtime.program import Collective

__all__ = ["GroupCollectives"]


class GroupCollectives(ABC):
    """Executes collectives; what derives says by which group (:meth:`group`), and how its work is waited for."""

    def __init__(self, torch: Any) -> None:
        self._torch, self._distributed = torch, torch.distributed

    @abstractmethod
    def group(self, axes: tuple[str, ...]) -> tuple[Any, int, int]:
        """The process group over `axes`, this rank's place in it, and how many ranks it has."""

    def wait(self, work: Any) -> None:
        """Until it is done."""
        work.wait()

    def __call__(self, s: Collective, source: np.ndarray[Any, Any], target: np.ndarray[Any, Any]) -> None:
        """Executes `s` on flat arrays; they may be the same memory where the statement allows it."""
        if not source.size and not target.size:
            return
        group, place, size = self.group(s.axes)
        if s.kind in ("all_reduce", "broadcast") and source.ctypes.data != target.ctypes.data:
            target[...] = source
        self.wait(_CALLS[s.kind](self, s, group, self._tensor(source), self._tensor(target), place, size))
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


_CALLS: dict[str, Callable[..., Any]] = {
    "all_reduce": GroupCollectives._all_reduce, "all_gather": GroupCollectives._all_gather,
    "reduce_scatter": GroupCollectives._reduce_scatter, "all_to_all": GroupCollectives._all_to_all,
    "permute": GroupCollectives._permute, "broadcast": GroupCollectives._broadcast}
