"""The operations of a tile program, one after the other, as block-level vector code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcc._mlir import Block, Operation, Value, ir, owner_op
from xcc.diagnostics import UserError
from xcc.dialects.tile.op import attrs_of, grouped, op_class, operands_of
from xcc.dialects.tile.types import TileType
from xcc.dialects.xt.fields import complete
from xcc.dialects.xt.reading import Attrs
from xcc.passes.shared.values import with_operands
from xcc.passes.tile.lowering import arithmetic, combine, compute, memory, shape
from xcc.passes.tile.lowering.order import Order, kind_of
from xcc.passes.tile.lowering.views import BufferView, value_of
from xcc.passes.walk import ops_where
from xcc.symbolic import Dim


class Body:
    """Emits the code of a program's blocks. `ids` and `sizes` are the instance's numbers and the grid's, `values` what
    been made of the program's values, `views` of its buffers."""

    def __init__(self, grid: tuple[Dim, ...]) -> None:
        self.grid = grid
        self.ids: list[Value] = []
        self.sizes: list[Value | int] = []
        self.values: dict[Value, Value] = {}
        self.views: dict[Value, BufferView] = {}
        self.order = Order()

    def get(self, value: Value) -> Value:
        return self.values[value]

    def block(self, block: Block) -> None:
        """The operations of `block`, at the insertion point."""
        for operation in block.operations:
            if operation.operation.name != "func.return":
                with operation.operation.location:
                    self.emit(operation.operation)

    def emit(self, source: Operation) -> None:
        if source.name.startswith("tile."):
            self.tile(source)
        elif source.name == "memref.dim":
            dim = ir.IntegerAttr(owner_op(source.operands[1]).attributes["value"]).value
            self.values[source.results[0]] = value_of(self.views[source.operands[0]].sizes[dim])
        elif source.name in arithmetic.EXPANSIONS:
            made = arithmetic.EXPANSIONS[source.name](source, [self.get(v) for v in source.operands])
            self.values.update(zip(source.results, made, strict=True))
        else:
            self.copy(source)

    def copy(self, source: Operation) -> None:
        """The same operation, with its regions, on what was made of its operands."""
        made = with_operands(source, map(self.get, source.operands))
        self.values.update(zip(source.results, made.results, strict=True))
        before, behind = self.order.copy(), []
        for old, new in zip(source.regions, made.regions, strict=True):
            if source.name == "scf.if":
                self.order.since = {b: set(a) for b, a in before.items()}
            for inner in old.blocks:
                block = new.blocks.append(*[a.type for a in inner.arguments])
                self.values.update(zip(inner.arguments, block.arguments, strict=True))
                with ir.InsertionPoint(block):
                    if source.name in ("scf.for", "scf.while"):
                        self.order.turn(ops_where(source, lambda op: bool(kind_of(op))))
                    self.block(inner)
            behind.append(self.order.copy())
        for other in (before, *behind):
            self.order.join(other)

    def tile(self, source: Operation) -> None:
        cls, a = op_class(source), attrs_of(source)
        assert cls is not None
        types = operands_of(source, TileType.of)
        complete(cls.attribute_fields, a, types)    # text may leave defaults out
        cls.normalize(a, *types)
        handler = _HANDLERS.get(source.name.removeprefix("tile."))
        if handler is None:
            raise UserError(f"{_where(source)}: '{source.name}' is of evaluations (XCC_KERNEL=eager or check) or of "
                            "lowered code: no target has a rule for it")
        if kind_of(source):
            self.order.access(source)
        made = handler(self, source, a, *grouped(cls, source.operands))
        if made is None:
            return
        self.values.update(zip(source.results, made if isinstance(made, list) else [made], strict=True))


def _where(source: Operation) -> str:
    return str(source.location).removeprefix("loc(").removesuffix(")").replace('"', "")


def _program_id(body: Body, source: Operation, a: Attrs) -> Value:
    return body.ids[a.axis] if a.axis < len(body.ids) else value_of(0)


def _num_programs(body: Body, source: Operation, a: Attrs) -> Value:
    return value_of(body.sizes[a.axis] if a.axis < len(body.sizes) else 1)


def _nothing(body: Body, source: Operation, a: Attrs, *values: Value) -> None:
    return None


_HANDLERS: dict[str, Callable[..., Any]] = {
    **memory.HANDLERS, **compute.HANDLERS, **shape.HANDLERS, **combine.HANDLERS,
}
_HANDLERS |= {"assert": _nothing, "num_programs": _num_programs, "program_id": _program_id}
