"""A host program as IR and back: an op a buffer, an op a statement, in the words of :mod:`xcc.runtime.program`.

    %2 = "host.buffer"() {dtype = "f32", kind = "temp", shape = ["n", 8]} : () -> memref<?x8xf32>
    "host.launch"(%0, %1, %2) {kernel = "k", symbols = ["n"]} : (...) -> ()

Fields are attributes, but for buffers, which are operands, and statements, which are in regions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from xcc._mlir import Attribute, Block, InsertionPoint, Module, Operation, Type, Value, ir
from xcc.diagnostics import UserError
from xcc.runtime.program import (
    BindSymbol,
    Buffer,
    Collective,
    Copy,
    For,
    If,
    InputValue,
    Launch,
    Program,
    Require,
    SetScalar,
    State,
    While,
)
from xcc.runtime.program_reader import program_from_json
from xcc.symbolic import Expr

CLASSES: dict[str, type] = {
    "host.bind_symbol": BindSymbol, "host.collective": Collective, "host.copy": Copy, "host.for": For, "host.if": If,
    "host.launch": Launch, "host.require": Require, "host.set_scalar": SetScalar, "host.state": State,
    "host.value": InputValue, "host.while": While}
NAMES = {cls: name for name, cls in CLASSES.items()}
REFERENCES: dict[type, tuple[str, ...]] = {
    BindSymbol: ("source",), Collective: ("source", "target"), Copy: ("source", "target"), If: ("condition",),
    InputValue: ("source",), Launch: ("buffers",), SetScalar: ("target",), State: ("buffer",), While: ("condition",)}
"""Fields that are numbers of buffers: operands of the op."""
REGIONS: dict[type, tuple[str, ...]] = {For: ("body",), If: ("then", "orelse"), While: ("before", "body")}
ATTRIBUTES = {cls: [(f.name, f.default) for f in fields(cls)
                    if f.name not in (*REFERENCES.get(cls, ()), *REGIONS.get(cls, ()))] for cls in NAMES}
"""The others, with their defaults."""
OF_PROGRAM = ("symbols", "bounds", "equal")
"""Fields of a program that are attributes of its function."""


def write_program(main: Operation, program: Program) -> None:
    """Puts `program` in the place of the function `main`."""
    with main.location:
        function = _create("func.func", (), (), {"sym_name": main.attributes["sym_name"]}, 1, ir.InsertionPoint(main))
        block = function.regions[0].blocks.append()
        writer = _Writer(block)
        for b in program.buffers:
            writer.buffer(b)
        for record in (*program.values, *program.states):
            writer.statements((record,), block)
        for output, argument in program.updates:
            writer.create("host.update", (output, argument), block)
        if program.setup:
            setup = writer.create("host.setup", (), block, regions=1)
            writer.statements(program.setup, setup.regions[0].blocks.append())
        writer.statements(program.body, block)
        outputs = [writer.values[i] for i in program.outputs]
        _create("func.return", (), outputs, {}, 0, ir.InsertionPoint(block))
        types = ir.FunctionType.get([], [v.type for v in outputs])
        function.attributes["function_type"] = ir.TypeAttr.get(types)
        for name in OF_PROGRAM:
            if value := getattr(program, name):
                function.attributes[f"host.{name}"] = _attribute(value)
    main.erase()


def _create(name: str, types: Sequence[Type], operands: Sequence[Value], attributes: Mapping[str, Attribute],
            regions: int,
            at: InsertionPoint) -> Operation:
    return ir.Operation.create(name, results=types, operands=operands, attributes=attributes, regions=regions, ip=at)


class _Writer:
    """Ops in the order of a program; `values` are its buffers."""

    def __init__(self, block: Block) -> None:
        self.values: list[Value] = []
        self.at = ir.InsertionPoint(block)
        self.elements: dict[str, Type] = {}

    def buffer(self, b: Buffer) -> None:
        if b.dtype not in self.elements:
            self.elements[b.dtype] = ir.Type.parse(b.dtype)
        dynamic = ir.ShapedType.get_dynamic_size()
        shape = [d if isinstance(d, int) else dynamic for d in b.shape]
        attributes = {"kind": _attribute(b.kind)}
        if dynamic in shape:
            attributes["shape"] = _attribute(b.shape)
        if b.name:
            attributes["name"] = _attribute(b.name)
        if b.offset != 0:
            attributes["offset"] = _attribute(b.offset)
        base = [self.values[b.base]] if b.base >= 0 else []
        op = _create("host.buffer", [ir.MemRefType.get(shape, self.elements[b.dtype])], base, attributes, 0, self.at)
        self.values.append(op.results[0])

    def create(self, name: str, buffers: Sequence[int], block: Block, attributes: Mapping[str, Attribute] = {},
               regions: int = 0) -> Operation:
        return _create(name, (), [self.values[b] for b in buffers], attributes, regions, ir.InsertionPoint(block))

    def statements(self, body: Iterable[Any], block: Block) -> None:
        for s in body:
            cls = type(s)
            numbers = [n for f in REFERENCES.get(cls, ()) for n in _numbers(getattr(s, f))]
            values = [(name, getattr(s, name), default) for name, default in ATTRIBUTES[cls]]
            attributes = {name: _attribute(v) for name, v, default in values if default is MISSING or v != default}
            regions = REGIONS.get(cls, ())
            op = self.create(NAMES[cls], numbers, block, attributes, len(regions))
            for region, name in zip(op.regions, regions, strict=True):
                self.statements(getattr(s, name), region.blocks.append())


def _numbers(value: Any) -> Sequence[int]:
    return [value] if isinstance(value, int) else list(value)


def _attribute(value: Any) -> Attribute:
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, (str, Expr)):
        return ir.StringAttr.get(str(value))
    if isinstance(value, dict):
        return ir.DictAttr.get({k: _attribute(v) for k, v in value.items()})
    return ir.ArrayAttr.get([_attribute(v) for v in value])


def read_program(module: Module) -> Program:
    """The host program that @main of `module` is; UserError, with its op's location, where something is wrong."""
    functions = [op.operation for op in module.body if op.operation.name == "func.func"]
    if len(functions) != 1 or any(not o.operation.name.startswith("host.") for o in _ops(functions[0])[:-1]):
        raise UserError("@main is no host program: the pass 'lower-main', at the end of stage 'host', makes one")
    with module.context:
        return _Reader(functions[0]).program()


