"""What the kernels of a module are and what they move: the numbers behind ``xcc -v``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from xcc import symbolic
from xcc._mlir import Module, Operation, Value
from xcc.diagnostics import counted
from xcc.dialects import xt
from xcc.passes.walk import ops_where
from xcc.passes.xt.graph.load_time import made_at_load
from xcc.passes.xt.graph.memory_uses import UPDATES
from xcc.passes.xt.graph.op_graph import IN_PLACE, Node, element_bytes
from xcc.passes.xt.graph.rewrite import name_of, producer
from xcc.symbolic import Dim

GATHERS = ("gather", "gather_nd", "gather_elements")


@dataclass(frozen=True)
class KernelSummary:
    """One kernel: its ops in order, how often @main dispatches it, and a dispatch's traffic and work.

    Bytes and operations are dims over the kernel's own symbols (d0, d1, ...). `flops` counts a pointwise op or a step
    of a reduction as one and a multiply-add as two. Of an operand that is only gathered from, what is gathered counts,
    and of one that is updated in place, what is written. `dtype` is the element type that most of the work multiplies.
    `setup` of the dispatches run once, when the model is loaded, the others in each run.
    """

    name: str
    ops: tuple[str, ...]
    dispatches: int
    bytes_in: Dim
    bytes_out: Dim
    flops: Dim
    dtype: str = ""
    setup: int = 0

    def __str__(self) -> str:
        some = f" {self.setup} of {self.dispatches}" if self.setup < self.dispatches else ""
        return (f"{self.name} x{self.dispatches}: {' '.join(self.ops)} | {self.bytes_in} B in, {self.bytes_out} B out, "
                f"{self.flops} flop{f',{some} when loaded' if self.setup else ''}")


@dataclass(frozen=True)
class ModelSummary:
    """All kernels, and how often one run of @main dispatches one, and the bytes it moves, over the model's symbols."""

    kernels: tuple[KernelSummary, ...]
    dispatches: int
    bytes_moved: Dim

    def __str__(self) -> str:
        kernels, dispatches = counted(len(self.kernels), "kernel"), counted(self.dispatches, "dispatch")
        head = f"{kernels}, {dispatches}, {self.bytes_moved} bytes moved"
        return "\n".join((head, *(f"  {k}" for k in self.kernels)))


def summarise(module: Module) -> ModelSummary:
    """The summary of a module at stage ``kernels``. A loop's body counts once."""
    with module.context:
        kernels = {op.attributes["sym_name"].value: op.operation for op in module.body
                   if "xt.kernel" in op.attributes}
        calls = _dispatches(module)
        moved: Dim = 0
        setup = made_at_load(module)
        for op in calls:
            if op not in setup:
                moved = moved + _moved(op, kernels[op.attributes["kernel"].value])
        names, loaded = (Counter(op.attributes["kernel"].value for op in ops) for ops in (calls, setup))
        return ModelSummary(tuple(_kernel(n, f, names[n], loaded[n]) for n, f in kernels.items()),
                            len(calls) - len(setup), moved)


def _dispatches(module: Module) -> list[Operation]:
    return ops_where(module, lambda op: name_of(op) == "dispatch")


def _bytes(values: Sequence[Value]) -> Dim:
    total: Dim = 0
    for v in values:
        total = total + symbolic.product(xt.shape_of(v)) * element_bytes(v)
    return total


def _moved(call: Operation, function: Operation) -> Dim:
    """The bytes of a dispatch's operands and results; of what it updates in place those that are new."""
    held = _held(function)
    names = [a.value for a in function.attributes["xt.symbols"]] if "xt.symbols" in function.attributes else []
    written = symbolic.substitute(_written(function), dict(zip(names, xt.attrs_of(call).symbols, strict=True)))
    return _bytes([v for n, v in enumerate(call.operands) if n not in held]) + written


def _held(function: Operation) -> list[int]:
    """The arguments of a kernel that are updated in place, as results."""
    arguments = list(function.regions[0].blocks[0].arguments)
    return [arguments.index(op.operands[0]) for op in function.regions[0].blocks[0].operations
            if IN_PLACE in op.attributes and op.operands[0] in arguments]


