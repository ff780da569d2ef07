"""Runs the modules of all ranks of a mesh with numpy, in one process: what several machines together mean."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xcc.diagnostics import UserError
from xcc.dialects.xt.collective import communicated, mesh_of
from xcc.dialects.xt.interpret import Array, Interpreter
from xcc.dialects.xt.op import Attrs
from xcc.runtime.mesh import Mesh

__all__ = ["interpret_ranks"]


def interpret_ranks(modules: Sequence[Any], inputs: Sequence[Sequence[Array] | Mapping[str, Array]],
                    weights: Sequence[Any] | None = None, function: str = "main",
                    symbols: Mapping[str, int] | None = None) -> list[list[Array]]:
    """For each rank the results of `function` of its module on its inputs, with its weights.

    Ranks are threads that wait for each other at each op that they do together. UserError where one fails, or where
    they do not meet: different ops, or different types, in one place of the order.
    """
    mesh = mesh_of(modules[0])
    if mesh is None or any(mesh_of(m) != mesh for m in modules) or mesh.size != len(modules):
        raise UserError(f"{len(modules)} modules are not the ranks of one mesh, {mesh}")
    meeting = _Meeting(mesh)
    out: list[list[Array]] = [[] for _ in modules]

    def run(rank: int) -> None:
        try:
            own = _Rank(modules[rank], None if weights is None else weights[rank], meeting, rank)
            with modules[rank].context, np.errstate(all="ignore"):
                out[rank] = own.call(function, inputs[rank], dict(symbols or {}))
        except BaseException as e:
            meeting.fail(e)
        finally:
            meeting.leave(rank)

    threads = [threading.Thread(target=run, args=(r,), name=f"rank {r}") for r in range(len(modules))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if meeting.problem is not None:
        raise meeting.problem
    return out


class _Rank(Interpreter):
    """One rank's run."""

    def __init__(self, module: Any, weights: Any, meeting: "_Meeting", rank: int) -> None:
        super().__init__(module, weights)
        self.meeting, self.rank = meeting, rank

    def together(self, name: str, a: Attrs, x: Array) -> Array:
        arrays, place = self.meeting.exchange(self.rank, name, a, x)
        return communicated(name, a, arrays, place)


class _Meeting:
    """Where ranks leave their arrays and find the others': the ops of a group have numbers, in the order of a rank."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.changed = threading.Condition()
        self.left: dict[tuple[Any, int], dict[int, tuple[str, Array]]] = {}
        self.count: dict[tuple[int, Any], int] = {}
        self.gone: set[int] = set()
        self.problem: BaseException | None = None

    def exchange(self, rank: int, name: str, a: Attrs, x: Array) -> tuple[list[Array], int]:
        """The arrays of the group of `rank`, in order, and the rank's place in it."""
        group = self.mesh.group(rank, a.axes)
        number = self.count.get((rank, group), 0)
        self.count[rank, group] = number + 1
        what = f"xt.{name} {sorted(vars(a).items())} of {x.dtype}{list(x.shape)}"
        with self.changed:
            slot = self.left.setdefault((group, number), {})
            slot[rank] = (what, x)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.problem is not None or len(slot) == len(group)
                                  or any(r in self.gone and r not in slot for r in group))
            if self.problem is None and len(slot) < len(group):
                self.problem = UserError(f"rank {rank} waits at {what}, another rank has ended")
            if self.problem is None and len({w for w, _ in slot.values()}) > 1:
                self.problem = UserError("ranks do not meet: " + "; ".join(
                    f"rank {r} is at {w}" for r, (w, _) in sorted(slot.items())))
            if self.problem is not None:
                self.changed.notify_all()
                raise self.problem
        return [slot[r][1] for r in group], group.index(rank)

    def fail(self, problem: BaseException) -> None:
        with self.changed:
            self.problem = self.problem or problem
            self.changed.notify_all()

    def leave(self, rank: int) -> None:
        with self.changed:
            self.gone.add(rank)
            self.changed.notify_all()
