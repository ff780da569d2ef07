"""Runs a host program in Python on numpy arrays: what a program means, and how lowerings are tested.

Temporary buffers live in one arena at their planned offsets, so a wrong plan gives wrong numbers. A kernel is a Python
function of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.runtime.arena import ArenaPlanner, walk
from xcc.runtime.collectives import Communicate, alone
from xcc.runtime.dtypes import numpy_dtype
from xcc.runtime.program import (
    DTYPE_BYTES,
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
from xcc.runtime.state import HostState

__all__ = ["NumpyExecutor", "storage_dtype"]

Array = np.ndarray[Any, Any]
_POISON = 0xA5


def storage_dtype(name: str) -> Any:
    """The numpy type of a buffer's elements; bf16 and f8 are seen as unsigned integers."""
    if name == "i1":
        return np.dtype(np.bool_)
    if name in ("f16", "f32", "f64"):
        return np.dtype(f"f{DTYPE_BYTES[name]}")
    if name.startswith("ui"):
        return np.dtype(f"u{DTYPE_BYTES[name]}")
    return np.dtype(f"{'i' if name.startswith('i') else 'u'}{DTYPE_BYTES[name]}")


class NumpyExecutor:
    """Executes `program`. ``kernel(name, inputs_and_outputs, symbols)`` writes the output arrays in place.

    ``communicate`` executes its collectives, of one rank of several.
    """

    def __init__(self, program: Program, weights: Mapping[str, Array],
                 kernel: Callable[[str, Sequence[Array], Sequence[int]], None],
                 communicate: Communicate = alone) -> None:
        self.program, self.weights, self.kernel, self.communicate = program, weights, kernel, communicate
        self.planner = ArenaPlanner(program)
        self.state = HostState(program, weights)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs for `inputs`, in the program's order; outputs and the arena are poisoned first."""
        env: dict[str, int] = {}
        for i, value in zip(self.program.inputs, inputs, strict=True):
            for d, n in zip(self.program.buffers[i].shape, value.shape, strict=True):
                if (name := symbolic.bare_symbol(d)) is not None:
                    env[name] = n
        at = {i: value for i, value in zip(self.program.inputs, inputs, strict=True)}
        env |= {v.name: int(at[v.source].reshape(-1)[v.index]) for v in self.program.values}
        return _Run(self, env, inputs).outputs()


class _Run:
    def __init__(self, executor: NumpyExecutor, env: dict[str, int], inputs: Sequence[Array]) -> None:
        self.program, self.executor, self.env = executor.program, executor, env
        self.plan = executor.planner.plan(env)
        self.arena = np.full(self.plan.size, _POISON, np.uint8)
        self.limits = dict(env)
        for s in walk(self.program.body):
            if isinstance(s, BindSymbol):
                self.limits[s.name] = symbolic.evaluate(s.limit, self.limits)
        self.memory: dict[int, Array] = {}
        for i, value in zip(self.program.inputs, inputs, strict=True):
            self.memory[i] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        for i, value in executor.state.arrays.items():
            self.memory[i] = value.reshape(-1).view(np.uint8)
        self.body((*self.program.setup, *self.program.body))

    def outputs(self) -> list[Array]:
        return [self.array(i) for i in self.program.outputs]

    def bytes_of(self, index: int) -> Array:
        """The bytes of a buffer for the symbols' present values; symbols without one yet count with their limit."""
        b = self.program.buffers[index]
        size = symbolic.evaluate(self.program.nbytes(index), self.limits | self.env)
        if b.kind == "alias":
            offset = symbolic.evaluate(b.offset, self.env)
            return self.bytes_of(b.base)[offset:offset + size]
        if b.kind == "temp":
            return self.arena[self.plan.offsets[index]:self.plan.offsets[index] + size]
        if index not in self.memory:
            if b.kind == "weight":
                self.memory[index] = np.ascontiguousarray(self.executor.weights[b.name]).reshape(-1).view(np.uint8)
            else:
                room = symbolic.evaluate(self.program.nbytes(index), self.limits)
                self.memory[index] = np.full(room, _POISON, np.uint8)
        return self.memory[index][:size]

    def array(self, index: int) -> Array:
        """A buffer as an array; flat while its size is not known."""
        b = self.program.buffers[index]
        unknown = any(s not in self.env for d in b.shape for s in symbolic.symbols_of(d))
        shape = [-1] if unknown else [symbolic.evaluate(d, self.env) for d in b.shape]
        out: Array = self.bytes_of(index).view(storage_dtype(b.dtype)).reshape(shape)
        return out

    def body(self, body: Sequence[Statement]) -> None:
        for s in body:
            self.statement(s)

    def statement(self, s: Statement) -> None:
        if isinstance(s, Launch):
            symbols = [symbolic.evaluate(d, self.env) for d in s.symbols]
            self.executor.kernel(s.kernel, [self.array(b) for b in s.buffers], symbols)
        elif isinstance(s, Copy):
            self.bytes_of(s.target)[:] = self.bytes_of(s.source)
        elif isinstance(s, SetScalar):
            self.array(s.target).reshape(-1)[:] = [symbolic.evaluate(d, self.env) for d in s.values]
        elif isinstance(s, BindSymbol):
            self.env[s.name] = int(self.array(s.source).reshape(-1)[s.index])
        elif isinstance(s, Require):
            require(s, self.env)
        elif isinstance(s, Collective):
            target = self.bytes_of(s.target)
            dtype = numpy_dtype(self.program.buffers[s.source].dtype)
            self.executor.communicate(s, self.bytes_of(s.source).view(dtype), target.view(dtype))
        elif isinstance(s, If):
            self.body(s.then if self.array(s.condition).item() else s.orelse)
        elif isinstance(s, While):
            self.body(s.before)
            while self.array(s.condition).item():
                self.body(s.body)
                self.body(s.before)
        else:
            self.loop(s)

    def loop(self, s: For) -> None:
        for i in range(symbolic.evaluate(s.trips, self.env)):
            self.env[s.counter] = i
            self.body(s.body)
        self.env.pop(s.counter, None)
