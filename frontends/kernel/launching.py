"""Launches of compiled kernels on this machine's CPU: addresses and sizes go to the code, nothing else happens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from xcc.diagnostics import UserError
from xcc.frontends.kernel.arguments import described, is_array
from xcc.frontends.kernel.specialise import Number, Specialisation
from xcc.runtime.dlpack import import_dlpack
from xcc.runtime.large_pages import address_of

if TYPE_CHECKING:
    from xcc.runtime.gpu_executor import GpuReplay

__all__ = ["REMEMBERED", "Code", "DeviceCode", "HostCode", "Launch", "address_reader", "found_as", "known_as",
           "writable"]

REMEMBERED = 256        # sets of sizes of a kernel
_NO_REPEAT = None, -1, None
_NOTHING = np.zeros(4096, np.uint8)     # where code may read that is given an array without elements


def _array(value: Any) -> Any:
    return value.dtype, value.shape, value.strides


def _tensor(value: Any) -> Any:
    return value.dtype, value.shape, value.is_contiguous() or value.stride(), value.get_device()


known_as: dict[type, Callable[[Any], Any]] = {
    np.ndarray: _array, int: lambda _value: int, float: lambda _value: float, bool: lambda value: (bool, value),
    str: lambda value: value, type(None): lambda value: value}
"""What of an argument decides how it is launched, by its type: of an array element type, sizes and strides, of a number
only that it is one."""


def found_as(value: Any) -> Any:
    """The same of types that are met for the first time."""
    if isinstance(value, np.generic):
        return type(value)
    if isinstance(value, np.ndarray):
        return _array(value)
    if is_array(value):
        if hasattr(value, "data_ptr"):
            known_as[type(value)] = _tensor
            return _tensor(value)
        return described("", value)
    return type(value)


def writable(name: str, array: Any) -> Any:
    """The array; UserError where it is not to be written to."""
    if not array.flags.writeable:
        raise UserError(f"the kernel writes to '{name}', which is a read-only array: give a copy")
    return array


def address_reader(name: str, value: Any, written: bool) -> Callable[[Any], int]:
    """What reads the address of arguments such as this one, checking those that are written to."""
    if hasattr(value, "data_ptr"):
        return cast("Callable[[Any], int]", type(value).data_ptr)
    if not isinstance(value, np.ndarray):
        return lambda array: import_dlpack(array).pointer
    if value.flags.c_contiguous and value.flags.writeable:
        return (lambda array: address_of(writable(name, array))) if written else address_of
    if written:
        return lambda array: int(writable(name, array).__array_interface__["data"][0])
    return lambda array: int(array.__array_interface__["data"][0])


class Launch:
    """A form of a kernel on arrays of these sizes and strides and a grid."""

    def __init__(self, form: Specialisation, code: Code, values: Sequence[Any], given: Sequence[Any],
                 grid: Sequence[int]) -> None:
        """`values`: the arguments; `given`: the same, arrays described."""
        places = [i for i, p in enumerate(form.kinds) if p in code.names]      # among the arguments
        arrays = [i for i in places if is_array(values[i])]
        empty = code.nothing
        self._readers = [(i, address_reader(name, values[i], name in code.written) if given[i].size
                          else (lambda _value: empty)) for i, name in enumerate(form.kinds) if i in arrays]
        self._symbols: list[int] = []
        self._numbers: list[tuple[int, int, Callable[[Any], int]]] = []     # (symbol, argument, its bits)
        sizes = dict(zip(form.grid, grid, strict=True))     # by name: some are those of arrays
        for s in code.symbols:
            at = places[s.argument] if s.argument >= 0 else -1
            kind = form.kinds[code.names[s.argument]]
            if s.kind == "scalar" and isinstance(kind, Number):
                self._numbers.append((len(self._symbols), at, bits_of(kind.dtype)))
            self._symbols.append(
                given[at].shape[s.dim] if s.kind == "size" else given[at].strides[s.dim] if s.kind == "stride"
                else sizes[s.name] if s.kind == "grid" else 0)
        self._runs = 0 not in grid
        self._run = code.run

    def __call__(self, values: Sequence[Any]) -> None:
        """Runs the kernel on other arguments of this kind."""
        pointers = [read(values[i]) for i, read in self._readers]
        symbols = self._symbols
        if self._numbers:
            given = [bits(values[i]) for _, i, bits in self._numbers]
            if given != [symbols[place] for place, _, _ in self._numbers]:
                symbols = [*symbols]
                for (place, _, _), number in zip(self._numbers, given, strict=True):
                    symbols[place] = number
                self._symbols = symbols
        if self._runs:
            self._run(pointers, symbols)


def bits_of(dtype: str) -> Callable[[Any], int]:
    """What gives a number of `dtype` as the i64 that the code takes."""
    if dtype[0] != "i" and dtype[0] != "u":
        from xcc.runtime.dtypes import numpy_dtype

        kind = numpy_dtype(dtype)
        whole = np.dtype(f"i{kind.itemsize}")
        return lambda value: int(np.asarray(value, kind).view(whole))
    return _whole


def _whole(value: Any) -> int:
    number = int(value)
    if not -2**63 <= number < 2**64:
        raise UserError(f"the number {number} has more than 64 bits")
    return number


class HostCode:
    """The code of a form: `names` has its parameters, `written` those that it writes to, `symbols` what it is given
    behind the arrays' addresses."""

    nothing = address_of(_NOTHING)          # the address of arrays without elements

    def __init__(self, names: Sequence[str], symbols: Sequence[Any], written: set[str],
                 function: Callable[..., None]) -> None:
        self.names, self.symbols, self.written = list(names), list(symbols), written
        self._function = function
        self._lock = threading.Lock()       # of its threads: one launch after the other

    def run(self, pointers: Sequence[int], symbols: Sequence[int]) -> None:
        """Runs the kernel."""
        with self._lock:
            self._function(*pointers, *symbols)


