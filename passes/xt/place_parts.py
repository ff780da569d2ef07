"""The larger part of a concatenation lies where it belongs as soon as its kernel has made it (stage ``kernels``).

    %a = xtv.dispatch(%x, %w) {kernel = @dot}            %y0 = xtv.dispatch(%x, %w) {kernel = @dot_placed}
    %y = xtv.dispatch(%a, %b) {kernel = @concatenate} -> %y = xtv.dispatch(%y0, %b) {kernel = @concatenate_rest,
                                                                                     xt.in_place}

    func.func private @dot_placed(%x, %w) {
      %a = xt.dot_general(%x, %w)
      return xt.dynamic_update_slice(<zeros>, %a, 0, 0) {xt.in_place} }          // stores %a alone
    func.func private @concatenate_rest(%y0, %b) {
      return xt.dynamic_update_slice(%y0, %b, 0, 16000) {xt.in_place} }          // stores %b alone

What is placed so is not read and written again: of two halves, as of a gather among two ranks (exchange-pairs), half of
the bytes that putting them side by side moves.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from xcc import symbolic
from xcc._mlir import Module, Operation, Value, ir, owner_op
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.host.placement.places import main_of
from xcc.passes.xt.fusion.kernel_variants import (
    dispatched_anew,
    is_tiled,
    kernel_of,
    kernels_of,
    removed_unused,
    variant,
)
from xcc.passes.xt.fusion.outline import PARTS
from xcc.passes.xt.graph.load_time import made_at_load
from xcc.passes.xt.graph.op_graph import IN_PLACE, element_bytes
from xcc.passes.xt.graph.rewrite import name_of


@dataclass(frozen=True)
class _Part:
    """Operand `number` of the concatenation of two along `axis`: its size there, and that of the other one."""

    value: Value
    number: int
    axis: int
    size: int
    rest: int

    @property
    def begin(self) -> int:
        """Where it begins along the axis."""
        return self.rest if self.number else 0


@register_pass
class PlaceParts(Pass):
    """Has a kernel that makes one of two operands of a concatenation store it in the result, on chips with threads.

    line: bytes that neighbours in memory have, at least, in each part, and a multiple of which they begin at: stores
        are as wide there as anywhere.
    """

    line: int = 128

    def run(self, module: Module, ctx: PassContext) -> None:
        if ctx.chip is None or not ctx.chip.has_threads:
            return
        kernels, fixed = kernels_of(module), made_at_load(module)
        for op in [o.operation for o in main_of(module).regions[0].blocks[0].operations]:
            if name_of(op) != "dispatch" or op in fixed or len(op.results) != 1:
                continue
            found = [p for p in _parts(op, kernels)
                     if self._fits(p, op.results[0]) and _can_be_placed(p.value, kernels, fixed)]
            if found:
                _place(op, max(found, key=lambda p: p.size), kernels)
        removed_unused(module, kernels)

    def _fits(self, part: _Part, whole: Value) -> bool:
        """Whether the lines of both parts are whole, whatever sizes that are not known are, and no dims that a kernel
        may walk as one lie apart in the whole."""
        shape = xt.shape_of(whole)
        if part.axis + 1 < len(shape) and any(d != 1 for d in shape[:part.axis]):
            return False
        inner = [d for d in shape[part.axis + 1:] if isinstance(d, int)]
        step = symbolic.product(inner) * element_bytes(whole)
        return all(n > 0 and n * step % self.line == 0 for n in (part.size, part.rest))


def _parts(call: Operation, kernels: dict[str, Operation]) -> list[_Part]:
    """The operands of `call` where its kernel puts its two arguments together, and nothing else."""
    block = kernels[kernel_of(call)].regions[0].blocks[0]
    op, arguments = block.operations[0].operation, list(block.arguments)
    if name_of(op) != "concatenate" or len(block.operations) != 2 or len(op.operands) != 2 or len(arguments) != 2:
        return []
    axis, operands = xt.attrs_of(op).axis, list(op.operands)
    sizes = [d for v in operands if isinstance(d := xt.shape_of(v)[axis], int)]
    given = [call.operands[arguments.index(v)] for v in operands]
    others = [tuple(d for n, d in enumerate(xt.shape_of(v)) if n != axis) for v in operands]
    if len(sizes) != 2 or given[0] == given[1] or others[0] != others[1]:      # sizes that only a run compares
        return []
    return [_Part(v, n, axis, sizes[n], sizes[1 - n]) for n, v in enumerate(given)]


def _can_be_placed(value: Value, kernels: dict[str, Operation], fixed: Set[Operation]) -> bool:
    """Whether a kernel that stores tiles makes `value`, for one reader and in each run."""
    if isinstance(value.owner, ir.Block) or name_of(value.owner.operation) != "dispatch":
        return False
    maker = value.owner.operation
    kernel = kernels[kernel_of(maker)]
    return len(list(value.uses)) == 1 and maker not in fixed and IN_PLACE not in maker.attributes \
        and PARTS not in kernel.attributes and is_tiled(kernel)


def _place(op: Operation, part: _Part, kernels: dict[str, Operation]) -> None:
    """Makes the concatenation `op` one that stores the other operand beside `part`."""
    maker, whole = owner_op(part.value), op.results[0].type
    number = list(maker.results).index(part.value)
    name = f"{kernel_of(maker)}_placed{number}_{part.axis}_{part.begin}_{part.rest}"
    if name not in kernels:
        kernels[name] = variant(kernels[kernel_of(maker)], name, lambda values: [
            _among_zeros(v, part) if n == number else v for n, v in enumerate(values)])
    made = dispatched_anew(maker, name, [whole if n == number else r.type for n, r in enumerate(maker.results)])
    rest = next(v for v in op.operands if v != part.value)
    name = f"{kernel_of(op)}_rest" + str(1 - part.number)
    if name not in kernels:
        kernels[name] = _rest(kernels[kernel_of(op)], name, part)
    joined = dispatched_anew(op, name, [whole], [made.results[number], rest])
    joined.attributes[IN_PLACE] = ir.UnitAttr.get()
    for old, new in ((op, joined), (maker, made)):
        for before, after in zip(list(old.results), list(new.results), strict=True):
            before.replace_all_uses_with(after)
        old.erase()


def _among_zeros(value: Value, part: _Part) -> Value:
    """`value` in memory for all: of zeros, which nobody reads and nothing writes."""
    shape = list(xt.shape_of(value))
    shape[part.axis] = part.size + part.rest
    zeros = xt.broadcast(xt.constant(0, xt.element_type_of(value)), shape=shape)
    return _update(zeros, value, part.axis, part.begin)


def _rest(kernel: Operation, name: str, part: _Part) -> Operation:
    """A kernel that takes the result of `kernel`, a concatenation, to hold `part`, and stores the other operand."""
    joined = kernel.regions[0].blocks[0].operations[0].operation
    kinds, whole = [joined.results[0].type, joined.operands[1 - part.number].type], joined.results[0].type
    attributes = {n: kernel.attributes[n] for n in ("xt.kernel", "xt.symbols", "sym_visibility")} | {
        "sym_name": ir.StringAttr.get(name), "function_type": ir.TypeAttr.get(ir.FunctionType.get(kinds, [whole]))}
    new = ir.Operation.create("func.func", regions=1, attributes=attributes, loc=kernel.location,
                              ip=ir.InsertionPoint(kernel))
    entry = new.regions[0].blocks.append(*kinds, arg_locs=[kernel.location] * 2)
    with joined.location, ir.InsertionPoint(entry):
        y = _update(entry.arguments[0], entry.arguments[1], part.axis, 0 if part.number else part.size)
        ir.Operation.create("func.return", operands=[y])
    return new


def _update(x: Value, part: Value, axis: int, begin: int) -> Value:
    """`x`, whose memory the result has, with `part` at `begin` of the axis."""
    starts = [xt.constant(begin if d == axis else 0, "i64") for d in range(len(xt.shape_of(x)))]
    y = xt.dynamic_update_slice(x, part, *starts)
    owner_op(y).attributes[IN_PLACE] = ir.UnitAttr.get()
    return y
