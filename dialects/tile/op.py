"""The base of the tile ops: declared fields, one way to build, one verifier, the table OPS.

MLIR does not know these ops, as it does not know ``xtv`` ones: operands and results have types of their own each. So
:func:`problem_of` looks at them, wherever a module is read and when :mod:`xcc.tile` builds one.
"""

from collections.abc import Callable, Sequence
from typing import Any

from xcc._mlir import Operation, Value, ir
from xcc.diagnostics import Misfit
from xcc.dialects.tile.types import TileType
from xcc.dialects.xt.fields import (
    REQUIRED,
    AttributeField,
    OperandField,
    RegionField,
    as_tuple,
    check_attributes,
    check_choices,
    complete,
    take_fields,
)
from xcc.dialects.xt.reading import Attrs, InferError

__all__ = ["BUILDERS", "OPS", "Attrs", "InferError", "TileOp", "attrs_of", "build", "grouped", "op_class",
           "operands_of", "problem_of"]

OPS: dict[str, type["TileOp"]] = {}
BUILDERS: dict[str, Callable[..., Any]] = {}
PREFIX = "tile."


class TileOp(Attrs):
    """What an op declares and means. A subclass declares fields (`xcc.dialects.xt.fields`) and defines, as methods of
    attributes:

    - ``normalize(a, *types)``: fills defaults that depend on operands, when building, but for those of fields;
    - ``infer(a, *types)``: the result TileType, or a tuple of them; raises InferError;
    - ``evaluate(a, *arrays)``: the results by numpy, the meaning that every target is tested against. Buffers are
      arrays, written in place; an op with regions gets functions of arrays behind the operands;
    - ``places(a, *arrays)``: of an op on memory, the indices of the elements (an array a dim) and which of them the op
      reaches, whether or not they lie inside the buffer.

    Only the last operand may be variadic. `effects` is "", "read", "write" or "both".
    """

    effects = ""
    operand_fields: dict[str, OperandField] = {}
    attribute_fields: dict[str, AttributeField] = {}
    region_fields: dict[str, RegionField] = {}
    result_names: tuple[str, ...] = ("result",)
    variadic_results = False
    OPERATION_NAME = ""

    def __init_subclass__(cls, *, name: str) -> None:
        super().__init_subclass__()
        take_fields(cls)
        if name in OPS:
            raise ValueError(f"tile.{name} is defined twice")
        cls.OPERATION_NAME = PREFIX + name
        OPS[name] = cls
        BUILDERS[name] = _builder(cls, name)

    def normalize(a: Attrs, *types: Any) -> None:
        """Completes the attributes before they are stored."""

    def infer(a: Attrs, *types: Any) -> Any:
        raise NotImplementedError

    def evaluate(a: Attrs, *arrays: Any) -> Any:
        raise NotImplementedError

    def places(a: Attrs, *arrays: Any) -> Any:
        raise NotImplementedError

    @classmethod
    def inferred(cls, a: Attrs, *types: TileType | tuple[TileType, ...]) -> tuple[TileType, ...]:
        """What `infer` gives, of completed attributes."""
        complete(cls.attribute_fields, a, types)
        return as_tuple(cls.infer(a, *types))

    @classmethod
    def problem(cls, op: Operation) -> str | None:
        """What is wrong with an op in the IR, or None: the declared result types must be the inferred ones."""
        fixed = len(cls.operand_fields) - _variadic(cls)
        if len(op.operands) < fixed or (len(op.operands) > fixed and not _variadic(cls)):
            return f"takes the operands {', '.join(cls.operand_fields) or 'none'}, not {len(op.operands)}"
        if len(op.regions) != len(cls.region_fields) or any(len(r.blocks) != 1 for r in op.regions):
            return f"has the regions {', '.join(cls.region_fields) or 'none'}, of one block each"
        try:
            a = attrs_of(op)
            check_choices(cls.attribute_fields, a)
            inferred = cls.inferred(a, *operands_of(op, TileType.of))
        except (InferError, ValueError, TypeError, IndexError, AttributeError) as e:
            return str(e)
        declared = [r.type for r in op.results]
        if len(inferred) != len(declared) or any(t.mlir() != d for t, d in zip(inferred, declared, strict=True)):
            return (f"gives {', '.join(map(str, map(TileType.of, declared))) or 'nothing'}, but "
                    f"{', '.join(map(str, inferred)) or 'nothing'} follows from its operands")
        return cls.region_problem(op)

    @classmethod
    def region_problem(cls, op: Operation) -> str | None:
        """What is wrong with the regions of an op whose types are right."""
        return None


