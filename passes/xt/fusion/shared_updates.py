"""Kernels that read an argument of @main and make the value that takes its place: which of their buffers may be one.

    %new = "xtv.dispatch"(%g, %p) {kernel = @sub_0}        %new updates %p, which nobody reads later
    func.func private @sub_0(...) attributes {xt.shares = array<i64: 1, 0>}     operand 1 and result 0

asks whether the kernel, as it is compiled, reads each element before it writes that one, and by the thread that does.
``xcc.driver.shared_buffers`` answers for the compiled kernel, and the pass ``place-results`` lets the two share memory.
"""

from __future__ import annotations

from xcc._mlir import Module, ir
from xcc.dialects import xt
from xcc.passes.xt.graph.load_time import view_root
from xcc.passes.xt.graph.memory_uses import MemoryUses
from xcc.passes.xt.graph.op_graph import IN_PLACE
from xcc.passes.xt.graph.rewrite import blocks_of, name_of

SHARES = "xt.shares"
"""Of a kernel: pairs of an operand and a result that are wanted in the same memory, one after the other."""


def mark_shared_updates(module: Module) -> None:
    """Marks the kernels of `module`, which is at the end of stage ``kernels``."""
    wanted: dict[str, set[tuple[int, int]]] = {}
    functions = {ir.StringAttr(f.attributes["sym_name"]).value: f.operation for f in module.body
                 if f.operation.name == "func.func"}
    for function in functions.values():
        if "xt.kernel" in function.attributes:
            continue
        for block in blocks_of(function):
            pairs = xt.carried_values(block)
            uses = MemoryUses(block) if pairs else None
            for value, argument in pairs:
                root = view_root(value)
                while uses is not None and (op := uses.maker(root)) is not None and IN_PLACE in op.attributes:
                    root = view_root(op.operands[0])
                if op is None or name_of(op) != "dispatch":
                    continue
                result = list(op.results).index(root)
                wanted.setdefault(xt.attrs_of(op).kernel, set()).update(
                    (n, result) for n, v in enumerate(op.operands)
                    if view_root(v) == argument and v.type == op.results[result].type)
    for name, found in wanted.items():
        if found:
            functions[name].attributes[SHARES] = ir.DenseI64ArrayAttr.get([n for pair in sorted(found) for n in pair])
