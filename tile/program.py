"""Making tile programs: a Python function runs once, and what it does becomes the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xcc import symbolic
from xcc._mlir import Attribute, Module, Operation, ir
from xcc.context import new_context, parse_module, shared_context
from xcc.diagnostics import UserError
from xcc.dialects import tile as tile_d
from xcc.dialects.tile.program import GRID, MULTIPLE, NAME, SIZES, SMALL, Parameter
from xcc.dialects.xt.base import dims_attr
from xcc.symbolic import Dim
from xcc.tile.memory import Buffer
from xcc.tile.values import Value, signless

__all__ = ["BufferOf", "Program", "ScalarOf", "build", "parse"]

GRID_NAMES = ("grid_0", "grid_1", "grid_2")


@dataclass(frozen=True)
class BufferOf:
    """A parameter that is memory. dtype: as of a Value. shape: a size a dim, an int, the name of a symbol (two of one
    name are equal), or None where a run says it. strides: None where it is contiguous (row-major), else an int a dim,
    or None where a run says it. multiple: what the places at which rows (along the last dim) start and their
    lengths are multiples of, in elements: a GPU then moves as many at once, up to 16 bytes."""

    dtype: str
    shape: tuple[int | str | None, ...]
    strides: tuple[int | None, ...] | None = None
    multiple: int = 1

    def text(self) -> str:
        sizes = "".join(f"{n if isinstance(n, int) else '?'}x" for n in self.shape)
        layout = "" if self.strides is None else \
            f", strided<[{', '.join('?' if s is None else str(s) for s in self.strides)}]>"
        return f"memref<{sizes}{signless(self.dtype)}{layout}>"


@dataclass(frozen=True)
class ScalarOf:
    """A parameter that is a number."""

    dtype: str


@dataclass
class Program:
    """A tile program. `dtypes` says how the author reads the parameters (``ui8`` where the IR has i8), by name."""

    name: str
    module: Module
    dtypes: dict[str, str] = field(default_factory=dict)

    @property
    def func(self) -> Operation:
        return next(f for f in tile_d.programs_in(self.module)
                    if ir.StringAttr(f.operation.attributes["sym_name"]).value == self.name)

    @property
    def parameters(self) -> list[Parameter]:
        return tile_d.parameters_of(self.func)

    @property
    def grid(self) -> tuple[Dim, ...]:
        return tile_d.grid_of(self.func)

    @property
    def text(self) -> str:
        """The program as MLIR, with the places it comes from."""
        return str(self.module.operation.get_asm(enable_debug_info=True))

    def __str__(self) -> str:
        return str(self.module)


def build(name: str, parameters: Mapping[str, BufferOf | ScalarOf], body: Callable[..., Any],
          grid: Sequence[int | str] = GRID_NAMES, config: Mapping[str, int] | None = None,
          small: bool = False) -> Program:
    """The program that ``body(*handles)`` describes; it gets a Buffer or a Value for each parameter, in order.

    grid: one to three sizes, numbers or expressions (docs of `xcc.dialects.tile.program`). The default names are
    numbers that a launch gives. config: what the strategy is not to choose, as {"threads": 128, "stages": 3}. """
    code = getattr(body, "__code__", None)
    context = shared_context()
    with context, ir.Location.file(code.co_filename, code.co_firstlineno, 1) if code is not None \
            else ir.Location.unknown():
        module = ir.Module.create()
        func = _function(module, name, parameters, grid, config or {})
        if small:
            func.attributes[SMALL] = ir.UnitAttr.get()
        block = func.regions[0].blocks[0]
        handles = [Buffer(v, p.dtype, n) if isinstance(p, BufferOf) else Value(v, p.dtype)
                   for v, (n, p) in zip(block.arguments, parameters.items(), strict=True)]
        with ir.InsertionPoint(block):
            body(*handles)
            ir.Operation.create("func.return")
        tile_d.verify(module, name)
    return Program(name, module, {n: p.dtype for n, p in parameters.items()})


def _function(module: Module, name: str, parameters: Mapping[str, BufferOf | ScalarOf], grid: Sequence[int | str],
              config: Mapping[str, int]) -> Operation:
    types = [ir.Type.parse(p.text() if isinstance(p, BufferOf) else signless(p.dtype)) for p in parameters.values()]
    i64 = ir.IntegerType.get_signless(64)
    attributes = {
        "sym_name": ir.StringAttr.get(name), "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
        "arg_attrs": ir.ArrayAttr.get([_argument(n, p) for n, p in parameters.items()]),
        GRID: dims_attr([symbolic.parse(g) if isinstance(g, str) else g for g in grid])}
    if config:
        attributes["xcc.config"] = ir.DictAttr.get({"gpu": ir.DictAttr.get(
            {k: ir.IntegerAttr.get(i64, v) for k, v in config.items()})})
    with ir.InsertionPoint(module.body):
        func = ir.Operation.create("func.func", regions=1, attributes=attributes)
    func.regions[0].blocks.append(*types)
    return func


def _argument(name: str, p: BufferOf | ScalarOf) -> Attribute:
    out = {NAME: ir.StringAttr.get(name)}
    if isinstance(p, BufferOf) and any(isinstance(n, str) for n in p.shape):
        out[SIZES] = dims_attr([n if isinstance(n, int) else symbolic.sym(n if isinstance(n, str) else f"{name}_{d}")
                                for d, n in enumerate(p.shape)])
    if isinstance(p, BufferOf) and p.multiple > 1:
        out[MULTIPLE] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), p.multiple)
    return ir.DictAttr.get(out)


def parse(text_or_path: str | Path, name: str = "") -> Program:
    """The program `name` (the only one where none is given) of MLIR text, or of a file."""
    source = "<text>"
    if isinstance(text_or_path, Path) or (text_or_path.endswith(".mlir") and "\n" not in text_or_path):
        source = str(text_or_path)
        try:
            text_or_path = Path(text_or_path).read_text()
        except OSError as e:
            raise UserError(f"{source}: cannot be read: {e.strerror or e}") from None
    module = parse_module(text_or_path, new_context(), source)
    names = [ir.StringAttr(f.operation.attributes["sym_name"]).value for f in tile_d.programs_in(module)]
    if not names or (name and name not in names) or (not name and len(names) > 1):
        raise UserError(f"{source}: holds the tile programs {', '.join(names) or 'none'}"
                        f"{f', not {name}' if name else ': say which'}")
    made = Program(name or names[0], module)
    made.dtypes = {p.name: p.type.dtype for p in made.parameters}
    return made
