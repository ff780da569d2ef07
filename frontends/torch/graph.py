"""A PyTorch program as plain data: what the capture gives and the importer reads, without torch.

    TorchGraph(inputs=(Input("x", "user", TensorSpec("f32", ("batch", 8))),),
               nodes=(Node("relu", "aten.relu.default", (("self", Ref("x")),), (TensorSpec("f32", ("batch", 8)),)),),
               outputs=(Output("out", Ref("relu")),))

Every argument of a node stands under its name in the op's schema, defaults too. Sizes are numbers or the text of
:mod:`xcc.symbolic`. The whole is picklable, and its text (:meth:`TorchGraph.digest`) names it in the cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Union

from xcc import symbolic

__all__ = ["DType", "HIGHEST", "REAL_OF", "Input", "Node", "Output", "Ref", "SizeSpec", "Size", "Spec", "TensorSpec",
           "TorchGraph", "Subgraph", "is_complex", "refs_of"]

HIGHEST = (1 << 31) - 1
"""A larger bound of a size is none."""

REAL_OF = {"complex32": "f16", "complex64": "f32", "complex128": "f64"}
"""The element type of the parts of torch's complex types."""


@dataclass(frozen=True)
class Ref:
    """The value `index` of the input or node `name`."""

    name: str
    index: int = 0


@dataclass(frozen=True)
class Size:
    """An integer that the sizes of inputs decide: the text of an expression of :mod:`xcc.symbolic`."""

    text: str


@dataclass(frozen=True)
class DType:
    """An element type by its xcc name; a complex one, which no op takes, by torch's."""

    name: str


@dataclass(frozen=True)
class Subgraph:
    """The body of a higher-order op: an entry of ``TorchGraph.subgraphs``."""

    name: str


@dataclass(frozen=True)
class TensorSpec:
    """What torch says of a tensor: element type, sizes, and strides where it has them, in elements.

    `scalar`: a Python number that is computed when the model runs, a tensor without dims here.
    """

    dtype: str
    shape: tuple[int | str, ...]
    strides: tuple[int | str, ...] | None = None
    scalar: bool = False


@dataclass(frozen=True)
class SizeSpec:
    """A Python int that the sizes decide."""

    text: str


Spec = Union[TensorSpec, SizeSpec, None]


@dataclass(frozen=True)
class Node:
    """One op, as ``aten.add.Tensor``. `source` is the user's line that it comes from: ``m.py:8, in forward: x + 1``.

    `new` are symbols that the node defines: sizes that only a run can tell, each with its place among the results as
    (symbol, result, dim), dim -1 for a result that is the number itself.
    """

    name: str
    op: str
    args: tuple[tuple[str, Any], ...]
    results: tuple[Spec, ...]
    source: str = ""
    new: tuple[tuple[str, int, int], ...] = ()


@dataclass(frozen=True)
class Input:
    """`kind`: user (an argument of a call), parameter, buffer, constant (the weight `target`), size (a Python int),
    seed (an i64 that random numbers depend on), ragged (a name for lengths, which no node reads).

    A buffer that the program writes is `mutated`. `order`: how its dims lie in memory, outermost first; () in their
    order.
    """

    name: str
    kind: str
    spec: Spec
    target: str = ""
    mutated: bool = False
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class Output:
    """`updates` names the input that the value is written into after the run, "" for one that is returned.

    `order` as for an input: a result has its dims so in memory.
    """

    name: str
    value: Any
    updates: str = ""
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class TorchGraph:
    """`bounds`: the least and largest value of symbols, None for no limit. `in_spec`, `out_spec`: the nesting of a
    call's arguments and of what it returns, as the text that torch.utils._pytree writes ("" for flat ones). `mesh`: of
    the ranks that run it together, as text ("" for one that runs alone), `groups`: the axes of each process group.
    `rounded`: of "convolution" and "product" those whose f32 operands torch lets be rounded to tf32."""

    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    bounds: tuple[tuple[str, int, int | None], ...] = ()
    in_spec: str = ""
    out_spec: str = ""
    name: str = "model"
    subgraphs: tuple[tuple[str, TorchGraph], ...] = field(default=())
    mesh: str = ""
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    rounded: tuple[str, ...] = ()

    def arguments(self) -> list[Input]:
        """The inputs that the program has: without weights, and without sizes that others tell: those computed of
        others, and in a flat call the dims of tensors."""
        dims = set() if self.in_spec else {d for i in self.inputs if i.kind == "user" and isinstance(i.spec, TensorSpec)
                                           for d in i.spec.shape}

        def given(i: Input) -> bool:
            if i.kind == "size":
                return isinstance(i.spec, SizeSpec) and i.spec.text not in dims \
                    and symbolic.bare_symbol(symbolic.parse(i.spec.text)) is not None
            return i.kind in ("user", "seed") and isinstance(i.spec, TensorSpec) or i.mutated

        return [i for i in self.inputs if given(i)]

    def specs(self) -> dict[Ref, Spec]:
        """What torch says of each value."""
        return {Ref(i.name): i.spec for i in self.inputs} \
            | {Ref(n.name, i): spec for n in self.nodes for i, spec in enumerate(n.results)}

    def with_bodies(self) -> Iterator[TorchGraph]:
        """The graph, and the bodies of its higher-order ops."""
        yield self
        for _, body in self.subgraphs:
            yield from body.with_bodies()

    def digest(self) -> str:
        """A hash of everything but the source lines."""
        h = hashlib.sha256()
        for part in self._parts():
            h.update(repr(part).encode() + b"\0")
        return h.hexdigest()

    def _parts(self) -> Iterator[Any]:
        yield self.inputs, self.outputs, self.bounds, self.in_spec, self.out_spec, self.name
        yield self.mesh, self.groups, self.rounded
        for n in self.nodes:
            yield n.name, n.op, n.args, n.results, n.new
        for name, graph in self.subgraphs:
            yield name, graph.digest()

    def text(self) -> str:
        """A listing for people and tests: a line an input, node and output."""
        lines = [f"{i.kind} {i.name}: {spec_text(i.spec)}" for i in self.inputs]
        for n in self.nodes:
            args = ", ".join(f"{name}={value_text(value)}" for name, value in n.args)
            lines.append(f"{n.name} = {n.op}({args}): {', '.join(map(spec_text, n.results))}")
        lines += [f"return {o.name} = {value_text(o.value)}" + (f" into {o.updates}" if o.updates else "")
                  for o in self.outputs]
        return "\n".join(lines)


def spec_text(spec: Spec) -> str:
    if isinstance(spec, TensorSpec):
        return f"{spec.dtype}[{', '.join(map(str, spec.shape))}]"
    return "none" if spec is None else spec.text


def value_text(value: Any) -> str:
    if isinstance(value, Ref):
        return f"%{value.name}" + (f"#{value.index}" if value.index else "")
    if isinstance(value, Size):
        return value.text
    if isinstance(value, DType | Subgraph):
        return value.name
    if isinstance(value, tuple):
        return f"[{', '.join(map(value_text, value))}]"
    return repr(value)


def is_complex(spec: Spec) -> bool:
    """Whether it is a tensor of complex numbers."""
    return isinstance(spec, TensorSpec) and spec.dtype in REAL_OF


def refs_of(value: Any) -> Iterator[Ref]:
    """The values that an argument holds."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, tuple):
        for v in value:
            yield from refs_of(v)
