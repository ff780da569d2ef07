"""Launches of compiled kernels on this machine's CPU: addresses and sizes go to the code, nothing else happens."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from xcc.diagnostics import UserError
from xcc.frontends.kernel.arguments import described, is_array
from xcc.frontends.kernel.repeating import Read, Repeat, Repeats, never
from xcc.frontends.kernel.specialise import Number, Specialisation
from xcc.runtime.dlpack import import_dlpack
from xcc.runtime.large_pages import address_of

__all__ = ["REMEMBERED", "Code", "DeviceCode", "HostCode", "Launch", "address_reader", "found_as", "known_as",
           "writable"]

REMEMBERED = 256        # sets of sizes of a kernel
_FLOAT, _INT = struct.Struct("d"), struct.Struct("q")
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


def address_reader(name: str, value: Any, written: bool) -> Read:
    """What reads the address of arguments such as this one, checking those that are written to."""
    if hasattr(value, "data_ptr"):
        return cast("Read", type(value).data_ptr)
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
        self._readers = {i: address_reader(name, values[i], name in code.written) if given[i].size
                         else (lambda _value: empty) for i, name in enumerate(form.kinds) if i in arrays}
        self._symbols: list[int] = []
        self._numbers: list[tuple[int, int, Read]] = []     # (symbol, argument, its bits)
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
        self._code, self._names = code, list(form.kinds)
        self._last: list[int] | None = None
        self.repeat: Repeat = never

    def __call__(self, grid: object, values: Sequence[object]) -> None:
        """Runs the kernel on other arguments of this kind, and this grid; `repeat` is then what does that again."""
        if not self._runs or self.repeat(grid, values):
            return
        pointers, symbols = [read(values[i]) for i, read in self._readers.items()], [*self._symbols]
        for place, i, bits in self._numbers:
            symbols[place] = bits(values[i])
        self._code.run(pointers, symbols)
        last, self._last = self._last, symbols if self._code.keeps_numbers else []
        if last == self._last:          # what comes once is not worth it
            self.repeat = self._written_out(grid, values, symbols)

    def _written_out(self, grid: object, values: Sequence[Any], symbols: Sequence[int]) -> Repeat:
        names = self._code.again(symbols)
        if names is None:
            return self.repeat
        numbers = {i: bits for _, i, bits in self._numbers}
        repeats = Repeats(grid, len(values))
        for i, value in enumerate(values):
            if i in numbers:
                repeats.number(i, value, numbers[i])
            elif isinstance(value, np.ndarray) or hasattr(value, "data_ptr"):
                repeats.array(i, value, self._readers.get(i), self._names[i] in self._code.written)
            elif is_array(value):
                return never
            else:
                repeats.constant(i, value)
        start = self._code.starting(repeats.addresses, {place: repeats.numbers[i] for place, i, _ in self._numbers})
        return repeats.repeat(start, {**names, **{f"s{n}": value for n, value in enumerate(symbols)}})


def bits_of(dtype: str) -> Read:
    """What gives a number of `dtype` as the i64 that the code takes."""
    if dtype == "f64":
        return lambda value: cast(int, _INT.unpack(_FLOAT.pack(value))[0])
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
    keeps_numbers = False                   # a launch is only repeated with the same ones

    def __init__(self, names: Sequence[str], symbols: Sequence[Any], written: set[str],
                 function: Callable[..., None]) -> None:
        self.names, self.symbols, self.written = list(names), list(symbols), written
        self._function = function
        self._lock = threading.Lock()       # of its threads: one launch after the other

    def run(self, pointers: Sequence[int], symbols: Sequence[int]) -> None:
        """Runs the kernel."""
        with self._lock:
            self._function(*pointers, *symbols)

    def again(self, symbols: Sequence[int]) -> Mapping[str, object] | None:
        """What the lines of :meth:`starting` name, for launches like the last one, which had these symbols; None where
        more is to be done in each."""
        return {"lock": self._lock, "function": self._function}

    def starting(self, addresses: Sequence[str], numbers: Mapping[int, str]) -> list[str]:
        """The lines that launch it on these addresses and, in the place of some of the symbols ``s<place>``, numbers,
        given as expressions."""
        given = ", ".join([*addresses, *(numbers.get(n, f"s{n}") for n in range(len(self.symbols)))])
        return ["with lock:", f"    function({given})", "return True"]


class DeviceCode:
    """The code of a form on a GPU, which torch's current stream runs. `dense` are the places among the arrays of those
    that the code reads and writes in wide accesses."""

    nothing = 0
    keeps_numbers = True

    def __init__(self, names: Sequence[str], symbols: Sequence[Any], written: set[str], executor: Any,
                 dense: Sequence[int]) -> None:
        from xcc.frontends.torch import compat, device_call
        from xcc.runtime.gpu_executor import ALIGNMENT

        self.names, self.symbols, self.written = list(names), list(symbols), written
        self._keys = [s.name for s in symbols]
        self._executor, self._dense, self._number = executor, list(dense), executor.driver.number
        self._torch, self._thread, self._alignment = compat, device_call.THREAD, ALIGNMENT
        self._lock = threading.Lock()

    def run(self, pointers: Sequence[int], symbols: Sequence[int]) -> None:
        """Enqueues the kernel; waits for nothing."""
        if any(pointers[n] % self._alignment for n in self._dense):
            raise UserError(f"an array on a GPU begins at an address that is no multiple of {self._alignment} bytes: "
                            "give a copy")
        env = dict(zip(self._keys, symbols, strict=True))
        with self._lock:
            size = self._executor.arena_bytes(env)
            room = self._torch.room_on_gpu(size, self._number) if size else None
            self._executor.run_on(self._torch.current_stream(self._number), pointers, env, [],
                                  0 if room is None else room.data_ptr(), captured=self._torch.captures(self._number))

    def again(self, symbols: Sequence[int]) -> Mapping[str, object] | None:
        """As HostCode's: the graph of the last launch is replayed."""
        stream, env = self._torch.free_stream(self._number), dict(zip(self._keys, symbols, strict=True))
        with self._lock:
            replay = None if stream < 0 or self._executor.arena_bytes(env) else self._executor.repeat(stream, env)
        return None if replay is None else {
            **replay.names(), "stream": stream, "number": self._number, "thread": self._thread, "lock": self._lock,
            **self._torch.stream_state()}

    def starting(self, addresses: Sequence[str], numbers: Mapping[int, str]) -> list[str]:
        """As HostCode's."""
        tests = [self._torch.NOT_FREE, *(f"{number} != s{place}" for place, number in numbers.items())]
        if self._dense:
            tests.append(f"({' | '.join(addresses[n] for n in self._dense)}) % {self._alignment}")
        moved = [f"    places[{n}] = {at}" for n, at in enumerate(addresses)]
        return [f"if {' or '.join(tests)}: return False",
                "if number not in thread.known: thread.meet(number, activate)",
                "with lock:", "    if shape.whole is None: return False", *moved, "    status = start(table)",
                "if status: refuse(status)", "return True"]


Code = HostCode | DeviceCode
