"""Chains of arithmetic on sizes, as exporters write it, that decide shapes: one compilation without bounds, run at many
sizes, those too where values in between are negative, against onnxruntime."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
from compiled import compare, examples
from hypothesis import given
from hypothesis import strategies as st
from small_graphs import compiled, ints, model_of, node, numbers, reference, scalar

SIZES = [(1, 1), (2, 3), (3, 2), (7, 5), (13, 1), (16, 31), (41, 12)]
FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
MOST = 60       # elements along a dim: larger results are cut off


class Chain:
    """Nodes over the sizes n and m of the input x, and numpy's meaning of each value for given sizes."""

    def __init__(self) -> None:
        self.nodes = [node("Shape", "x", "s"), node("Gather", "s c0", "n", axis=0), node("Gather", "s c1", "m", axis=0)]
        self.constants: dict[str, Any] = {"c0": scalar(0), "c1": scalar(1), "v0": ints(0), "v1": ints(1)}
        self.values = ["n", "m"]

    def __repr__(self) -> str:
        """The chain as an ONNX graph, for the report of a failure."""
        return "; ".join(f"{n.output[0]} = {n.op_type}({', '.join(n.input)})" for n in self.nodes)

    def number(self, value: int | float) -> str:
        name = f"c{value}" if isinstance(value, int) else f"f{value}"
        self.constants[name] = scalar(value) if isinstance(value, int) else np.float32(value)
        return name

    def add(self, op: str, *operands: str, **attrs: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(node(op, " ".join(operands), name, **attrs))
        return name

    def whole(self, name: str, up: str, scale: float) -> str:
        """A size divided as a float, rounded `up` (Ceil or Floor), and a size again."""
        wide = self.add("Div", self.add("Cast", name, to=FLOAT), self.number(scale))
        return self.add("Cast", self.add(up, wide) if up else wide, to=INT64)

    def choice(self, compare: str, a: str, b: str, c: str) -> str:
        return self.add("Where", self.add(compare, a, c), a, b)

    def size(self, name: str) -> str:
        """`name` as a vector of one size within 0..MOST."""
        kept = self.add("Min", self.add("Max", name, "c0"), self.number(MOST))
        return self.add("Unsqueeze", kept, "v0")


KINDS = ["Add", "Sub", "add", "add", "Mul", "Div", "Div", "down", "Mod", "fmod", "Max", "Min", "Ceil", "Floor", "",
         "Where", "Neg", "Abs", "quotient"]


@st.composite
def chains(draw: Any) -> tuple[Chain, str]:
    chain = Chain()
    small, divisor = st.integers(-9, 9), st.integers(1, 7)
    for _ in range(draw(st.integers(2, 6))):
        a, b = (draw(st.sampled_from(chain.values[-3:] + ["n"])) for _ in range(2))
        kind = draw(st.sampled_from(KINDS))
        if kind in ("Add", "Sub", "Max", "Min"):
            made = chain.add(kind, a, b)
        elif kind == "add":
            made = chain.add("Add", a, chain.number(draw(small)))
        elif kind in ("Mul", "Div"):
            made = chain.add(kind, a, chain.number(draw(divisor)))
        elif kind in ("Mod", "fmod"):
            made = chain.add("Mod", a, chain.number(draw(divisor)), fmod=int(kind == "fmod"))
        elif kind == "down":            # as Python divides: the quotient less 1 where there is a remainder below 0
            by = chain.number(draw(divisor))
            below = chain.add("Less", chain.add("Mod", a, by, fmod=1), "c0")
            made = chain.add("Sub", chain.add("Div", a, by), chain.add("Cast", below, to=INT64))
        elif kind in ("Ceil", "Floor", ""):
            made = chain.whole(a, kind, float(draw(st.sampled_from([2, 4, 8]))))
        elif kind == "Where":
            made = chain.choice(draw(st.sampled_from(["Less", "Greater", "Equal", "LessOrEqual"])), a, b,
                                chain.number(draw(small)))
        elif kind == "quotient":
            made = chain.add("Div", a, chain.add("Max", chain.add("Abs", b), "c1"))
        else:
            made = chain.add(kind, a)
        chain.values.append(made)
    return chain, chain.values[-1]


def range_(c: Chain, v: str) -> str:
    return c.add("Range", "c0", c.add("Min", v, c.number(MOST)), "c1")


def slice_(c: Chain, v: str) -> str:
    return c.add("Slice", "x", c.add("Unsqueeze", v, "v0"), c.add("Unsqueeze", c.values[-2], "v0"), "v1")


def expand(c: Chain, v: str) -> str:
    return c.add("Expand", c.add("ReduceMax", "x", keepdims=1), c.add("Concat", c.size(v), c.size("m"), axis=0))


def reshape(c: Chain, v: str) -> str:
    full = c.add("ConstantOfShape", c.add("Concat", c.size(v), c.size("n"), c.size("m"), axis=0))
    flat = c.add("Concat", c.add("Neg", "v1"), c.size("m"), axis=0)
    return c.add("Add", c.add("Reshape", full, flat), c.add("ReduceMin", "x", keepdims=1))


def pad(c: Chain, v: str) -> str:
    return c.add("Pad", "x", c.add("Concat", "v0", c.size("m"), c.size(v), "v0", axis=0))


def resize(c: Chain, v: str) -> str:
    sizes = c.add("Concat", "v1", "v1", c.add("Add", c.size(v), "v1"), c.size("m"), axis=0)
    image = c.add("Unsqueeze", "x", "v01")
    c.constants["v01"] = ints(0, 1)
    return c.add("Resize", image, "-", "-", sizes, mode="nearest", coordinate_transformation_mode="asymmetric",
                 nearest_mode="floor")


def tile(c: Chain, v: str) -> str:
    return c.add("Tile", "x", c.add("Concat", "v1", c.add("Min", c.size(v), c.number(5)), axis=0))


USES = [range_, slice_, expand, reshape, pad, resize, tile]
turn = itertools.count()


@examples(20)
@given(chains(), st.integers(0, 6))
def test_chains(made: tuple[Chain, str], first: int) -> None:
    chain, value = made
    outputs = " ".join(USES[(first + k) % len(USES)](chain, value) for k in range(2))
    x = {size: numbers(*size) for size in SIZES}
    source = model_of(chain.nodes, {"x": x[SIZES[0]]}, outputs, chain.constants, dims={"x": ["n", "m"]})
    model = compiled(source)
    for given_x in x.values():
        for got, want in zip(model.run({"x": given_x}).values(), reference(source, {"x": given_x}), strict=True):
            compare(got, want, 4)
