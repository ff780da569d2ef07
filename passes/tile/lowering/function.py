"""The kernel that a tile program becomes: its arguments, its symbols and the loop over the grid."""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Block, Operation, Type, Value, arith_d, ir
from xcc.dialects.tile.program import SMALL, Parameter, Symbol, grid_of, parameters_of, symbols_of
from xcc.dialects.xt.base import dims_attr
from xcc.passes.shared.attributes import MAY_ALIAS
from xcc.passes.shared.dims import emit_size
from xcc.passes.tile.lowering.body import Body
from xcc.passes.tile.lowering.views import BufferView, physical
from xcc.symbolic import Dim

SYMBOLS = "tile.symbols"    # of a lowered program: what its symbols are called in the program
BLOCKS = "xcc.blocks"       # its vectors are whole blocks, on CPUs too
_DYNAMIC = ir.ShapedType.get_dynamic_size()


def lower_function(func: Operation) -> None:
    """Puts the kernel of the program `func` ahead of it."""
    parameters, grid = parameters_of(func), grid_of(func)
    symbols = symbols_of(parameters, grid)
    renamed: dict[str, Dim] = {s.name: symbolic.sym(f"d{i}") for i, s in enumerate(symbols)}
    buffers = [p for p in parameters if p.is_buffer]
    dims = [[symbolic.substitute(d, renamed) for d in physical(p)] for p in buffers]
    types = [_memref(p, d) for p, d in zip(buffers, dims, strict=True)] + [ir.IndexType.get()] * len(symbols)
    names = [ir.StringAttr.get(f"d{i}") for i in range(len(symbols))]
    attributes = {"sym_name": func.operation.attributes["sym_name"], "xt.kernel": ir.UnitAttr.get(),
                  "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                  "xt.symbols": ir.ArrayAttr.get(names), "xt.arg_dims": ir.ArrayAttr.get(list(map(dims_attr, dims))),
                  SYMBOLS: ir.ArrayAttr.get([ir.StringAttr.get(s.name) for s in symbols]),
                  BLOCKS: ir.UnitAttr.get(), MAY_ALIAS: ir.UnitAttr.get()}
    if SMALL in func.operation.attributes:
        attributes[SMALL] = ir.ArrayAttr.get([n for n, s in zip(names, symbols, strict=True) if s.kind != "scalar"])
    if "xcc.config" in func.operation.attributes:
        attributes["xcc.config"] = func.operation.attributes["xcc.config"]
    with ir.InsertionPoint(func), func.operation.location:
        kernel = ir.Operation.create("func.func", regions=1, attributes=attributes)
        block = kernel.regions[0].blocks.append(*types)
        with ir.InsertionPoint(block):
            _Kernel(func, parameters, symbols, renamed, grid, block).emit()
            ir.Operation.create("func.return")


def _memref(p: Parameter, dims: list[Dim]) -> Type:
    element = ir.Type.parse("i8" if p.type.dtype == "i1" else p.type.dtype)
    return ir.MemRefType.get([d if isinstance(d, int) else _DYNAMIC for d in dims], element)


class _Kernel:
    """The code of one program."""

    def __init__(self, func: Operation, parameters: list[Parameter], symbols: list[Symbol], renamed: dict[str, Dim],
                 grid: tuple[Dim, ...], block: Block) -> None:
        self.source = func.operation.regions[0].blocks[0]
        self.parameters, self.symbols, self.grid = parameters, symbols, grid
        count = sum(p.is_buffer for p in parameters)
        arguments = list(block.arguments)
        self.memrefs = iter(arguments[:count])
        self.values: dict[str, Value] = {s.name: v for s, v in zip(symbols, arguments[count:], strict=True)}

    def emit(self) -> None:
        body = Body(self.grid)
        for p, old in zip(self.parameters, self.source.arguments, strict=True):
            if p.is_buffer:
                body.views[old] = BufferView.of(p, next(self.memrefs), self._size)
            else:
                body.values[old] = _from_bits(self.values[p.name], old.type)
        sizes = [self._size(n) for n in self.grid]
        loop, ids = _forall(list(reversed(sizes)))
        body.ids, body.sizes = list(reversed(ids)), sizes
        with ir.InsertionPoint(loop):
            body.block(self.source)
            ir.Operation.create("scf.forall.in_parallel", regions=1).regions[0].blocks.append()

    def _size(self, n: Dim) -> Value | int:
        """The value of a size that the program names; a number stays one."""
        return n if isinstance(n, int) else emit_size(n, self.values)


def _from_bits(value: Value, kind: Type) -> Value:
    """A scalar of type `kind` from its bits in an index."""
    if isinstance(kind, ir.IndexType):
        return value
    width = kind.width
    whole = ir.IntegerType.get_signless(width)
    bits = arith_d.index_cast(whole, value)
    return bits if kind == whole else arith_d.bitcast(kind, bits)


def _forall(sizes: list[Value | int]) -> tuple[Block, list[Value]]:
    """A loop over (0, 0, ...) to `sizes`: its block and the numbers."""
    dynamic = [n for n in sizes if not isinstance(n, int)]
    i64s = ir.DenseI64ArrayAttr.get
    loop = ir.Operation.create("scf.forall", operands=dynamic, regions=1, attributes={
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, len(dynamic), 0, 0]),
        "staticLowerBound": i64s([0] * len(sizes)), "staticStep": i64s([1] * len(sizes)),
        "staticUpperBound": i64s([n if isinstance(n, int) else _DYNAMIC for n in sizes]),
        "xcc.parallel": ir.UnitAttr.get()})
    block = loop.regions[0].blocks.append(*[ir.IndexType.get()] * len(sizes))
    return block, list(block.arguments)
