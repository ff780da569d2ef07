"""Plans the one arena that holds all temporary buffers of a program.

Liveness does not depend on sizes, so an :class:`ArenaPlanner` finds once which buffers are alive together; `plan`
then places them for concrete symbol values, the largest first, each at the lowest gap that fits between the buffers
alive with it (greedy by size, as in Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference",
2020). A static program is planned once at compile time, a dynamic one once a shape.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

from xcc import symbolic
from xcc.runtime.dim_values import DimValues
from xcc.runtime.program import (
    DTYPE_BYTES,
    BindSymbol,
    Collective,
    Copy,
    For,
    If,
    Launch,
    Program,
    SetScalar,
    Statement,
    While,
)
from xcc.symbolic import Dim

__all__ = ["ALIGNMENT", "ArenaPlan", "ArenaPlanner", "lifetimes"]

ALIGNMENT = 64
_CACHED_PLANS = 64


@dataclass(frozen=True)
class ArenaPlan:
    """Byte offsets of temporary buffers (by buffer index) in an arena of `size` bytes.

    `void` of these are at its end, and as many where it begins, where a buffer of the program is empty: kernels may
    read of it what there would be were its sizes of 0 ones of 1 (clamped coordinates), and do not use it. An empty
    buffer that is no temporary lies behind the first of them.
    """

    offsets: dict[int, int]
    size: int
    void: int = 0


class ArenaPlanner:
    """Places the temporary buffers of `program`; plans are cached by symbol values.

    `temps` are the buffers, `conflicts` has for each those that are alive with it (places in `temps`), `counts` the
    different byte counts as factors, `count_of` which of them each buffer has, `limits` what symbols bound in a run
    count as, `guard` how many bytes behind each buffer no other one has, `outside` gives the buffers that lie elsewhere
    for symbol values.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.guard = program, 0
        self.outside: Callable[[Mapping[str, int]], Container[int]] = lambda _env: ()
        self.limits = [(s.name, s.limit) for s in walk(program.body) if isinstance(s, BindSymbol)]
        lives = lifetimes(program)
        self.temps = sorted(lives)
        self.conflicts = _conflicts([lives[b] for b in self.temps])
        counts: dict[tuple[Dim, ...], int] = {}
        factors = [(*program.buffers[b].shape, DTYPE_BYTES[program.buffers[b].dtype]) for b in self.temps]
        self.count_of = [counts.setdefault(key, len(counts)) for key in factors]
        self.counts = list(counts)
        self.is_static = all(map(symbolic.is_static, counts))       # one plan serves every run
        self._plans: dict[tuple[int, ...], ArenaPlan] = {}

    def plan(self, env: Mapping[str, int] | None = None) -> ArenaPlan:
        """The plan for the symbol values `env`; symbols bound at run time count with their limit."""
        env = env or {}
        key = tuple(env[s] for s in self.program.symbols if s in env)
        if key not in self._plans:
            if len(self._plans) >= _CACHED_PLANS:
                self._plans.pop(next(iter(self._plans)))
            sizes = [_aligned(n + self.guard) for n in self._counts(env)]
            outside = self.outside(env)
            own = [0 if b in outside else sizes[i] for b, i in zip(self.temps, self.count_of, strict=True)]
            self._plans[key] = self._place(own, self._void(env))
        return self._plans[key]

    def _void(self, env: Mapping[str, int]) -> int:
        """The most bytes that are read of an empty buffer."""
        values = self._dims(env)
        if 0 not in values:
            return 0
        size_of = dict(zip(self._shapes, values, strict=True))
        rooms = [prod(max(n, 1) for n in sizes) * DTYPE_BYTES[b.dtype] for b in self.program.buffers
                 if 0 in (sizes := [size_of[d] for d in b.shape])]
        return _aligned(max(rooms, default=0))

    @cached_property
    def _shapes(self) -> list[Dim]:
        """The dims of all buffers, each once."""
        return list(dict.fromkeys(d for b in self.program.buffers for d in b.shape))

    @cached_property
    def _dims(self) -> DimValues:
        return DimValues(self._shapes, self.limits)

    @cached_property
    def _counts(self) -> DimValues:
        return DimValues(self.counts, self.limits)

    def _place(self, sizes: list[int], void: int) -> ArenaPlan:
        begins, ends = [0] * len(sizes), [0] * len(sizes)       # of those that have no place yet: nowhere
        for i in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
            begin, end, moved = 0, sizes[i], True
            while moved:            # behind one that is in the way: no lower place is free
                moved = False
                for j in self.conflicts[i]:
                    if begins[j] < end and ends[j] > begin:
                        begin, end, moved = ends[j], ends[j] + sizes[i], True
            begins[i], ends[i] = begin, end
        offsets = {b: void + begin for b, begin in zip(self.temps, begins, strict=True)}
        return ArenaPlan(offsets, max(ends, default=0) + 2 * void, void)


