"""Calls a model for GPUs with torch tensors there: on torch's current stream, in memory of torch's allocator."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import torch

from xcc.frontends.torch import compat
from xcc.frontends.torch.tensor_call import NUMBER_TYPES, Order, TensorCall
from xcc.runtime.gpu_executor import ALIGNMENT

__all__ = ["THREAD", "DeviceCall"]


class _Arena:
    """Memory for what a run makes meanwhile. Runs of all models on one stream take turns in it."""

    def __init__(self) -> None:
        self.tensor: Any = None
        self._size = self._address = 0

    def address(self, size: int, device: Any) -> int:
        """Of at least `size` bytes, of which the stream is the current one."""
        if self._size < size:
            grown = size + (size // 4 if self._size else 0)
            self.tensor = None          # the stream may use again what it was
            self._size = 0
            self.tensor = torch.empty(grown, dtype=torch.uint8, device=device)
            self._size, self._address = grown, self.tensor.data_ptr()
        return self._address if size else 0


_ARENAS: WeakValueDictionary[tuple[int, int], _Arena] = WeakValueDictionary()      # by GPU and stream


class _Thread(threading.local):
    """What is known of the calling thread: the GPUs that were made current on it. Such a one is so again when torch has
    made it its current one: a repeat need not ask the driver."""

    def __init__(self) -> None:
        self.known: set[int] = set()

    def meet(self, number: int, activate: Callable[[], None]) -> None:
        """Makes the GPU, torch's current one, current."""
        activate()
        self.known.add(number)


THREAD = _Thread()


class DeviceCall(TensorCall):
    """As TensorCall. Nothing waits for the device but what the program waits for, and ``torch.cuda.graph`` captures
    what else it enqueues. Runs on one stream share an arena; a captured run's is the capture's.
    """

    def __init__(self, model: Any, orders: Sequence[Order], turned: Mapping[int, Order] | None = None,
                 static: Sequence[int] = (), at: Sequence[int] | None = None) -> None:
        super().__init__(model, orders, turned, static, at)
        self._number = self._executor.driver.number
        self.device = torch.device("cuda", self._number)
        self._arenas: dict[int, _Arena] = {}            # by stream

    allocate = None

    def allocator(self) -> Any:
        return compat.cuda_allocator(self.device)

    def number(self, value: int | float | bool) -> torch.Tensor:
        return torch.full((), value, dtype=NUMBER_TYPES[type(value)], device=self.device)

    def laid(self, tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.to(self.device).contiguous()
        return tensor.clone() if tensor.data_ptr() % ALIGNMENT else tensor

    def _read(self, places: Iterable[tuple[int, Order]], tensors: Sequence[torch.Tensor]) -> list[int] | None:
        number, found = self._number, []
        for n, order in places:
            tensor = tensors[n]
            at = tensor.data_ptr()
            if at % ALIGNMENT or tensor.get_device() != number \
                    or not (tensor.permute(order) if order else tensor).is_contiguous():
                return None
            found.append(at)
        return found

    def _start(self, pointers: Sequence[int], symbols: Mapping[str, int], outputs: Sequence[int]) -> None:
        size = self._executor.arena_bytes(symbols)
        stream = compat.current_stream(self._number)
        captured = compat.captures(self._number)
        arena = _Arena() if captured else self._arenas.get(stream) or self._new_arena(stream)
        self._executor.run_on(stream, pointers, symbols, outputs, arena.address(size, self.device), captured)

    _not = (compat.NOT_FREE, f"{{p}} % {ALIGNMENT}", "{t}.get_device() != number")

    def _again(self, symbols: Mapping[str, int]) -> Mapping[str, Any] | None:
        stream, size = compat.free_stream(self._number), self._executor.arena_bytes(symbols)
        arena = self._arenas.get(stream)
        replay = None if arena is None else self._executor.repeat(stream, symbols)
        if replay is None:
            return None
        return {**replay.names(), "thread": THREAD, "stream": stream, "size": size, "arena": arena,
                "device": self.device, "number": self._number, **compat.stream_state()}

    def _starting(self, addresses: Sequence[str]) -> list[str]:
        moving = [n for n in range(len(self._places) + len(self._own)) if n not in self._static]
        lines = ["if shape.whole is None: return None", "places[-1] = arena.address(size, device) if size else 0",
                 "if number not in thread.known: thread.meet(number, activate)"]
        lines += [f"places[{n}] = {address}" for n, address in zip(moving, addresses, strict=True)]
        return [*lines, "status = start(table)", "if status: refuse(status)"]

    def _fetch(self, results: list[torch.Tensor]) -> None:
        for n in self._copied:
            shape, strides, dtype = self._outputs[n].form(self._executor.output_shape(n))
            results[n] = self.allocator()(shape, strides, dtype)
            self._executor.copy_output(n, results[n].data_ptr())

    def _new_arena(self, stream: int) -> _Arena:
        arena = _ARENAS.get((self._number, stream)) or _Arena()
        _ARENAS[self._number, stream] = self._arenas[stream] = arena
        return arena
