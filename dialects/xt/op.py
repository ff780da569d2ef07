"""The base of all xt ops: declared fields, one way to build, one verifier, the table OPS."""

import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from xcc._mlir import Module, Operation, ext, ir
from xcc.diagnostics import Misfit, UserError
from xcc.dialects.xt.base import Xt
from xcc.dialects.xt.fields import AttributeField, as_tuple, check_attributes, complete, take_fields
from xcc.dialects.xt.reading import (
    CLASSES,
    Attrs,
    InferError,
    agree,
    attrs_of,
    axis_of,
    grouped_operands,
    op_class,
    operand_types,
    same_dims,
    typed,
)
from xcc.dialects.xt.types import TensorType
from xcc.symbolic import Dim, dim_min, product

__all__ = ["ACCESS", "BUILDERS", "CLASSES", "OPS", "Attrs", "InferError", "ListOp", "OpDefinition", "XtOp", "agree",
           "attrs_of", "axis_of", "build", "builder", "create", "grouped_operands", "least_read", "op_class",
           "same_dims", "typed", "verify"]

ACCESS = ("pointwise", "movement", "reduction", "contraction", "window", "view", "opaque", "control", "composite",
          "scalar", "source")
OPS: dict[str, type["OpDefinition"]] = {}          # by the name in Python and in the docs
BUILDERS: dict[str, Callable[..., Any]] = {}


class OpDefinition(Attrs):
    """What an op declares and means. A subclass declares fields (see `fields`) and defines, as methods of attributes:

    - ``normalize(a, *types)``: fills defaults that depend on operands, when building, but for those of fields;
    - ``infer(a, *types)``: the result TensorType, or a tuple of them; raises InferError;
    - ``evaluate(a, *arrays)``: the results by numpy, the meaning that every target is tested against;
    - ``sampled(a, *types)``: dims of the first operand that are read at places clamped to those that there are;
    - ``problem(op)``: what is wrong with an op in the IR, or None;
    - ``access``: how the op reads its operands (docs/xt-design.md);
    - ``effects``: others see that it runs, so that it stays where its result is not used.

    An absent optional operand is None, a variadic one is a tuple.
    """

    # Type comments, since `ext` takes every annotation for a field of the op.
    access = "opaque"
    effects = False
    operand_fields = {}  # type: dict[str, Any]
    attribute_fields = {}  # type: dict[str, AttributeField]
    region_fields = {}  # type: dict[str, Any]
    result_names = ("result",)  # type: tuple[str, ...]
    variadic_results = False
    OPERATION_NAME = ""

    def normalize(a: Attrs, *types: Any) -> None:
        """Completes the attributes before they are stored."""

    def infer(a: Attrs, *types: Any) -> Any:
        raise NotImplementedError

    def evaluate(a: Attrs, *arrays: Any) -> Any:
        raise NotImplementedError

    def sampled(a: Attrs, *types: Any) -> Sequence[int]:
        return ()

    @classmethod
    def inferred(cls, a: Attrs, *types: Any) -> Any:
        """`infer`; InferError where an element of the result would be read of a dim that has none."""
        complete(cls.attribute_fields, a, types)
        results = cls.infer(a, *types)
        for d in cls.sampled(a, *types):
            if types[0].shape[d] == 0 and least_read(as_tuple(results)[0].shape) == 1:
                raise InferError(f"dim {d} is empty")
        return results

    @classmethod
    def problem(cls, op: Operation) -> str | None:
        """The declared result types must agree with the inferred ones."""
        try:
            inferred = as_tuple(cls.inferred(attrs_of(op), *operand_types(op)))
        except (InferError, KeyError, ValueError, TypeError, IndexError) as e:
            return str(e)
        declared = tuple(TensorType.of(r) for r in op.operation.results)
        if len(inferred) == len(declared) and all(map(agree, inferred, declared)):
            return None
        return (f"result type is {', '.join(map(str, declared))} but {', '.join(map(str, inferred))} follows from "
                f"its operands")


def least_read(shape: Sequence[Dim]) -> Dim:
    """How many places a sampled dim must have: 1, and 0 where the result, of `shape`, has no element."""
    return dim_min(1, product(shape))


def _declare(cls: type[OpDefinition], name: str) -> None:
    """Takes the fields out of the class body and enters the op in the tables."""
    take_fields(cls)
    if name in OPS:
        raise ValueError(f"xt.{name} is defined twice")
    OPS[name] = cls
    BUILDERS.setdefault(name, builder(cls, name))


class XtOp(OpDefinition):
    """Base of the ops that MLIR knows, ``xt.<name>``; `op.opview` has the fields as Python values."""

    def __init_subclass__(cls, *, name: str) -> None:
        super().__init_subclass__()
        _declare(cls, name)
        cls.OPERATION_NAME = f"xt.{name}"
        CLASSES[cls.OPERATION_NAME] = cls
        _register(cls, name)


def _register(cls: type[OpDefinition], name: str) -> None:
    """Declares the op to MLIR through `ext`: operands, attributes, results, purity and the verifier."""
    kinds = {"one": ext.Operand[Any], "optional": ext.Operand[Any] | None, "many": Sequence[ext.Operand[Any]]}
    fields: dict[str, Any] = {k: kinds[v.kind] for k, v in cls.operand_fields.items()}
    fields |= {k: Any for k, f in cls.attribute_fields.items() if not f.optional}
    fields |= {k: ext.Result[Any] for k in cls.result_names}

    def verify_invariants(op: Operation) -> bool:
        message = cls.problem(op)
        if message is not None:
            op.location.emit_error(f"'{cls.OPERATION_NAME}' op {message}")
        return message is None

    body = {"__annotations__": fields, "__doc__": cls.__doc__, "verify_invariants": verify_invariants}
    pure = not cls.effects and "symbol" not in cls.attribute_fields     # sizes may need the op, though no value does
    traits = [ext.Pure] if pure else []
    view = types.new_class(cls.__name__, (Xt.Operation,), {"name": name, "traits": traits},
                           lambda namespace: namespace.update(body))
    for k, f in cls.attribute_fields.items():
        setattr(view, k, property(partial(_attribute, k, f)))
    for i, k in enumerate(cls.operand_fields):
        setattr(view, k, property(partial(_operand, i)))


