"""Runs a program on a GPU through a driver object (xcc.runtime.cuda_driver, xcc.runtime.hip_driver).

Weights are uploaded once, and the program's setup makes more of them. For each set of symbol values, and each stream,
the launches are captured into graphs, one for each stretch of statements that are known in advance; runs of the same
shape replay them. Inputs and outputs on the device are read and written where they lie: where they, or the arena, have
moved since the run before, the nodes that use them are edited. The shapes used last keep their graphs; among many, one
that is new is enqueued without. Conditions and sizes that the model computes are read back between graphs. All of it
goes with the executor, but outputs on the device own their memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import Any, NamedTuple

import numpy as np

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime import poison
from xcc.runtime.detached import detached
from xcc.runtime.dtypes import numpy_dtype
from xcc.runtime.given_outputs import check_size
from xcc.runtime.gpu_body import GpuBody
from xcc.runtime.gpu_code import functions_of, shared_bytes
from xcc.runtime.gpu_places import GpuPlaces
from xcc.runtime.gpu_results import GpuResults, nbytes_of
from xcc.runtime.known_sizes import KnownSizes
from xcc.runtime.launch_time import LaunchTime
from xcc.runtime.peer_collectives import does_collectives
from xcc.runtime.placed_shape import PlacedShape, give_back
from xcc.runtime.program import DTYPE_BYTES, Launch, Program
from xcc.runtime.state import DeviceState
from xcc.runtime.stream_order import StreamOrder

__all__ = ["GpuExecutor"]

ALIGNMENT = 16             # bytes: the widest access of kernels; what lies less well is copied first


class GpuReplay(NamedTuple):
    """What is to be done in a run that differs from the last one in addresses alone: those of the program's inputs, own
    outputs and arena, in this order, go into `moves.addresses`, then `moves` is called, unless `shape.whole` is None by
    then; on a thread where the GPU is current, as it is after `activate()`. `moves` is a GraphReplay
    (xcc.runtime.graph_replay)."""

    shape: PlacedShape
    moves: Any
    activate: Callable[[], None]

    def names(self) -> dict[str, Any]:
        """What code of such a run names."""
        moves = self.moves
        return {"shape": self.shape, "places": moves.addresses, "start": moves.start, "table": moves.table,
                "refuse": moves.refuse, "activate": self.activate}


class GpuExecutor:
    """Executes `program`. Not for calls from several threads at once."""

    def __init__(self, driver: Any, program: Program, blobs: Iterable[bytes], weights: Mapping[str, Any],
                 holders: Mapping[str, int] | None = None, communicator: Any = None) -> None:
        """holders: the number among `blobs` of the one with each kernel; the first, where there is only one.
        communicator: what enqueues collectives, and is closed with the executor."""
        program = detached(program)
        self.poisoned = poison.wanted()
        driver = poison.PoisonedDriver(driver) if self.poisoned else driver
        self.driver, self.program = driver, program
        self.device = driver.device_type
        self._modules: list[Any] = []
        self._weights: dict[int, int] = {}
        known = KnownSizes(program)
        self._places = GpuPlaces(driver, program, self._weights, known)
        weakref.finalize(self, give_back, driver, self._modules, self._places.shapes, self._places.rooms, self._weights,
                         communicator).atexit = False
        self._modules += [driver.load(b) for b in blobs]
        self.functions = functions_of(driver, self._modules, holders or {}, shared_bytes(program))
        self._body = GpuBody(driver, program, self.functions, known, self._places.moves_with, communicator)
        self._results = GpuResults(driver, program, self._body.address)
        if communicator is not None:
            summing = dict.fromkeys(filter(does_collectives, holders or {}), 0)
            communicator.use(functions_of(driver, self._modules, holders or {}, summing), program)
            self._places.elsewhere = self._places.planner.outside = communicator.places
        self._order: StreamOrder | None = None if communicator is None else communicator.order
        self._own = self._places.own
        self._limits = self._places.planner.limits      # of sizes that the run tells
        self._captured: list[Any] = []      # host memory that graphs of callers read
        self._last: tuple[PlacedShape, dict[str, int], int | None] | None = None
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
        for launch in program.setup:
            self._body.enqueue(launch, self._places.of_setup())
        driver.synchronize()

    # -- running ------------------------------------------------------------------------------------------------

    def run(self, inputs: Sequence[Any], symbols: Mapping[str, int], out: Sequence[Any] = (), *,
            stream: int | None = None, in_place: bool = True, borrow: bool = False) -> list[Any]:
        """Outputs for contiguous `inputs` in the program's order: numpy arrays, or DeviceArrays when an input is
        on the device or a stream is given.

        out: for each output where it goes, a contiguous numpy array or DlTensor of its shape, or None. stream: the
        caller's; what is on the device is then complete when the stream has come to it. in_place: inputs on the device
        are read where they lie; else they are copied, as :meth:`replay` wants it. borrow: outputs are DeviceArrays of
        the executor's memory, good until the next run.
        """
        self.driver.enter()
        self.driver.use(stream)
        try:
            with self._in_order(stream):
                return self._run_from(inputs, symbols, out or [None] * len(self.program.outputs), stream,
                                      in_place and self.driver.edits_graphs, borrow)
        finally:
            self.driver.use(None)
            self.driver.leave()

    def _in_order(self, stream: int | None, captured: bool = False) -> AbstractContextManager[None]:
        """Around a run: with collectives, those that no caller captures do not overlap."""
        return nullcontext() if self._order is None or captured else self._order.run(stream)

    def _run_from(self, inputs: Sequence[Any], symbols: Mapping[str, int], out: Sequence[Any], stream: int | None,
                  in_place: bool, borrow: bool) -> list[Any]:
        shape = self._places.shape(symbols, stream)
        self._check_out(out, symbols)
        on_device = stream is not None or not all(isinstance(v, np.ndarray) for v in inputs)
        lying: dict[int, Any] = {}      # buffers that need no room
        if in_place:
            lying = {i: v for i, v in zip(self.program.inputs, inputs, strict=True) if self._can_lie(v)}
        if in_place and not self._limits:
            lying |= {i: v for i, v in zip(self.program.outputs, out, strict=True)
                      if self._can_lie(v) and i in self._own}
            lying |= {i: self._results.new(i, shape.env, stream) for i, v in zip(self.program.outputs, out, strict=True)
                      if on_device and not borrow and v is None and i in self._own}
        self._places.put_in_rooms(shape, {i: v.pointer for i, v in lying.items()}, stream)
        if self.poisoned:
            self._places.rooms[stream].poison()
        for i, value in zip(self.program.inputs, inputs, strict=True):
            if isinstance(value, np.ndarray):
                self.driver.upload(shape.addresses[i], value)
            elif value.device_id != self.driver.number:
                self.driver.copy_from(value.device_id, shape.addresses[i], value.pointer, nbytes_of(value))
            elif i not in lying:
                self.driver.copy(shape.addresses[i], value.pointer, nbytes_of(value))
        env = dict(shape.env)
        self._body.run(shape, env)
        outputs = []
        for n, i in enumerate(self.program.outputs):
            target = inputs[self._updated[i]] if i in self._updated else out[n]
            if target is None and i in lying:
                target = lying[i]
            elif target is None and borrow:
                target = self._results.lent(i, shape, env, stream, self)
            elif target is None and on_device:
                target = self._results.new(i, env, stream)
            outputs.append(self._results.output(i, target, shape, env))
        if stream is None:
            self.driver.synchronize()
            self._body.uploads.clear()
        return outputs

    def run_on(self, stream: int, inputs: Sequence[int], symbols: Mapping[str, int], outputs: Sequence[int],
               arena: int, captured: bool = False) -> None:
        """Enqueues a run on the caller's `stream`, and waits for nothing that the program does not wait for.

        inputs, outputs: addresses of contiguous memory, aligned to ALIGNMENT, of the inputs in the program's order and
        of :attr:`own_outputs`; 0 for what has no element. arena: of :meth:`arena_bytes` that no other stream uses.
        captured: the caller captures the stream.
        """
        driver = self.driver
        driver.enter()
        driver.use(stream)
        try:
            shape = self._places.new(symbols) if captured else self._places.shape(symbols, stream)
            self._places.put(shape, [*inputs, *outputs, arena])
            with self._in_order(stream, captured):
                self._run_in_place(shape, stream, captured)
        finally:
            driver.use(None)
            driver.leave()

    def repeat(self, stream: int, symbols: Mapping[str, int]) -> GpuReplay | None:
        """What the last :meth:`run_on` on the stream, with these symbols, has come to; None where that is more than to
        replay a graph."""
        shape = self._places.shape(symbols, stream)
        if shape.whole is None or shape.plan.void or self.poisoned or self._order is not None:
            return None
        shape.place = []        # from now on the graph alone knows it
        return GpuReplay(shape, shape.whole.moves, self.driver.activate)

    def _run_in_place(self, shape: PlacedShape, stream: int, captured: bool) -> None:
        """A run whose inputs, outputs and arena have their places."""
        shape.in_capture = captured
        shape.keeps_graphs &= not captured and self.driver.edits_graphs
        if self.poisoned:
            self.driver.fill(shape.place[-1], poison.POISON, shape.plan.size)
        env = dict(shape.env)
        self._body.run(shape, env)
        self._last = shape, env, stream
        if captured:                        # the caller's graph reads it in each of its runs
            self._captured += self._body.uploads
        self._body.uploads.clear()          # what is not pinned has been read

    def arena_bytes(self, symbols: Mapping[str, int]) -> int:
        """How large the arena of a run is."""
        return self._places.planner.plan(symbols).size

    @property
    def own_outputs(self) -> list[int]:
        """Which outputs are buffers of their own, that the kernels write."""
        return [n for n, i in enumerate(self.program.outputs) if i in self._own]

    @property
    def copied_outputs(self) -> list[int]:
        """Which outputs :meth:`copy_output` is to be asked for: neither buffers of their own nor inputs, or larger than
        what is in them."""
        return [n for n, i in enumerate(self.program.outputs)
                if i not in self._updated and (i not in self._own or self._limits)]

    def output_shapes(self, symbols: Mapping[str, int]) -> list[tuple[int, ...]]:
        """Of all outputs; a size that only the run tells has its largest value."""
        env = dict(symbols)
        for name, limit in self._limits:
            env[name] = symbolic.evaluate(limit, env)
        return [self._results.size(i, env) for i in self.program.outputs]

    def output_shape(self, n: int) -> tuple[int, ...]:
        """Of output `n` in the last :meth:`run_on`."""
        assert self._last is not None
        return self._results.size(self.program.outputs[n], self._last[1])

    def copy_output(self, n: int, target: int) -> None:
        """Enqueues a copy of output `n` of the last :meth:`run_on` to `target`, on the same stream."""
        assert self._last is not None
        shape, env, stream = self._last
        i = self.program.outputs[n]
        with self.driver.current():
            self.driver.use(stream)
            try:
                self.driver.copy(target, self._body.address(i, shape, env),
                                 prod(self.output_shape(n)) * DTYPE_BYTES[self.program.buffers[i].dtype])
            finally:
                self.driver.use(None)

    def to_host(self, tensor: Any) -> Any:
        """A numpy copy of a contiguous DLPack tensor on the device, after what was enqueued before."""
        array = np.empty(tensor.shape, numpy_dtype(tensor.dtype))
        with self.driver.current():
            if tensor.device_id != self.driver.number:
                self.driver.wait_for_gpu(tensor.device_id)
            self.driver.download(array, tensor.pointer)
        return array

    def replay(self, symbols: Mapping[str, int]) -> None:
        """Enqueues the program once more on the inputs that lie on the device."""
        shape = self._in_rooms(symbols)
        self._body.run(shape, dict(shape.env))

    def launch(self, launch: Launch, symbols: Mapping[str, int], turns: Mapping[str, int]) -> None:
        """Enqueues one launch of the program alone; in these `turns` of the loops around it, by counter."""
        self._body.enqueue(launch, self._in_rooms(symbols), turns)

    def _in_rooms(self, symbols: Mapping[str, int]) -> PlacedShape:
        shape = self._places.shape(symbols, None)
        if not shape.place:     # has a place from now on
            self._places.put_in_rooms(shape, {}, None)
        return shape

    def profile(self, inputs: Sequence[Any], symbols: Mapping[str, int]) -> list[LaunchTime]:
        """Each kernel launch and its seconds on the device, after one whole run on `inputs`."""
        from xcc.runtime.gpu_profile import profile

        self.run(inputs, symbols, in_place=False)
        with self.driver.current():
            self._in_rooms(symbols)         # before launches are captured
            return profile(self, symbols)

    def _check_out(self, out: Sequence[Any], symbols: Mapping[str, int]) -> None:
        """UserError where an array for an output has not its shape."""
        if all(v is None for v in out):
            return
        if self._limits:
            raise UserError("out: how large this model's outputs are is only known when it has run")
        for i, size, target in zip(self.program.outputs, self.output_shapes(symbols), out, strict=True):
            if target is not None:
                check_size(self.program.buffers[i].name, size, target)

    def _can_lie(self, value: Any) -> bool:
        """Whether kernels can use the array where it is."""
        return value is not None and not isinstance(value, np.ndarray) and not value.pointer % ALIGNMENT \
            and value.device_id == self.driver.number and not value.shared
