"""Calls a compiled graph as AOTAutograd does: with a list of tensors and sizes, for a list of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from xcc import symbolic
from xcc.frontends.torch.graph import Output, Ref, Size, SizeSpec, TensorSpec, TorchGraph
from xcc.frontends.torch.repeat_code import Repeat
from xcc.frontends.torch.tensor_call import REMEMBERED, Sizes, picked, tensor_call
from xcc.runtime.signature import check_equal
from xcc.symbolic import Dim

__all__ = ["BoxedCall", "Places", "key_of", "results_of", "sizes_of", "symbols_of"]

Places = list[tuple[str, int, int]]
"""Where a graph's symbols are read: (symbol, argument, dim), dim -1 for an argument that is the number."""


class BoxedCall:
    """What AOTAutograd calls with a list of tensors and ints, which it empties; returns a list."""

    def __init__(self, model: Any, graph: TorchGraph, static: Sequence[int] = ()) -> None:
        """`model`: the compiled `graph`, whose outputs are tensors only, each once (see :func:`results_of`). `static`:
        which inputs of the graph are parameters and buffers."""
        known = {i.name: i for i in graph.inputs}
        seeds = [i.name for i in graph.inputs if i.kind == "seed"]
        places = {name: n for n, name in enumerate((*_given(graph), *seeds))}
        arguments = [(places[i.name], known[i.name]) for i in model.inputs]
        self._pick = picked([n for n, _ in arguments])
        self._turned = [(n, a.order) for n, (_, a) in enumerate(arguments) if a.order]
        self._numbers = [n for n, (_, a) in enumerate(arguments) if isinstance(a.spec, TensorSpec) and a.spec.scalar]
        self._symbols = [n for n, a in arguments if isinstance(a.spec, SizeSpec)]   # which the program has as symbols
        self._draws = bool(seeds)
        self._sizes = sizes_of(graph)
        self._solved: dict[Sizes, dict[str, int]] = {}
        self._repeats: dict[Sizes, Repeat] = {}         # of the calls since a static input has moved
        self._lying: list[int] = []                     # where static inputs were in the last call that was no repeat
        results = results_of(graph)
        self._program = model.executor.program
        fixed = {graph.inputs[n].name for n in static}
        self._static = [n for n, (_, a) in enumerate(arguments) if a.name in fixed]
        self._call = tensor_call(model, [o.order for o in results], dict(self._turned), self._static,
                                 [n for n, _ in arguments])
        self._unread: torch.Tensor | None = None
        self._turn = model.turn
        made = {_key(o): n for n, o in enumerate(results)}
        self._results = [_Result(o, graph, made.get(_key(o), -1), places) for o in graph.outputs if not o.updates]
        self._plain = [r.place for r in self._results] == [*range(len(results))] and not any(
            r.scalar for r in self._results)      # what the program makes is what the call returns
        taken = [n for r in self._results if (n := r.index(len(results), len(places))) is not None]
        self._taken = picked(taken) if len(taken) == len(self._results) else None
        written = {o.updates for o in graph.outputs}
        self._written = [(n, place, a.order) for n, (place, a) in enumerate(arguments) if a.name in written]
        self._boxed_call = True     # the object's own: Dynamo's wrappers keep no attribute of a class

    def __call__(self, arguments: list[Any]) -> list[torch.Tensor]:
        with self._turn.lock:
            if self._draws:
                arguments.append(self._call.seed())
            key = key_of(self._sizes, arguments) if self._sizes else ()
            repeat = self._repeats.get(key)
            given = self._tensors(arguments) if self._symbols else arguments
            made = None if repeat is None else repeat(given)
            if made is None:
                made = self._call_anew(given, key)
            if self._taken is not None and not self._plain:
                made = list(self._taken([*made, *arguments, None]))
            elif not self._plain:
                made = [r.value(made, arguments, self._solved[key]) for r in self._results]
        arguments.clear()
        return made

    def _tensors(self, arguments: Sequence[torch.Tensor | int]) -> list[torch.Tensor | int]:
        """The arguments, with a tensor that nobody reads for each number that the program has as a symbol."""
        out = list(arguments)
        if self._unread is None:
            self._unread = self._call.number(0)
        for n in self._symbols:
            out[n] = self._unread
        return out

    def _call_anew(self, arguments: list[Any], key: Sizes) -> list[torch.Tensor]:
        """A call that is no repeat of one before; what it makes."""
        symbols = self._solved.get(key)
        if symbols is None:
            symbols = self._solve(key)
        tensors = self._pick(arguments)
        pointers = None if self._numbers else self._call.addresses(tensors)
        where_they_lie = pointers is not None
        if pointers is None:
            tensors = self._laid(tensors)
            pointers = [t.data_ptr() for t in tensors]
        made = self._call(pointers, key, symbols)
        for n, place, order in self._written:
            _put_back(arguments[place], tensors[n], order)
        self._prepare_repeat(pointers if where_they_lie else None, key, symbols)
        return made

    def _prepare_repeat(self, pointers: Sequence[int] | None, key: Sizes, symbols: dict[str, int]) -> None:
        """Of the call just made, where its tensors were read where they lie."""
        lying = [pointers[n] for n in self._static] if pointers is not None else []
        if pointers is None or lying != self._lying:
            self._repeats.clear()       # the program has other addresses of static inputs
            self._lying = lying
        repeat = None if pointers is None else self._call.repeat(pointers, key, symbols)
        if repeat is not None:
            self._repeats[key] = repeat

    def _solve(self, key: Sizes) -> dict[str, int]:
        if len(self._solved) >= REMEMBERED:
            self._solved.clear()
            self._repeats.clear()
        symbols = symbols_of(self._sizes, key)
        check_equal(self._program, symbols)
        self._solved[key] = symbols
        return symbols

    def _laid(self, tensors: Sequence[Any]) -> list[torch.Tensor]:
        """The tensors in dense memory, in the orders that the program has been compiled for; what another part of the
        graph has made of sizes as tensors."""
        out = list(tensors)
        for n in self._numbers:
            out[n] = self._call.number(out[n])
        for n, order in self._turned:
            out[n] = out[n].permute(order)
        return [self._call.laid(t) for t in out]


