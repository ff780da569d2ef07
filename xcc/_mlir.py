"""The one place that imports the MLIR bindings, and the protocols of what they give: names to annotate with.

Takes the module ``mlir`` when it has ``dialects.ext`` (Python-defined dialects), else ``torch_mlir``,
which ships all of upstream MLIR. Dialect aliases end in ``_d``.

The bindings have no types for a checker. An object of theirs has what its protocol here says, and what its own class
adds: types and attributes come as their own classes, an operation as its `OpView`. What only some have is asked of
them after a test (`isinstance(v.owner, ir.Block)`), or of a view (`ir.VectorType(v.type).shape`).
"""

from __future__ import annotations

import importlib
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

__all__ = ["ROOT", "AffineExpr", "AffineMap", "Attribute", "AttributeMap", "Block", "Context", "InsertionPoint",
           "Location", "Module", "OpOperand", "Operation", "Region", "Type", "Value", "WalkResult", "ext", "ir",
           "owner_op", "parent_op", "passmanager", "rewrite"]


def _find_root() -> str:
    for root in ("mlir", "torch_mlir"):
        try:
            importlib.import_module(f"{root}.dialects.ext")
        except ImportError:
            continue
        return root
    raise ImportError("xcc needs the MLIR Python bindings: pip install torch-mlir==20261001")


ROOT = _find_root()


def _load(name: str) -> Any:
    return importlib.import_module(f"{ROOT}.{name}")


@runtime_checkable
class Type(Protocol):
    """A type. `width` is what types of numbers have; `shape` and `element_type` those of vectors, tensors, memrefs."""

    @property
    def width(self) -> int: ...
    @property
    def shape(self) -> Sequence[int]: ...
    @property
    def element_type(self) -> Type: ...
    @property
    def typeid(self) -> object: ...
    def maybe_downcast(self) -> Type: ...


@runtime_checkable
class Attribute(Protocol):
    """An attribute. `value` is what numbers, texts, flags, maps and types have; arrays have elements."""

    @property
    def type(self) -> Type: ...
    @property
    def value(self) -> Any: ...
    def __hash__(self) -> int: ...
    def get_named(self, name: str) -> Attribute: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, at: int | str) -> Any: ...
    def __contains__(self, name: object) -> bool: ...


class AttributeMap(Protocol):
    """The attributes of an operation, by name; each of its own class."""

    def __contains__(self, name: object) -> bool: ...
    def __getitem__(self, name: str) -> Any: ...
    def __setitem__(self, name: str, value: Attribute) -> None: ...
    def __delitem__(self, name: str) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def items(self) -> Iterable[tuple[str, Any]]: ...


class Location(Protocol):
    """Where an operation comes from; a context, in which operations have it."""

    @property
    def attr(self) -> Attribute: ...
    @property
    def context(self) -> Context: ...
    def emit_error(self, message: str) -> None: ...
    def __enter__(self) -> Location: ...
    def __exit__(self, *details: object) -> None: ...


@runtime_checkable
class Value(Protocol):
    """A result of an operation, or an argument of a block, which has `arg_number`: `owner` is either."""

    @property
    def type(self) -> Type: ...
    @property
    def owner(self) -> Operation | Block: ...
    @property
    def uses(self) -> Iterator[OpOperand]: ...
    @property
    def location(self) -> Location: ...
    @property
    def arg_number(self) -> int: ...
    @property
    def context(self) -> Context: ...
    def get_name(self) -> str: ...
    def set_type(self, type: Type) -> None: ...
    def replace_all_uses_with(self, value: Value) -> None: ...
    def replace_all_uses_except(self, value: Value, exceptions: Operation | Sequence[Operation]) -> None: ...


class OpOperand(Protocol):
    """A use of a value."""

    @property
    def owner(self) -> Operation: ...
    @property
    def operand_number(self) -> int: ...


@runtime_checkable
class Operation(Protocol):
    """An operation, or its view, which has more."""

    @property
    def name(self) -> str: ...
    @property
    def operation(self) -> Operation: ...
    @property
    def opview(self) -> Any: ...
    @property
    def attributes(self) -> AttributeMap: ...
    @property
    def operands(self) -> Operands: ...
    @property
    def results(self) -> Sequence[Value]: ...
    @property
    def result(self) -> Value: ...
    @property
    def regions(self) -> Sequence[Region]: ...
    @property
    def block(self) -> Block: ...
    @property
    def parent(self) -> Any: ...
    @property
    def location(self) -> Location: ...
    @property
    def context(self) -> Context: ...
    def erase(self) -> None: ...
    def clone(self, ip: InsertionPoint | None = None) -> Operation: ...
    def move_before(self, other: Operation) -> None: ...
    def move_after(self, other: Operation) -> None: ...
    def detach_from_parent(self) -> Operation: ...
    def is_before_in_block(self, other: Operation) -> bool: ...
    def verify(self) -> bool: ...
    def walk(self, callback: Callable[[Any], WalkResult], order: Any = ...) -> None: ...
    def get_asm(self, **options: Any) -> Any: ...
    def print(self, **options: Any) -> None: ...


class Operands(Sequence[Value]):
    """The operands of an operation; one can be put in the place of another."""

    @abstractmethod
    def __setitem__(self, at: int, value: Value) -> None: ...


