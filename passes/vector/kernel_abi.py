"""kernel-abi: memref arguments become plain pointers, index arguments i64.

    func.func @k(%x: memref<?x768xf32>, %d0: index)   becomes
    func.func @k(%x: !llvm.ptr, %d0: i64) { ... %m = builtin.unrealized_conversion_cast %descriptor ... }

where the descriptor holds the sizes that ``xt.arg_dims``, ``xt.result_dims`` and ``xt.scratch_dims`` give; buffers are
contiguous.
"""

from __future__ import annotations

from collections.abc import Mapping

from xcc._mlir import Module, Operation, Type, Value, ir
from xcc.diagnostics import CompilerBug
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.dims import emit_size, read_dim
from xcc.passes.shared.values import i64s, index, op
from xcc.symbolic import Dim


@register_pass
class KernelAbi(Pass):
    """Gives every kernel the ABI of docs/architecture.md: one pointer a buffer, then one i64 a symbol."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for f in list(module.body.operations):
            if f.operation.name == "func.func" and "xt.kernel" in f.attributes:
                _rewrite(f)
            elif f.operation.name == "gpu.module":
                for kernel in list(f.regions[0].blocks[0].operations):
                    if kernel.operation.name == "gpu.func":
                        _rewrite(kernel)


def _rewrite(f: Operation) -> None:
    block = f.regions[0].blocks[0]
    ptr, i64 = ir.Type.parse("!llvm.ptr"), ir.IntegerType.get_signless(64)
    old = list(block.arguments)
    types = [ptr if isinstance(a.type, ir.MemRefType) else i64 if isinstance(a.type, ir.IndexType) else a.type
             for a in old]
    new = [block.add_argument(t, ir.Location.unknown()) for t in types]
    with ir.InsertionPoint.at_block_begin(block):
        values = [op("arith.index_cast", [a.type], [n]) if isinstance(a.type, ir.IndexType) else None
                  for a, n in zip(old, new, strict=True)]
        symbols = dict(zip(_symbols(f), [v for v in values if v is not None], strict=False))
        dims = _dims(f)
        number = 0
        for a, n, value in zip(old, new, values, strict=True):
            if isinstance(a.type, ir.MemRefType):
                value = _descriptor(a.type, n, dims[number] if number < len(dims) else None, symbols)
                number += 1
            a.replace_all_uses_with(n if value is None else value)
    for i in reversed(range(len(old))):
        block.erase_argument(i)
    f.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    for name in ("arg_attrs", "res_attrs", "sym_visibility"):
        if name in f.attributes:
            del f.attributes[name]


def _symbols(f: Operation) -> list[str]:
    return [ir.StringAttr(a).value for a in ir.ArrayAttr(f.attributes["xt.symbols"])] \
        if "xt.symbols" in f.attributes else [f"d{i}" for i in range(64)]


def _dims(f: Operation) -> list[list[Dim]]:
    out = []
    for name in ("xt.arg_dims", "xt.result_dims", "xt.scratch_dims"):
        if name in f.attributes:
            out += [[read_dim(d) for d in ir.ArrayAttr(a)] for a in ir.ArrayAttr(f.attributes[name])]
    return out


def _descriptor(memref: Type, pointer: Value, dims: list[Dim] | None, symbols: Mapping[str, Value]) -> Value:
    """The memref descriptor of a contiguous row-major buffer at `pointer`, cast to the memref."""
    t = ir.MemRefType(memref)
    shape = [None if t.is_dynamic_dim(i) else t.get_dim_size(i) for i in range(t.rank)]
    if any(n is None for n in shape[1:]) and dims is None:
        raise CompilerBug(f"kernel-abi: {memref} has dynamic inner dims and xt.arg_dims does not give them")
    sizes = [index(n) if n is not None else emit_size(dims[i], symbols) if dims else index(0)
             for i, n in enumerate(shape)]
    i64 = ir.IntegerType.get_signless(64)
    arrays = f", array<{t.rank} x i64>, array<{t.rank} x i64>" if t.rank else ""
    struct = ir.Type.parse(f"!llvm.struct<(ptr, ptr, i64{arrays})>")
    strides = [index(1)] * t.rank
    for i in reversed(range(t.rank - 1)):
        strides[i] = op("arith.muli", [sizes[i].type], [sizes[i + 1], strides[i + 1]])
    value = op("llvm.mlir.poison", [struct], [])

    def put(what: Value, *at: int) -> None:
        nonlocal value
        value = op("llvm.insertvalue", [struct], [value, what], position=i64s(at))

    put(pointer, 0)
    put(pointer, 1)
    put(op("arith.index_cast", [i64], [index(0)]), 2)
    for i, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        put(op("arith.index_cast", [i64], [size]), 3, i)
        put(op("arith.index_cast", [i64], [stride]), 4, i)
    return op("builtin.unrealized_conversion_cast", [memref], [value])