def _aligned(n: int) -> int:
    return (max(n, 1) + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, nested ones behind the one that holds them."""
    for s in body:
        yield s
        if isinstance(s, If):
            yield from walk(s.then)
            yield from walk(s.orelse)
        elif isinstance(s, While):
            yield from walk(s.before)
            yield from walk(s.body)
        elif isinstance(s, For):
            yield from walk(s.body)


def touched(s: Statement) -> tuple[int, ...]:
    """The buffers that `s` itself names, without those of nested statements."""
    if isinstance(s, Launch):
        return s.buffers
    if isinstance(s, (Copy, Collective)):
        return (s.source, s.target)
    if isinstance(s, SetScalar):
        return (s.target,)
    if isinstance(s, BindSymbol):
        return (s.source,)
    if isinstance(s, (If, While)):
        return (s.condition,)
    return ()


def lifetimes(program: Program) -> dict[int, tuple[int, int]]:
    """The first and last moment of each temporary buffer, aliases counted for what they alias.

    A buffer used inside a loop and outside of it lives through the whole loop. A buffer used inside only is written
    anew in each turn, so it lives from its first to its last use there.
    """
    live: dict[int, tuple[int, int]] = {}
    clock = 0

    def touch(buffers: tuple[int, ...], into: dict[int, tuple[int, int]]) -> None:
        nonlocal clock
        clock += 1
        for b in map(program.root, buffers):
            if program.buffers[b].kind == "temp":
                into[b] = (min(into[b][0], clock) if b in into else clock, clock)

    def run(body: tuple[Statement, ...], into: dict[int, tuple[int, int]]) -> None:
        for s in body:
            if isinstance(s, If):
                touch(touched(s), into)
                run(s.then, into)
                run(s.orelse, into)
            elif isinstance(s, (While, For)):
                loops.append(loop(s))
                merge(loops[-1], into)
            else:
                touch(touched(s), into)

    def loop(s: While | For) -> tuple[int, int, dict[int, tuple[int, int]]]:
        inside: dict[int, tuple[int, int]] = {}
        start = clock + 1
        if isinstance(s, While):
            run(s.before, inside)
            touch(touched(s), inside)
        run(s.body, inside)
        return start, clock, inside

    def merge(done: tuple[int, int, dict[int, tuple[int, int]]], into: dict[int, tuple[int, int]]) -> None:
        for b, (first, last) in done[2].items():
            into[b] = (min(into[b][0], first), last) if b in into else (first, last)

    loops: list[tuple[int, int, dict[int, tuple[int, int]]]] = []
    run(program.body, live)
    for start, end, inside in loops:
        for b in inside:
            first, last = live[b]
            if first < start or last > end:
                live[b] = (min(first, start), max(last, end))
    return live


def _conflicts(lives: list[tuple[int, int]]) -> list[list[int]]:
    """For each lifetime the others that overlap it."""
    out: list[list[int]] = [[] for _ in lives]
    alive: list[int] = []
    for i in sorted(range(len(lives)), key=lambda i: lives[i]):
        alive = [j for j in alive if lives[j][1] >= lives[i][0]]
        for j in alive:
            out[i].append(j)
            out[j].append(i)
        alive.append(i)
    return out
