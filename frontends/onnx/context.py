"""What a converter sees: a frozen view of one node, its operands and its attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from onnx import NodeProto

from xcc import _mlir, symbolic
from xcc.diagnostics import Misfit, UserError, dim_option
from xcc.dialects import xt
from xcc.dialects.xt import base
from xcc.dialects.xt.types import dtype_name, numpy_dtype
from xcc.frontends.onnx.counted import countable, counted
from xcc.frontends.onnx.element_types import DType
from xcc.symbolic import Dim

if TYPE_CHECKING:
    from xcc.frontends.onnx.graph import GraphImporter

Array = np.ndarray[Any, Any]
Shape = tuple[Dim, ...]


def element_dtype(value: _mlir.Value) -> DType:
    """The numpy dtype of an xt value's elements."""
    dtype: DType = np.dtype(numpy_dtype(dtype_name(base.element_type_of(value))))
    return dtype


@dataclass(eq=False)
class Tensor:
    """A value of the source graph.

    `data` is known at import: an array of the real dtype for a constant, an object array of symbolic dims for shape
    arithmetic, None for what only a run can tell. `value` is its xt value, made at first use for known data.
    """

    dtype: DType
    shape: Shape
    value: _mlir.Value | None = None
    data: Array | None = None
    name: str = ""
    depth: int = 0
    cache: dict[int, Any] = field(default_factory=dict, repr=False)

    @property
    def const(self) -> Array | None:
        """The constant value, None when it is symbolic or not known."""
        return self.data if self.data is not None and self.data.dtype != object else None

    @classmethod
    def of_value(cls, value: _mlir.Value) -> Tensor:
        return cls(element_dtype(value), base.shape_of(value), value)

    @classmethod
    def of_array(cls, array: Array, name: str = "") -> Tensor:
        return cls(array.dtype, tuple(array.shape), data=array, name=name)

    @classmethod
    def of_dims(cls, dims: Array, dtype: DType) -> Tensor:
        """Shape arithmetic: `dims` is an object array; a wholly static one becomes a constant."""
        if all(isinstance(d, int | float | bool | np.generic) for d in dims.flat):
            return cls.of_array(np.array(dims.tolist(), dtype).reshape(dims.shape))
        return cls(dtype, tuple(dims.shape), data=dims)


@dataclass(eq=False)
class TensorList:
    """A value of a sequence type, known element by element; `dtype` is that of elements."""

    elements: tuple[Tensor, ...]
    dtype: DType
    name: str = ""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """What it holds its elements as."""
        return self.elements

    def holding(self, tensors: tuple[Tensor, ...]) -> TensorList:
        """A sequence like this of other :attr:`tensors`."""
        return TensorList(tensors, self.dtype, self.name)


@dataclass(eq=False)
class Absent:
    """An optional value that holds nothing."""

    name: str = ""


Value = Tensor | TensorList | Absent


def flatten(values: Iterable[Value]) -> list[Tensor]:
    """The tensors of `values`: those of sequences in their place."""
    return [t for v in values for t in ([v] if isinstance(v, Tensor) else getattr(v, "tensors", ()))]


def regroup(like: Iterable[Value], tensors: Iterable[Tensor]) -> list[Value]:
    """`tensors` as values of the kinds of `like`: the inverse of :func:`flatten`."""
    rest = iter(tensors)
    return [next(rest) if isinstance(v, Tensor) else v if isinstance(v, Absent) else
            v.holding(tuple(next(rest) for _ in v.tensors)) for v in like]


