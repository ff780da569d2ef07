"""A compiled model as a function of torch tensors, without Dynamo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from xcc.diagnostics import UserError, counted
from xcc.frontends.torch.dtypes import name_of, torch_dtype
from xcc.frontends.torch.repeat_code import Repeat
from xcc.frontends.torch.tensor_call import REMEMBERED, Sizes, tensor_call
from xcc.runtime.signature import check_names, check_tensor

__all__ = ["TensorFunction"]


class TensorFunction:
    """Takes the model's inputs in order or by name, returns its outputs as new tensors: one bare, several as a tuple,
    None where it has none.

    Inputs are read where they lie when they are contiguous, and written there when the model updates them, which is no
    output then. No gradient flows through. Threads may share it; calls go one after the other.
    """

    def __init__(self, model: Any) -> None:
        """`model`: an :class:`xcc.Model`; its tensors are on the device that it was loaded for, or on torch's current
        one. UserError where that is not there."""
        self.model = model
        self._call = tensor_call(model, [()] * len(model.outputs))
        self._device = self._call.device
        self._number = -1 if self._device.index is None else self._device.index     # as Tensor.get_device has it
        self._names = [i.name for i in model.inputs]
        self._forms = [(torch_dtype(i.dtype), len(i.shape)) for i in model.inputs]
        updated = set(model.updates.values())
        self._updated = {n for n, name in enumerate(self._names) if name in updated}
        self._repeats: dict[Sizes, Repeat] = {}
        self._returned = [n for n, o in enumerate(model.outputs) if o.name not in model.updates]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """UserError names the argument whose element type or shape does not fit."""
        with self.model.part.running():
            return self._called(args, kwargs)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensors = self._tensors(args, kwargs) if kwargs or len(args) != len(self._names) else list(args)
        for n, t in enumerate(tensors):
            if type(t) is not torch.Tensor or (t.dtype, t.dim()) != self._forms[n] or not t.is_contiguous() \
                    or t.get_device() != self._number:
                tensors[n] = self._fitted(n, t)
        symbols = self.model.symbols_of(tuple([t.shape for t in tensors]),
                                        lambda n, i: int(tensors[n].reshape(-1)[i]))
        self.model.part.agree(symbols)
        key = tuple(symbols.values())
        with self.model.turn.lock:
            repeat = self._repeats.get(key)
            results = None if repeat is None else repeat(tensors)
            if results is None:
                results = self._call_anew(tensors, key, symbols)
        if self._updated:
            results = [results[n] for n in self._returned]
        return results[0] if len(results) == 1 else tuple(results) or None

    def _call_anew(self, tensors: list[Any], key: Sizes, symbols: Mapping[str, int]) -> list[Any]:
        """A call that is no repeat of one before."""
        pointers = self._call.addresses(tensors)
        if pointers is None:
            tensors = [self._aligned(n, t) for n, t in enumerate(tensors)]
            pointers = [t.data_ptr() for t in tensors]
        results = self._call(pointers, key, symbols)
        repeat = self._call.repeat(pointers, key, symbols)
        if repeat is not None:
            if len(self._repeats) >= REMEMBERED:
                self._repeats.clear()
            self._repeats[key] = repeat
        return results

    def _tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        if len(args) > len(self._names):
            raise UserError(f"the model takes {counted(len(self._names), 'input')}, got {len(args)}")
        given = dict(zip(self._names, args, strict=False))
        for name in kwargs:
            if name in given:
                raise UserError(f"input '{name}' is given twice")
        check_names(given | kwargs, self.model.inputs)
        return [given[name] if name in given else kwargs[name] for name in self._names]

    def _fitted(self, n: int, value: Any) -> Any:
        """`value` as the tensor that the program reads."""
        info = self.model.inputs[n]
        updated = n in self._updated
        if not isinstance(value, torch.Tensor):
            try:
                value = torch.as_tensor(value, dtype=self._forms[n][0], device=self._call.device)
            except (TypeError, ValueError, RuntimeError) as e:
                raise UserError(f"input '{info.name}': no tensor of {info.dtype} can be made of a "
                                f"{type(value).__name__}: {e}") from None
        if value.device != self._device:
            raise UserError(f"input '{info.name}' is on {value.device}, the model runs on {self._call.device}")
        check_tensor(info, name_of(value.dtype), value.shape)
        if updated and not value.is_contiguous():
            raise UserError(f"input '{info.name}' is updated in place, and must be contiguous")
        return value.resolve_conj().resolve_neg().contiguous()

    def _aligned(self, n: int, value: Any) -> Any:
        """The tensor on a GPU where its kernels can read it."""
        laid = self._call.laid(value)
        if laid is not value and n in self._updated:
            raise UserError(f"input '{self.model.inputs[n].name}' is updated in place, and must begin at a multiple of "
                            "16 bytes")
        return laid
