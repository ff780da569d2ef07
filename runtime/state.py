"""What a model holds from run to run: caches, statistics, parameters that a run changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime import dtypes, poison
from xcc.runtime.large_pages import reserve
from xcc.runtime.program import Program, State
from xcc.runtime.signature import from_python, tensor_infos
from xcc.runtime.turn import Turn

__all__ = ["DeviceState", "HostState", "ModelState"]


def _first(program: Program, state: State, weights: Mapping[str, Any]) -> Any:
    """The first value of `state`: a weight of its element type and shape; None for zeros."""
    if not state.initial:
        return None
    b, array = program.buffers[state.buffer], np.asarray(weights[state.initial])
    if dtypes.name_of(array.dtype) != b.dtype or array.shape != b.shape:
        raise UserError(f"the state '{state.name}' is {b.dtype}{list(b.shape)}, the weight that it begins as is not")
    return np.ascontiguousarray(array)


class HostState:
    """The state of `program` in host memory. `arrays` has each by its buffer."""

    def __init__(self, program: Program, weights: Mapping[str, Any]) -> None:
        self._program, self._weights = program, weights
        self.arrays = {s.buffer: _memory(program, s.buffer) for s in program.states}
        self.reset()

    def read(self, buffer: int) -> np.ndarray[Any, Any]:
        """A copy of what is in `buffer`."""
        return self.arrays[buffer].copy()

    def write(self, buffer: int, array: np.ndarray[Any, Any]) -> None:
        """Makes it the numbers of `array`, which has its type and shape and is contiguous."""
        self.arrays[buffer][...] = array

    def reset(self) -> None:
        """Makes all of it what it was first."""
        for s in self._program.states:
            first = _first(self._program, s, self._weights)
            self.arrays[s.buffer][...] = 0 if first is None else first


class DeviceState:
    """The state of `program` in the memory of a GPU: `pointers` has it, by buffer. As HostState."""

    def __init__(self, program: Program, weights: Mapping[str, Any], driver: Any, pointers: Mapping[int, int]) -> None:
        self._program, self._driver, self._pointers = program, driver, pointers
        self._first = {s.buffer: _first(program, s, weights) for s in program.states}
        self.reset()

    def read(self, buffer: int) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        b = self._program.buffers[buffer]
        out = np.empty([symbolic.evaluate(d, {}) for d in b.shape], dtypes.numpy_dtype(b.dtype))
        with self._driver.current():
            self._driver.download(out, self._pointers[buffer])
        return out

    def write(self, buffer: int, array: np.ndarray[Any, Any]) -> None:
        with self._driver.current():
            self._driver.upload(self._pointers[buffer], array)
            self._driver.synchronize()

    def reset(self) -> None:
        if not self._first:
            return
        with self._driver.current():
            for buffer, first in self._first.items():
                if first is None:
                    self._driver.fill(self._pointers[buffer], 0, symbolic.evaluate(self._program.nbytes(buffer), {}))
                else:
                    self._driver.upload(self._pointers[buffer], first)
            self._driver.synchronize()


def _memory(program: Program, buffer: int) -> np.ndarray[Any, Any]:
    b = program.buffers[buffer]
    shape = tuple(int(d) for d in b.shape)      # type: ignore[arg-type]
    dtype = np.dtype(dtypes.numpy_dtype(b.dtype))
    if poison.wanted():
        return poison.guarded(shape, dtype)
    memory, begin = reserve(int(np.prod(shape)) * dtype.itemsize, exact=True)
    return np.ndarray(shape, dtype, memory, begin)


class ModelState(MutableMapping[str, Any]):
    """The state of a model by name. Reading gives a copy; what is assigned is there in the next run."""

    def __init__(self, program: Program, executor: Any, turn: Turn) -> None:
        self._executor, self._turn = executor, turn
        self._states = {s.name: s for s in program.states}
        infos = tensor_infos(program, [s.buffer for s in program.states])
        self._infos = dict(zip(self._states, infos, strict=True))

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        state = self._known(name)
        with self._turn.lock:
            held: np.ndarray[Any, Any] = self._executor.state.read(state.buffer)
        return held

    def __setitem__(self, name: str, value: Any) -> None:
        state, info = self._known(name), self._infos[name]
        array = np.asarray(value) if hasattr(value, "dtype") else from_python(info, value)
        if (dtypes.name_of(array.dtype), array.shape) != (info.dtype, info.shape):
            raise UserError(f"state '{name}': an array of {dtypes.name_of(array.dtype)}{list(array.shape)}, the model "
                            f"holds {info}")
        with self._turn.lock:
            self._executor.state.write(state.buffer, np.ascontiguousarray(array))

    def __delitem__(self, name: str) -> None:
        raise UserError(f"the model holds '{name}' as long as it is there: assign another value, or Model.reset()")

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def __repr__(self) -> str:
        return f"<state: {'; '.join(map(str, self._infos.values()))}>"

    def _known(self, name: str) -> State:
        if name not in self._states:
            raise UserError(f"the model holds no '{name}'; it holds {', '.join(self._states) or 'nothing'}")
        return self._states[name]