def _written(function: Operation) -> Dim:
    """The bytes of a kernel's results, of those that are updated in place of what is new in them."""
    end = list(function.regions[0].blocks[0].operations)[-1]
    makers = [producer(v) for v in end.operands]
    return _bytes([v if op is None or IN_PLACE not in op.attributes else op.operands[UPDATES[name_of(op)]]
                   for v, op in zip(end.operands, makers, strict=True)])


def _kernel(name: str, function: Operation, dispatches: int, setup: int) -> KernelSummary:
    block = function.regions[0].blocks[0]
    ops = [op.operation for op in block.operations]
    work: Dim = 0
    for op in ops[:-1]:
        work = work + _flops(op)
    names = tuple(name_of(op) for op in ops[:-1] if name_of(op) not in ("constant", "dim"))
    held = _held(function)
    read: Dim = 0
    for n, argument in enumerate(block.arguments):
        read = read + (0 if n in held else _read(argument))
    products = [op for op in ops if getattr(xt.op_class(op), "access", "") == "contraction"]
    typed = [v for op in (products or ops) for v in op.operands]
    dtype = str(xt.element_type_of(typed[0])) if typed else ""
    return KernelSummary(name, names, dispatches, read, _written(function), work, dtype, setup)


def _read(argument: Value) -> Dim:
    """The bytes of `argument` that a kernel reads: all, or what its gathers take."""
    users = [use.owner.operation for use in argument.uses]
    if not users or not all(name_of(op) in GATHERS and op.operands[0] == argument for op in users):
        return _bytes([argument])
    return symbolic.dim_min(_bytes([argument]), sum((_bytes(op.results) for op in users), 0))


def _flops(op: Operation) -> Dim:
    access = getattr(xt.op_class(op), "access", "")
    size = symbolic.product(xt.shape_of(op.results[0])) if len(op.results) else 0
    if access == "pointwise":
        return size
    if access == "reduction":
        return symbolic.product(xt.shape_of(op.operands[0]))
    if access == "window":
        return size * symbolic.product(xt.attrs_of(op).window)
    if access == "contraction":
        return 2 * size * contracted(op)
    if name_of(op) in ("attention", "attention_with_sums"):
        keys = xt.shape_of(op.operands[1])[2]
        return 2 * keys * (size + symbolic.product(xt.shape_of(op.operands[0])))
    if name_of(op) in ("attention_query_gradient", "attention_key_gradients"):
        products = 2 + len(op.results)
        return 2 * products * xt.shape_of(op.operands[2])[2] * symbolic.product(xt.shape_of(op.operands[1]))
    return 0


def contracted(op: Operation) -> Dim:
    """Multiply-adds for one element of the result."""
    a, w = xt.attrs_of(op), xt.shape_of(op.operands[1])
    if name_of(op) == "dot_general":
        return symbolic.product(w[d] for d in a.rhs_contract)
    if name_of(op) == "packed_matmul":
        lane = max(a.batch + 2, len(w) - 2)
        return symbolic.product([*w[a.batch + 1:lane], *w[lane + 1:]])
    if name_of(op) == "winograd_convolution":
        return symbolic.floordiv(w[0] * w[1] * w[3], a.tile ** 2)       # without the transforms
    outputs = {"OIHW": w[0], "HWIO": w[-1], "OHWI": w[0], "GIHWO": w[-1] * a.groups, "OHWIo": w[0] * w[-1],
               "OHWIoi": w[0] * w[-2]}[a.filter]
    return symbolic.floordiv(symbolic.product(w), outputs)


def picks_matrices(n: Node, readers: list[Node]) -> bool:
    """Whether `n` picks whole matrices by index, one for each of a product's batch, as of a token's expert: they are
    read where they lie."""
    if n.name != "gather" or any(u not in readers for u in n.users):
        return False
    axis, rank = xt.attrs_of(n.op).axis, len(xt.shape_of(n.operands[1]))
    picked = set(range(axis, axis + rank))
    return all(u.kind == "contraction" and all(
        picked <= set(_batch_of(u, side)) for side, v in enumerate(u.operands) if v in n.results) for u in n.users)


def _batch_of(product: Node, side: int) -> Sequence[int]:
    """The dims of an operand of a product that are its batch."""
    a = xt.attrs_of(product.op)
    if product.name == "packed_matmul":
        return range(int(side and a.panels_first), a.batch + int(side and a.panels_first))
    return () if product.name != "dot_general" else a.rhs_batch if side else a.lhs_batch
