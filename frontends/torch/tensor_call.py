"""A compiled program on torch tensors: addresses go to the program, outputs are torch's own memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from types import CodeType
from typing import Any

import torch

from xcc.frontends.torch import compat
from xcc.frontends.torch.dtypes import torch_dtype
from xcc.frontends.torch.layout import inverse, strides_of
from xcc.frontends.torch.repeat_code import Repeat, make_repeat, repeat_code
from xcc.runtime.executors import on_host

__all__ = ["NUMBER_TYPES", "Order", "REMEMBERED", "Sizes", "TensorCall", "address_of", "picked", "tensor_call"]

Sizes = tuple[int, ...]
Order = tuple[int, ...]
REMEMBERED = 256        # sets of sizes
NUMBER_TYPES = {bool: torch.bool, int: torch.int64, float: torch.float64}
"""Types of tensors that stand for Python's numbers."""

address_of: Any = torch.Tensor.data_ptr


def tensor_call(model: Any, orders: Sequence[Order], turned: Mapping[int, Order] | None = None,
                static: Sequence[int] = (), at: Sequence[int] | None = None) -> TensorCall:
    """What calls `model` with tensors on its device (see :class:`TensorCall`); a model for GPUs that is on none yet is
    on torch's current one from now on."""
    if on_host(model.target):
        return TensorCall(model, orders, turned, static, at)
    from xcc.frontends.torch.device_call import DeviceCall

    if torch.cuda.is_available():
        model.settle(torch.cuda.current_device())
    return DeviceCall(model, orders, turned, static, at)


