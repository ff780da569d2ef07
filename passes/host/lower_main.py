"""Lowers @main to the host program: buffers, and what is done with them, in order.

    func.func @main(%x: tensor<..> {xt.name = "x"}) -> (tensor<..> {xt.name = "y"}) {
      %w = xt.weight @w
      %1 = "xtv.dispatch"(%x, %w) {host.places = ["own"], kernel = @k, symbols = ["n"]}
      %2 = "xt.reshape"(%1)
      %3 = "xtv.dispatch"(%2) {host.places = ["result 0"], kernel = @m, symbols = ["n"]}
      func.return %3
becomes
    func.func @main() -> memref<..> attributes {host.symbols = ["n"]} {
      %0 = "host.buffer"() {kind = "input", name = "x", shape = ["n", 8]} : () -> memref<?x8xf32>
      %1 = "host.buffer"() {kind = "output", name = "y", ...}
      %2 = "host.buffer"() {kind = "weight", name = "w"}
      %3 = "host.buffer"() {kind = "temp", ...}
      %4 = "host.buffer"(%3) {kind = "alias", ...}
      "host.launch"(%0, %2, %3) {kernel = "k", symbols = ["n"]}
      "host.launch"(%4, %1) {kernel = "m", symbols = ["n"]}
      func.return %1

Places are what ``host.places`` says (passes/host/placement), ``host.at_load`` what is done when the model is loaded. A
value that a block gives is copied where it lies elsewhere than it is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Block, Module, Operation, Value
from xcc.diagnostics import CompilerBug, UserError
from xcc.dialects import xt
from xcc.dialects.xt.collective import COLLECTIVES, statement_of
from xcc.dialects.xt.reading import block_results
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.host.lowering.main_attributes import bounds_of, name_of_place
from xcc.passes.host.lowering.program_ops import write_program
from xcc.passes.host.lowering.value_buffers import ValueBuffers, dtype_of
from xcc.passes.host.placement.places import AT_LOAD, main_of
from xcc.passes.xt.graph.op_graph import IN_PLACE
from xcc.passes.xt.graph.rewrite import name_of
from xcc.passes.xt.sizes.equal_dims import EQUAL, equal_dims
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
    State,
    Statement,
    While,
)
from xcc.symbolic import Dim, sym
from xcc.weights import WeightStore


@register_pass
class LowerMain(Pass):
    """Turns @main into the host program, of ``host`` ops, one a statement of :mod:`xcc.runtime.program`. Constants that
    kernels read from memory become weights."""

    def run(self, module: Module, ctx: PassContext) -> None:
        main = main_of(module)
        lowering = _Lowering(WeightStore() if ctx.weights is None else ctx.weights)
        program = lowering.function(main, bounds_of(module))
        write_program(main, replace(program, equal=equal_dims(module, program.symbols)))
        for name in ("xt.dims", EQUAL):
            if name in module.operation.attributes:
                del module.operation.attributes[name]


class _Lowering(ValueBuffers):
    """The statements of each op, by kind."""

    def __init__(self, weights: WeightStore) -> None:
        super().__init__()
        self.weights = weights
        self.constants: dict[tuple[str, tuple[int, ...], bytes], int] = {}
        self.bound: set[str] = set()
        self.loops = 0
        self.setup: list[Launch] = []

    def function(self, op: Operation, bounds: dict[str, tuple[int, int]]) -> Program:
        block = op.regions[0].blocks[0]
        held = xt.initial_weights(op)
        arguments = [self.new(v, "state" if i in held else "input", name_of_place(op, "arg_attrs", i, f"input{i}"))
                     for i, v in enumerate(block.arguments)]
        inputs = tuple(b for i, b in enumerate(arguments) if i not in held)
        self.buffer_of.update(zip(block.arguments, arguments, strict=True))
        dims = [d for i in inputs for d in self.buffers[i].shape]
        values = [InputValue(name, i, n) for i, v in zip(arguments, block.arguments, strict=True)
                  for n, name in enumerate(xt.value_symbols(v))]
        symbols = tuple(dict.fromkeys([*(s for d in dims for s in symbolic.symbols_of(d)), *(v.name for v in values)]))
        self.bound = set(symbols)
        results, updated = block_results(block), xt.updated_arguments(op)
        targets = [self._result(v, name_of_place(op, "res_attrs", i, f"output{i}"), None if n is None else arguments[n])
                   for i, (v, n) in enumerate(zip(results, updated, strict=True))]
        body = self.block(block, targets, {i: block.arguments[n] for i, n in enumerate(updated) if n is not None})
        states = tuple(State(self.buffers[arguments[i]].name, arguments[i], self._initial(weight))
                       for i, weight in held.items())
        updates = tuple((t, arguments[n]) for t, n in zip(targets, updated, strict=True) if n is not None)
        return Program(tuple(self.buffers), body, inputs, tuple(t for t in targets if t not in arguments), symbols,
                       {s: b for s, b in bounds.items() if s in symbols}, setup=tuple(self.setup),
                       values=tuple(values), updates=tuple(u for u in updates if u[0] != u[1]), states=states)

    def _result(self, value: Value, name: str, argument: int | None) -> int:
        """The buffer of a result: its own, or the memory of the `argument` that it updates."""
        if argument is None:
            return self.new(value, "output", name)
        return argument if self.buffers[argument].kind == "state" else self.new(value, "alias", name, argument)

    def _initial(self, weight: str) -> str:
        """The weight that a state begins as; "" for one of zeros, which needs no place in the artifact."""
        return weight if np.ascontiguousarray(self.weights[weight]).reshape(-1).view(np.uint8).any() else ""

    def block(self, block: Block, targets: Sequence[int], replaced: Mapping[int, Value]) -> tuple[Statement, ...]:
        """The statements of `block`; what it yields ends up in the buffers `targets`.

        `replaced` has for some of them the argument whose memory it is.
        """
        self.begin(block, dict(enumerate(targets)), replaced)
        out = self.statements(block)
        shared = {self.root(targets[n]) for n in replaced}
        pairs = list(zip(block_results(block), targets, strict=True))
        out += [Copy(self.buffer_of[v], t) for v, t in pairs
                if self.root(t) not in shared and self.root(self.buffer_of[v]) != self.root(t)]
        last = [(v, t) for v, t in pairs if self.root(t) in shared]
        return (*out, *self.next_state([v for v, _ in last], [t for _, t in last]))

    def statements(self, block: Block) -> list[Statement]:
        out: list[Statement] = []
        for op in list(block.operations)[:-1]:
            name = name_of(op.operation)
            if name not in _LOWER:
                raise CompilerBug(f"{op.operation.name} in @main after kernels were formed, at {op.location}")
            out += _LOWER[name](self, op.operation)
        return out

    def weight(self, op: Operation) -> list[Statement]:
        self.buffer_of[op.results[0]] = self.new(op.results[0], "weight", op.attributes["name"].value)
        return []

    def constant(self, op: Operation) -> list[Statement]:
        value = np.asarray(xt.attrs_of(op).value, order="C")
        key = (dtype_of(op.results[0]), value.shape, value.tobytes())
        if key not in self.constants:
            self.constants[key] = self.new(op.results[0], "weight", self.weights.add("constant", value))
        self.buffer_of[op.results[0]] = self.constants[key]
        return []

    def dim(self, op: Operation) -> list[Statement]:
        return [SetScalar(self.target(op.results[0]), xt.attrs_of(op).value)]

    def view(self, op: Operation) -> list[Statement]:
        base = self.buffer_of[op.operands[0]]
        self.buffer_of[op.results[0]] = self.new(op.results[0], "alias", base=base)
        return []

    def dispatch(self, op: Operation) -> list[Statement]:
        a = xt.attrs_of(op)
        operands = [self.buffer_of[v] for v in op.operands]
        if AT_LOAD in op.attributes:
            self._setup(op, operands)
            return []
        if IN_PLACE in op.attributes:       # changes elements of its first operand
            out, held = self.held(op, 1)
            return [*out, Launch(a.kernel, (*operands, *held), a.symbols)]
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

    def _setup(self, op: Operation, operands: Sequence[int]) -> None:
        """A launch when the model is loaded, to buffers that are kept."""
        if any(self.buffers[self.root(b)].kind not in ("weight", "kept") for b in operands) \
                or len(xt.attrs_of(op).symbols) or IN_PLACE in op.attributes:
            raise UserError(f"{op.location}: {AT_LOAD} cannot be obeyed: {op.name} reads more than weights, or its "
                            "sizes are not known when the model is loaded")
        for v in op.results:
            self.buffer_of[v] = self.new(v, "kept")
        self.setup.append(Launch(xt.attrs_of(op).kernel, (*operands, *(self.buffer_of[v] for v in op.results)), ()))

    def if_(self, op: Operation) -> list[Statement]:
        condition = self.buffer_of[op.operands[0]]
        results = [self.target(v) for v in op.results]
        unknown = self._unknown_dims(op)
        flags = [self.scalar() for _ in unknown]
        branches: list[tuple[Statement, ...]] = []
        for region in op.regions:
            block = region.blocks[0]
            shapes = [xt.shape_of(v) for v in block_results(block)]
            body = self.block(block, results, {})
            values = [self._known_or_none(shapes[i][d]) for _, i, d in unknown]
            branches.append((*body, *(SetScalar(f, (d,)) for f, d in zip(flags, values, strict=True))))
            self.bound |= {s for s, _, _ in unknown}
        out: list[Statement] = [If(condition, branches[0], branches[1])]
        for (name, i, d), flag in zip(unknown, flags, strict=True):
            limits = [xt.shape_of(block_results(r.blocks[0])[i])[d] for r in op.regions]
            out.append(BindSymbol(name, flag, 0, symbolic.dim_max(*limits)))
        return out

    def _known_or_none(self, d: Dim) -> Dim:
        """`d`; 0 where it has no value yet, as in a branch that fails before anything gives it one."""
        return d if all(s in self.bound for s in symbolic.symbols_of(d)) else 0

    def _unknown_dims(self, op: Operation) -> list[tuple[str, int, int]]:
        """(symbol, result, dim) for each symbol that the results of an xt.if define."""
        found: dict[str, tuple[str, int, int]] = {}
        for i, v in enumerate(op.results):
            for d, n in enumerate(xt.shape_of(v)):
                name = symbolic.bare_symbol(n)
                if name is not None and name not in self.bound:
                    found.setdefault(name, (name, i, d))
        return list(found.values())

    def while_(self, op: Operation) -> list[Statement]:
        out, carried = self.held(op, len(op.results))
        before, body = (r.blocks[0] for r in op.regions)
        for block in (before, body):
            self.buffer_of.update(zip(block.arguments, carried, strict=True))
        self.begin(before, {}, {})
        head = self.statements(before)
        condition = self.buffer_of[block_results(before)[0]]
        self.begin(body, dict(enumerate(carried)), dict(enumerate(body.arguments)))
        turn = self.statements(body)
        turn += self.next_state(block_results(body), carried)
        return [*out, While(tuple(head), condition, tuple(turn))]

    def require(self, op: Operation) -> list[Statement]:
        a = xt.attrs_of(op)
        left, right = a.equal
        return [Require(left, right, a.message)]

    def collective(self, op: Operation) -> list[Statement]:
        """What ranks do together, along the first dim: parts lie one behind the other."""
        name, a = name_of(op), xt.attrs_of(op)
        if any(getattr(a, d, 0) for d in ("dim", "split", "concat")):
            raise CompilerBug(f"xt.{name} along an inner dim in @main after kernels were formed, at {op.location}")
        return [statement_of(name, a, self.buffer_of[op.operands[0]], self.target(op.results[0]))]

    def fail(self, op: Operation) -> list[Statement]:
        for v in op.results:
            self.target(v)
        return [Require(0, 1, xt.attrs_of(op).message)]

    def scan(self, op: Operation) -> list[Statement]:
        a = xt.attrs_of(op)
        if any((*a.axes, *a.out_axes)):
            raise CompilerBug(f"xt.scan along an inner axis in @main after kernels were formed, at {op.location}")
        block = op.regions[0].blocks[0]
        state, xs = xt.grouped_operands(op)
        name, trips = self._counter(), a.length[0]
        counter = sym(name)
        out, carried = self.held(op, len(state))
        stacked = [self.target(v) for v in list(op.results)[len(state):]]
        self.buffer_of.update(zip(block.arguments[:len(state)], carried, strict=True))
        for argument, x, backwards in zip(block.arguments[len(state):], xs, a.reverse, strict=True):
            self.buffer_of[argument] = self.slice(argument, self.buffer_of[x], counter, trips, backwards)
        yielded = block_results(block)
        slices = [self.slice(v, t, counter, trips, backwards)
                  for v, t, backwards in zip(yielded[len(state):], stacked, a.out_reverse, strict=True)]
        self.begin(block, dict(enumerate([*carried, *slices])), dict(enumerate(list(block.arguments)[:len(state)])))
        turn = self.statements(block)
        turn += [Copy(self.buffer_of[v], t) for v, t in zip(yielded[len(state):], slices, strict=True)
                 if self.root(self.buffer_of[v]) != self.root(t)]
        turn += self.next_state(yielded[:len(state)], carried)
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
    "reshape": _Lowering.view, "scan": _Lowering.scan, "weight": _Lowering.weight, "while": _Lowering.while_,
    **dict.fromkeys(COLLECTIVES, _Lowering.collective)}
