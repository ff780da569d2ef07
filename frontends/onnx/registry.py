"""Which function converts which op: ``@onnx_op("Softmax", since=13)``.

For a node, the converter with the newest `since` that is not above the model's opset is taken. The family modules are
imported at the first look-up.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

Converter = Callable[[Any], Any]
C = TypeVar("C", bound=Converter)

FAMILIES = ("activation", "attention", "cast", "constant", "control", "conv", "elementwise", "loop", "loss", "matmul",
            "microsoft", "microsoft_attention", "microsoft_diffusion", "microsoft_experts", "microsoft_linear",
            "microsoft_ops", "microsoft_quant", "ml", "ml_svm", "ml_trees", "movement", "ngrams", "norm", "pad",
            "pooling", "qlinear", "quant", "random", "recurrent", "reduce", "resize", "scan", "sequence", "shape",
            "signal", "slicing", "sort", "training", "vision")

_CONVERTERS: dict[tuple[str, str], dict[int, Converter]] = {}
_BROADCASTING: set[Converter] = set()


def onnx_op(*names: str, since: int = 1, domain: str = "", broadcasts: bool = False
            ) -> Callable[[C], C]:
    """Registers a converter for the ops `names` from version `since` on; a duplicate raises.

    `broadcasts`: all operands of these ops are broadcast to one shape.
    """

    def register(function: C) -> C:
        for name in names:
            versions = _CONVERTERS.setdefault((domain, name), {})
            if since in versions:
                raise ValueError(f"two converters for {domain}:{name} since {since}")
            versions[since] = function
        if broadcasts:
            _BROADCASTING.add(function)
        return function

    return register


@cache
def _load() -> None:
    for family in FAMILIES:
        importlib.import_module(f"xcc.frontends.onnx.{family}")


def lookup(domain: str, name: str, opset: int) -> Converter | None:
    """The converter of the newest version not above `opset`."""
    _load()
    versions = _CONVERTERS.get((domain, name), {})
    fitting = [v for v in versions if v <= opset]
    return versions[max(fitting)] if fitting else None


def broadcasts(converter: Converter | None) -> bool:
    """Whether `converter` is of ops whose operands are all broadcast to one shape."""
    return converter in _BROADCASTING


def table() -> dict[tuple[str, str], dict[int, Converter]]:
    """Every registered converter: (domain, op) -> since -> function."""
    _load()
    return _CONVERTERS
