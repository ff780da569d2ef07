"""Runs the statements of a program on a GPU: stretches that are known in advance as graphs, the others one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime.dtypes import numpy_dtype
from xcc.runtime.gpu_graphs import Base, Recorder
from xcc.runtime.known_sizes import KnownSizes
from xcc.runtime.placed_shape import PlacedShape
from xcc.runtime.program import (
    BindSymbol,
    Collective,
    Copy,
    For,
    If,
    Launch,
    Program,
    Require,
    SetScalar,
    Statement,
    While,
)
from xcc.runtime.signature import require

__all__ = ["GpuBody"]

_MAX_UNROLLED = 4096       # launches that one graph may hold


class GpuBody:
    """The statements of `program`, enqueued through `driver` with the kernels `functions`, by name.

    Attributes:
        uploads: host memory that what was enqueued may still read.
    """

    def __init__(self, driver: Any, program: Program, functions: Mapping[str, Any], known: KnownSizes,
                 moves_with: Sequence[Base], communicator: Any = None) -> None:
        """`moves_with`: of each buffer, what a pointer into it moves with. `communicator` enqueues collectives."""
        self.driver, self.program, self._functions, self._known = driver, program, functions, known
        self._communicator = communicator
        self._base_of = moves_with
        self.uploads: list[Any] = []
        self._segments: dict[int, list[Any]] = {}
        self._behind_launch = False     # what was enqueued last is a kernel

    def run(self, shape: PlacedShape, env: dict[str, int]) -> None:
        """Enqueues the program; `env` gets the symbols that the run binds."""
        self._run(self.program.body, shape, env)

    def enqueue(self, statement: Statement, shape: PlacedShape, turns: Mapping[str, int] | None = None) -> None:
        """Enqueues one statement alone; in these `turns` of the loops around it, by counter."""
        self._enqueue(statement, shape, {**shape.env, **(turns or {})}, self.uploads)

    def _run(self, body: Sequence[Statement], shape: PlacedShape, env: dict[str, int]) -> None:
        for part in self._parts(body):
            if isinstance(part, tuple):
                self._segment(part, shape, env)
            elif isinstance(part, BindSymbol):
                env[part.name] = int(self._element(part.source, part.index, shape, env))
            elif isinstance(part, If):
                taken = self._element(part.condition, 0, shape, env)
                self._run(part.then if taken else part.orelse, shape, env)
            elif isinstance(part, While):
                self._run(part.before, shape, env)
                while self._element(part.condition, 0, shape, env):
                    self._run(part.body, shape, env)
                    self._run(part.before, shape, env)
            else:
                for turn in range(symbolic.evaluate(part.trips, env)):
                    self._run(part.body, shape, {**env, part.counter: turn})

    def _parts(self, body: Sequence[Statement]) -> list[Any]:
        """`body` as tuples of statements known in advance, and single statements that need the host."""
        key = id(body)
        if key not in self._segments:
            parts: list[Any] = []
            run: list[Statement] = []
            for s in body:
                if self._plain(s):
                    run.append(s)
                    continue
                if run:
                    parts.append(tuple(run))
                    run = []
                parts.append(s)
            if run:
                parts.append(tuple(run))
            self._segments[key] = parts
        return self._segments[key]

    def _plain(self, s: Statement) -> bool:
        if isinstance(s, For):
            return all(self._plain(inner) for inner in s.body)
        return isinstance(s, (Launch, Copy, SetScalar, Require, Collective))

    def _segment(self, part: tuple[Statement, ...], shape: PlacedShape, env: dict[str, int]) -> None:
        """Replays the graph of `part`, captured at its first run; enqueues one by one what no graph holds."""
        key, changing = id(part), len(env) > len(shape.env)
        if not changing and key in shape.graphs:
            shape.graphs[key].replay()
            return
        self._behind_launch = False
        if changing or not shape.keeps_graphs or self._count(part, env) > _MAX_UNROLLED:
            for s in part:
                self._enqueue(s, shape, env, self.uploads)
            return
        recorder = Recorder(self.driver, shape.bases)
        try:
            for s in part:
                self._enqueue(s, shape, env, shape.kept, recorder)
        except BaseException:
            recorder.abandon()
            raise
        made = shape.graphs[key] = recorder.finish()
        if len(part) == len(self.program.body):
            shape.whole = made
        made.replay()

    def _count(self, part: Iterable[Statement], env: Mapping[str, int]) -> int:
        total = 0
        for s in part:
            if isinstance(s, For):
                inner = {**env, s.counter: 0}
                total += symbolic.evaluate(s.trips, env) * self._count(s.body, inner)
            else:
                total += 1
        return total

    def _enqueue(self, s: Statement, shape: PlacedShape, env: dict[str, int], kept: list[Any],
                 recorder: Recorder | None = None) -> None:
        """`kept` gets the host memory that is read when the statement runs."""
        to: Any = recorder or _Unrecorded(self.driver)
        if isinstance(s, Launch):
            sizes = self._known.all_of(s, shape.sizes, env)
            grid = sizes[:len(s.grid)]
            known = shape.addresses
            pointers = [known[b] if b in known else self.address(b, shape, env) for b in s.buffers]
            to.launch(self._functions[s.kernel], grid, s.block, s.shared_bytes, pointers, sizes[len(grid):],
                      s.early and self._behind_launch, [self._base_of[b] for b in s.buffers])
            self._behind_launch |= 0 not in grid
        elif isinstance(s, Copy):
            self._behind_launch = False
            size, = self._known.all_of(s, shape.sizes, env)
            to.copy(self.address(s.target, shape, env), self.address(s.source, shape, env), size,
                    [self._base_of[b] for b in (s.target, s.source)])
        elif isinstance(s, SetScalar):
            dtype = numpy_dtype(self.program.buffers[s.target].dtype)
            values = np.array(self._known.all_of(s, shape.sizes, env), np.int64).astype(dtype)
            kept.append(values)
            self._behind_launch = False
            to.upload(self.address(s.target, shape, env), values, [self._base_of[s.target]])
        elif isinstance(s, Collective):
            size, = self._known.all_of(s, shape.sizes, env)
            of = (s, self.program.buffers[s.source].dtype, self.address(s.source, shape, env),
                  self.address(s.target, shape, env), size)
            to.collective(partial(self._communicator.enqueue, *of, self._behind_launch),
                          [self._base_of[b] for b in (s.source, s.target)])
            self._behind_launch = self._communicator.is_kernel(*of)
        elif isinstance(s, Require):
            require(s, env)
        elif isinstance(s, For):
            for turn in range(symbolic.evaluate(s.trips, env)):
                for inner in s.body:
                    self._enqueue(inner, shape, {**env, s.counter: turn}, kept, recorder)

    def _element(self, buffer: int, index: int, shape: PlacedShape, env: Mapping[str, int]) -> Any:
        if shape.in_capture:
            raise UserError("what the model runs depends on numbers that it computes, so that it waits for the device: "
                            "such a run cannot be captured in a graph")
        dtype = numpy_dtype(self.program.buffers[buffer].dtype)
        value = np.empty(1, dtype)
        self.driver.download(value, self.address(buffer, shape, env) + index * dtype.itemsize)
        return value[0]

    def address(self, i: int, shape: PlacedShape, env: Mapping[str, int]) -> int:
        if i in shape.addresses:
            return shape.addresses[i]
        b = self.program.buffers[i]
        return self.address(b.base, shape, env) + symbolic.evaluate(b.offset, env)


class _Unrecorded:
    """A driver with a recorder's functions."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def launch(self, *args: Any) -> None:
        self._driver.launch(*args[:-1])

    def copy(self, *args: Any) -> None:
        self._driver.copy(*args[:-1])

    def collective(self, enqueue: Callable[[], None], _of: Sequence[Base]) -> None:
        enqueue()

    def upload(self, *args: Any) -> None:
        self._driver.upload(*args[:-1])
