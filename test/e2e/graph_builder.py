"""Builds an ONNX graph node by node, with what onnxruntime makes of each value.

A graph has two sets of sizes of its symbolic dims. For each set there are two *worlds*: the values as onnxruntime
computes them, and the values where each rounding is off by a random amount of its size. The difference between these
two at an output is what a correct compiler may differ by; ops that are not continuous take only values without
rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
OPSET = 21
WORLDS = 4      # (sizes, with noise): (0, no), (0, yes), (1, no), (1, yes)
NOISE = {"float32": 2e-6, "float16": 1e-3, "float64": 1e-14}
LIMIT = 1000.0
"""Values beyond this end a chain: what follows would be infinite."""


@dataclass(eq=False)
class Value:
    """A value of the graph in each world. `exact`: no float was rounded on the way, so any runtime has these bits."""

    name: str
    worlds: list[Array]
    exact: bool = True
    constant: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.worlds[0].shape)

    @property
    def rank(self) -> int:
        return self.worlds[0].ndim

    @property
    def dtype(self) -> Any:
        return self.worlds[0].dtype

    @property
    def is_float(self) -> bool:
        return bool(self.dtype.kind == "f")

    def static(self, axis: int) -> bool:
        """Whether the dim has one size in both sets of sizes."""
        return bool(self.worlds[0].shape[axis] == self.worlds[2].shape[axis])

    @property
    def is_static(self) -> bool:
        return all(self.static(i) for i in range(self.rank))

    @property
    def largest(self) -> float:
        return max((float(np.abs(w.astype(np.float64)).max()) for w in self.worlds if w.size), default=0.0)

    @property
    def smallest(self) -> float:
        return min((float(np.abs(w.astype(np.float64)).min()) for w in self.worlds if w.size), default=1.0)


@dataclass
class Node:
    op: str
    inputs: list[str]
    outputs: list[str]
    attrs: dict[str, Any]
    domain: str = ""
    wide: bool = False
    """onnxruntime has this op for f32 only: in its graph the operands and results are converted."""

    def protos(self, reference: bool) -> list[Any]:
        if not (reference and self.wide):
            return [helper.make_node(self.op, self.inputs, self.outputs, domain=self.domain, **self.attrs)]
        names = [f"{self.outputs[0]}_in{i}" if n else "" for i, n in enumerate(self.inputs)]
        made = [helper.make_node("Cast", [n], [w], to=TensorProto.FLOAT)
                for n, w in zip(self.inputs, names, strict=True) if w]
        made.append(helper.make_node(self.op, names, [f"{o}_wide" for o in self.outputs], domain=self.domain,
                                     **self.attrs))
        return made + [helper.make_node("Cast", [f"{o}_wide"], [o], to=TensorProto.FLOAT16) for o in self.outputs]


@dataclass
class Builder:
    """A graph that grows; `sizes` maps a symbolic dim to its size in each set."""

    rng: np.random.Generator
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    limit: int = 20000
    noise: float = NOISE["float32"]
    """What f32 is rounded by: that of a narrower type where the compiler may compute in it."""
    values: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    inputs: list[tuple[Value, list[int | str]]] = field(default_factory=list)
    constants: list[Value] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    # -- choices ------------------------------------------------------------------------------------------------------
    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def int(self, low: int, high: int) -> int:
        """In [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def value(self, fits: Callable[[Value], bool]) -> Value | None:
        """One of the values that fit, late ones more often."""
        found = [v for v in self.values if fits(v)]
        if not found:
            return None
        weights = np.arange(1, len(found) + 1, dtype=float)
        return found[int(self.rng.choice(len(found), p=weights / weights.sum()))]

    # -- what a graph is made of --------------------------------------------------------------------------------------
    def numbers(self, shape: Sequence[int], dtype: Any) -> Array:
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            return np.asarray(self.rng.random(shape) < 0.5)
        if dtype.kind in "iu":
            return np.asarray(self.rng.integers(0 if dtype.kind == "u" else -9, 10, shape)).astype(dtype)
        return np.asarray(self.rng.uniform(-2, 2, shape)).astype(dtype)

    def input(self, dims: Sequence[int | str], dtype: Any) -> Value:
        worlds = []
        for i in range(2):
            a = self.numbers([d if isinstance(d, int) else self.sizes[d][i] for d in dims], dtype)
            worlds += [a, a]
        v = Value(f"x{len(self.inputs)}", worlds)
        if v.dtype == np.float32 and self.noise > NOISE["float32"]:
            v.exact = False
            self._roughen(v)
        self.inputs.append((v, list(dims)))
        self.values.append(v)
        return v

    def constant(self, array: Any, dtype: Any = None, share: bool = False) -> Value:
        """A constant; with `share` an earlier one of this shape may serve."""
        array = np.asarray(array, dtype)
        if share and self.chance(0.4):
            old = [c for c in self.constants if c.shape == array.shape and c.dtype == array.dtype and c.name[0] == "w"]
            if old:
                return self.pick(old)
        v = Value(f"{'w' if share else 'c'}{len(self.constants)}", [array] * WORLDS, constant=True)
        self.constants.append(v)
        return v

    def weight(self, *shape: int, dtype: Any = np.float32, scale: float = 1.0) -> Value:
        return self.constant(self.numbers(shape, dtype) * np.dtype(dtype).type(scale) if scale != 1.0
                             else self.numbers(shape, dtype), dtype, share=scale == 1.0)

    def emit(self, op: str, *inputs: Value | None, outputs: int = 1, exact: bool = False, copies: bool = False,
             domain: str = "", **attrs: Any) -> list[Value]:
        """A node and its results, or [] where onnxruntime refuses it or its results are of no use.

        Args:
            exact: exact inputs give exact results; else floats are rounded.
            copies: results are elements of the inputs: no rounding of its own.
        """
        given = [i for i in inputs if i is not None]
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        node = Node(op, [i.name if i is not None else "" for i in inputs], names, attrs, domain)
        try:
            runs = _run(node, given)
        except _Refused:
            if {i.dtype.name for i in given if i.is_float} != {"float16"}:
                return []
            node.wide = True
            try:
                runs = _run(node, given)
            except _Refused:
                return []
        exact = op == "Shape" or (exact or copies) and all(i.exact for i in given)
        made = [Value(n, [r[i] for r in runs], exact) for i, n in enumerate(names)]
        for v in made:
            if not v.exact and not copies:
                self._roughen(v)
            if not self._useful(v):
                return []
        self.nodes.append(node)
        self.used |= {i.name for i in given}
        self.values += made
        return made

    def _roughen(self, v: Value) -> None:
        for i in (1, 3):
            a = v.worlds[i]
            if v.is_float and a.size:
                noise = self._rounding(v) * float(np.abs(np.where(np.isfinite(a), a, 0)).max())
                v.worlds[i] = (a + self.rng.uniform(-noise, noise, a.shape)).astype(a.dtype)
            elif v.dtype.kind in "iu":
                low, high = np.iinfo(a.dtype).min, np.iinfo(a.dtype).max
                v.worlds[i] = np.clip(a.astype(np.int64) + self.rng.integers(-1, 2, a.shape), low, high).astype(a.dtype)

    def _rounding(self, v: Value) -> float:
        return max(self.noise, NOISE[v.dtype.name]) if v.is_float else 0.0

    def _useful(self, v: Value) -> bool:
        if any(not 0 < w.size <= self.limit for w in v.worlds) or v.worlds[0].dtype.kind == "O":
            return False        # onnxruntime is not strict about what has no elements
        if not v.is_float:
            return v.largest < 1 << 40
        if any(not np.isfinite(w).all() for w in v.worlds) or v.largest > LIMIT:
            return False
        most = max(0.02, 100 * self._rounding(v)) * max(v.largest, 1e-3)
        return all(self.allowed(v, i) <= most for i in (0, 1))

    def allowed(self, v: Value, which: int) -> float:
        """What a result may differ by, for sizes number `which`."""
        if v.exact or not v.worlds[2 * which].size:
            return 0.0
        clean, noisy = (v.worlds[2 * which + i].astype(np.float64) for i in (0, 1))
        return 20 * self._rounding(v) * float(np.abs(clean).max()) + 10 * float(np.abs(clean - noisy).max())

    # -- the finished graph -------------------------------------------------------------------------------------------
    def outputs(self) -> list[Value]:
        """Values that no node uses, and a few others."""
        made = [v for v in self.values if v.name[0] == "v"]
        ends = [v for v in made if v.name not in self.used]
        inner = [v for v in made if v.name in self.used and self.chance(0.1)]
        return (ends[-6:] + inner[:2]) or made[-1:]

    def model(self, outputs: Sequence[Value], reference: bool = False, cut: Sequence[Value] = ()) -> Any:
        """The model with these outputs; `cut` are values that become inputs. Without nodes that are not needed."""
        return assemble(self.nodes, [v.name for v in outputs], self.inputs, self.constants, self.sizes, reference,
                        {v.name: v for v in [*self.values, *self.constants]}, [v.name for v in cut])


class _Refused(Exception):
    pass


def _session(model: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _run(node: Node, inputs: Sequence[Value]) -> list[list[Array]]:
    """The node's results in each world."""
    distinct = {v.name: v for v in inputs}
    graph = helper.make_graph(
        node.protos(reference=True), "node",
        [helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(v.dtype), [None] * v.rank)
         for v in distinct.values()],
        [onnx.ValueInfoProto(name=n) for n in node.outputs])
    try:
        session = _session(_wrapped(graph))
        return [session.run(None, {v.name: v.worlds[i] for v in distinct.values()}) for i in range(WORLDS)]
    except Exception as e:      # onnxruntime's exceptions have no base of their own
        raise _Refused(str(e)) from None


def _wrapped(graph: Any) -> Any:
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def assemble(nodes: Sequence[Node], outputs: Sequence[str], inputs: Any, constants: Sequence[Value],
             sizes: dict[str, tuple[int, int]], reference: bool, values: dict[str, Value], cut: Sequence[str]) -> Any:
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if needed & (set(node.outputs) - set(cut)):
            kept.append(node)
            needed |= {n for n in node.inputs if n}
    declared = {v.name: dims for v, dims in inputs}
    entering = [n for n in declared if n in needed] + [n for n in cut if n in needed]
    arguments = [helper.make_tensor_value_info(
        n, helper.np_dtype_to_tensor_dtype(values[n].dtype),
        declared.get(n) or [d if values[n].static(i) else f"{n}_{i}" for i, d in enumerate(values[n].shape)])
        for n in entering]
    results = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(values[n].dtype),
                                             [None] * values[n].rank) for n in outputs]
    graph = helper.make_graph([p for node in reversed(kept) for p in node.protos(reference)], "random", arguments,
                              results, [numpy_helper.from_array(c.worlds[0], c.name) for c in constants
                                        if c.name in needed])
    return _wrapped(graph)


def reference(model: Any, feeds: dict[str, Array]) -> list[Array]:
    return list(_session(model).run(None, feeds))
