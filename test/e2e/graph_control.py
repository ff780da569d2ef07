"""Random graphs of If, Loop and Scan, one in the other, in any opset; their bodies use values from outside too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

__all__ = ["control_graph"]

TYPES = {"rows": (TensorProto.FLOAT, ["n", 4]), "row": (TensorProto.FLOAT, [4]), "count": (TensorProto.INT64, []),
         "flag": (TensorProto.BOOL, []), "stack": (TensorProto.FLOAT, None), "counts": (TensorProto.INT64, None)}
"""What values there are: [n, 4], [4], a number, a condition, and what a loop stacks of any of them."""


@dataclass
class Names:
    """Of one model: its opset, and names that are not taken."""

    rng: np.random.Generator
    opset: int
    taken: int = 0

    def fresh(self, kind: str) -> str:
        self.taken += 1
        return f"{kind}_{self.taken}"


@dataclass
class Scope:
    """One graph: what it sees from outside and makes itself."""

    names: Names
    depth: int
    seen: dict[str, list[str]]
    nodes: list[Any] = field(default_factory=list)
    made: dict[str, list[str]] = field(default_factory=dict)

    # -- choices ------------------------------------------------------------------------------------------------------
    def chance(self, p: float) -> bool:
        return bool(self.names.rng.random() < p)

    def pick(self, options: Any) -> Any:
        return options[int(self.names.rng.integers(len(options)))]

    def value(self, kind: str) -> str:
        """A value of the kind, rather one of this graph; made where there is none."""
        own, outside = self.made.get(kind, []), self.seen.get(kind, [])
        if own and (not outside or self.chance(0.6)):
            return str(self.pick(own))
        return str(self.pick(outside)) if outside else self.constant(kind)

    # -- nodes --------------------------------------------------------------------------------------------------------
    def emit(self, kind: str, op: str, *inputs: str, **attrs: Any) -> str:
        name = self.names.fresh(kind)
        self.nodes.append(helper.make_node(op, inputs, [name], **attrs))
        self.made.setdefault(kind, []).append(name)
        return name

    def array(self, array: Any) -> str:
        """A constant that no step picks."""
        name = self.names.fresh("c")
        self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(array))))
        return name

    def constant(self, kind: str) -> str:
        if kind == "rows":
            return self.emit(kind, "Add", self.seen["rows"][0], self.array(np.float32(0.5)))
        rng = self.names.rng
        values = {"row": lambda: rng.uniform(-1, 1, 4).astype(np.float32), "count": lambda: rng.integers(0, 4),
                  "flag": lambda: np.bool_(self.chance(0.5))}
        name = self.array(values[kind]())
        self.made.setdefault(kind, []).append(name)
        return name

    def step(self) -> None:
        steps = [self.pointwise, self.pointwise, self.numbers, self.condition, self.product, self.total, self.size]
        if self.depth:
            steps += [self.branches, self.loop, self.loop] + [self.scan] * (self.names.opset >= 9)
        self.pick(steps)()

    def pointwise(self) -> None:
        kind = self.pick(["rows", "rows", "row"])
        op = self.pick(["Add", "Sub", "Mul", "Tanh", "Neg", "Abs", "Identity", "Max"])
        operands = [self.value(kind)]
        if op in ("Add", "Sub", "Mul", "Max"):
            broadcast = op != "Max" or self.names.opset >= 8
            operands.append(self.value(self.pick([kind, "row" if broadcast else kind])))
        name = self.emit(kind, op, *operands)
        if op in ("Add", "Sub", "Mul"):       # so that loops do not grow without end
            self.emit(kind, "Tanh", name)

    def numbers(self) -> None:
        made = self.emit("count", self.pick(["Add", "Sub", "Mul"]), self.value("count"), self.value("count"))
        if self.names.opset >= 12:
            made = self.emit("count", "Max", made, self.array(np.int64(0)))
            self.emit("count", "Min", made, self.array(np.int64(4)))
        else:
            self.made["count"].remove(made)

    def condition(self) -> None:
        op = self.pick(["Equal", "Not", "And", "Or"] + ["Less", "Greater"] * (self.names.opset >= 9))
        kind = "flag" if op in ("Not", "And", "Or") else "count"
        self.emit("flag", op, *(self.value(kind) for _ in range(1 if op == "Not" else 2)))

    def product(self) -> None:
        weights = self.names.rng.uniform(-0.5, 0.5, (4, 4)).astype(np.float32)
        kind = self.pick(["rows", "row"])
        self.emit(kind, "MatMul", self.value(kind), self.array(weights))

    def total(self) -> None:
        kind = self.pick(["rows", "stack", "counts"])
        if kind != "rows" and not (self.made.get(kind) or self.seen.get(kind)):
            return
        self.reduce(self.value(kind), kind)

    def reduce(self, name: str, kind: str) -> None:
        if kind == "stack":     # of rows or of single ones
            name = self.reshape(name, [-1, 4])
        out = self.names.fresh("sum")
        if self.names.opset >= 13:
            self.nodes.append(helper.make_node("ReduceSum", [name, self.array(np.array([0]))], [out], keepdims=0))
        else:
            self.nodes.append(helper.make_node("ReduceSum", [name], [out], axes=[0], keepdims=0))
        if kind != "counts":
            self.emit("row", "Tanh", out)

    def reshape(self, name: str, shape: list[int]) -> str:
        out = self.names.fresh("flat")
        self.nodes.append(helper.make_node("Reshape", [name, self.array(np.array(shape))], [out]))
        return out

    def size(self) -> None:
        kind = self.pick(["rows", "stack", "counts"])
        if kind != "rows" and not (self.made.get(kind) or self.seen.get(kind)):
            kind = "rows"
        self.rows_of(self.value(kind))

    def rows_of(self, name: str) -> str:
        shape = self.names.fresh("shape")
        self.nodes.append(helper.make_node("Shape", [name], [shape]))
        return self.emit("count", "Gather", shape, self.array(np.int64(0)))

    # -- control flow -------------------------------------------------------------------------------------------------
    def body(self, inputs: list[tuple[str, str]], kinds: list[str], first: str = "") -> Any:
        """A graph with these (kind, name) inputs, `first` or else a flag, and results of `kinds`."""
        seen = {k: [*self.seen.get(k, []), *self.made.get(k, [])] for k in TYPES}
        inner = Scope(self.names, self.depth - 1, seen)
        for kind, name in inputs:
            inner.made.setdefault(kind, []).append(name)
        for _ in range(int(self.names.rng.integers(1, 5))):
            inner.step()
        outputs = []
        for kind in kinds:
            outputs.append((kind, inner.emit(kind, "Identity", inner.value(kind))))
        if first:
            inner.nodes.append(helper.make_node("Identity", [inner.value("flag") if first == "any" else first],
                                                [self.names.fresh("go")]))
            outputs.insert(0, ("flag", inner.nodes[-1].output[0]))
        return helper.make_graph(inner.nodes, self.names.fresh("body"), [_info(n, k) for k, n in inputs],
                                 [_info(n, k) for k, n in outputs])

    def results(self, op: str, operands: list[str], kinds: list[str], **attrs: Any) -> None:
        names = [self.names.fresh(k) for k in kinds]
        self.nodes.append(helper.make_node(op, operands, names, **attrs))
        for kind, name in zip(kinds, names, strict=True):
            self.made.setdefault(kind, []).append(name)

    def kinds(self, most: int, *options: str) -> list[str]:
        return [self.pick(options) for _ in range(int(self.names.rng.integers(1, most + 1)))]

    def branches(self) -> None:
        kinds = self.kinds(3, "rows", "row", "count", "flag")
        self.results("If", [self.value("flag")], kinds, then_branch=self.body([], kinds),
                     else_branch=self.body([], kinds))

    def loop(self) -> None:
        carried = self.kinds(2, "rows", "row", "count", "flag")
        stacked = self.kinds(2, "rows", "row", "count") if self.chance(0.6) else []
        inputs = [(k, self.names.fresh(k)) for k in ("count", "flag", *carried)]
        go = self.pick([inputs[1][1], inputs[1][1], "any"])
        made = ["stack" if k != "count" else "counts" for k in stacked]
        most = self.array(self.names.rng.integers(0, 4))
        if not stacked:
            most = self.pick([most, self.value("count")])
        elif self.chance(0.5):      # how much is stacked must be a size
            most = self.rows_of(self.value("rows"))
        first = self.pick(["", self.value("flag"), self.array(np.bool_(True))])
        self.results("Loop", [most, first, *map(self.value, carried)], [*carried, *made],
                     body=self.body(inputs, [*carried, *stacked], go))

    def scan(self) -> None:
        states = self.kinds(2, "row", "count")
        inputs = [(k, self.names.fresh(k)) for k in (*states, "row")]
        backward = [int(self.chance(0.4))]
        self.results("Scan", [*map(self.value, states), self.value("rows")], [*states, "rows"], num_scan_inputs=1,
                     body=self.body(inputs, [*states, "row"]), scan_input_directions=backward,
                     scan_output_directions=[int(self.chance(0.4))])


def _info(name: str, kind: str) -> Any:
    element, shape = TYPES[kind]
    return helper.make_tensor_value_info(name, element, shape)


def control_graph(seed: int, opset: int, depth: int = 2) -> tuple[Any, list[dict[str, Any]]]:
    """A model and a few sets of inputs of it, of different sizes."""
    rng = np.random.default_rng(seed)
    inputs = {"rows": ["x"], "row": ["r"], "count": ["k", "j"], "flag": ["f"]}
    scope = Scope(Names(rng, opset), depth, {k: list(v) for k, v in inputs.items()})
    for _ in range(int(rng.integers(2, 7))):
        scope.step()
    scope.pick([scope.branches, scope.loop, scope.loop])()
    outputs = [(k, n) for k, names in scope.made.items() for n in names[-3:]]
    graph = helper.make_graph(scope.nodes, "control", [_info(n, k) for k, names in inputs.items() for n in names],
                              [_info(n, k) for k, n in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    feeds = [{"x": rng.uniform(-1, 1, (n, 4)).astype(np.float32), "r": rng.uniform(-1, 1, 4).astype(np.float32),
              "k": np.int64(k), "j": np.int64(j), "f": np.bool_(f)}
             for n, k, j, f in ((5, 3, 0, True), (1, 0, 2, False), (3, 1, 1, True), (2, 2, 3, False))]
    return model, [{k: np.asarray(v) for k, v in f.items()} for f in feeds]