@dataclass(frozen=True)
class Context:
    """One node during import. ``cx[i]`` is the xt value of operand `i`."""

    node: NodeProto
    inputs: tuple[Value | None, ...]
    attrs: Mapping[str, Any]
    opset: int
    graph: GraphImporter

    @property
    def op(self) -> str:
        return str(self.node.op_type)

    @property
    def place(self) -> str:
        return place_of(self.node)

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        """The operands, None for one that is left out or no tensor."""
        return tuple(t if isinstance(t, Tensor) else None for t in self.inputs)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, i: int) -> _mlir.Value:
        return self.graph.materialize(self.tensor(i))

    def has(self, i: int) -> bool:
        return i < len(self.inputs) and self.inputs[i] is not None

    def optional(self, i: int) -> _mlir.Value | None:
        """The xt value of operand `i`, None when the node leaves it out."""
        return self[i] if self.has(i) else None

    def tensor(self, i: int) -> Tensor:
        tensor = self.inputs[i] if i < len(self.inputs) else None
        if tensor is None:
            self.fail(f"operand {i} is missing")
        if not isinstance(tensor, Tensor):
            self.misfit(f"operand {i} is {'a sequence' if isinstance(tensor, TensorList) else 'absent'}, not a tensor")
        return tensor

    def values(self) -> list[_mlir.Value]:
        return [self[i] for i in range(len(self.inputs)) if self.has(i)]

    def wants(self, output: int) -> bool:
        """Whether the node names its output `output`."""
        return output < len(self.node.output) and bool(self.node.output[output])

    def shape(self, i: int) -> Shape:
        return self.tensor(i).shape

    def rank(self, i: int) -> int:
        return len(self.tensor(i).shape)

    def dtype(self, i: int) -> DType:
        return self.tensor(i).dtype

    def attr(self, name: str, default: Any = None) -> Any:
        """The attribute, its default from the schema, or `default`."""
        value = self.attrs.get(name)
        return default if value is None else value

    def axis(self, name: str = "axis", default: int = 0, rank: int | None = None) -> int:
        return self.normal_axis(self.attr(name, default), rank)

    def normal_axis(self, axis: int, rank: int | None = None) -> int:
        """`axis` counted from the front; fails when it is out of range."""
        rank = self.rank(0) if rank is None else rank
        if not -rank <= axis < max(rank, 1):
            self.misfit(f"axis {axis} is out of range for rank {rank}")
        return int(axis) % max(rank, 1)

    def dims(self, i: int) -> Shape:
        """Operand `i`, an integer vector or scalar, as symbolic dims; fails when only a run can tell them."""
        data = self.tensor(i).data
        if data is None:
            data = counted(self, i)
        if data is None:
            names = countable(self, i)
            limits = ", ".join(dim_option(n, "0..100") for n in names)
            advice = f"give the most that it may be ({limits}), or " if names else ""
            raise self.runtime_shape(i, "decides a shape", advice)
        return tuple(d if isinstance(d, symbolic.Expr) else int(d) for d in data.reshape(-1))

    def static_ints(self, i: int) -> tuple[int, ...]:
        dims = self.dims(i)
        if not symbolic.is_static(dims):
            raise RuntimeShape(self.where(f"operand {i} must be constant, but is {[str(d) for d in dims]}"
                                          f"{self.fixing(i)}"), self.inputs_behind(i))
        return tuple(int(d) for d in dims)  # type: ignore[arg-type]

    def const(self, i: int) -> Array:
        """Operand `i` as a constant array."""
        const = self.tensor(i).const
        if const is None:
            raise self.runtime_shape(i, "must be constant")
        return const

    def runtime_shape(self, i: int, what: str, advice: str = "") -> RuntimeShape:
        """The error that operand `i`, which only a run can tell, `what`."""
        inputs, value = self.inputs_behind(i), self.tensor(i).value
        sizes = () if inputs or value is None else self.graph.model.sizes_behind(value)
        if sizes:
            bounds = " ".join(dim_option(name, "LOW..HIGH") for name in sizes)
            advice = f"bound or fix the sizes that it is computed from ({bounds}), or {advice}"
        hint = self.fixing(i, advice) if inputs else advice and f"; {advice.removesuffix(', or ')}"
        sums = self.graph.model.flags.behind(value) if value is not None else frozenset()
        return RuntimeShape(self.where(f"operand {i} ('{self.node.input[i]}') {what}, but it is computed at run time "
                                       f"and no symbolic value is known for it{hint}"), inputs, sums)

    def inputs_behind(self, i: int) -> tuple[str, ...]:
        """The model's inputs that operand `i` is computed from."""
        tensor, model = self.tensor(i), self.graph.model
        if tensor.data is None:
            return model.inputs_behind(tensor.value)
        return model.values.inputs_of(tensor.data.flat)

    def fixing(self, i: int, advice: str = "") -> str:
        """How to make operand `i` known: what to fix; empty where it comes from no input."""
        inputs = self.inputs_behind(i)
        if not inputs:
            return ""
        listed = ", ".join(f"'{name}'" for name in inputs)
        return f"; {advice}fix the value of {listed} (--fix {inputs[0]}=..., fix={{{inputs[0]!r}: ...}})"

    def const_or(self, i: int, default: Any) -> Any:
        """The constant scalar of an optional operand."""
        return self.const(i).reshape(-1)[0] if self.has(i) else default

    def known(self, array: Array) -> Tensor:
        """A constant result."""
        return Tensor.of_array(array, str(self.node.output[0]))

    def scalar(self, value: float | int | bool, like: _mlir.Value) -> _mlir.Value:
        """A scalar constant with the element type of the xt value `like`."""
        return xt.constant(np.array(value).astype(element_dtype(like)))

    def dims_or_declared(self, i: int) -> Shape:
        """Operand `i` as dims; where only a run could tell them, the shape that the model declares for its output."""
        try:
            return self.dims(i)
        except RuntimeShape:
            declared = self.declared()
            if declared is None:
                raise
            return declared

    def declared(self, output: int = 0) -> Shape | None:
        """The static shape that the model declares for an output, if it does."""
        return self.graph.declared_shape(self.node.output[output])

    def where(self, message: str) -> str:
        return self.graph.describe(self.node, message)

    def fail(self, message: str) -> NoReturn:
        raise UserError(self.where(message))

    def misfit(self, message: str) -> NoReturn:
        """For operands that no implementation could take: in a branch, an error only of runs that take it."""
        raise Misfit(self.where(message))


class RanksDiffer(UserError):
    """The branches of the If `node` give values of different ranks."""

    def __init__(self, message: str, node: NodeProto) -> None:
        super().__init__(message)
        self.node = node


class RuntimeShape(UserError):
    """A shape depends on values that only a run can tell; `inputs` are the model's inputs that they come from.

    `sums` are the sums of flags, to be had as sizes, that they come from.
    """

    def __init__(self, message: str, inputs: tuple[str, ...], sums: frozenset[str] = frozenset()) -> None:
        super().__init__(message)
        self.inputs = inputs
        self.sums = sums


def place_of(node: NodeProto) -> str:
    """What errors of a run call the node."""
    return f"node '{node.name[:1000]}'"

