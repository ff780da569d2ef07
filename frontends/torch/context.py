"""What a converter sees: one node, its arguments by their names in the op's schema, and what torch says of its results.

    @aten("softmax.int")
    def softmax(cx: Context) -> Value:
        return xt.softmax(cx.tensor("self"), axis=cx.axis("dim"))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from xcc import symbolic
from xcc._mlir import Value
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.dialects.xt.types import TensorType, numpy_dtype
from xcc.frontends.shared.helpers import convert, dim_scalar, element
from xcc.frontends.torch.draw_state import words_of
from xcc.frontends.torch.graph import Node, Ref, Size, TensorSpec
from xcc.frontends.torch.promotion import result_type
from xcc.frontends.torch.slices import from_front
from xcc.symbolic import Dim, Expr

if TYPE_CHECKING:
    from xcc.frontends.torch.importer import GraphImporter

Shape = tuple[Dim, ...]


@dataclass(frozen=True)
class Number:
    """A Python number that is computed when the model runs: an xt value of rank 0."""

    value: Value


@dataclass(frozen=True)
class Complex:
    """A tensor of complex numbers: its parts, of one shape and type."""

    real: Value
    imag: Value


Bound = Value | Number | Complex | Dim
"""What a result is: a value, one that stands for a Python number, complex numbers, or a size."""


@dataclass(frozen=True)
class Context:
    """One node during import; ``cx["dim"]`` is an argument: an xt value, a dim, a number, text, None, or a tuple."""

    node: Node
    args: dict[str, Any]
    graph: GraphImporter

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The argument, `default` where it is None or the overload has no such argument."""
        value = self.args.get(name)
        return default if value is None else value

    def tensor(self, name: str) -> Value:
        """A tensor argument as an xt value; a number becomes one of rank 0."""
        value = self.args[name]
        if value is None:
            self.fail(f"its operand '{name}' is missing")
        return self.value_of(value)

    def optional(self, name: str) -> Value | None:
        """The xt value of a tensor argument, None where it is left out."""
        return None if self.args.get(name) is None else self.tensor(name)

    def tensors(self, name: str) -> list[Value]:
        """A list of tensors."""
        return [self.value_of(v) for v in self.args[name]]

    def value_of(self, value: Any, dtype: str | None = None) -> Value:
        """An argument as an xt value of `dtype`; a dim or a Python number gives a scalar, else i64, f32 or i1."""
        if isinstance(value, Number):
            return value.value if dtype is None else convert(value.value, dtype)
        if isinstance(value, Expr):
            return dim_scalar(value, dtype or "i64")
        if isinstance(value, bool | int | float):
            return xt.scalar(value, dtype or _python_type(value)[0].replace("f64", "f32"))
        return value if dtype is None else convert(value, dtype)

    def shape(self, name: str) -> Shape:
        """The shape of a tensor argument."""
        return tuple(xt.shape_of(self.tensor(name)))

    def strides(self, name: str) -> Shape:
        """How far apart torch has a tensor argument's elements; as if dense where it does not say."""
        ref = next(value for own, value in self.node.args if own == name)
        spec = self.graph.spec_of(ref) if isinstance(ref, Ref) else None
        if isinstance(spec, TensorSpec) and spec.strides is not None:
            return tuple(d if isinstance(d, int) else self.graph.dim(d) for d in spec.strides)
        shape = self.shape(name)
        return tuple(symbolic.product(shape[d + 1:]) for d in range(len(shape)))

    def rank(self, name: str = "self") -> int:
        return len(self.shape(name))

    def dtype(self, name: str = "self") -> str:
        """The element type of a tensor argument."""
        return element(self.tensor(name))

    def axis(self, name: str = "dim", rank: int | None = None) -> int:
        """A dim argument counted from the front."""
        return self.normal(self.args[name], rank)

    def normal(self, axis: int, rank: int | None = None) -> int:
        size = self.rank() if rank is None else rank
        return int(axis) % max(size, 1)

    def axes(self, name: str = "dim", rank: int | None = None) -> tuple[int, ...]:
        """A list of dims, or one, counted from the front; all dims where it is None or empty."""
        size = self.rank() if rank is None else rank
        given = self.args.get(name)
        if given is None or given == () or not size:
            return tuple(range(size))
        return tuple(self.normal(a, size) for a in (given if isinstance(given, tuple) else (given,)))

    def dims(self, name: str) -> Shape:
        """A list of sizes."""
        value = self.args[name]
        sizes = value if isinstance(value, tuple) else (value,)
        for d in sizes:
            if not isinstance(d, int | Expr):
                self.fail(f"'{name}' is a size that is computed from values of tensors; make it an argument of the "
                          "model, or a constant")
        return tuple(sizes)

    def ints(self, name: str, count: int = 0) -> tuple[int, ...]:
        """A list of numbers; one alone stands for `count`, as torch has it for strides and the like."""
        sizes = self.dims(name)
        if not symbolic.is_static(sizes):
            self.fail(f"'{name}' is {[str(d) for d in sizes]}, but must be numbers")
        out = tuple(int(d) for d in sizes)  # type: ignore[arg-type]
        return out * count if len(out) == 1 and count else out

    def number(self, name: str, default: float | None = None) -> int | float:
        """A number that is a constant; one that the run tells is an error."""
        value = self.get(name, default)
        if not isinstance(value, int | float):
            given = value if isinstance(value, Expr) else "computed by the model"
            self.fail(f"'{name}' is {given}, but must be a number")
        return value

    def position(self, name: str, size: Dim) -> Dim | Value:
        """An index into `size` elements, counted from the first one; an i64 of rank 0 where the model computes it."""
        index = self.args[name]
        if not isinstance(index, Number):
            return from_front(index, size, self.graph.bounds)
        place = convert(index.value, "i64")
        below = xt.compare(place, xt.scalar(0, "i64"), direction="lt")
        return xt.select(below, xt.add(place, dim_scalar(size, "i64")), place)

    def out(self, result: int = 0) -> TensorType:
        """What torch says of a result."""
        return self.graph.type_of(self.node, result)

    def result_type(self, *names: str) -> str:
        """The type that torch promotes these arguments to; ones that are None do not count."""
        return result_type(self._rank_of(self.args[n]) for n in names if self.args[n] is not None)

    @staticmethod
    def _rank_of(value: Any) -> tuple[str, int]:
        if isinstance(value, Number):
            return element(value.value), 2
        if isinstance(value, bool | int | float | Expr):
            return _python_type(value)
        return element(value), 0 if xt.shape_of(value) else 1

    def operands(self, *names: str, dtype: str | None = None) -> list[Value]:
        """These arguments as xt values of one type: `dtype`, or that which torch promotes them to."""
        kind = dtype or self.result_type(*names)
        return [self.value_of(self.args[n], kind) for n in names]

    def scalar(self, value: float | int | bool, like: Value) -> Value:
        """A number as an xt value of rank 0 with the element type of `like`."""
        return self.value_of(value, element(like))

    def random_words(self) -> tuple[Value, Value]:
        """The seed of the run and a number that no other draw has, for xt's random ops; of a draw that is repeated,
        those that its state has."""
        state = self.args.get("xcc_state")
        if state is not None:
            return words_of(state)
        return self.graph.seed(), xt.scalar(self.graph.next_offset(), "i64")

    def precision(self, kind: str) -> str:
        """The precision of xt's convolutions or products, `kind` as in ``TorchGraph.rounded``."""
        return self.graph.precision(kind)

    def wants(self, result: int) -> bool:
        """Whether anything reads the result."""
        return self.graph.is_read(self.node.name, result)

    @property
    def place(self) -> str:
        """Where the node comes from: the op, and the user's line."""
        return place_of(self.node)

    def where(self, message: str) -> str:
        return f"{self.place}: {message}"

    def fail(self, message: str) -> NoReturn:
        raise UserError(self.where(message))


def _python_type(value: Any) -> tuple[str, int]:
    if isinstance(value, bool):
        return "i1", 2
    return ("f64", 2) if isinstance(value, float) else ("i64", 2)


def place_of(node: Node) -> str:
    """What errors call a node: the user's line, then the op."""
    where = f"{node.source}: " if node.source else ""
    return f"{where}{node.op} ('{node.name}')"


def resolve(value: Any, env: dict[Ref, Any], dim: Callable[[str], Dim]) -> Any:
    """A node's argument with the values of `env` put in, and sizes as dims by `dim`."""
    if isinstance(value, Ref):
        return env[value]
    if isinstance(value, Size):
        return dim(value.text)
    if isinstance(value, tuple):
        return tuple(resolve(v, env, dim) for v in value)
    return value


def spec_type(spec: TensorSpec, dim: Callable[[str], Dim]) -> TensorType:
    """A spec with sizes as dims; ValueError for an element type that xcc has not."""
    numpy_dtype(spec.dtype)
    return TensorType(tuple(d if isinstance(d, int) else dim(d) for d in spec.shape), spec.dtype)


