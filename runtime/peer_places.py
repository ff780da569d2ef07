"""Where what two ranks send each other lies: in memory that both map, so that kernels write it where it is read.

Two ranks meet at each exchange of a run: a rank goes on when the other has come there. Exchanges have the numbers 0, 1,
... of their order. The kernel that writes what is sent runs behind `written` of them, the last one that reads what came
runs before exchange `read`. What is sent for exchange j may take the place of that for i, where the other rank has read
it when it comes to the last exchange before the writing: read(i) < written(j). Runs follow one another: what is written
ahead of a run's first exchange has places of its own, which are read before the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xcc.runtime.arena import touched, walk
from xcc.runtime.program import BindSymbol, Collective, If, Launch, Program, While

__all__ = ["SWAP", "Areas", "Exchange", "areas_for", "exchanges", "merged", "places"]

SWAP = ((0, 1), (1, 0))
_ALIGNMENT = 256


@dataclass(frozen=True)
class Exchange:
    """A permute between two ranks of buffers `source` and `target`. pushed: one kernel writes the source, as it is
    wanted, and nothing reads it."""

    source: int
    target: int
    written: int
    read: int
    pushed: bool

    @property
    def facts(self) -> tuple[int, int, bool]:
        """What ranks tell each other."""
        return self.written, self.read, self.pushed


@dataclass(frozen=True)
class Areas:
    """Bytes for what is written ahead of the first exchange of a run, and for the rest, which lies behind."""

    first: int = 0
    rest: int = 0


def exchanges(program: Program, axes: tuple[str, ...]) -> list[Exchange]:
    """Those over `axes` whose buffers may lie elsewhere, in order: none where the host decides what runs."""
    if any(isinstance(s, (If, While, BindSymbol)) for s in walk(program.body)):
        return []
    uses: dict[int, list[int]] = {}
    for at, top in enumerate(program.body):
        for s in walk((top,)):
            for b in touched(s):
                uses.setdefault(program.root(b), []).append(at)
    kept = set(map(program.root, program.outputs))
    found: dict[int, Collective] = {
        at: s for at, s in enumerate(program.body) if isinstance(s, Collective) and s.kind == "permute"
        and s.axes == axes and s.pairs == SWAP and _is_room(program, s.target, kept) and uses[s.target][0] == at}
    order = list(found)
    out = []
    for n, s in enumerate(found.values()):
        writer = _writer(program, s.source, uses, kept)
        written = n if writer < 0 else sum(o < writer for o in order)
        out.append(Exchange(s.source, s.target, written, sum(o < uses[s.target][-1] for o in order), writer >= 0))
    return out


def _is_room(program: Program, buffer: int, kept: set[int]) -> bool:
    return program.buffers[buffer].kind == "temp" and buffer not in kept


def _writer(program: Program, source: int, uses: Mapping[int, Sequence[int]], kept: set[int]) -> int:
    """The statement that writes the source of an exchange, where it is the only one that knows it; else -1."""
    root = program.root(source)
    whole = program.nbytes(source) - program.nbytes(root) == 0
    if not whole or not _is_room(program, root, kept) or len(uses[root]) != 2:
        return -1
    first = program.body[uses[root][0]]
    return uses[root][0] if isinstance(first, Launch) else -1


def merged(facts: Sequence[Sequence[tuple[int, int, bool]]]) -> list[tuple[int, int, bool]]:
    """What holds of both ranks' exchanges; none where they have not the same number."""
    if len({len(own) for own in facts}) != 1:
        return []
    return [(min(f[0] for f in each), max(f[1] for f in each), all(f[2] for f in each))
            for each in zip(*facts, strict=True)]


def areas_for(facts: Sequence[tuple[int, int, bool]], sizes: Sequence[int], most: int) -> Areas:
    """What suffices for all of them, but together no more than `most` bytes."""
    _, areas = _laid_out(facts, sizes, Areas(most, most), set(range(len(facts))))
    while areas.first + areas.rest > most:
        areas = Areas(areas.first // 2, areas.rest // 2)
    return areas


def places(facts: Sequence[tuple[int, int, bool]], sizes: Sequence[int], areas: Areas) -> dict[int, int]:
    """By the number of an exchange where its data lies, in bytes from the beginning of the areas. What has no place
    there is no meeting of the others, either."""
    wanted = {n for n, size in enumerate(sizes) if size and (facts[n][2] or not size % 16)}
    while True:
        found, _ = _laid_out(facts, sizes, areas, wanted)
        if len(found) == len(wanted):
            return found
        wanted.remove(max(wanted - found.keys(), key=lambda n: sizes[n]))


def _laid_out(facts: Sequence[tuple[int, int, bool]], sizes: Sequence[int], areas: Areas, among: set[int],
              ) -> tuple[dict[int, int], Areas]:
    """Places of those `among` them that get one, and what of the areas that takes."""
    order = sorted(among)
    first: dict[int, int] = {}
    used = 0
    rooms: list[tuple[int, int, list[int]]] = []        # bytes, when it is free again, whose it is
    for n in order:
        size = -(-sizes[n] // _ALIGNMENT) * _ALIGNMENT
        written, read = (sum(o < moment for o in order) for moment in facts[n][:2])
        if written == 0:
            if read < len(order) and used + size <= areas.first:
                first[n], used = used, used + size
            continue
        free = [r for r in rooms if r[1] < written]
        room = max(free, key=lambda r: min(r[0], size), default=None)
        if room is None:
            rooms.append((size, read, [n]))
        else:
            rooms[rooms.index(room)] = (max(size, room[0]), read, [*room[2], n])
    found, end = dict(first), 0
    for size, _, whose in rooms:
        if end + size <= areas.rest:
            found |= dict.fromkeys(whose, areas.first + end)
            end += size
    return found, Areas(used, end)
