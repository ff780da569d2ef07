"""A model of several ranks: which part of the artifact is this rank's, and what the ranks agree on before they run.

``manifest["mesh"]`` has the axes of the mesh. Rank 0's program, kernels and manifest entries are the artifact's own;
rank R's program is ``ranks/R/program.json``, members that differ from rank 0's are ``ranks/R/<member>``, and
``manifest["ranks"][R]`` has the manifest's entries that differ. With ``manifest["own_weights"]`` each rank loads an
artifact of its own, which is the others' but for the weights' bytes.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from xcc import symbolic
from xcc.diagnostics import UserError, one_line
from xcc.runtime.arena import walk
from xcc.runtime.artifact import Artifact, read_program
from xcc.runtime.collective_checks import mesh_problem
from xcc.runtime.launcher import Place, place
from xcc.runtime.mesh import Mesh
from xcc.runtime.program import Collective, Program, to_json
from xcc.runtime.world import World, world

__all__ = ["FOLDER", "Part", "Ranks", "any_rank", "mesh_of", "part_of_rank"]

FOLDER = "ranks"
"""The folder in an artifact that holds the parts of the ranks after the first."""
REMEMBERED = 4096         # changes of sizes


def mesh_of(artifact: Artifact) -> Mesh:
    """The mesh that the model is for; one rank where its manifest says nothing."""
    axes = artifact.manifest.get("mesh", [])
    if not isinstance(axes, list) or not all(isinstance(a, list) for a in axes):
        raise UserError(f"manifest.json: mesh is {str(axes)[:60]!r}, and not pairs of a name and a size")
    return Mesh.of(axes)


def part_of_rank(artifact: Artifact, rank: int) -> Artifact:
    """What `rank` runs, as an artifact of its own that shares the members and the mapped weights."""
    own = f"{FOLDER}/{rank}/"
    members = {path: data for path, data in artifact.members.items() if not path.startswith(f"{FOLDER}/")}
    if rank == 0:
        return replace(artifact, members=members)
    members |= {path.removeprefix(own): data for path, data in artifact.members.items() if path.startswith(own)}
    if "program.json" not in members:
        raise UserError(f"the artifact has no {own}program.json")
    program = read_program(bytes(members.pop("program.json")), f"{own}program.json", artifact.weights)
    said = artifact.manifest.get("ranks", [])
    facts = said[rank] if isinstance(said, list) and rank < len(said) and isinstance(said[rank], dict) else {}
    return Artifact(artifact.manifest | facts, program, members, artifact.weights)


def any_rank(artifact: Artifact) -> Artifact:
    """The program of a model whose ranks all have the same one, as a model that does not say whom it communicates with:
    the caller tells its executor."""
    own = part_of_rank(artifact, 0)
    return replace(own, manifest={k: v for k, v in own.manifest.items() if k not in ("mesh", "ranks")})


class Part:
    """What of `artifact` this process runs, and with whom.

    Attributes:
        mesh: of the model; `several`: it has more than one rank.
        place: of the process, where the model has several ranks.
        own: the rank's part; rank 0's where no launcher has started so many ranks, to be looked at.
        ranks: the others, once they were met.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact, self.mesh = artifact, mesh_of(artifact)
        self.several = self.mesh.size > 1
        self.place = place() if self.several else Place()
        self.ranks: Ranks | None = None
        rank = self.place.rank if self.place.size == self.mesh.size else 0
        self.own = part_of_rank(artifact, rank) if self.several else artifact

    def join(self) -> dict[str, Any]:
        """Meets the others, where there are any, of whom the executor is told so; UserError says why not."""
        if self.several and self.ranks is None:
            self.ranks = _met(self.artifact, self.own, self.mesh, self.place)
        return {"ranks": self.ranks} if self.ranks is not None else {}

    def running(self) -> AbstractContextManager[None]:
        """Around a run, when the others were met: an error in one ends those of all."""
        return nullcontext() if self.ranks is None else self.ranks.running()

    def agree(self, symbols: Mapping[str, int]) -> None:
        """The run has these symbols, see :meth:`Ranks.agree`."""
        if self.ranks is not None:
            self.ranks.agree(symbols)


