"""Parameters as constants of the compiled model: folded, and packed as its kernels want them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from xcc.frontends.torch.dtypes import to_numpy
from xcc.frontends.torch.known_addresses import KnownAddresses
from xcc.frontends.torch.program import TorchProgram
from xcc.frontends.torch.tensor_call import address_of, picked

__all__ = ["FrozenCall", "static_inputs"]

Compiled = Callable[[list[Any]], list[Any]]
_WRITES = attrgetter("_version")


class _Constants:
    """A call with static arguments, `values`, that lay at `places` when they were compiled in."""

    def __init__(self, places: Mapping[int, int], values: Sequence[Tensor], call: Compiled | None) -> None:
        self.call = call
        self._known = KnownAddresses(places)
        self._counted = picked([n for n, t in enumerate(values) if not t.is_inference()])
        self._writes = [*map(_WRITES, self._counted(values))]   # how often torch has counted a write to each of these
        self._memory = [StorageWeakRef(t.untyped_storage()) for t in values]    # type: ignore[no-untyped-call]

    def hold(self, arguments: list[object], values: Sequence[Tensor]) -> bool:
        """Whether the static arguments, `values`, are what is compiled in: there may be hundreds, each call asks."""
        try:
            return self._known.hold(arguments) and [*map(_WRITES, self._counted(values))] == self._writes
        except RuntimeError:        # another tensor, whose writes are not counted
            return False

    def alive(self) -> bool:
        """Whether all the memory that was compiled in is still that of tensors."""
        return not any(m.expired() for m in self._memory)     # type: ignore[no-untyped-call]


class FrozenCall:
    """A boxed call whose static arguments are compiled in at the first call, and again when they have changed.

    A change is another tensor, or a write that torch counts (as optimizers and ``load_state_dict`` do; those through
    ``.data`` or numpy are not counted). A graph that several layers share, each with parameters of its own, is compiled
    once for each.
    """

    def __init__(self, program: TorchProgram, static: Sequence[int],
                 make: Callable[[TorchProgram], Compiled | None], otherwise: Compiled) -> None:
        """`static`: which inputs of the program are parameters and buffers. `make` compiles what is left; where it
        cannot, and gives None, `otherwise` is called with all arguments."""
        written = {o.updates for o in program.graph.outputs}
        inputs = program.graph.inputs
        self._static = [n for n in static if inputs[n].kind == "user" and inputs[n].name not in written]
        self._rest = [n for n, i in enumerate(inputs) if i.kind in ("user", "size", "ragged") and n not in self._static]
        self._program, self._make, self._otherwise = program, make, otherwise
        self._pick_static, self._pick_rest = picked(self._static), picked(self._rest)
        self._last: _Constants | None = None
        self._kept: dict[tuple[int, ...], _Constants] = {}      # by where the static arguments lie
        self._boxed_call = True     # see BoxedCall

    def __call__(self, arguments: list[Any]) -> list[Any]:
        values = self._pick_static(arguments)
        constants = self._last
        if constants is None or not constants.hold(arguments, values):
            constants = self._last = self._of(arguments, values)
        if constants.call is None:
            return self._otherwise(arguments)
        rest = list(self._pick_rest(arguments))
        arguments.clear()
        return constants.call(rest)

    def _of(self, arguments: list[object], values: Sequence[Tensor]) -> _Constants:
        """What was compiled with these static arguments, else what is now; what holds tensors that are gone is not
        kept."""
        places = tuple(map(address_of, values))
        found = self._kept.get(places)
        if found is not None and found.alive() and found.hold(arguments, values):
            return found
        self._kept = {at: kept for at, kept in self._kept.items() if at != places and kept.alive()}
        made = self._kept[places] = _Constants(dict(zip(self._static, places, strict=True)), values,
                                               self._make(self._with(values)))
        return made

    def _with(self, values: Sequence[Tensor]) -> TorchProgram:
        """The program with `values` as weights."""
        graph = self._program.graph
        inputs = list(graph.inputs)
        weights = dict(self._program.weights)
        for n, value in zip(self._static, values, strict=True):
            name = inputs[n].name
            inputs[n] = replace(inputs[n], kind="parameter", target=name, order=())
            weights[name] = to_numpy(value)
        return TorchProgram(replace(graph, inputs=tuple(inputs)), weights)


def static_inputs() -> list[int]:
    """Which inputs of the graph that AOTAutograd is about to compile are parameters and buffers."""
    context = torch._guards.TracingContext.try_get()
    metadata = getattr(context, "fw_metadata", None)
    return list(getattr(metadata, "static_input_indices", None) or ())
