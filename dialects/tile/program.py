"""A tile program: a function of buffers and scalars that runs once for each place of a grid.

    func.func @scale(%x: memref<?x?xf32, strided<[?, 1]>> {tile.name = "x"}, %y: memref<?x?xf32> {tile.name = "y"},
                     %a: f32) attributes {tile.grid = ["x_0", "floordiv(x_1 + 1023, 1024)"]} {...}

The grid has one to three entries, numbers or expressions of symbols: ``x_0`` is the size of dim 0 of the argument
named x (``arg0_0`` where it has no name; ``tile.dims = ["m", "n"]`` gives names of one's own, and what has one name
twice is one size), an integer argument's name is its value, and a name that is neither is a number that the launch
gives. """

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xcc import symbolic
from xcc._mlir import Module, Operation, Type, Value, WalkResult, ir
from xcc.diagnostics import UserError
from xcc.dialects.tile.op import OPS, problem_of
from xcc.dialects.tile.types import ELEMENTS, TileType
from xcc.dialects.xt.base import dims_from_attr
from xcc.symbolic import Dim

GRID, NAME, SIZES, MULTIPLE, SMALL = "tile.grid", "tile.name", "tile.dims", "tile.multiple", "tile.small"
SMALL_SIZE, SMALL_GRID = 1 << 30, 1 << 18
_SCALARS = ("index", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")
_REST = ("scf.for", "scf.while", "scf.if", "scf.yield", "scf.condition", "memref.dim", "func.return")


@dataclass(frozen=True)
class Parameter:
    """An argument of a program. Of a buffer: `dims` are its sizes, numbers or symbols, `strides` numbers, or None where
    they are known in a run only; no strides: it is contiguous. Rows (along the last dim) start at multiples of
    `multiple` elements, from the first on, and are multiples long."""

    name: str
    type: TileType
    dims: tuple[Dim, ...] = ()
    strides: tuple[int | None, ...] | None = None
    multiple: int = 1

    @property
    def is_buffer(self) -> bool:
        return self.type.is_buffer


@dataclass(frozen=True)
class Symbol:
    """An i64 that a compiled program is given. `kind` is "size" (of dim `dim` of parameter number `argument`),
    "stride", "scalar" (its bits) or "grid"."""

    name: str
    kind: str
    argument: int = -1
    dim: int = -1


def symbols_of(parameters: Sequence[Parameter], grid: Sequence[Dim]) -> list[Symbol]:
    """What a compiled program is given behind its buffers, in order."""
    out: list[Symbol] = []
    for i, p in enumerate(parameters):
        if not p.is_buffer:
            out.append(Symbol(p.name, "scalar", i))
            continue
        for d, n in enumerate(p.dims):
            name = None if isinstance(n, int) else symbolic.bare_symbol(n)
            if name is not None and name not in [s.name for s in out]:
                out.append(Symbol(name, "size", i, d))
        out += [Symbol(stride_name(p, d), "stride", i, d) for d, s in enumerate(p.strides or ()) if s is None]
    known = {s.name for s in out}
    given = [s for n in grid if not isinstance(n, int) for s in sorted(symbolic.symbols_of(n)) if s not in known]
    return out + [Symbol(name, "grid") for name in dict.fromkeys(given)]


def stride_name(p: Parameter, dim: int) -> str:
    return f"{p.name}_stride_{dim}"


def is_program(func: Operation) -> bool:
    return func.operation.name == "func.func" and GRID in func.operation.attributes


def programs_in(module: Module) -> list[Operation]:
    """The tile programs of a module."""
    return [op for op in module.body.operations if is_program(op)]


def parameters_of(func: Operation) -> list[Parameter]:
    """The arguments of a program; UserError where one cannot be passed."""
    block = func.operation.regions[0].blocks[0]
    attributes = func.operation.attributes
    own = [ir.DictAttr(a) for a in ir.ArrayAttr(attributes["arg_attrs"])] if "arg_attrs" in attributes else []
    out: list[Parameter] = []
    for i, value in enumerate(block.arguments):
        given = own[i] if own else {}
        name = ir.StringAttr(given[NAME]).value if NAME in given else f"arg{i}"
        out.append(_parameter(name, value.type, given))
        if name in [p.name for p in out[:-1]]:
            raise UserError(f"two arguments are named '{name}'")
    return out


def _parameter(name: str, kind: Type, given: Any) -> Parameter:
    t = TileType.of(kind)
    if not t.is_buffer:
        if t.shape or t.dtype not in _SCALARS:
            raise UserError(f"the argument '{name}' is a {kind}: programs take memrefs, and scalars of "
                            f"{', '.join(_SCALARS)}")
        return Parameter(name, t)
    if t.dtype not in ELEMENTS:
        raise UserError(f"the argument '{name}' is a {kind}: its elements can be {', '.join(ELEMENTS)}")
    strides, offset = ir.MemRefType(kind).get_strides_and_offset()
    unknown = ir.ShapedType.get_dynamic_stride_or_offset()
    names: list[Dim] = [n if n >= 0 else symbolic.sym(f"{name}_{d}") for d, n in enumerate(t.shape)]
    if SIZES in given:
        said = dims_from_attr(given[SIZES])
        if len(said) != t.rank or any(n >= 0 and n != s for n, s in zip(t.shape, said, strict=True)):
            raise UserError(f"the argument '{name}' is a {kind}: tile.dims = {given[SIZES]} are not its sizes")
        names = list(said)
    if offset not in (0, unknown):
        raise UserError(f"the argument '{name}' is a {kind}: a buffer begins at its pointer, without an offset")
    plain = "strided" not in str(kind) and "affine_map" not in str(kind)
    multiple = ir.IntegerAttr(given[MULTIPLE]).value if MULTIPLE in given else 1
    if multiple < 1 or multiple & multiple - 1:
        raise UserError(f"the argument '{name}': tile.multiple = {multiple} is no power of two")
    known = None if plain else tuple(None if s == unknown else s for s in strides)
    return Parameter(name, t, tuple(names), known, multiple)


def grid_of(func: Operation) -> tuple[Dim, ...]:
    """The grid's sizes."""
    attribute = func.operation.attributes[GRID]
    try:
        sizes = dims_from_attr(ir.ArrayAttr(attribute))
    except Exception:
        raise UserError(f"tile.grid = {attribute}: one to three sizes are needed, numbers or text") from None
    if not 1 <= len(sizes) <= 3:
        raise UserError(f"tile.grid has {len(sizes)} sizes; one to three are needed")
    return sizes


def verify(module: Module, source: str) -> None:
    """UserError, with its place, for the first thing that is wrong in the programs of `module`, and for tile ops
    outside of one that only programs may hold."""
    problems: list[str] = []

    def visit(op: Operation) -> WalkResult:
        if op.name.startswith("tile."):
            why = problem_of(op)
            if why is not None:
                problems.append(f"{_place(op, source)}: {why}")
        return ir.WalkResult.ADVANCE

    with module.context, ir.Location.unknown():
        module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    if problems:
        raise UserError(problems[0])
    for func in programs_in(module):
        _verify_program(func, source)


def _place(op: Operation, source: str) -> str:
    """``file:line:column`` of an operation, as well as its location says."""
    text = str(op.location).removeprefix("loc(").removesuffix(")")
    if text == "unknown":
        return source
    return text.replace('"-":', f"{source}:").replace('"', "")


def _verify_program(func: Operation, source: str) -> None:
    try:
        parameters_of(func)
        grid_of(func)
    except UserError as e:
        raise UserError(f"{_place(func.operation, source)}: {e.message}") from None
    if len(func.operation.regions[0].blocks) != 1 or list(ir.FunctionType(
            ir.TypeAttr(func.operation.attributes["function_type"]).value).results):
        raise UserError(f"{_place(func.operation, source)}: a tile program is one block, and gives nothing back")
    problems: list[str] = []

    def visit(op: Operation) -> WalkResult:
        if op != func.operation and not _allowed(op):
            problems.append(f"{_place(op, source)}: '{op.name}' is no part of a tile program")
        elif op.name.startswith(("arith.", "math.", "scf.")):
            for r in op.results:
                problems.extend(f"{_place(op, source)}: '{op.name}' {why}" for why in [_size_problem(r)] if why)
        return ir.WalkResult.ADVANCE

    func.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    if problems:
        raise UserError(problems[0])


def _allowed(op: Operation) -> bool:
    name = op.name
    return name in _REST or name.startswith(("arith.", "math.")) \
        or (name.startswith("tile.") and name.removeprefix("tile.") in OPS)


def _size_problem(value: Value) -> str | None:
    if not isinstance(value.type, ir.VectorType):
        return None
    t = ir.VectorType(value.type)
    if not t.rank or any(s for s in t.scalable_dims):
        return f"gives {t}: a tile has static sizes, at least one"
    bad = [n for n in t.shape if n < 1 or n & n - 1]
    return f"gives {t}: a size of {bad[0]} is no power of two" if bad else None
