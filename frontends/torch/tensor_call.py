"""A compiled program on torch tensors: addresses go to the program, outputs are torch's own memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import torch

from xcc.frontends.torch import compat
from xcc.frontends.torch.dtypes import torch_dtype
from xcc.frontends.torch.layout import inverse, strides_of
from xcc.runtime.executors import on_host

__all__ = ["Order", "REMEMBERED", "Repeat", "Sizes", "TensorCall", "address_of", "picked", "tensor_call"]

Sizes = tuple[int, ...]
Order = tuple[int, ...]
Repeat = Callable[[Sequence[Any]], list[Any] | None]
REMEMBERED = 256        # sets of sizes

address_of: Any = torch.Tensor.data_ptr


def tensor_call(model: Any, orders: Sequence[Order], turned: Mapping[int, Order] | None = None,
                static: Sequence[int] = ()) -> TensorCall:
    """What calls `model` with tensors on its device (see :class:`TensorCall`); a model for GPUs that is on none yet is
    on torch's current one from now on."""
    if on_host(model.target):
        return TensorCall(model, orders, turned, static)
    from xcc.frontends.torch.device_call import DeviceCall

    if torch.cuda.is_available():
        model.settle(torch.cuda.current_device())
    return DeviceCall(model, orders, turned, static)


class TensorCall:
    """Runs a CPU model on torch tensors, one call after the other where threads share it.

    `orders` has the order in memory of the dims of each output (see :class:`Output`), `turned` that of inputs whose
    dims lie in another. `static`: inputs whose strides stay as long as their addresses do, as Dynamo guards those of
    parameters.
    """

    device = torch.device("cpu")
    allocate: Any = staticmethod(compat.empty_strided)
    """What gives memory for an output, for its shape, strides and type."""

    def __init__(self, model: Any, orders: Sequence[Order], turned: Mapping[int, Order] | None = None,
                 static: Sequence[int] = ()) -> None:
        self._executor, self._turn = model.executor, model.turn
        self._outputs = [_Made(torch_dtype(o.dtype), order) for o, order in zip(model.outputs, orders, strict=True)]
        self._own, self._copied = self._executor.own_outputs, self._executor.copied_outputs
        self._empty: dict[Sizes, list[Any]] = {}        # by the symbols' values: what makes the outputs
        self._static = list(static)
        self._places = [(n, (turned or {}).get(n, ())) for n in range(len(model.inputs))]
        self._blank: list[Any] = [None] * len(self._outputs)

    def __call__(self, pointers: Sequence[int], key: Sizes, symbols: Mapping[str, int]) -> list[Any]:
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

    def _fetch(self, results: list[Any]) -> None:
        """Puts into `results` what the run has not written where it was told to."""
        for n in self._copied:
            results[n] = self._outputs[n].copied(self._executor.output(n))

    def allocator(self) -> Any:
        """What `allocate` is now, where that differs from call to call."""
        raise NotImplementedError

    def number(self, value: int) -> Any:
        """A tensor of a size."""
        return torch.tensor(value)

    def seed(self) -> Any:
        """A seed of random numbers, as torch's default generator of the device decides."""
        return torch.empty((), dtype=torch.int64, device=self.device).random_()

    def addresses(self, tensors: Sequence[Any]) -> list[int] | None:
        """Where the tensors lie; None where the program cannot read them there."""
        return self._read(self._places, tensors)

    def repeat(self, pointers: Sequence[int], key: Sizes, symbols: Mapping[str, int], at: Sequence[int]
               ) -> Repeat | None:
        """What makes the last call, which was of these `pointers`, `key` and `symbols`, again with other tensors: a
        sequence that has the program's inputs at the places `at`. None, from it or in its place: such a call is more
        than that, as where a static input has moved. It is good until the next call with other pointers of those.
        """
        forms, inputs = self._empty[key], len(self._places)
        moving = [(at[n], order) for n, order in self._places if n not in self._static]
        outputs = range(inputs, inputs + len(forms))
        start = None if self._copied else self._again(
            symbols, [*(n for n in range(inputs) if n not in self._static), *outputs])
        if start is None:
            return None
        static, lying = picked([at[n] for n in self._static]), [pointers[n] for n in self._static]
        read, blank, empty, elsewhere = self._read, self._blank, self.allocate or self.allocator(), self._elsewhere()

        def run(given: Sequence[Any]) -> list[Any] | None:
            if elsewhere is not None and elsewhere() or lying and [*map(address_of, static(given))] != lying:
                return None
            addresses = read(moving, given)
            if addresses is None:
                return None
            results = blank.copy()
            for n, shape, strides, dtype in forms:
                results[n] = tensor = empty(shape, strides, dtype)
                addresses.append(tensor.data_ptr())
            return results if start(addresses) else None

        return run

    def _again(self, symbols: Mapping[str, int], numbers: Sequence[int]) -> Callable[[list[int]], bool] | None:
        """What runs the program as the last time, but for the addresses of what has these `numbers` among inputs and
        outputs; where it gives False it has done nothing. None where more is to be done in each run."""
        found: Callable[[list[int]], bool] | None = self._executor.repeat(symbols, numbers)
        return found

    def _elsewhere(self) -> Callable[[], bool] | None:
        """What tells whether a run would be on another device or stream now, or captured."""
        return None

    def laid(self, tensor: Any) -> Any:
        """The tensor where and as the program can read it."""
        return tensor.contiguous()

    def _read(self, places: Iterable[tuple[int, Order]], tensors: Sequence[Any]) -> list[int] | None:
        """The addresses of the tensors at `places`, whose dims lie in these orders; None where the program cannot read
        one of them there."""
        found = []
        for n, order in places:
            tensor = tensors[n]
            if not (tensor.permute(order) if order else tensor).is_contiguous():
                return None
            found.append(tensor.data_ptr())
        return found

    def _forms(self, key: Sizes, symbols: Mapping[str, int]) -> list[Any]:
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
