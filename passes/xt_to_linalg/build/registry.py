"""The table of converters: one function for each primitive op, registered by a decorator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xcc import symbolic
from xcc._mlir import Attribute, Operation, Type, ir
from xcc.passes.shared.registering import registering
from xcc.passes.xt_to_linalg.build.builder import Builder
from xcc.passes.xt_to_linalg.build.view import View
from xcc.symbolic import Dim


@dataclass(frozen=True)
class Op:
    """An xt op as a converter sees it: its operands as views (None: absent) and its attributes as Python values."""

    name: str
    operands: tuple[View, ...]
    results: tuple[tuple[tuple[Dim, ...], Type], ...]
    operation: Operation

    def attr(self, name: str, default: Any = None) -> Any:
        """The attribute as int, float, bool, str, type, or a tuple of ints, floats, texts or dims."""
        attributes = self.operation.attributes
        return _python(attributes[name]) if name in attributes else default

    def dims_attr(self, name: str) -> tuple[Dim, ...]:
        """An attribute of dims: its texts are symbolic expressions."""
        return tuple(symbolic.parse(d) if isinstance(d, str) else d for d in self.attr(name))

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The shape of the first result."""
        return self.results[0][0]

    @property
    def dtype(self) -> Type:
        """The element type of the first result, with its sign."""
        return self.results[0][1]


def _python(attr: Attribute) -> Any:
    if isinstance(attr, ir.TypeAttr):
        return attr.value
    if isinstance(attr, ir.ArrayAttr):
        return tuple(_python(a) for a in attr)
    if isinstance(attr, (ir.DenseI64ArrayAttr, ir.DenseI32ArrayAttr)):
        return tuple(attr)
    return attr.value if hasattr(attr, "value") else attr


Converter = Callable[[Builder, Op], View | Sequence[View]]
CONVERTERS: dict[str, Converter] = {}
LOOPS: dict[str, Callable[..., bool | None]] = {}
TILES: dict[str, Callable[..., int]] = {}


def converts(*names: str) -> Callable[[Converter], Converter]:
    """Registers a function as the converter of the xt ops `names`."""
    return registering(CONVERTERS, names, "converters")


def converts_to_loops(*names: str) -> Callable[..., Any]:
    """Registers a function as the emitter of the loop kernels of the opaque xt ops `names`; one of vectors, which are
    machine vectors of one dim, gives True."""
    return registering(LOOPS, names, "emitters")


def converts_to_tiles(*names: str) -> Callable[..., Any]:
    """Registers a function as the emitter of the tile programs of GPU ops `names`; it gives their threads."""
    return registering(TILES, names, "emitters")