def _put_back(argument: Any, tensor: Any, order: tuple[int, ...]) -> None:
    """Writes what the program has written into `argument`, where it was not the argument's own memory."""
    if tensor.data_ptr() != argument.data_ptr():
        (argument.permute(order) if order else argument).copy_(tensor)


def key_of(places: Places, arguments: Sequence[torch.Tensor]) -> Sizes:
    """The values at `places` of a call's arguments, tensors and numbers."""
    return tuple([int(arguments[n]) if axis < 0 else arguments[n].size(axis) for _, n, axis in places])


def symbols_of(places: Places, key: Sizes) -> dict[str, int]:
    """The values of the symbols at `places`."""
    return {name: value for (name, _, _), value in zip(places, key, strict=True)}


def sizes_of(graph: TorchGraph) -> Places:
    """Where each symbol is read."""
    found: dict[str, tuple[int, int]] = {}
    given = _given(graph)
    for n, i in enumerate([i for i in graph.inputs if i.name in given]):
        dims = [(i.spec.text, -1)] if isinstance(i.spec, SizeSpec) else \
            [(d, axis) for axis, d in enumerate(i.spec.shape)] if isinstance(i.spec, TensorSpec) else []
        for d, axis in dims:
            name = symbolic.bare_symbol(symbolic.parse(d)) if isinstance(d, str) else None
            if name is not None:
                found.setdefault(name, (n, axis))
    return [(name, n, axis) for name, (n, axis) in found.items()]


class _Result:
    """One entry of what the call returns: a tensor that the program makes, an input, a size or a number."""

    def __init__(self, output: Output, graph: TorchGraph, place: int, places: dict[str, int]) -> None:
        self.place = place          # among the program's outputs, -1 for none
        self.source = -1            # among the arguments
        self.constant: Any = None
        self.dim: Dim | None = None
        value = output.value
        if isinstance(value, Size):
            self.dim = symbolic.parse(value.text)
            self.source = next((places[i.name] for i in graph.inputs if i.spec == SizeSpec(value.text)), -1)
        elif not isinstance(value, Ref):
            self.constant = value
        elif value.name in places:
            self.source, self.place = places[value.name], -1
        spec = spec_of(graph, value)
        self.scalar = isinstance(spec, TensorSpec) and spec.scalar or isinstance(value, Size) and self.source < 0

    def index(self, made: int, given: int) -> int | None:
        """Where it is among what is made, what is given and None; None where it is to be made of these."""
        if self.scalar or self.place < 0 and self.source < 0 and (self.dim is not None or self.constant is not None):
            return None
        return self.place if self.place >= 0 else made + (self.source if self.source >= 0 else given)

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
    """What the program computes: tensors that are no inputs, each once, sizes that its ops count, and what it writes
    into inputs."""
    inputs = _given(graph)
    counted = {name for n in graph.nodes for name, *_ in n.new}
    made: dict[Any, Output] = {}
    for o in graph.outputs:
        computed = o.value.name not in inputs if isinstance(o.value, Ref) else isinstance(o.value, Size) \
            and not counted.isdisjoint(symbolic.symbols_of(symbolic.parse(o.value.text)))
        if o.updates or computed:
            made.setdefault(_key(o), o)
    return tuple(made.values())


def _given(graph: TorchGraph) -> list[str]:
    """The inputs that a call has, in order."""
    return [i.name for i in graph.inputs if i.kind in ("user", "size", "ragged")]


def _key(output: Output) -> Any:
    return output.value, output.order, output.updates
