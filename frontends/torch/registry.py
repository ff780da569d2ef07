"""Which function converts which op: ``@aten("add.Tensor", "add.Scalar")``.

An op is called by its name and overload, as torch prints it; ``default`` may be left out. The family modules are
imported at the first look-up.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from xcc.frontends.torch.graph import Node, Ref, Spec, is_complex, refs_of

if TYPE_CHECKING:
    from xcc._mlir import Value
    from xcc.frontends.torch.context import Complex, Context
    from xcc.symbolic import Dim

Converter = Callable[["Context"], "Value | Complex | Dim | Sequence[Value | Complex | Dim | None] | None"]
"""Gives a node's result or results, None for those that nothing reads."""
C = TypeVar("C", bound=Converter)

FAMILIES = ("activation", "adaptive", "arithmetic", "attention", "attention_backward", "bessel", "collective",
            "complex", "control", "conv", "conv_backward", "counting", "ctc_loss", "distance", "draw_state",
            "elementwise", "embedding", "experts", "fourier", "fractional", "grid_backward", "incomplete_gamma",
            "indexing", "loss", "margin", "matmul", "norm", "padding", "pooling", "pooling_backward", "quantized",
            "random", "recurrent", "recurrent_backward", "reduce", "resize", "sampling_backward", "scalars", "scatter",
            "segments", "shape", "sorting", "special", "triangular", "vision")

_CONVERTERS: dict[str, Converter] = {}


def aten(*names: str, namespace: str = "aten") -> Callable[[C], C]:
    """Registers a converter for ops of `namespace`; a duplicate raises."""

    def register(function: C) -> C:
        for name in names:
            full = f"{namespace}.{name}" if "." in name or namespace != "aten" else f"aten.{name}.default"
            if full in _CONVERTERS:
                raise ValueError(f"two converters for {full}")
            _CONVERTERS[full] = function
        return function

    return register


@cache
def _load() -> None:
    for family in FAMILIES:
        importlib.import_module(f"xcc.frontends.torch.{family}")


def lookup(op: str) -> Converter | None:
    """The converter of ``aten.add.Tensor``, None where there is none."""
    _load()
    return _CONVERTERS.get(op)


def converter_name(node: Node, specs: Mapping[Ref, Spec]) -> str:
    """The name of the node's converter: its op's; of a node that takes or gives complex numbers one of its own."""
    given = (specs.get(r) for _, value in node.args for r in refs_of(value))
    return f"complex.{node.op}" if any(map(is_complex, (*node.results, *given))) else node.op


def table() -> dict[str, Converter]:
    """Every registered converter by its op's full name."""
    _load()
    return dict(_CONVERTERS)