class TensorCall:
    """Runs a CPU model on torch tensors, one call after the other where threads share it.

    `orders` has the order in memory of the dims of each output (see :class:`Output`), `turned` that of inputs whose
    dims lie in another. `static`: inputs whose strides stay as long as their addresses do, as Dynamo guards those of
    parameters. `at`: where the inputs are among what is given to a repeat (see :meth:`repeat`); one after the other.
    """

    device = torch.device("cpu")
    allocate: Any = staticmethod(compat.empty_strided)
    """What gives memory for an output, for its shape, strides and type."""

    def __init__(self, model: Any, orders: Sequence[Order], turned: Mapping[int, Order] | None = None,
                 static: Sequence[int] = (), at: Sequence[int] | None = None) -> None:
        self._executor, self._turn = model.executor, model.turn
        self._outputs = [_Made(torch_dtype(o.dtype), order) for o, order in zip(model.outputs, orders, strict=True)]
        self._own, self._copied = self._executor.own_outputs, self._executor.copied_outputs
        self._empty: dict[Sizes, list[Any]] = {}        # by the symbols' values: what makes the outputs
        self._static = list(static)
        self._places = [(n, (turned or {}).get(n, ())) for n in range(len(model.inputs))]
        self._blank: list[Any] = [None] * len(self._outputs)
        self._at = list(at) if at is not None else [n for n, _ in self._places]
        self._code: CodeType | None = None              # of repeats

    def __call__(self, pointers: Sequence[int], key: Sizes, symbols: Mapping[str, int]) -> list[torch.Tensor]:
        """The outputs; None for one that is written into an input, which is there already.

        `pointers`: of tensors of the types and shapes that the program takes, which :meth:`addresses` gave or which
        :meth:`laid` made. `key`: the values of `symbols`.
        """
        results, addresses = self._blank.copy(), []
        with self._turn.lock:
            empty = self.allocate or self.allocator()
            for n, shape, strides, dtype in self._empty.get(key) or self._forms(key, symbols):
                results[n] = tensor = empty(shape, strides, dtype)
                addresses.append(tensor.data_ptr())
            self._start(pointers, symbols, addresses)
            if self._copied:
                self._fetch(results)
        return results

    def _start(self, pointers: Sequence[int], symbols: Mapping[str, int], outputs: Sequence[int]) -> None:
        """Runs the program."""
        self._executor.run_at(pointers, symbols, outputs)

    def _fetch(self, results: list[torch.Tensor]) -> None:
        """Puts into `results` what the run has not written where it was told to."""
        for n in self._copied:
            results[n] = self._outputs[n].copied(self._executor.output(n))

    def allocator(self) -> Any:
        """What `allocate` is now, where that differs from call to call."""
        raise NotImplementedError

    def number(self, value: int | float | bool) -> torch.Tensor:
        """A tensor of a size, or of what is computed of sizes."""
        return torch.tensor(value, dtype=NUMBER_TYPES[type(value)])

    def seed(self) -> Any:
        """A seed of random numbers, as torch's default generator of the device decides."""
        return torch.empty((), dtype=torch.int64, device=self.device).random_()

    def addresses(self, tensors: Sequence[torch.Tensor]) -> list[int] | None:
        """Where the tensors lie; None where the program cannot read them there."""
        return self._read(self._places, tensors)

    def repeat(self, pointers: Sequence[int], key: Sizes, symbols: Mapping[str, int]) -> Repeat | None:
        """What makes the last call, which was of these `pointers`, `key` and `symbols`, again with other tensors, as
        `at` of the constructor has them. None, from it or in its place: such a call is more than that, as where a
        static input has moved. It is good until the next call with other pointers of those."""
        names = None if self._copied else self._again(symbols)
        if names is None:
            return None
        if self._code is None:
            moving = [(self._at[n], order) for n, order in self._places if n not in self._static]
            self._code = repeat_code([self._at[n] for n in self._static], moving, self._own, len(self._outputs),
                                     self._not, self._starting)
        empty = self.allocate or self.allocator()
        return make_repeat(self._code, {self._at[n]: pointers[n] for n in self._static}, self._empty[key],
                           {"empty": empty, "symbols": symbols, **names})

    _not: Sequence[str] = ()
    """What is not to be true in a repeat (see :func:`repeat_code`)."""

    def _again(self, symbols: Mapping[str, int]) -> Mapping[str, Any] | None:
        """What `_not` and `_starting` name, for calls like the last one; None where more is to be done in each."""
        call = self._executor.repeat(symbols)
        if call is None:
            return None
        return {"memory": self._executor.memory, "pointers": call.pointers, "values": call.values, "main": call.main,
                "refuse": call.refuse}

    def _starting(self, addresses: Sequence[str]) -> list[str]:
        """The lines that run the program on these addresses of what is not static and of own outputs."""
        outside = self._executor.outside
        moving = [b for n, b in enumerate(outside) if n not in self._static]
        return ["if memory.ready_for is not symbols: memory.place(memory.plan(symbols))",    # others came between
                *(f"pointers[{b}] = {address}" for b, address in zip(moving, addresses, strict=True)),
                "status = main(pointers, values)", "if status: refuse(status)"]

    def laid(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor where and as the program can read it."""
        return tensor.contiguous()

    def _read(self, places: Iterable[tuple[int, Order]], tensors: Sequence[torch.Tensor]) -> list[int] | None:
        """The addresses of the tensors at `places`, whose dims lie in these orders; None where the program cannot read
        one of them there."""
        found = []
        for n, order in places:
            tensor = tensors[n]
            if not (tensor.permute(order) if order else tensor).is_contiguous():
                return None
            found.append(tensor.data_ptr())
        return found

    def _forms(self, key: Sizes, symbols: Mapping[str, int]) -> list[torch.Tensor]:
        if len(self._empty) >= REMEMBERED:
            self._empty.clear()
        shapes = self._executor.output_shapes(symbols)
        made = self._empty[key] = [(n, *self._outputs[n].form(shapes[n])) for n in self._own]
        return made


class _Made:
    """One output of a program."""

    def __init__(self, dtype: Any, order: tuple[int, ...]) -> None:
        self.dtype, self.order = dtype, order

    def form(self, shape: Sizes) -> tuple[Sizes, Sizes, Any]:
        """Shape, strides and type of the tensor for what has `shape` in the program: that of the dims as they lie."""
        order = self.order or tuple(range(len(shape)))
        logical = tuple(shape[d] for d in inverse(order))
        return logical, strides_of(logical, order), self.dtype

    def copied(self, array: Any) -> Any:
        """A tensor of what is no memory of its own, or is cut to a size that only the run told."""
        if array.size:
            tensor = torch.from_numpy(array.reshape(-1).view("u1").copy()).view(self.dtype).reshape(array.shape)
        else:
            tensor = torch.empty(array.shape, dtype=self.dtype)
        return tensor.permute(inverse(self.order)) if self.order else tensor


def picked(places: list[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """What gives the entries at `places` of a list, as a sequence also where it is one or none."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1) if places else slice(0))
