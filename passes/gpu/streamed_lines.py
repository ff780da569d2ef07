"""What is read once keeps its place in the L2 cache until it has been used, and gives it up then.

    %v = llvm.load (%x + %i)      ->    %v = ld.global.L2::cache_hint (%x + %i), evict_last
    ...                                 ...
    llvm.store %r, (%y + %i)            llvm.store %r, (%y + %i)
    llvm.return                         applypriority.global.L2::evict_normal (%x + %i), one thread a line of 128 bytes
                                        llvm.return

A load at the index of a store is the only one of its element: each element is stored once. Its line is wanted by the
other threads of the warp, within the microsecond in which the cache takes in and writes back many others, and by nobody
afterwards. Without the last instruction such lines would outlast what the next kernels read twice.

The second address is that of the store, moved: one of the load's own would hold registers all along.
"""

from __future__ import annotations

from xcc._mlir import Attribute, Block, Module, Operation, Type, Value, ir, maker, owner_op
from xcc.dialects.xt import dims_from_attr
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.distribute import PRODUCT
from xcc.passes.gpu.layout.tile_ops import element_bytes
from xcc.passes.gpu.nvvm_kernel_functions import nvvm_kernels
from xcc.passes.gpu.vendor.inline_asm import inline_asm
from xcc.passes.linalg.kernel.domain import volume
from xcc.passes.shared.values import is_vector
from xcc.targets.base import Chip

WIDE = 16           # bytes of an access
SHARE = 8           # of the L2 cache that an array has at least: less stays in it without being asked
POLICY = "createpolicy.fractional.L2::evict_last.b64 $0, 1.0;"
LOAD = "ld.global.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, [$4], $5;"
RELEASE = ("{.reg .pred first; .reg .b64 place, low; sub.s64 place, $0, $1; add.s64 place, place, $2; "
           "and.b64 low, place, 127; setp.eq.b64 first, low, 0; "
           "@first applypriority.global.L2::evict_normal [place], 128;}")


@register_pass
class StreamedLines(Pass):
    """Cache hints for large arguments of kernels without products, on chips that gain by them."""

    def acts_on(self, chip: Chip | None) -> bool:
        return chip is not None and bool(chip.line_priority)

    def run(self, module: Module, ctx: PassContext) -> None:
        for kernel in nvvm_kernels(module):
            if PRODUCT not in kernel.attributes:
                _hint(kernel, ctx.chip.l2_bytes // SHARE)


def _hint(kernel: Operation, least: int) -> None:
    """`least`: bytes of an argument whose loads get hints."""
    entry = kernel.regions[0].blocks[0]
    last = next(b for b in kernel.regions[0].blocks if list(b.operations)[-1].operation.name == "llvm.return")
    written = {}
    for op in last.operations:
        place = _place(op.operation.operands[1]) if op.operation.name == "llvm.store" else None
        if place is not None:
            written[_key(place)] = place
    dims = [dims_from_attr(d) for d in kernel.attributes["xt.arg_dims"]]
    policy: Value | None = None
    for argument, sizes in zip(entry.arguments, dims, strict=False):
        loads = _loads(argument, entry)
        places = [owner_op(load.operands[0]) for load in loads]
        if not loads or volume(sizes) * _key(places[0])[1] < least or any(_key(p) not in written for p in places):
            continue
        if policy is None:
            with ir.InsertionPoint.at_block_begin(entry):
                policy = inline_asm(POLICY, "=l", [_words(64)])
        for load in loads:
            with ir.InsertionPoint(load):
                load.results[0].replace_all_uses_with(_load(load, policy))
            load.erase()
        with ir.InsertionPoint(list(last.operations)[-1]):
            for place in places:
                store = written[_key(place)]
                inline_asm(RELEASE, "l,l,l,~{memory}",
                           operands=[_global(v) for v in (argument, store.operands[0], store.results[0])])


def _loads(argument: Value, entry: Block) -> list[Operation]:
    """The loads from an argument, if all are wide ones in the block `entry`; else none."""
    found = []
    for use in argument.uses:
        place = use.owner.operation
        if place.name != "llvm.getelementptr" or _place(place.results[0]) is None:
            return []
        for access in place.results[0].uses:
            op = access.owner.operation
            if op.name != "llvm.load" or op.block != entry or not is_vector(op.results[0]):
                return []
            kind = ir.VectorType(op.results[0].type)
            if kind.shape[0] * element_bytes(kind.element_type) != WIDE or _alignment(op) < WIDE:
                return []
            found.append(op)
    return found


def _alignment(load: Operation) -> int:
    return int(load.attributes["alignment"].value) if "alignment" in load.attributes else 1


def _place(pointer: Value) -> Operation | None:
    """The getelementptr that finds `pointer` by one index from an argument; None where another op does."""
    op = maker(pointer, "llvm.getelementptr")
    if op is None or len(op.operands) != 2 or maker(op.operands[0]) is not None:
        return None
    return op


def _key(place: Operation) -> tuple[Value, int]:
    """The index of a `_place`, and the bytes of what it counts."""
    return place.operands[1], element_bytes(place.attributes["elem_type"].value)


def _load(load: Operation, policy: Value) -> Value:
    """What `load` loads, under the policy."""
    word, words = _words(32), ir.VectorType.get([WIDE // 4], _words(32))
    struct = ir.Type.parse("!llvm.struct<(i32, i32, i32, i32)>")
    loaded = inline_asm(LOAD, "=r,=r,=r,=r,l,l,~{memory}", [struct], [_global(load.operands[0]), policy])
    value = _op("llvm.mlir.poison", words)
    for n in range(WIDE // 4):
        part = _op("llvm.extractvalue", word, loaded, position=ir.DenseI64ArrayAttr.get([n]))
        at = _op("llvm.mlir.constant", word, value=ir.IntegerAttr.get(word, n))
        value = _op("llvm.insertelement", words, value, part, at)
    return _op("llvm.bitcast", load.results[0].type, value)


def _global(pointer: Value) -> Value:
    return _op("llvm.addrspacecast", ir.Type.parse("!llvm.ptr<1>"), pointer)


def _op(name: str, result: Type, *operands: Value, **attributes: Attribute) -> Value:
    return ir.Operation.create(name, results=[result], operands=list(operands), attributes=attributes).results[0]


def _words(bits: int) -> Type:
    return ir.IntegerType.get_signless(bits)
