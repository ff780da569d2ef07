"""Kernels that are another one but for what they return, and the dispatches of them (stage ``kernels``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xcc._mlir import Module, Operation, Type, Value, ir
from xcc.dialects import xt
from xcc.passes.shared.values import with_operands
from xcc.passes.xt.graph.rewrite import at, name_of, walk_ops


def kernels_of(module: Module) -> dict[str, Operation]:
    """The kernels of `module` by name."""
    return {ir.StringAttr(f.attributes["sym_name"]).value: f.operation for f in module.body
            if "xt.kernel" in f.operation.attributes}


def kernel_of(dispatch: Operation) -> str:
    return str(ir.FlatSymbolRefAttr(dispatch.attributes["kernel"]).value)


def is_tiled(kernel: Operation) -> bool:
    """Whether a kernel stores tiles that it has computed, and does not read its results again."""
    return all(getattr(xt.op_class(op.operation), "access", "") not in ("opaque", "control")
               for op in kernel.regions[0].blocks[0].operations if xt.op_class(op.operation) is not None)


def variant(kernel: Operation, name: str, returned: Callable[[Sequence[Value]], Sequence[Value]]) -> Operation:
    """A copy of `kernel` called `name`, ahead of it, that gives what `returned` makes of what `kernel` gives."""
    new = kernel.clone(ip=ir.InsertionPoint(kernel))
    new.attributes["sym_name"] = ir.StringAttr.get(name)
    end = list(new.regions[0].blocks[0].operations)[-1].operation
    with at(end):
        values = returned(list(end.operands))
        ir.Operation.create(end.name, operands=list(values))
    end.erase()
    inputs = [a.type for a in new.regions[0].blocks[0].arguments]
    new.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, [v.type for v in values]))
    return new


def dispatched_anew(op: Operation, kernel: str, types: Sequence[Type], operands: Sequence[Value] = ()) -> Operation:
    """A dispatch of `kernel` ahead of the dispatch `op`, with its attributes, and its operands where none are given."""
    with at(op):
        made = with_operands(op, operands or op.operands, types)
    made.attributes["kernel"] = ir.FlatSymbolRefAttr.get(kernel)
    return made


def removed_unused(module: Module, kernels: dict[str, Operation]) -> None:
    """Erases those of `kernels` that nobody dispatches."""
    used = {kernel_of(o) for o in walk_ops(module) if name_of(o) == "dispatch"}
    for name in kernels.keys() - used:
        kernels[name].erase()