@runtime_checkable
class Block(Protocol):
    """A list of operations, with arguments."""

    @property
    def operations(self) -> Sequence[Operation]: ...
    @property
    def arguments(self) -> Sequence[Value]: ...
    @property
    def owner(self) -> Operation: ...
    @property
    def region(self) -> Region: ...
    def add_argument(self, type: Type, loc: Location) -> Value: ...
    def erase_argument(self, number: int) -> None: ...
    def append(self, operation: Operation) -> None: ...
    def append_to(self, region: Region) -> None: ...
    def __iter__(self) -> Iterator[Operation]: ...


class Blocks(Sequence[Block]):
    """The blocks of a region."""

    @abstractmethod
    def append(self, *types: Type, arg_locs: Sequence[Location] | None = None) -> Block: ...


class Region(Protocol):
    """A list of blocks inside an operation."""

    @property
    def blocks(self) -> Blocks: ...
    @property
    def owner(self) -> Operation: ...


class Module(Protocol):
    """A whole program."""

    @property
    def body(self) -> Block: ...
    @property
    def operation(self) -> Operation: ...
    @property
    def context(self) -> Context: ...


class Context(Protocol):
    """What operations, types and attributes live in; as a context of Python, the one that is current."""

    allow_unregistered_dialects: bool

    def is_dialect_loaded(self, name: str) -> bool: ...
    def enable_multithreading(self, enable: bool) -> None: ...
    def __enter__(self) -> Context: ...
    def __exit__(self, *details: object) -> None: ...


class InsertionPoint(Protocol):
    """Where operations are built; as a context of Python, those that are built in it."""

    @property
    def block(self) -> Block: ...
    @property
    def ref_operation(self) -> Operation | None: ...
    def insert(self, operation: Operation) -> None: ...
    def __enter__(self) -> InsertionPoint: ...
    def __exit__(self, *details: object) -> None: ...


class WalkResult(Protocol):
    """What a walk does next: ``ir.WalkResult.ADVANCE``, ``INTERRUPT`` or ``SKIP``."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> int: ...


class AffineExpr(Protocol):
    """An expression of dims and symbols. What kind it is, a view says: ``ir.AffineDimExpr(e).position``."""

    def __add__(self, other: AffineExpr | int, /) -> AffineExpr: ...
    def __radd__(self, other: AffineExpr | int, /) -> AffineExpr: ...
    def __mul__(self, other: AffineExpr | int, /) -> AffineExpr: ...
    def __rmul__(self, other: AffineExpr | int, /) -> AffineExpr: ...
    def __sub__(self, other: AffineExpr | int, /) -> AffineExpr: ...
    def __mod__(self, other: AffineExpr | int, /) -> AffineExpr: ...
    def compose(self, map: AffineMap, /) -> AffineExpr: ...


class AffineMap(Protocol):
    """Expressions of the same dims and symbols."""

    @property
    def results(self) -> Sequence[AffineExpr]: ...
    @property
    def n_dims(self) -> int: ...
    @property
    def n_symbols(self) -> int: ...
    @property
    def is_permutation(self) -> bool: ...
    @property
    def is_projected_permutation(self) -> bool: ...
    def get_submap(self, results: Sequence[int], /) -> AffineMap: ...


if TYPE_CHECKING:
    _Block = Block

    class _Ir:
        """The bindings' module: a test for a block narrows, the rest is `Any`."""

        Block = _Block

        def __getattr__(self, name: str) -> Any: ...


ir: _Ir = _load("ir")


def owner_op(value: Value) -> Operation:
    """The operation that gives `value`, which is no argument of a block."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        raise TypeError("an argument of a block, where a result of an operation was expected")
    return owner.operation


def parent_op(argument: Value) -> Operation:
    """The operation in whose block `argument` is an argument."""
    owner = argument.owner
    if not isinstance(owner, ir.Block):
        raise TypeError(f"a result of {owner.name}, where an argument of a block was expected")
    return owner.owner.operation


passmanager: Any = _load("passmanager")
rewrite: Any = _load("rewrite")
ext: Any = _load("dialects.ext")

OWN_DIALECTS = ("host", "tile", "xt", "xtv")
"""Dialects without a module of the bindings. The bindings look for one at every op of a namespace that they do not
know, through the whole import machinery; an empty module ends the search."""

for _name in OWN_DIALECTS:
    sys.modules.setdefault(f"{ROOT}.dialects.{_name}", ModuleType(f"{ROOT}.dialects.{_name}"))

_DIALECTS = ("affine", "amdgpu", "arith", "bufferization", "cf", "func", "gpu", "irdl", "linalg", "llvm", "math",
             "memref", "nvgpu", "nvvm", "openmp", "rocdl", "scf", "tensor", "transform", "ub", "vector")

if TYPE_CHECKING:       # each by name, so that a name that there is not is an error
    _dialect: Any = None
    affine_d = amdgpu_d = arith_d = bufferization_d = cf_d = func_d = gpu_d = irdl_d = linalg_d = llvm_d = _dialect
    math_d = memref_d = nvgpu_d = nvvm_d = openmp_d = rocdl_d = scf_d = tensor_d = transform_d = ub_d = _dialect
    vector_d = _dialect
else:
    def __getattr__(name: str) -> object:
        """``arith_d``, ``linalg_d``, ...: loaded at first use, so that a tool pays for what it touches."""
        if name.endswith("_d") and name[:-2] in _DIALECTS:
            module = _load(f"dialects.{name[:-2]}")
            globals()[name] = module
            return module
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
