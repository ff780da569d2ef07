"""Parameters as constants of the compiled model: folded, and packed as its kernels want them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import torch

from xcc.frontends.torch.dtypes import to_numpy
from xcc.frontends.torch.known_addresses import KnownAddresses
from xcc.frontends.torch.program import TorchProgram
from xcc.frontends.torch.tensor_call import address_of, picked

__all__ = ["FrozenCall", "static_inputs"]

Compiled = Callable[[list[Any]], list[Any]]
_WRITES = attrgetter("_version")


class FrozenCall:
    """A boxed call whose static arguments are compiled in at the first call, and again when they have changed.

    A change is another tensor, or a write that torch counts (as optimizers and ``load_state_dict`` do; those through
    ``.data`` or numpy are not counted).
    """

    def __init__(self, program: TorchProgram, static: Sequence[int],
                 make: Callable[[TorchProgram], Compiled | None], otherwise: Compiled) -> None:
        """`static`: which inputs of the program are parameters and buffers. `make` compiles what is left; where it
        cannot, and gives None, `otherwise` is called with all arguments."""
        written = {o.updates for o in program.graph.outputs}
        inputs = program.graph.inputs
        self._static = [n for n in static if inputs[n].kind == "user" and inputs[n].name not in written]
        self._rest = [n for n, i in enumerate(inputs) if i.kind in ("user", "size") and n not in self._static]
        self._program, self._make, self._otherwise = program, make, otherwise
        self._pick_static, self._pick_rest = picked(self._static), picked(self._rest)
        self._known: KnownAddresses | None = None       # of the static arguments, when they were compiled in
        self._writes: list[int] = []                    # how often torch has counted a write to those that it counts
        self._counted = picked([])
        self._call: Compiled | None = None
        self._boxed_call = True     # see BoxedCall

    def __call__(self, arguments: list[Any]) -> list[Any]:
        values = self._pick_static(arguments)
        if self._known is None or not self._unchanged(self._known, arguments, values):
            self._call = self._make(self._with(values))
            self._known = KnownAddresses(dict(zip(self._static, map(address_of, values), strict=True)))
            self._counted = picked([n for n, t in enumerate(values) if not t.is_inference()])
            self._writes = [*map(_WRITES, self._counted(values))]
        if self._call is None:
            return self._otherwise(arguments)
        rest = list(self._pick_rest(arguments))
        arguments.clear()
        return self._call(rest)

    def _unchanged(self, known: KnownAddresses, arguments: list[Any], values: Sequence[Any]) -> bool:
        """Whether the static arguments, `values`, are what is compiled in: there may be hundreds, each call asks."""
        try:
            return known.hold(arguments) and [*map(_WRITES, self._counted(values))] == self._writes
        except RuntimeError:        # another tensor, whose writes are not counted
            return False

    def _with(self, values: Sequence[Any]) -> TorchProgram:
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