def _met(artifact: Artifact, part: Artifact, mesh: Mesh, place: Place) -> Ranks:
    name = artifact.manifest.get("name") or "the model"
    if place.size == 1:
        raise UserError(f"{name} is for the mesh {mesh}: start a process for each of its {mesh.size} ranks, as with "
                        f"torchrun --nproc-per-node={mesh.size} -m xcc.tools.xcc_run {name}.xcm ...")
    if place.size != mesh.size:
        raise UserError(f"{name} is for the mesh {mesh}, which has {mesh.size} ranks; {place.size} were started")
    if problem := mesh_problem(part.program, mesh):
        raise UserError(f"{name}: {problem}")
    met = world()
    said = met.exchange(f"{name} to be loaded", [_digest(artifact), str(mesh), str(artifact.manifest.get("target"))])
    for rank, other in enumerate(said):
        if other != said[0]:
            what = next(w for w, a, b in zip(("artifact", "mesh", "target"), other, said[0], strict=True) if a != b)
            raise UserError(f"rank {rank} loads another {what} than rank 0 where they load {name}")
    return Ranks(mesh, met, part.program, said[0][0])


def _digest(artifact: Artifact) -> str:
    """Tells artifacts apart, those that were never written, too."""
    differ = ("sha256", "weights_sum") if artifact.manifest.get("own_weights") else ("sha256",)
    manifest = {k: v for k, v in artifact.manifest.items() if k not in differ}
    h = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode())
    h.update(json.dumps(to_json(artifact.program)).encode())
    for path, data in sorted(artifact.members.items()):
        h.update(path.encode() + hashlib.sha256(data).digest())
    h.update(json.dumps([[n, str(w.dtype), list(w.shape)] for n, w in sorted(artifact.weights.items())]).encode())
    return h.hexdigest()


class Ranks:
    """This rank's place among those that run the model `program`, which is known to all by `digest`."""

    def __init__(self, mesh: Mesh, met: World, program: Program, digest: str) -> None:
        self.mesh, self.world, self.rank = mesh, met, met.place.rank
        self.collectives = [s for s in walk(program.body) if isinstance(s, Collective)]
        self.groups = list(dict.fromkeys(s.axes for s in self.collectives))
        """The sets of axes that collectives are over."""
        self._bytes = [(s.axes, program.nbytes(s.source)) for s in self.collectives]
        self._symbols = set(program.symbols)
        self._subject = f"{digest} {met.meetings}"
        self._last: Mapping[str, int] | None = None
        self._lock = threading.Lock()
        self._run = 0                                                               # for which sizes are known
        self._sizes: deque[tuple[int, dict[str, str]]] = deque([(0, {})], REMEMBERED)     # from which run on
        self._told: list[tuple[int, int, dict[str, str]]] = []      # by which rank, of which run
        met.hear(self._subject, self._heard)

    def group_size(self, s: Collective) -> int:
        """How many ranks communicate in `s`."""
        return self.mesh.group_size(s.axes)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around all of a run; an error in it ends the other ranks' runs, and theirs this one."""
        self.world.begin_run()
        try:
            yield
        except BaseException as e:
            self.world.check()
            self.world.fail(one_line(str(e)) or type(e).__name__)
            raise
        self.world.check()

    def agree(self, symbols: Mapping[str, int]) -> None:
        """The run's symbols are these: UserError, here or on another rank, where sizes of collectives differ."""
        with self._lock:
            self._run = self.world.runs
            if symbols != self._last:
                self._last = dict(symbols)
                sizes = self._sizes_of(symbols)
                if sizes != self._sizes[-1][1]:
                    self._sizes.append((self._run, sizes))
                    self.world.tell(self._subject, [self._run, sizes])
            if self._told:
                self._compare()
        self.world.check()

    def _sizes_of(self, symbols: Mapping[str, int]) -> dict[str, str]:
        """For each set of axes the bytes of what is sent, as far as the inputs tell."""
        sizes: dict[str, list[int]] = {}
        for axes, size in self._bytes:
            if all(s in self._symbols for s in symbolic.symbols_of(size)):
                sizes.setdefault(",".join(axes), []).append(symbolic.evaluate(size, symbols))
        return {axes: hashlib.sha256(str(all_of).encode()).hexdigest()[:16] for axes, all_of in sizes.items()}

    def _heard(self, rank: int, value: Any) -> None:
        with self._lock:
            self._told.append((rank, *value))
            self._compare()

    def _compare(self) -> None:
        """What others said of runs that have begun here, too."""
        for told in [t for t in self._told if t[1] <= self._run]:
            self._told.remove(told)
            rank, run, sizes = told
            own = next((s for began, s in reversed(self._sizes) if began <= run), sizes)
            if any(own.get(axes) != size and rank in self.mesh.group(self.rank, axes.split(","))
                   for axes, size in sizes.items()):
                self.world.end(f"inputs of ranks {min(rank, self.rank)} and {max(rank, self.rank)} have shapes that do "
                               "not fit each other")
