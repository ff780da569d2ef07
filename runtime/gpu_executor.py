"""Runs a program on a GPU through a driver object (xcc.runtime.cuda_driver, xcc.runtime.hip).

Weights are uploaded once, and the program's setup makes more of them. For each set of symbol values the buffers get
addresses in memory that all sets share, and the launches are captured into graphs, one for each stretch of statements
that are known in advance; runs of the same shape replay them. The shapes used last keep theirs; among many, one that is
new is enqueued without a graph. Conditions and sizes that the model computes are read back between graphs. All of it
goes with the executor, but outputs on the device own their memory.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.runtime import poison
from xcc.runtime.arena import ArenaPlanner, walk
from xcc.runtime.device_array import DeviceArray
from xcc.runtime.dim_values import DimValues
from xcc.runtime.dtypes import numpy_dtype
from xcc.runtime.known_sizes import KnownSizes
from xcc.runtime.launch_time import LaunchTime
from xcc.runtime.placed_shape import PlacedShape, Rooms, give_back
from xcc.runtime.program import (
    DTYPE_BYTES,
    BindSymbol,
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
from xcc.runtime.state import DeviceState

__all__ = ["GpuExecutor"]

_CACHED_SHAPES = 64
_AWAITED_SHAPES = 16       # that came once when all places were taken; a longer round of them takes no place
_ARENA = -1                # its number among the rooms; inputs and outputs have those of their buffers
_MAX_UNROLLED = 4096       # launches that one graph may hold


class GpuExecutor:
    """Executes `program`. Not for calls from several threads at once."""

    def __init__(self, driver: Any, program: Program, blobs: Iterable[bytes], weights: Mapping[str, Any],
                 holders: Mapping[str, int] | None = None) -> None:
        """holders: the number among `blobs` of the one with each kernel; the first, where there is only one."""
        self.poisoned = poison.wanted()
        driver = poison.PoisonedDriver(driver) if self.poisoned else driver
        self.driver, self.program = driver, program
        self.device = driver.device_type
        self._modules: list[Any] = []
        self._shapes: dict[tuple[int, ...], PlacedShape] = {}
        self._awaited: deque[tuple[int, ...]] = deque(maxlen=_AWAITED_SHAPES)
        self._rooms = Rooms(driver)
        self._weights: dict[int, int] = {}
        owned = (self._modules, self._shapes, self._rooms, self._weights)
        weakref.finalize(self, give_back, driver, *owned).atexit = False
        self._modules += [driver.load(b) for b in blobs]
        self._functions = self._find_functions(holders or {})
        self._planner = ArenaPlanner(program)
        self._planner.guard = poison.GUARD if self.poisoned else 0
        self._known = KnownSizes(program)
        self._outside = [i for i, b in enumerate(program.buffers) if b.kind in ("input", "output")]
        self._outside_bytes = DimValues([(*b.shape, DTYPE_BYTES[b.dtype]) for i in self._outside
                                         for b in [program.buffers[i]]], self._planner.limits)
        self._segments: dict[int, list[Any]] = {}
        self._uploads: list[Any] = []   # host memory that what was enqueued may still read
        self._behind_launch = False     # what was enqueued last is a kernel
        for i, b in enumerate(program.buffers):
            if b.kind == "weight":
                array = np.ascontiguousarray(weights[b.name])
                self._weights[i] = driver.alloc(array.nbytes)
                driver.upload(self._weights[i], array)
                driver.synchronize()
            elif b.kind in ("kept", "state"):
                self._weights[i] = driver.alloc(symbolic.evaluate(program.nbytes(i), {}))
        self.state = DeviceState(program, weights, driver, self._weights)
        self._updated = {output: program.inputs.index(source) for output, source in program.updates}
        for s in program.setup:
            self._enqueue(s, PlacedShape({}, self._weights, []), {}, self._uploads)
        driver.synchronize()

    def _find_functions(self, holders: Mapping[str, int]) -> dict[str, Any]:
        shared: dict[str, int] = {}
        for s in walk((*self.program.setup, *self.program.body)):
            if isinstance(s, Launch):
                shared[s.kernel] = max(shared.get(s.kernel, 0), s.shared_bytes)
        found = {}
        for name, size in shared.items():
            try:
                found[name] = self.driver.function(self._modules[holders.get(name, 0)], name, size)
            except (IndexError, RuntimeError) as e:
                raise RuntimeError(f"no module of the model has the kernel '{name}'") from e
        return found

    # -- running ------------------------------------------------------------------------------------------------

    def run(self, inputs: Sequence[Any], symbols: Mapping[str, int]) -> list[Any]:
        """Outputs for contiguous `inputs` in the program's order: numpy arrays, or DeviceArrays when an input is
        on the device."""
        self.driver.activate()
        shape = self._shape(symbols)
        if self.poisoned:
            self._rooms.poison()
        on_device = False
        for i, value in zip(self.program.inputs, inputs, strict=True):
            if isinstance(value, np.ndarray):
                self.driver.upload(shape.addresses[i], value)
            else:
                on_device = True
                self.driver.copy(shape.addresses[i], value.pointer,
                                 prod(value.shape) * DTYPE_BYTES[self.program.buffers[i].dtype])
        env = dict(shape.env)
        self._run(self.program.body, shape, env)
        outputs = [self._replaced(i, inputs[self._updated[i]], shape, env) if i in self._updated
                   else self._output(i, shape, env, on_device) for i in self.program.outputs]
        self.driver.synchronize()
        self._uploads.clear()
        return outputs

    def _replaced(self, i: int, given: Any, shape: PlacedShape, env: Mapping[str, int]) -> Any:
        """The input `given` with the numbers of output `i`, which updates it."""
        source = self._address(i, shape, env)
        if isinstance(given, np.ndarray):
            self.driver.download(given, source)
        else:
            self.driver.copy(given.pointer, source, prod(given.shape) * DTYPE_BYTES[self.program.buffers[i].dtype])
        return given

    def to_host(self, tensor: Any) -> Any:
        """A numpy copy of a contiguous DLPack tensor on the device, after what was enqueued before."""
        self.driver.activate()
        array = np.empty(tensor.shape, numpy_dtype(tensor.dtype))
        self.driver.download(array, tensor.pointer)
        return array

    def replay(self, symbols: Mapping[str, int]) -> None:
        """Enqueues the program once more on the inputs that lie on the device."""
        shape = self._shape(symbols)
        self._run(self.program.body, shape, dict(shape.env))

    def launch(self, launch: Launch, symbols: Mapping[str, int]) -> None:
        """Enqueues one launch of the program alone."""
        shape = self._shape(symbols)
        self._enqueue(launch, shape, dict(shape.env), self._uploads)

    def profile(self, inputs: Sequence[Any], symbols: Mapping[str, int]) -> list[LaunchTime]:
        """Each kernel launch and its seconds on the device, after one whole run on `inputs`."""
        from xcc.runtime.gpu_profile import profile

        self.run(inputs, symbols)
        self._shape(symbols)        # has its place from now on: launches are captured
        return profile(self, symbols)

    def _output(self, i: int, shape: PlacedShape, env: Mapping[str, int], on_device: bool) -> Any:
        b = self.program.buffers[i]
        size = tuple(symbolic.evaluate(d, env) for d in b.shape)
        source = self._address(i, shape, env)
        if on_device:
            pointer = self.driver.alloc(prod(size) * DTYPE_BYTES[b.dtype])
            self.driver.copy(pointer, source, prod(size) * DTYPE_BYTES[b.dtype])
            return DeviceArray(self.driver, pointer, b.dtype, size)
        out = np.empty(size, numpy_dtype(b.dtype))
        self.driver.download(out, source)
        return out

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
        return isinstance(s, (Launch, Copy, SetScalar, Require))

    def _segment(self, part: tuple[Statement, ...], shape: PlacedShape, env: dict[str, int]) -> None:
        """Replays the graph of `part`, captured at its first run; enqueues one by one what no graph holds."""
        changing = env.keys() - shape.env.keys()
        self._behind_launch = False
        if changing or not shape.keeps_graphs or self._count(part, env) > _MAX_UNROLLED:
            for s in part:
                self._enqueue(s, shape, env, self._uploads)
            return
        key = id(part)
        if key not in shape.graphs:
            self.driver.begin_capture()
            try:
                for s in part:
                    self._enqueue(s, shape, env, shape.kept)
            except BaseException:
                self.driver.free_graph(self.driver.end_capture())
                raise
            shape.graphs[key] = self.driver.end_capture()
        self.driver.replay(shape.graphs[key])

    def _count(self, part: Iterable[Statement], env: Mapping[str, int]) -> int:
        total = 0
        for s in part:
            if isinstance(s, For):
                inner = {**env, s.counter: 0}
                total += symbolic.evaluate(s.trips, env) * self._count(s.body, inner)
            else:
                total += 1
        return total

    def _enqueue(self, s: Statement, shape: PlacedShape, env: dict[str, int], kept: list[Any]) -> None:
        """`kept` gets the host memory that is read when the statement runs."""
        if isinstance(s, Launch):
            sizes = self._known.all_of(s, shape.sizes, env)
            grid = sizes[:len(s.grid)]
            known = shape.addresses
            pointers = [known[b] if b in known else self._address(b, shape, env) for b in s.buffers]
            self.driver.launch(self._functions[s.kernel], grid, s.block, s.shared_bytes, pointers, sizes[len(grid):],
                               s.early and self._behind_launch)
            self._behind_launch |= 0 not in grid
        elif isinstance(s, Copy):
            self._behind_launch = False
            size, = self._known.all_of(s, shape.sizes, env)
            self.driver.copy(self._address(s.target, shape, env), self._address(s.source, shape, env), size)
        elif isinstance(s, SetScalar):
            dtype = numpy_dtype(self.program.buffers[s.target].dtype)
            values = np.array(self._known.all_of(s, shape.sizes, env), np.int64).astype(dtype)
            kept.append(values)
            self._behind_launch = False
            self.driver.upload(self._address(s.target, shape, env), values)
        elif isinstance(s, Require):
            require(s, env)
        elif isinstance(s, For):
            for turn in range(symbolic.evaluate(s.trips, env)):
                for inner in s.body:
                    self._enqueue(inner, shape, {**env, s.counter: turn}, kept)

    def _element(self, buffer: int, index: int, shape: PlacedShape, env: Mapping[str, int]) -> Any:
        dtype = numpy_dtype(self.program.buffers[buffer].dtype)
        value = np.empty(1, dtype)
        self.driver.download(value, self._address(buffer, shape, env) + index * dtype.itemsize)
        return value[0]

    # -- addresses ----------------------------------------------------------------------------------------------

    def _address(self, i: int, shape: PlacedShape, env: Mapping[str, int]) -> int:
        if i in shape.addresses:
            return shape.addresses[i]
        b = self.program.buffers[i]
        return self._address(b.base, shape, env) + symbolic.evaluate(b.offset, env)

    def _shape(self, symbols: Mapping[str, int]) -> PlacedShape:
        key = tuple(symbols[s] for s in self.program.symbols)
        if key in self._shapes:     # the one used longest ago is forgotten first
            self._shapes[key] = shape = self._shapes.pop(key)
            return shape
        shape = self._place(symbols)
        if len(self._shapes) >= _CACHED_SHAPES and key not in self._awaited:
            self._awaited.append(key)
            shape.keeps_graphs = False      # it may not come again
            return shape
        if len(self._shapes) >= _CACHED_SHAPES:
            self._forget([next(iter(self._shapes))])
        self._shapes[key] = shape
        return shape

    def _place(self, symbols: Mapping[str, int]) -> PlacedShape:
        plan = self._planner.plan(symbols)
        rooms = dict(zip(self._outside, self._outside_bytes(symbols), strict=True)) | {_ARENA: plan.size}
        if not self._rooms.suffice(rooms):
            self._forget(list(self._shapes))        # their graphs hold addresses
            self._rooms.grow(rooms)
        addresses = self._weights | self._rooms.pointers()
        arena = addresses.pop(_ARENA)
        for i, offset in plan.offsets.items():
            addresses[i] = arena + offset
        if plan.void:       # see ArenaPlan
            empty = [i for i in self._outside if not rooms[i]]
            empty += [i for i in self._weights if self.program.nbytes(i) == 0]
            addresses |= dict.fromkeys(empty, arena + plan.void)
        sizes = self._known(symbols)
        for i, offset in self._known.offsets(sizes):
            addresses[i] = addresses[self.program.buffers[i].base] + offset
        return PlacedShape(dict(symbols), addresses, sizes)

    def _forget(self, keys: Iterable[tuple[int, ...]]) -> None:
        self.driver.synchronize()
        for key in keys:
            self._shapes.pop(key).free(self.driver)
