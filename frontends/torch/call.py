"""Calls a compiled graph with torch tensors: addresses go to the program, outputs are torch's own memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import torch

from xcc import symbolic
from xcc.frontends.torch.dtypes import torch_dtype
from xcc.frontends.torch.graph import Input, Output, Ref, Size, SizeSpec, TensorSpec, TorchGraph
from xcc.frontends.torch.layout import inverse, strides_of
from xcc.symbolic import Dim

__all__ = ["BoxedCall", "results_of"]


class BoxedCall:
    """What AOTAutograd calls with a list of tensors and ints, which it empties; returns a list."""

    def __init__(self, model: Any, graph: TorchGraph) -> None:
        """`model`: the compiled `graph`, whose outputs are tensors only, each once (see :func:`results_of`)."""
        self._model = model
        self._executor = model.executor
        self._lock = threading.Lock()
        places = {i.name: n for n, i in enumerate(graph.inputs)}
        self._inputs = [_Argument(places[i.name], graph.inputs[places[i.name]]) for i in model.inputs]
        self._sizes = _sizes(graph.inputs)
        self._symbols = [name for name, _, _ in self._sizes]
        self._solved: dict[tuple[int, ...], dict[str, int]] = {}
        made = {_key(o): n for n, o in enumerate(results_of(graph))}
        self._outputs = [_Result(o, graph, made[_key(o)] if _key(o) in made else -1, places) for o in graph.outputs
                         if not o.updates]
        written = {o.updates for o in graph.outputs}
        self._written = [n for n, a in enumerate(self._inputs) if a.name in written]
        self._order = {r.place: r for r in self._outputs if r.place >= 0}
        self._owned = {n: self._executor.own_output(n) for n in self._order}
        self._count = len(model.outputs)

    def __call__(self, arguments: list[Any]) -> list[Any]:
        key = tuple([int(arguments[n]) if axis < 0 else arguments[n].size(axis) for _, n, axis in self._sizes])
        symbols = self._solved.get(key)
        if symbols is None:
            symbols = self._solved[key] = dict(zip(self._symbols, key, strict=True))
        kept = []       # what is read must stay until the run is over
        addresses = []
        for a in self._inputs:
            tensor = a.tensor(arguments)
            kept.append(tensor)
            addresses.append(tensor.data_ptr())
        made: list[Any] = [None] * self._count

        def outputs(shapes: list[tuple[int, ...]]) -> list[int]:
            for n, owned in self._owned.items():
                if owned:
                    made[n] = self._order[n].empty(shapes[n])
            return [0 if t is None else t.data_ptr() for t in made]

        with self._lock:
            self._executor.run_at(addresses, symbols, outputs)
            for n, owned in self._owned.items():
                if not owned:
                    made[n] = self._order[n].copied(self._executor.output(n))
        for n in self._written:
            self._inputs[n].put_back(arguments, kept[n])
        results = [r.value(made, arguments, symbols) for r in self._outputs]
        arguments.clear()
        return results


def _sizes(inputs: Sequence[Input]) -> list[tuple[str, int, int]]:
    """Where each symbol is read: (symbol, input, dim), dim -1 for an input that is the number."""
    found: dict[str, tuple[int, int]] = {}
    for n, i in enumerate(inputs):
        dims = [(i.spec.text, -1)] if isinstance(i.spec, SizeSpec) else \
            [(d, axis) for axis, d in enumerate(i.spec.shape)] if isinstance(i.spec, TensorSpec) else []
        for d, axis in dims:
            name = symbolic.bare_symbol(symbolic.parse(d)) if isinstance(d, str) else None
            if name is not None:
                found.setdefault(name, (n, axis))
    return [(name, n, axis) for name, (n, axis) in found.items()]


class _Argument:
    """One tensor that the program takes; an int goes as an i64."""

    def __init__(self, place: int, source: Input) -> None:
        self.name, self.place, self.order = source.name, place, source.order
        self.number = isinstance(source.spec, SizeSpec)

    def tensor(self, arguments: list[Any]) -> Any:
        """Dense memory with the elements in the order that the program has been compiled for."""
        value = arguments[self.place]
        if self.number:
            return torch.tensor(value)
        if not self.order:
            return value if value.is_contiguous() else value.contiguous()
        turned = value.permute(self.order)
        return turned if turned.is_contiguous() else turned.contiguous()


    def put_back(self, arguments: list[Any], tensor: Any) -> None:
        """Writes what the program has written into the argument, where it was not the argument's own memory."""
        value = arguments[self.place]
        if tensor.data_ptr() != value.data_ptr():
            (value.permute(self.order) if self.order else value).copy_(tensor)


class _Result:
    """One entry of what the call returns: a tensor that the program makes, an input, a size or a number."""

    def __init__(self, output: Output, graph: TorchGraph, place: int, places: dict[str, int]) -> None:
        self.place = place          # among the program's outputs, -1 for none
        self.source = -1            # among the arguments
        self.constant: Any = None
        self.dim: Dim | None = None
        self.order = output.order
        value = output.value
        if isinstance(value, Size):
            self.dim = symbolic.parse(value.text)
        elif not isinstance(value, Ref):
            self.constant = value
        elif value.name in places:
            self.source, self.place = places[value.name], -1
        spec = spec_of(graph, value)
        self.dtype: Any = torch_dtype(spec.dtype) if isinstance(spec, TensorSpec) else None
        self.scalar = isinstance(spec, TensorSpec) and spec.scalar

    def empty(self, shape: tuple[int, ...]) -> Any:
        """Memory for the result, of the shape that the program has for it: that of the dims as they lie."""
        if not self.order:
            return torch.empty(shape, dtype=self.dtype)
        logical = tuple(shape[d] for d in inverse(self.order))
        return torch.empty_strided(logical, strides_of(logical, self.order), dtype=self.dtype)

    def copied(self, array: Any) -> Any:
        """A tensor of what is no memory of its own, or is cut to a size that only the run told."""
        tensor = torch.from_numpy(array.view("u1").reshape(-1).copy()).view(self.dtype).reshape(array.shape)
        return tensor.permute(inverse(self.order)) if self.order else tensor

    def value(self, made: list[Any], arguments: list[Any], symbols: dict[str, int]) -> Any:
        """What the caller gets."""
        if self.place >= 0:
            return made[self.place].item() if self.scalar else made[self.place]
        if self.source >= 0:
            return arguments[self.source]
        return self.constant if self.dim is None else symbolic.evaluate(self.dim, symbols)


def spec_of(graph: TorchGraph, value: Any) -> Any:
    """The spec of a value of `graph`."""
    if not isinstance(value, Ref):
        return None
    for i in graph.inputs:
        if i.name == value.name:
            return i.spec
    return next(n.results[value.index] for n in graph.nodes if n.name == value.name)


def results_of(graph: TorchGraph) -> tuple[Output, ...]:
    """What the program computes: tensors that are no inputs, each once, and what it writes into inputs."""
    inputs = {i.name for i in graph.inputs if isinstance(i, Input)}
    made: dict[Any, Output] = {}
    for o in graph.outputs:
        if o.updates or (isinstance(o.value, Ref) and o.value.name not in inputs):
            made.setdefault(_key(o), o)
    return tuple(made.values())


def _key(output: Output) -> Any:
    return output.value, output.order, output.updates