def _attribute(name: str, field: AttributeField, op: Operation) -> Any:
    stored = op.operation.attributes
    return field.default if field.optional and name not in stored else field.decode(stored[name])


def _operand(index: int, op: Operation) -> Any:
    return grouped_operands(op)[index]


class ListOp(OpDefinition):
    """Base of the ops with lists of operands or results of different types, ``xtv.<name>`` in the IR.

    ``ext`` declares ops through IRDL, whose variadic operands must all have one type, so MLIR does not know these
    ops: they are an unregistered dialect, and :func:`verify` checks them.
    """

    def __init_subclass__(cls, *, name: str) -> None:
        super().__init_subclass__()
        _declare(cls, name)
        cls.OPERATION_NAME = f"xtv.{name}"
        CLASSES[cls.OPERATION_NAME] = cls


def verify(module: Module) -> None:
    """MLIR's verifier, then ours for the ``xtv`` ops; UserError with the first thing that is wrong."""
    try:
        module.operation.verify()
    except ir.MLIRError as e:
        raise UserError(str(e)) from None
    problem = list_problem(module)
    if problem is not None:
        raise UserError(problem)


def list_problem(module: Module) -> str | None:
    """What is wrong with the first bad ``xtv`` op, with its place; None when all are good."""
    problems: list[str] = []

    def visit(op: Operation) -> Any:
        if op.name.startswith("xtv."):
            cls = op_class(op)
            why = "is no op of the dialect" if cls is None else cls.problem(op)
            if why is not None:
                problems.append(f"{op.location}: '{op.name}' op {why}")
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return problems[0] if problems else None


def _name(cls: type[OpDefinition]) -> str:
    return cls.OPERATION_NAME.partition(".")[2]


def _describe(v: Any) -> str:
    if v is None:
        return "none"
    return "[" + ", ".join(map(str, v)) + "]" if isinstance(v, tuple) else str(v)


def build(cls: type[OpDefinition], *values: Any, result_types: Any = None,
          **attributes: Any) -> Any:
    """Builds an op and returns its result, or the tuple of its results; Misfit for arguments that do not fit."""
    kinds = [f.kind for f in cls.operand_fields.values()]
    values = (*values, *(() if k == "many" else None for k in kinds[len(values):]))
    if len(values) > len(kinds) or any(v is None and k == "one" for v, k in zip(values, kinds, strict=False)):
        raise TypeError(f"xt.{_name(cls)} takes the operands {', '.join(cls.operand_fields)}")
    values = tuple(_value(v, k) for v, k in zip(values, kinds, strict=True))
    operands = tuple(typed(v) for v in values)
    try:
        a = check_attributes(f"xt.{_name(cls)}", cls.attribute_fields, attributes)
        complete(cls.attribute_fields, a, operands)
        cls.normalize(a, *operands)
        results = result_types if result_types is not None else cls.inferred(a, *operands)
    except InferError as e:
        raise Misfit(f"xt.{_name(cls)}({', '.join(map(_describe, operands))}): {e}") from None
    encoded = {k: f.encode(getattr(a, k)) for k, f in cls.attribute_fields.items()
               if not f.optional or getattr(a, k) != f.default}
    op = create(cls, values, encoded, [t.mlir() for t in as_tuple(results)])
    out = tuple(op.results)
    return out[0] if len(out) == 1 and not cls.variadic_results else out


def create(cls: type[OpDefinition], values: Sequence[Any], attributes: dict[str, Any], results: Sequence[Any]) -> Any:
    """The operation itself from encoded attributes; regions are empty."""
    groups = [tuple(v) if isinstance(v, (tuple, list)) else () if v is None else (v,) for v in values]
    stored = dict(attributes)
    if sum(f.kind != "one" for f in cls.operand_fields.values()) > 1:
        stored["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([len(g) for g in groups])
    return ir.Operation.create(cls.OPERATION_NAME, results=list(results), operands=[v for g in groups for v in g],
                               attributes=stored, regions=len(cls.region_fields))


def _value(v: Any, kind: str) -> Any:
    if kind == "many":
        return tuple(_value(x, "one") for x in v)
    if v is None or isinstance(v, ir.Value):
        return v
    if hasattr(v, "result"):
        return v.result
    raise TypeError(f"expected an MLIR value, got {type(v).__name__}")


def builder(cls: type[OpDefinition], name: str) -> Callable[..., Any]:
    """The function ``xt.<name>``: operands, then attributes by keyword or, in the order of the class, by position.

    With one variadic operand the values are given one after the other.
    """
    many = [f.kind for f in cls.operand_fields.values()] == ["many"]

    def make(*values: Any, **attributes: Any) -> Any:
        if not many and len(values) > len(cls.operand_fields):
            extra = values[len(cls.operand_fields):]
            values = values[:len(cls.operand_fields)]
            attributes |= dict(zip(cls.attribute_fields, extra, strict=False))
        return build(cls, *((values,) if many else values), **attributes)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = cls.__doc__
    return make