class DeviceCode:
    """The code of a form on a GPU, which torch's current stream runs. `dense` are the places among the arrays of those
    that the code reads and writes in wide accesses."""

    nothing = 0

    def __init__(self, names: Sequence[str], symbols: Sequence[Any], written: set[str], executor: Any,
                 dense: Sequence[int]) -> None:
        from xcc.frontends.torch import compat
        from xcc.runtime.gpu_executor import ALIGNMENT

        self.names, self.symbols, self.written = list(names), list(symbols), written
        self._keys = [s.name for s in symbols]
        self._executor, self._dense, self._number = executor, list(dense), executor.driver.number
        self._torch, self._alignment = compat, ALIGNMENT
        # what repeats a run, by the id of a list of symbols' values: the list, the stream, and that
        self._repeats: dict[int, tuple[Sequence[int], int, GpuReplay]] = {}
        self._lock = threading.Lock()

    def run(self, pointers: Sequence[int], symbols: Sequence[int]) -> None:
        """Enqueues the kernel; waits for nothing."""
        with self._lock:
            stream = self._torch.free_stream(self._number)
            _, of, replay = self._repeats.get(id(symbols), _NO_REPEAT)
            if replay is None or stream != of or replay.shape.whole is None:
                self._first(pointers, symbols, stream)
                return
            replay.enter()
            try:
                place = replay.shape.place
                if place[:-1] != pointers:
                    self._move(replay, pointers)
                replay.shape.whole.replay()
            finally:
                replay.leave()

    def _move(self, replay: GpuReplay, pointers: Sequence[int]) -> None:
        for n, address in enumerate(pointers):
            if replay.shape.place[n] != address:
                self._check(n, address)
                replay.move(replay.shape, n, address)

    def _first(self, pointers: Sequence[int], symbols: Sequence[int], free: int) -> None:
        """A run that repeats none, or whose stream or GPU is another one now. `free`: as of compat.free_stream."""
        for n, address in enumerate(pointers):
            self._check(n, address)
        env = dict(zip(self._keys, symbols, strict=True))
        size = self._executor.arena_bytes(env)
        room = self._torch.room_on_gpu(size, self._number) if size else None
        self._executor.run_on(self._torch.current_stream(self._number), pointers, env, [],
                              0 if room is None else room.data_ptr(), captured=self._torch.captures(self._number))
        if size or free < 0:
            return
        replay = self._executor.repeat(free, env)
        if len(self._repeats) >= REMEMBERED:
            self._repeats.clear()
        if replay is not None:
            self._repeats[id(symbols)] = symbols, free, replay

    def _check(self, n: int, address: int) -> None:
        if address % self._alignment and n in self._dense:
            raise UserError(f"an array on a GPU begins at an address that is no multiple of {self._alignment} bytes: "
                            "give a copy")


Code = HostCode | DeviceCode
