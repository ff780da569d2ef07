"""One launch of kernels that do not depend on each other: their workgroups lie beside each other in one grid.

    gpu.module @beside_0__0_gpu { gpu.func @beside_0__0(%x, %o) kernel attributes {xcc.grid = "8", ...} {A} }
    gpu.module @beside_0__1_gpu { gpu.func @beside_0__1(%y, %p) kernel attributes {xcc.grid = "4", ...} {B} }
    ->
    gpu.module @beside_0_gpu {
      gpu.func @beside_0(%x, %y, %o, %p) kernel attributes {xcc.grid = "12", ...} {
        %b = gpu.block_id x
        scf.if (%b < 8) {A} else { %c = %b - 8; {B with %c for its block_id} } } }

A workgroup has as many threads as the largest needs. The others' extra warps end at once (``xcc.ends`` on the scf.if),
and a barrier waits for those that have not ended (CUDA programming guide, "Independent Thread Scheduling"; AMD's ISA
documents, S_BARRIER). Parts that read what they stored stay launches of their own, in order, with the same arguments.
"""

from __future__ import annotations

from xcc import symbolic
from xcc._mlir import Attribute, Block, Module, Operation, Type, Value, arith_d, gpu_d, ir, scf_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.attributes import PART
from xcc.passes.shared.dims import emit_dim, read_dim
from xcc.passes.walk import walk
from xcc.symbolic import Dim

STORES = ("memref.store", "vector.store", "vector.transfer_write", "vector.maskedstore", "vector.scatter")
VIEWS = ("memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.reinterpret_cast", "memref.subview")
ENDS = "xcc.ends"
"""On an scf.if: a thread that does not go in is at its end."""


@register_pass
class JoinGrids(Pass):
    """Makes one kernel function of the parts of a kernel that ``split-beside`` made."""

    def run(self, module: Module, ctx: PassContext) -> None:
        wholes: dict[str, list[_Part]] = {}
        for op in list(module.body.operations):
            if op.operation.name == "gpu.module":
                for f in op.operation.regions[0].blocks[0].operations:
                    if f.operation.name == "gpu.func" and PART in f.attributes:
                        part = _Part(f.operation, op.operation)
                        wholes.setdefault(part.of, []).append(part)
        for name, parts in wholes.items():
            _join(name, parts)


class _Part:
    """One gpu.func of a part: `args` and `results` are the places of its buffers in the whole."""

    def __init__(self, function: Operation, module: Operation) -> None:
        self.function, self.module = function, module
        about = ir.DictAttr(function.attributes[PART])
        self.of = ir.StringAttr(about["of"]).value
        self.args = list(ir.DenseI64ArrayAttr(about["args"]))
        self.results = list(ir.DenseI64ArrayAttr(about["results"]))
        self.dims = [*ir.ArrayAttr(function.attributes["xt.arg_dims"]),
                     *ir.ArrayAttr(function.attributes["xt.result_dims"])]
        self.block = function.regions[0].blocks[0]
        self.threads = int(ir.DenseI32ArrayAttr(function.attributes["known_block_size"])[0])
        self.grid: Dim = symbolic.parse(ir.StringAttr(function.attributes["xcc.grid"]).value)
        self.shared = int(ir.IntegerAttr(function.attributes["xcc.shared_bytes"]).value)

    @property
    def reads_results(self) -> bool:
        """Whether it may read what it, or another launch of its part, has stored."""
        results = list(self.block.arguments)[len(self.args):len(self.args) + len(self.results)]
        return any(not _is_stored_to(v) for v in results)


def _is_stored_to(memory: Value) -> bool:
    """Whether every use of a memref, and of views of it, stores to it."""
    for use in memory.uses:
        op = use.owner.operation
        if op.name in VIEWS:
            if not _is_stored_to(op.results[0]):
                return False
        elif op.name not in STORES:
            return False
    return True


def _join(name: str, parts: list[_Part]) -> None:
    modules = list(dict.fromkeys(p.module for p in parts))
    with ir.InsertionPoint(modules[0]):
        target = ir.Operation.create("gpu.module", regions=1,
                                     attributes={"sym_name": ir.StringAttr.get(f"{name}_gpu")})
    body = target.regions[0].blocks.append()
    for module in modules:      # constant tables
        for op in module.regions[0].blocks[0].operations:
            if op.operation.name != "gpu.func":
                op.operation.clone(ip=ir.InsertionPoint(body))
    signature = _Signature(parts)
    launches = [[p] for p in parts] if any(p.reads_results for p in parts) else [parts]
    with ir.InsertionPoint(body):
        for number, members in enumerate(launches):
            _function(f"{name}_{number}" if number else name, members, signature)
    for module in modules:
        module.erase()


class _Signature:
    """The arguments of the whole: inputs, outputs, symbols, with their dims."""

    def __init__(self, parts: list[_Part]) -> None:
        inputs: dict[int, tuple[Type, Attribute]] = {}
        outputs: dict[int, tuple[Type, Attribute]] = {}
        for p in parts:
            types = [a.type for a in p.block.arguments]
            for found, places, key, first in ((inputs, p.args, "xt.arg_dims", 0),
                                              (outputs, p.results, "xt.result_dims", len(p.args))):
                dims = ir.ArrayAttr(p.function.attributes[key])
                for n, place in enumerate(places):
                    found[place] = types[first + n], dims[n]
        assert sorted(inputs) == list(range(len(inputs))) and sorted(outputs) == list(range(len(outputs)))
        self.symbols = ir.ArrayAttr(parts[0].function.attributes["xt.symbols"])
        self.inputs, self.outputs = len(inputs), len(outputs)
        self.types = [inputs[i][0] for i in range(self.inputs)] + [outputs[i][0] for i in range(self.outputs)] \
            + [ir.IndexType.get()] * len(self.symbols)
        self.attributes = {"xt.symbols": self.symbols,
                           "xt.arg_dims": ir.ArrayAttr.get([inputs[i][1] for i in range(self.inputs)]),
                           "xt.result_dims": ir.ArrayAttr.get([outputs[i][1] for i in range(self.outputs)])}

    def places(self, p: _Part) -> list[int]:
        """For each argument of the part the number of the whole's."""
        first = self.inputs + self.outputs
        return [*p.args, *(self.inputs + r for r in p.results), *range(first, first + len(self.symbols))]


