"""``--verify=numbers``: what the model gives for random inputs, in numpy, must not change from pass to pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Module, Operation, Value, ir
from xcc.diagnostics import CompilerBug, UserError
from xcc.dialects.xt.interpret import interpret
from xcc.dialects.xt.reading import value_symbols
from xcc.dialects.xt.types import TensorType, numpy_dtype
from xcc.driver.comparison import SHARES, compare, stated
from xcc.driver.stages import of_a_user
from xcc.passes.base import Pass
from xcc.passes.host.placement.places import main_of
from xcc.passes.xt.graph.rewrite import dim_bounds
from xcc.weights import WeightStore

__all__ = ["NumbersCheck"]

Array = np.ndarray[Any, Any]
SIZES = (5, 8, 16, 32, 64, 1, 224)      # of symbolic dims, tried in turn: some models halve sizes, or take few


class NumbersCheck:
    """Evaluates `module` when it is made, and again after each pass; :meth:`after` raises where a result changed.

    Symbolic dims get the first of some sizes that the model takes, within their bounds; sizes that `--dim` fixes are
    kept. Integers and booleans are 0 and 1, floats normal. `precision` is the compute type that was asked for.
    """

    def __init__(self, module: Module, weights: WeightStore, precision: str = "") -> None:
        self.weights = weights
        with module.context:
            main = main_of(module)
            self.names = [ir.StringAttr(ir.DictAttr(a)["xt.name"]).value
                          for a in ir.ArrayAttr(main.attributes["res_attrs"])] if "res_attrs" in main.attributes else []
            self.inputs, self.outputs = self._first(module, main)
            types = {TensorType.of(v).dtype.removeprefix("u") for v in main.regions[0].blocks[0].arguments}
        self.tolerance = stated((types | {precision}) & set(SHARES))

    def after(self, p: Pass, module: Module) -> None:
        """CompilerBug where pass `p` changed what `module` gives, a UserError where the pass is a user's."""
        with module.context:
            outputs = self._run(module, self.inputs)
        for n, (got, wanted) in enumerate(zip(outputs, self.outputs, strict=True)):
            name = self.names[n] if n < len(self.names) else str(n)
            same, line = compare(name, got, wanted, self.tolerance)
            if not same:
                sizes = ", ".join(f"{list(a.shape)}" for a in self.inputs)
                kind = UserError if of_a_user(p) else CompilerBug
                raise kind(f"pass '{p}' changed the numbers of output {line} (random inputs of shapes {sizes})")

    def _first(self, module: Module, main: Operation) -> tuple[list[Array], list[Array]]:
        """Inputs of the first sizes that the model takes, and its outputs."""
        problem = ""
        for inputs in _candidates(module, main):
            try:
                return inputs, self._run(module, inputs)
            except UserError as e:
                problem = problem or e.message
        raise UserError(f"--verify=numbers: the model takes none of the sizes that were tried: give some with --dim "
                        f"({problem})")

    def _run(self, module: Module, inputs: list[Array]) -> list[Array]:
        with np.errstate(all="ignore"):
            return interpret(module, inputs, self.weights)


def _candidates(module: Module, main: Operation) -> Iterator[list[Array]]:
    """Random inputs, for several values of the symbols."""
    bounds = dim_bounds(module)
    arguments = list(main.regions[0].blocks[0].arguments)
    types = [TensorType.of(v) for v in arguments]
    symbols = dict.fromkeys(s for t in types for d in t.shape for s in symbolic.symbols_of(d))
    symbols |= dict.fromkeys(s for v in arguments for s in value_symbols(v))
    for size in SIZES if symbols else SIZES[:1]:
        env = {}
        for s in symbols:
            low, high = bounds.get(s, (1, 1 << 31))
            env[s] = min(max(size, low), high)
        yield _inputs(arguments, types, env)


def _inputs(arguments: list[Value], types: list[TensorType], env: Mapping[str, int]) -> list[Array]:
    rng = np.random.default_rng(0)
    out = []
    for v, t in zip(arguments, types, strict=True):
        shape = [symbolic.evaluate(d, env) for d in t.shape]
        dtype = np.dtype(numpy_dtype(t.dtype))
        whole = dtype.kind in "biu" or "int" in dtype.name
        array = (rng.integers(0, 2, shape) if whole else rng.standard_normal(shape)).astype(dtype)
        for n, s in enumerate(value_symbols(v)):
            array.reshape(-1)[n] = env[s]
        out.append(array)
    return out