def _ops(op: Operation, region: int = 0) -> list[Operation]:
    return [o.operation for block in op.regions[region].blocks for o in block.operations]


class _Reader:
    """A program's function as the data that ``to_json`` gives."""

    def __init__(self, function: Operation) -> None:
        self.function = function
        self.buffers: dict[Value, int] = {}
        self.places: dict[str, Operation] = {}

    def program(self) -> Program:
        data: dict[str, Any] = {"buffers": [], "values": [], "states": [], "updates": [], "setup": [], "body": []}
        for op in _ops(self.function):
            name = op.name.removeprefix("host.")
            if name == "buffer":
                self.buffers[op.results[0]] = len(data["buffers"])
                self._add(data["buffers"], "program.buffers", op, self._buffer(op))
            elif name == "update":
                data["updates"].append(self._operands(op))
            elif name == "setup":
                self._statements(_ops(op), data["setup"], "program.setup")
            elif name == "func.return":
                data["outputs"] = self._operands(op)
            else:
                where = {"state": "states", "value": "values"}.get(name, "body")
                self._statements([op], data[where], f"program.{where}")
        data["inputs"] = [i for i, b in enumerate(data["buffers"]) if b["kind"] == "input"]
        for name in OF_PROGRAM:
            if f"host.{name}" in self.function.attributes:
                data[name] = _data(self.function.attributes[f"host.{name}"])
        try:
            return program_from_json(data)
        except UserError as e:
            found = re.match(r"program\.\w+\[\d+\]", e.message)
            op = self.places.get(found[0] if found else "", self.function)
            raise UserError(f"{op.location}: {op.name}: {e.message}") from None

    def _add(self, data: list[Any], where: str, op: Operation, record: Mapping[str, Any]) -> None:
        if where:
            self.places[f"{where}[{len(data)}]"] = op
        data.append(record)

    def _buffer(self, op: Operation) -> dict[str, Any]:
        t = ir.MemRefType(op.results[0].type)
        return {"shape": list(t.shape), "dtype": str(t.element_type), "base": (*self._operands(op), -1)[0],
                **_fields(op)}

    def _statements(self, ops: Iterable[Operation], data: list[Any], where: str) -> None:
        for op in ops:
            cls = CLASSES.get(op.name)
            if cls is None:
                raise UserError(f"{op.location}: {op.name} is no statement of a host program")
            record = {"op": cls.__name__, **_fields(op)}
            numbers = self._operands(op)
            for f in REFERENCES.get(cls, ()):
                record[f] = numbers if f == "buffers" else numbers.pop(0) if numbers else -1
            for n, name in enumerate(REGIONS.get(cls, ())):
                record[name] = []
                self._statements(_ops(op, n), record[name], "")
            self._add(data, where, op, record)

    def _operands(self, op: Operation) -> list[int]:
        return [self.buffers[v] for v in op.operands]


def _fields(op: Operation) -> dict[str, Any]:
    return {name: _data(attribute) for name, attribute in op.attributes.items()}


def _data(attribute: Attribute) -> Any:
    if isinstance(attribute, ir.ArrayAttr):
        return [_data(a) for a in attribute]
    if isinstance(attribute, ir.DictAttr):
        return {named.name: _data(named.attr) for named in attribute}
    return getattr(attribute, "value", str(attribute))
