"""Transposes that keep a few bytes together move them as one element (stage ``kernels``).

    %y = xtv.dispatch(%x) {kernel = @t}               %w = xt.bitcast(%x) {dtype = "i32"}     : 9x100x4xi8 -> 9x100xi32
                                                   -> %v = xtv.dispatch(%w) {kernel = @t_wide}
                                                      %y = xt.bitcast(%v) {dtype = "i8"}      : 100x9xi32 -> 100x9x4xi8

    func.func private @t(%x) { xt.transpose(%x) {perm = [1, 0, 2]} }
    func.func private @t_wide(%w) { xt.transpose(%w) {perm = [1, 0]} }

Vectors along the few bytes are nearly empty, and each reads a line of the cache of its own; of wide elements a tile is
transposed in registers, on GPUs in shared memory. The bitcasts are views.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, ir
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.fusion.kernel_variants import dispatched_anew, kernel_of, kernels_of, removed_unused
from xcc.passes.xt.graph.op_graph import element_bytes
from xcc.passes.xt.graph.rewrite import at, name_of, walk_ops
from xcc.symbolic import product

WORDS = (2, 4, 8)       # bytes of an element that lanes hold


@register_pass
class WideElements(Pass):
    """Joins what kernels that are a transpose alone keep together."""

    def run(self, module: Module, ctx: PassContext) -> None:
        kernels = kernels_of(module)
        wide = {name: (made, dtype) for name, k in kernels.items()
                if (dtype := _joined(k)) and (made := _widened(k, f"{name}_wide", dtype))}
        for op in [o for o in walk_ops(module) if name_of(o) == "dispatch" and kernel_of(o) in wide]:
            _dispatch(op, *wide[kernel_of(op)])
        removed_unused(module, kernels)


def _joined(kernel: Operation) -> str:
    """The type of the elements that `kernel` moves as one where that is all it does, else nothing."""
    operations = kernel.regions[0].blocks[0].operations
    op = operations[0].operation
    if len(operations) != 2 or name_of(op) != "transpose":
        return ""
    have, dtype = element_bytes(op.results[0]), xt.TensorType.of(op.results[0]).dtype
    size = product(xt.shape_of(op.operands[0])[_moved(op):]) * have
    return f"i{8 * size}" if isinstance(size, int) and size in WORDS and size > have and xt.width(dtype) >= 8 else ""


def _moved(op: Operation) -> int:
    """How many dims a transpose moves: those behind them stay where they are."""
    perm = xt.attrs_of(op).perm
    return max((d for d in range(len(perm)) if perm[d] != d), default=-1) + 1


def _widened(kernel: Operation, name: str, dtype: str) -> Operation:
    """`kernel` with wide elements, ahead of it."""
    op = kernel.regions[0].blocks[0].operations[0].operation
    moved = _moved(op)
    kinds = [xt.TensorType(xt.shape_of(v)[:moved], dtype).mlir() for v in (op.operands[0], op.results[0])]
    attributes = {n: kernel.attributes[n] for n in ("xt.kernel", "xt.symbols", "sym_visibility")} | {
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(kinds[:1], kinds[1:]))}
    new = ir.Operation.create("func.func", regions=1, attributes=attributes, loc=kernel.location,
                              ip=ir.InsertionPoint(kernel))
    entry = new.regions[0].blocks.append(kinds[0], arg_locs=[kernel.location])
    with op.location, ir.InsertionPoint(entry):
        y = xt.transpose(entry.arguments[0], perm=xt.attrs_of(op).perm[:moved])
        ir.Operation.create("func.return", operands=[y])
    return new


def _dispatch(op: Operation, kernel: Operation, dtype: str) -> None:
    """Has the dispatch `op` use `kernel`, between views."""
    source, shape = xt.TensorType.of(op.operands[0]), xt.shape_of(op.results[0])
    rank = len(xt.shape_of(kernel.regions[0].blocks[0].arguments[0]))
    joined = xt.width(dtype) // xt.width(source.dtype)
    with at(op):
        x = xt.bitcast(xt.reshape(op.operands[0], shape=(*source.shape[:rank], joined)), dtype=dtype)
        kind = xt.TensorType(shape[:rank], dtype).mlir()
        made = dispatched_anew(op, ir.StringAttr(kernel.attributes["sym_name"]).value, [kind], [x])
        y = xt.reshape(xt.bitcast(made.results[0], dtype=source.dtype), shape=shape)
    op.results[0].replace_all_uses_with(y)
    op.erase()
