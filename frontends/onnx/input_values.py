"""Integer inputs whose values are sizes: their elements are symbols, which the runtime reads before a run.

    Reshape(x, shape) of the input shape: i64[2]        [shape_0, shape_1], and the argument's attribute
                                                        xt.values = ["shape_0", "shape_1"]

Arithmetic on such an input is shape arithmetic (:mod:`propagate`); where its elements are data, the input itself is.
A symbol is 0 or more, or within the bounds that the options give for it, which may be negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Attribute, Value, ir
from xcc.bounds import interval
from xcc.diagnostics import UserError, dim_option
from xcc.dialects import xt
from xcc.frontends.onnx.context import Array, RuntimeShape, Tensor
from xcc.runtime.program import VALUE_TYPES
from xcc.symbolic import Dim

if TYPE_CHECKING:
    from xcc.dim_expr import Expr
    from xcc.frontends.onnx.importer import ModelImporter

__all__ = ["InputValues"]

MOST_ELEMENTS = 64
"""Of an input whose values are symbols: what has more is data."""


class InputValues:
    """The inputs of one model whose values are symbols: those of `wanted`, and those that the options name."""

    def __init__(self, model: ModelImporter, wanted: frozenset[str]) -> None:
        self.model = model
        self.wanted = wanted
        self.symbols: dict[str, str] = {}           # symbol -> the input that it is an element of
        self._names: dict[str, Array] = {}          # the symbols of each input, of those too that are not wanted

    def tensors(self, arguments: Sequence[tuple[str, Value]]) -> list[Tensor]:
        """The inputs, (name, argument) each, as values of the graph; symbols get names that no dim has."""
        for name, argument in arguments:
            kind = xt.TensorType.of(argument)
            if kind.dtype in VALUE_TYPES and symbolic.is_static(kind.shape) and \
                    0 < symbolic.product(kind.shape) <= MOST_ELEMENTS:  # type: ignore[operator]
                self._names[name] = self._elements(name, kind.shape)
        return [self._tensor(name, argument) for name, argument in arguments]

    def among(self, inputs: Iterable[str]) -> frozenset[str]:
        """Those of `inputs` that could be read and are not."""
        return frozenset(inputs) & (self._names.keys() - set(self.symbols.values()))

    def explained(self, e: UserError) -> UserError:
        """`e`, which the values of inputs may be the reason of where there are any among the symbols."""
        inputs = tuple(dict.fromkeys(self.symbols.values()))
        if isinstance(e, RuntimeShape) or not inputs:
            return e
        listed = ", ".join(f"'{name}'" for name in inputs)
        bound = dim_option(next(iter(self.symbols)), "1..64")
        return RuntimeShape(f"{e.message}; the values of {listed} decide sizes: bound them ({bound}), "
                            f"or fix them (--fix {inputs[0]}=...)", inputs)

    def behind(self, data: Iterable[int | Expr]) -> tuple[str, ...]:
        """The symbols of inputs' values in the dims `data`."""
        return tuple(dict.fromkeys(s for d in data for s in symbolic.symbols_of(getattr(d, "top", d))
                                   if s in self.symbols))

    def inputs_of(self, data: Iterable[Any]) -> tuple[str, ...]:
        """The inputs that the dims `data` are computed from."""
        return tuple(sorted({self.symbols[s] for s in self.behind(data)}))

    def may_be(self, d: Any, low: float, high: float = inf) -> bool:
        """Whether `d` has a value of an input in it, and may be in low..high."""
        if not self.symbols or not self.behind([d]):
            return False
        least, most = interval(self.model.known, d)
        return least <= high and most >= low

    def attributes(self, name: str) -> dict[str, Attribute]:
        """Those of the argument `name` beside its name."""
        own = [ir.StringAttr.get(s) for s, i in self.symbols.items() if i == name]
        return {"xt.values": ir.ArrayAttr.get(own)} if own else {}

    def _elements(self, name: str, shape: tuple[Dim, ...]) -> Array:
        names: Array = np.empty(shape, object)
        taken = {*self.model.symbols, *(n for others in self._names.values() for n in others.flat)}
        for at in np.ndindex(names.shape):
            symbol = "_".join([name, *map(str, at)])
            while symbol in taken:
                symbol += "_value"
            names[at] = symbol
        return names

    def _tensor(self, name: str, argument: Value) -> Tensor:
        names = self._names.get(name)
        if names is None or not (name in self.wanted or any(n in self.model.dims for n in names.flat)):
            return Tensor.of_value(argument)
        self.symbols |= dict.fromkeys(names.flat, name)
        data: Array = np.empty(names.shape, object)
        for at in np.ndindex(names.shape):
            data[at] = self._dim(str(names[at]))
        tensor = Tensor.of_dims(data, Tensor.of_value(argument).dtype)
        tensor.value = argument
        return tensor

    def _dim(self, symbol: str) -> Dim:
        """The symbol of an element, or the number that it must be."""
        option = self.model.dims.get(symbol)
        self.model.counted.add(symbol)
        self.model.symbols[symbol] = (option, option) if isinstance(option, int) else option
        return option if isinstance(option, int) else symbolic.sym(symbol)
