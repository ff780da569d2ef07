"""Lowers @main of stage ``kernels`` to the host program.

    %1 = "xt.dispatch"(%x, %w) {kernel = @k, symbols = ["n"]}     Launch("k", (x, w, t1), (n,))
    %2 = "xt.reshape"(%1)                                         an alias of t1
    func.return %2                                                t1 is an alias of the output buffer
    %3 = "xt.dispatch"(%w) {kernel = @m, symbols = []}            Launch("m", (w, k1), ()) of the setup, k1 is kept

Values that a block returns or yields are written where they are wanted; only values that cannot be (an input
returned as it is, what was made when the model was loaded, a loop's next state) are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xcc import symbolic
from xcc.diagnostics import CompilerBug
from xcc.dialects import xt
from xcc.passes.host.value_buffers import ValueBuffers, dtype_of
from xcc.passes.xt.equal_dims import equal_dims
from xcc.passes.xt.load_time import made_at_load, view_root
from xcc.passes.xt.op_graph import short_name
from xcc.runtime.program import (
    BindSymbol,
    Copy,
    For,
    If,
    InputValue,
    Launch,
    Program,
    Require,
    SetScalar,
    Statement,
    While,
)
from xcc.symbolic import Dim, sym
from xcc.weights import WeightStore

__all__ = ["lower_main"]


def lower_main(module: Any, weights: WeightStore) -> Program:
    """The host program of `module`. Constants that kernels read from memory are added to `weights`."""
    with module.context:
        functions = [op for op in module.body if op.operation.name == "func.func" and "xt.kernel" not in op.attributes]
        if len(functions) != 1:
            raise CompilerBug(f"expected one function that is no kernel, found {len(functions)}")
        program = _Lowering(weights, made_at_load(module)).function(functions[0].operation, _bounds(module))
        return replace(program, equal=equal_dims(module, program.symbols))


def _bounds(module: Any) -> dict[str, tuple[int, int]]:
    attributes = module.operation.attributes
    if "xt.dims" not in attributes:
        return {}
    return {named.name: tuple(int(v.value) for v in named.attr) for named in attributes["xt.dims"]}  # type: ignore


class _Lowering(ValueBuffers):
    """The statements of each op, by kind."""

    def __init__(self, weights: WeightStore, at_load: frozenset[Any]) -> None:
        super().__init__()
        self.weights = weights
        self.at_load = at_load
        self.constants: dict[tuple[str, tuple[int, ...], bytes], int] = {}
        self.bound: set[str] = set()
        self.loops = 0
        self.setup: list[Launch] = []

    def function(self, op: Any, bounds: dict[str, tuple[int, int]]) -> Program:
        block = op.regions[0].blocks[0]
        inputs = tuple(self.new(v, "input", _name(op, "arg_attrs", i, f"input{i}"))
                       for i, v in enumerate(block.arguments))
        for v, i in zip(block.arguments, inputs, strict=True):
            self.buffer_of[v] = i
        dims = [d for i in inputs for d in self.buffers[i].shape]
        values = [InputValue(name, i, n) for i, v in zip(inputs, block.arguments, strict=True)
                  for n, name in enumerate(xt.value_symbols(v))]
        symbols = tuple(dict.fromkeys([*(s for d in dims for s in symbolic.symbols_of(d)), *(v.name for v in values)]))
        self.bound = set(symbols)
        results = _terminator(block)
        outputs = tuple(self.new(v, "output", _name(op, "res_attrs", i, f"output{i}")) for i, v in enumerate(results))
        body = self.block(block, outputs)
        return Program(tuple(self.buffers), body, inputs, outputs, symbols,
                       {s: b for s, b in bounds.items() if s in symbols}, setup=tuple(self.setup),
                       values=tuple(values))

    def block(self, block: Any, targets: Sequence[int]) -> tuple[Statement, ...]:
        """The statements of `block`; what it yields ends up in the buffers `targets`."""
        yielded = _terminator(block)
        copied = self._place(block, yielded, targets)
        out = self.statements(block)
        out += [Copy(self.buffer_of[v], t) for v, t in copied]
        return tuple(out)

    def _place(self, block: Any, yielded: Sequence[Any], targets: Sequence[int]) -> list[tuple[Any, int]]:
        """Says where results of `block` are wanted; returns the values that have to be copied there."""
        copied = []
        for v, t in zip(yielded, targets, strict=True):
            root = view_root(v)
            if self._made_in(root, block) and root not in self.wanted:
                self.wanted[root] = t
            else:
                copied.append((v, t))
        return copied

    def _made_in(self, value: Any, block: Any) -> bool:
        """Whether an op of `block` itself writes `value`, in each run, to a buffer of its own."""
        owner = getattr(value.owner, "operation", None)
        if owner is None or short_name(owner) in ("weight", "constant") or owner in self.at_load:
            return False
        return bool(owner.block == block)

    def statements(self, block: Any) -> list[Statement]:
        out: list[Statement] = []
        for op in list(block.operations)[:-1]:
            name = short_name(op.operation)
            if name not in _LOWER:
                raise CompilerBug(f"{op.operation.name} in @main after kernels were formed, at {op.location}")
            out += _LOWER[name](self, op.operation)
        return out

    def weight(self, op: Any) -> list[Statement]:
        self.buffer_of[op.results[0]] = self.new(op.results[0], "weight", op.attributes["name"].value)
        return []

    def constant(self, op: Any) -> list[Statement]:
        value = np.asarray(xt.attrs_of(op).value, order="C")
        key = (dtype_of(op.results[0]), value.shape, value.tobytes())
        if key not in self.constants:
            self.constants[key] = self.new(op.results[0], "weight", self.weights.add("constant", value))
        self.buffer_of[op.results[0]] = self.constants[key]
        return []

    def dim(self, op: Any) -> list[Statement]:
        return [SetScalar(self.target(op.results[0]), xt.attrs_of(op).value)]

    def view(self, op: Any) -> list[Statement]:
        base = self.buffer_of[op.operands[0]]
        self.buffer_of[op.results[0]] = self.new(op.results[0], "alias", base=base)
        return []

    def dispatch(self, op: Any) -> list[Statement]:
        a = xt.attrs_of(op)
        operands = [self.buffer_of[v] for v in op.operands]
        if op in self.at_load:
            for v in op.results:
                self.buffer_of[v] = self.new(v, "kept")
            self.setup.append(Launch(a.kernel, (*operands, *(self.buffer_of[v] for v in op.results)), ()))
            return []
        results = [self.target(v) for v in op.results]
        if "xt.binds" not in op.attributes:
            return [Launch(a.kernel, (*operands, *results), a.symbols)]
        symbol, limit = xt.dims_from_attr(op.attributes["xt.binds"])
        count = self.scalar()
        known = tuple(0 if d == symbol else d for d in a.symbols)
        name = symbolic.bare_symbol(symbol)
        assert name is not None
        self.bound.add(name)
        return [Launch(a.kernel, (*operands, *results, count), known), BindSymbol(name, count, 0, limit)]

    def if_(self, op: Any) -> list[Statement]:
        condition = self.buffer_of[op.operands[0]]
        results = [self.target(v) for v in op.results]
        unknown = self._unknown_dims(op)
        flags = [self.scalar() for _ in unknown]
        branches: list[tuple[Statement, ...]] = []
        for region in op.regions:
            block = region.blocks[0]
            shapes = [xt.shape_of(v) for v in _terminator(block)]
            body = self.block(block, results)
            values = [self._known_or_none(shapes[i][d]) for _, i, d in unknown]
            branches.append((*body, *(SetScalar(f, (d,)) for f, d in zip(flags, values, strict=True))))
            self.bound |= {s for s, _, _ in unknown}
        out: list[Statement] = [If(condition, branches[0], branches[1])]
        for (name, i, d), flag in zip(unknown, flags, strict=True):
            limits = [xt.shape_of(_terminator(r.blocks[0])[i])[d] for r in op.regions]
            out.append(BindSymbol(name, flag, 0, symbolic.dim_max(*limits)))
        return out

    def _known_or_none(self, d: Dim) -> Dim:
        """`d`; 0 where it has no value yet, as in a branch that fails before anything gives it one."""
        return d if all(s in self.bound for s in symbolic.symbols_of(d)) else 0

    def _unknown_dims(self, op: Any) -> list[tuple[str, int, int]]:
        """(symbol, result, dim) for each symbol that the results of an xt.if define."""
        found: dict[str, tuple[str, int, int]] = {}
        for i, v in enumerate(op.results):
            for d, n in enumerate(xt.shape_of(v)):
                name = symbolic.bare_symbol(n)
                if name is not None and name not in self.bound:
                    found.setdefault(name, (name, i, d))
        return list(found.values())

    def while_(self, op: Any) -> list[Statement]:
        carried = [self.target(v) for v in op.results]
        out: list[Statement] = [Copy(self.buffer_of[v], t) for v, t in zip(op.operands, carried, strict=True)]
        before, body = (r.blocks[0] for r in op.regions)
        for block in (before, body):
            self.buffer_of.update(zip(block.arguments, carried, strict=True))
        head = self.statements(before)
        condition = self.buffer_of[_terminator(before)[0]]
        turn = self.statements(body)
        turn += self._next_state(_terminator(body), carried)
        return [*out, While(tuple(head), condition, tuple(turn))]

    def _next_state(self, values: Sequence[Any], carried: Sequence[int]) -> list[Statement]:
        """Copies `values` to `carried` as if at once: one that is another carried buffer goes through a temporary."""
        first: list[Statement] = []
        then: list[Statement] = []
        for v, t in zip(values, carried, strict=True):
            source = self.buffer_of[v]
            if self.root(source) == self.root(t):
                continue
            if self.root(source) in map(self.root, carried):
                saved = self.new(v, "temp")
                first.append(Copy(source, saved))
                source = saved
            then.append(Copy(source, t))
        return first + then

    def require(self, op: Any) -> list[Statement]:
        a = xt.attrs_of(op)
        left, right = a.equal
        return [Require(left, right, a.message)]

    def fail(self, op: Any) -> list[Statement]:
        for v in op.results:
            self.target(v)
        return [Require(0, 1, xt.attrs_of(op).message)]

    def scan(self, op: Any) -> list[Statement]:
        a = xt.attrs_of(op)
        if any((*a.axes, *a.out_axes)):
            raise CompilerBug(f"xt.scan along an inner axis in @main after kernels were formed, at {op.location}")
        block = op.regions[0].blocks[0]
        state, xs = xt.grouped_operands(op)
        name, trips = self._counter(), a.length[0]
        counter = sym(name)
        results = [self.target(v) for v in op.results]
        carried, stacked = results[:len(state)], results[len(state):]
        out: list[Statement] = [Copy(self.buffer_of[v], t) for v, t in zip(state, carried, strict=True)]
        self.buffer_of.update(zip(block.arguments[:len(state)], carried, strict=True))
        for argument, x, backwards in zip(block.arguments[len(state):], xs, a.reverse, strict=True):
            self.buffer_of[argument] = self.slice(argument, self.buffer_of[x], counter, trips, backwards)
        yielded = _terminator(block)
        slices = [self.slice(v, t, counter, trips, backwards)
                  for v, t, backwards in zip(yielded[len(state):], stacked, a.out_reverse, strict=True)]
        copied = self._place(block, yielded[len(state):], slices)
        turn = self.statements(block)
        turn += [Copy(self.buffer_of[v], t) for v, t in copied]
        turn += self._next_state(yielded[:len(state)], carried)
        return [*out, For(name, trips, tuple(turn))]

    def _counter(self) -> str:
        """A symbol for the steps of one more loop, which no dim is called."""
        while (name := f"step.{self.loops}") in self.bound:
            self.loops += 1
        self.loops += 1
        return name


_LOWER: dict[str, Callable[[_Lowering, Any], list[Statement]]] = {
    "bitcast": _Lowering.view, "constant": _Lowering.constant, "dim": _Lowering.dim,
    "dispatch": _Lowering.dispatch, "fail": _Lowering.fail, "if": _Lowering.if_, "require": _Lowering.require,
    "reshape": _Lowering.view, "scan": _Lowering.scan, "weight": _Lowering.weight, "while": _Lowering.while_}


def _name(op: Any, where: str, index: int, default: str) -> str:
    if where not in op.attributes:
        return default
    entry = op.attributes[where][index]
    return str(entry["xt.name"].value) if "xt.name" in entry else default


def _terminator(block: Any) -> list[Any]:
    return list(block.operations[len(block.operations) - 1].operation.operands)