def _function(name: str, members: list[_Part], signature: _Signature) -> None:
    threads = max(p.threads for p in members)
    kernel = gpu_d.GPUFuncOp(ir.FunctionType.get(signature.types, []), name, kernel=True,
                             known_block_size=[threads, 1, 1])
    for key, value in signature.attributes.items():
        kernel.operation.attributes[key] = value
    total: Dim = 0
    for p in members:
        total = total + p.grid
    kernel.operation.attributes["xcc.grid"] = ir.StringAttr.get(str(total))
    kernel.operation.attributes["xcc.shared_bytes"] = ir.IntegerAttr.get(
        ir.IntegerType.get_signless(64), max(p.shared for p in members))
    blocks = kernel.operation.regions[0].blocks
    entry = blocks[0] if len(blocks) else blocks.append(*signature.types)
    names = [ir.StringAttr(s).value for s in signature.symbols]
    symbols = dict(zip(names, list(entry.arguments)[signature.inputs + signature.outputs:], strict=True))
    with ir.InsertionPoint(entry):
        arguments = [_arguments(p, [entry.arguments[i] for i in signature.places(p)], symbols) for p in members]
        number = gpu_d.block_id(gpu_d.Dimension.x)
        end = gpu_d.return_([])
    _branches(members, number, threads, symbols, arguments, _operation(end))


def _arguments(p: _Part, values: list[Value], symbols: dict[str, Value]) -> list[Value]:
    """The part's arguments: an input that another part has in a shape of its own is a view of it here."""
    out = list(values)
    for n, (old, new) in enumerate(zip(p.block.arguments, values, strict=True)):
        if old.type != new.type:
            out[n] = _view(new, old.type, [read_dim(d) for d in p.dims[n]], symbols)
    return out


def _view(memory: Value, kind: Type, dims: list[Dim], symbols: dict[str, Value]) -> Value:
    """The contiguous buffer `memory` with other dims, of the type `kind`."""
    unknown = ir.ShapedType.get_dynamic_size()
    strides: list[Dim] = [1] * len(dims)
    for i in reversed(range(len(dims) - 1)):
        strides[i] = strides[i + 1] * dims[i + 1]
    moving = [[emit_dim(d, symbols) for d in numbers if not isinstance(d, int)] for numbers in (dims, strides)]
    fixed = [ir.DenseI64ArrayAttr.get([d if isinstance(d, int) else unknown for d in numbers])
             for numbers in ([0], dims, strides)]
    return ir.Operation.create("memref.reinterpret_cast", results=[kind], operands=[memory, *moving[0], *moving[1]],
                               attributes={
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, len(moving[0]), len(moving[1])]),
        "static_offsets": fixed[0], "static_sizes": fixed[1], "static_strides": fixed[2]}).results[0]


def _operation(made: Operation) -> Operation:
    return made if isinstance(made, ir.Operation) else made.operation


def _branches(members: list[_Part], number: Value, threads: int, symbols: dict[str, Value],
              arguments: list[list[Value]], end: Operation) -> None:
    """Ahead of `end`, the first member where `number` is below its grid, else the others with what is left of it."""
    p, *rest = members
    if not rest:
        _threads(p, number, threads, arguments[0], end)
        return
    with ir.InsertionPoint(end):
        grid = emit_dim(p.grid, symbols)
        branch = scf_d.IfOp(arith_d.cmpi(arith_d.CmpIPredicate.ult, number, grid), has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf_d.yield_([])
    with ir.InsertionPoint(branch.else_block):
        left = arith_d.subi(number, grid)
        scf_d.yield_([])
    _threads(p, number, threads, arguments[0], _last(branch.then_block))
    _branches(rest, left, threads, symbols, arguments[1:], _last(branch.else_block))


def _last(block: Block) -> Operation:
    return block.operations[len(block.operations) - 1].operation


def _threads(p: _Part, number: Value, threads: int, arguments: list[Value], end: Operation) -> None:
    """Ahead of `end`, the body of `p` for workgroup `number`, by as many threads as it needs."""
    if p.threads != threads:
        with ir.InsertionPoint(end):
            limit = arith_d.constant(ir.IndexType.get(), p.threads)
            some = arith_d.cmpi(arith_d.CmpIPredicate.ult, gpu_d.thread_id(gpu_d.Dimension.x), limit)
            branch = scf_d.IfOp(some)
            branch.operation.attributes[ENDS] = ir.UnitAttr.get()
        with ir.InsertionPoint(branch.then_block):
            scf_d.yield_([])
        end = _last(branch.then_block)
    for old, new in zip(p.block.arguments, arguments, strict=True):
        old.replace_all_uses_with(new)
    for op in [op for op in walk(p.block) if op.name == "gpu.block_id"]:
        op.results[0].replace_all_uses_with(number)
        op.erase()
    for op in list(p.block.operations)[:-1]:
        op.operation.move_before(end)