def _variadic(cls: type[TileOp]) -> bool:
    return any(f.kind == "many" for f in cls.operand_fields.values())


def op_class(op: Operation) -> type[TileOp] | None:
    """The definition of an op of the IR; None when it is no tile op."""
    name = op.operation.name
    return OPS.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None


def attrs_of(op: Operation) -> Attrs:
    """The attributes of an op as Python values; InferError where one is missing or of another kind."""
    cls, stored = op_class(op), op.operation.attributes
    assert cls is not None
    out = Attrs()
    for k, f in cls.attribute_fields.items():
        if k not in stored and f.default in (REQUIRED, None):
            raise InferError(f"needs the attribute {k}")
        try:
            setattr(out, k, f.decode(stored[k]) if k in stored else f.default)
        except (AttributeError, TypeError, ValueError):
            raise InferError(f"{k} = {stored[k]} is no {f.kind}") from None
    return out


def grouped(cls: type[TileOp], values: Sequence[Value | TileType]) -> list[Any]:
    """Operands as the class declares them: a value for each field, a tuple for a variadic one."""
    fixed = len(cls.operand_fields) - _variadic(cls)
    values = list(values)
    return [*values[:fixed], *([tuple(values[fixed:])] if _variadic(cls) else [])]


def operands_of(op: Operation, read: Callable[[Any], Any] = lambda v: v) -> list[TileType | tuple[TileType, ...]]:
    """The operands of an op, each read by `read`, grouped."""
    cls = op_class(op)
    assert cls is not None
    return grouped(cls, [read(v) for v in op.operation.operands])


def problem_of(op: Operation) -> str | None:
    """What is wrong with one op of the dialect, or None."""
    cls = op_class(op)
    why = "is no op of the dialect" if cls is None else cls.problem(op.operation)
    return f"'{op.operation.name}' {why}" if why else None


def build(cls: type[TileOp], *values: Any, **attributes: Any) -> Any:
    """Builds an op; its result, the tuple of its results, or, of an op with regions, the operation, whose regions have
    a block each but nothing in it. Misfit for arguments that do not fit."""
    flat = [v for group in values for v in (group if isinstance(group, (tuple, list)) else (group,))]
    types = grouped(cls, [TileType.of(v) for v in flat])
    try:
        a = check_attributes(cls.OPERATION_NAME, cls.attribute_fields, attributes)
        cls.normalize(a, *types)
        results = cls.inferred(a, *types)
    except InferError as e:
        raise Misfit(f"{cls.OPERATION_NAME}: {e}") from None
    encoded = {k: f.encode(getattr(a, k)) for k, f in cls.attribute_fields.items()}
    op = ir.Operation.create(cls.OPERATION_NAME, results=[t.mlir() for t in results], operands=flat,
                             attributes=encoded, regions=len(cls.region_fields))
    if cls.region_fields:
        return op
    out = tuple(op.results)
    return out[0] if len(out) == 1 and not cls.variadic_results else out


def _builder(cls: type[TileOp], name: str) -> Callable[..., Any]:
    def make(*values: Any, **attributes: Any) -> Any:
        return build(cls, *values, **attributes)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = cls.__doc__
    return make
