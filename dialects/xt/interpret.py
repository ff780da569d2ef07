"""Runs a module of xt ops with numpy: the reference that every other layer is tested against."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Block, Module, Operation, Value, ir
from xcc.diagnostics import UserError
from xcc.dialects.xt.op import Attrs, OpDefinition, attrs_of, grouped_operands, op_class
from xcc.dialects.xt.reading import value_symbols
from xcc.dialects.xt.types import TensorType, numpy_dtype
from xcc.symbolic import Dim

Array = np.ndarray[Any, Any]


def interpret(module: Module, inputs: Sequence[Array] | Mapping[str, Array], weights: Any = None,
              function: str = "main", symbols: Mapping[str, int] | None = None) -> list[Array]:
    """The results of `function` on `inputs`, given in order or by the names in ``xt.name``.

    Symbols get their values from the shapes of the inputs, and from `symbols`. `weights` is a WeightStore. Calls of
    kernels (``xtv.dispatch``) run the kernel's function.
    """
    return Interpreter(module, weights).call(function, inputs, dict(symbols or {}))


class Interpreter:
    """One run; `env` maps SSA values to arrays, `symbols` names to ints."""

    def __init__(self, module: Module, weights: Any) -> None:
        self.weights = weights
        self.functions = {ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation
                          for op in module.body.operations if op.operation.name == "func.func"}

    def call(self, name: str, inputs: Sequence[Array] | Mapping[str, Array], symbols: dict[str, int]) -> list[Array]:
        if name not in self.functions:
            raise UserError(f"the module has no function @{name}")
        function = self.functions[name]
        block = function.regions[0].blocks[0]
        arguments = list(block.arguments)
        if isinstance(inputs, Mapping):
            inputs = [inputs[n] for n in _argument_names(function)]
        if len(inputs) != len(arguments):
            raise UserError(f"@{name} takes {len(arguments)} inputs, not {len(inputs)}")
        env: dict[Any, Array] = {}
        for i, (argument, value) in enumerate(zip(arguments, inputs, strict=True)):
            bind(f"input {i} of @{name}", argument, np.asarray(value), env, symbols)
            symbols |= dict(zip(value_symbols(argument), np.asarray(value).reshape(-1).tolist(), strict=False))
        return self.block(block, env, symbols)

    def block(self, block: Block, env: dict[Value, Array], symbols: dict[str, int]) -> list[Array]:
        """Runs the ops of `block`; gives the operands of its terminator."""
        for op in block.operations:
            op = op.operation
            if op.name in ("func.return", "xtv.yield"):
                return [env[v] for v in op.operands]
            out = self.op(op, env, symbols)
            for i, (result, value) in enumerate(zip(op.results, out, strict=True)):
                bind(f"result {i} of '{op.name}' at {op.location}", result, np.asarray(value), env, symbols)
        return []

    def op(self, op: Operation, env: dict[Value, Array], symbols: dict[str, int]) -> Sequence[Array]:
        cls = op_class(op)
        if cls is None:
            raise UserError(f"cannot interpret '{op.name}'")
        a = with_values(cls, attrs_of(op), symbols)
        match op.name:
            case "xt.weight":
                return [self.weights[a.name]]
            case "xt.dim":
                return [np.array(a.value[0], np.int64)]
            case "xtv.if":
                taken = op.regions[0 if env[op.operands[0]] else 1]
                return self.block(taken.blocks[0], env, symbols)
            case "xtv.while":
                return self.loop(op, env, symbols)
            case "xtv.scan":
                return self.scan(op, a, env, symbols)
            case "xtv.require":
                if a.equal[0] != a.equal[1]:
                    raise UserError(f"{a.message}: sizes do not fit: {a.equal[0]} and {a.equal[1]} must be equal")
                return []
            case "xtv.fail":
                raise UserError(a.message)
            case "xtv.dispatch":
                names = [n.value for n in self.functions[a.kernel].attributes["xt.symbols"]] if a.symbols else []
                return self.call(a.kernel, [env[v] for v in op.operands], dict(zip(names, a.symbols, strict=True)))
        if cls.effects:
            return [self.together(op.name.partition(".")[2], a, env[op.operands[0]])]
        operands = [tuple(env[v] for v in g) if isinstance(g, tuple) else None if g is None else env[g]
                    for g in grouped_operands(op)]
        out = cls.evaluate(a, *operands)
        return out if isinstance(out, tuple) else (out,)

    def together(self, name: str, a: Attrs, x: Array) -> Array:
        """What ranks do together; see :mod:`xcc.dialects.xt.interpret_ranks`."""
        raise UserError(f"xt.{name} takes the other ranks, too: interpret_ranks runs all of them")

    def inner(self, block: Any, values: Sequence[Array], env: dict[Any, Array], symbols: dict[str, int]) -> list[Array]:
        for argument, value in zip(block.arguments, values, strict=True):
            env[argument] = value
        return self.block(block, env, symbols)

    def loop(self, op: Operation, env: dict[Any, Array], symbols: dict[str, int]) -> list[Array]:
        cond, body = (r.blocks[0] for r in op.regions)
        values = [env[v] for v in op.operands]
        while self.inner(cond, values, env, symbols)[0]:
            values = self.inner(body, values, env, symbols)
        return values

    def scan(self, op: Operation, a: Attrs, env: dict[Any, Array], symbols: dict[str, int]) -> list[Array]:
        carried, xs = ([env[v] for v in group] for group in grouped_operands(op))
        body, length = op.regions[0].blocks[0], a.length[0]
        stacked: list[Any] = [[None] * length for _ in a.out_axes]
        for t in range(length):
            cuts = [np.take(x, length - 1 - t if back else t, d)
                    for x, d, back in zip(xs, a.axes, a.reverse, strict=True)]
            out = self.inner(body, [*carried, *cuts], env, symbols)
            carried, ys = out[:len(carried)], out[len(carried):]
            for pile, y, back in zip(stacked, ys, a.out_reverse, strict=True):
                pile[length - 1 - t if back else t] = y
        piles = []
        for result, pile, d in zip(list(op.results)[len(carried):], stacked, a.out_axes, strict=True):
            kind = TensorType.of(result)
            empty = [symbolic.evaluate(n, symbols) for n in kind.shape]
            piles.append(np.stack(pile, d) if pile else np.zeros(empty, numpy_dtype(kind.dtype)))
        return [*carried, *piles]


def with_values(cls: type[OpDefinition], a: Attrs, symbols: Mapping[str, int]) -> Attrs:
    """The attributes with every dim evaluated."""
    for k, f in cls.attribute_fields.items():
        if f.kind == "dims":
            setattr(a, k, tuple(symbolic.evaluate(d, symbols) for d in getattr(a, k)))
    return a


def bind(what: str, value: Value, array: Array, env: dict[Value, Array], symbols: dict[str, int]) -> None:
    """Stores `array`, checks it against the value's type and binds symbols that are new."""
    t = TensorType.of(value)
    if t.dtype in ("i1",) and array.dtype != np.bool_:
        array = array.astype(np.bool_)
    if array.dtype != numpy_dtype(t.dtype) or array.ndim != t.rank:
        raise UserError(f"{what} is {array.dtype}{list(array.shape)}, not {t}")
    for dim, size in zip(t.shape, array.shape, strict=True):
        name = symbolic.bare_symbol(dim)
        if name is not None and name not in symbols:
            symbols[name] = size
    for dim, size in zip(t.shape, array.shape, strict=True):
        if known(dim, symbols) not in (None, size):
            raise UserError(f"{what} has shape {list(array.shape)}, its type is {t} with {symbols}")
    env[value] = array


def known(dim: Dim, symbols: Mapping[str, int]) -> int | None:
    """The value of `dim`, or None while one of its symbols has none."""
    return symbolic.evaluate(dim, symbols) if all(s in symbols for s in symbolic.symbols_of(dim)) else None


def _argument_names(function: Operation) -> list[str]:
    if "arg_attrs" not in function.attributes:
        raise UserError("the function's arguments have no names")
    return [ir.StringAttr(ir.DictAttr(a)["xt.name"]).value for a in ir.ArrayAttr(function.attributes["arg_attrs"])]
