"""amx-tiles: contractions of narrow elements on AMX's tile registers (Intel: 8 registers of 16 rows x 64 bytes).

    %r = scf.for %k = 0 to %n step 16 iter_args(%a = %zero) -> vector<32x32xf32> {
      %x = vector.transfer_read %X[%i, %k, 0] : vector<32x16x2xbf16>         rows x groups x 2
      %w = vector.transfer_read %W[%p, %k, 0, 0] : vector<16x32x2xbf16>      groups x columns x 2
      yield (vector.contract %x, %w, %a) }
    vector.transfer_write %r, %buffer                                         becomes

    ldtilecfg; tilezero 0 .. 3
    scf.for %k = 0 to %n step 16 {
      tileloadd 6, %W ...; tileloadd 7, %W ...; tileloadd 4, %X ...; tdpbf16ps 0, 4, 6; tdpbf16ps 1, 4, 7; ... }
    tilestored 0 .. 3, %buffer

A register holds up to 16 groups (64 bytes) of up to 16 rows of X, 16 columns of as many groups of W, or 16 x 16 sums.
Registers are named by the instructions, so that LLVM has none to allocate. What a loop's registers look like is set
once before the outermost loop, or for the chunk, in which all agree.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Type, Value, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.values import index, op
from xcc.passes.vector.unroll.amx_match import GROUP_BYTES, Chain, Read, Step, chains, drop
from xcc.targets.base import Chip

ROWS = 16           # of a register; columns of 4 bytes of one
SUMS, LEFT, RIGHT = 0, 4, 6     # the first register of each kind


@register_pass
class AmxTiles(Pass):
    """Where the chip has tile registers: contractions whose operands are tiles of memory, and whose result goes there.

    always: whatever the chip.
    """

    always: bool = False

    def acts_on(self, chip: Chip | None) -> bool:
        return self.always or chip is not None and bool(chip.tile_products)

    def run(self, module: Module, ctx: PassContext) -> None:
        for f in list(module.body.operations):
            if f.operation.name == "func.func" and len(f.regions[0].blocks):
                for o in [x.operation for x in f.regions[0].blocks[0].operations]:
                    if o.name == "scf.forall":
                        _chunk(module, o)
                _chunk(module, f.operation)


def _chunk(module: Module, o: Operation) -> None:
    """The contractions of a forall, or those of a function that are in none: a forall of one turn is no loop."""
    found = chains(o)
    if not found:
        return
    body = o.regions[0].blocks[0]
    configurations = [configuration(c) for c in found]
    around = [_around(c.first, o) for c in found]

    def agree(loop: Operation) -> bool:
        return len({c for c, loops in zip(configurations, around, strict=True) if loop in loops}) == 1

    places = {next(filter(agree, loops), chain.first): wanted
              for chain, wanted, loops in zip(found, configurations, around, strict=True)}
    for place, wanted in places.items():
        with ir.InsertionPoint.at_block_begin(body) if place == o else ir.InsertionPoint(place):
            _configure(module, wanted)
    with ir.InsertionPoint(list(body.operations)[-1]):
        _call("tilerelease")
    for chain in found:
        with ir.InsertionPoint(chain.first):
            if chain.start is None:
                for n in range(len(chain.pieces) * chain.right):
                    _call("tilezero", _number(SUMS + n))
            else:
                _move_sums(chain, "tileloadd64")
        _rewrite(chain)


def _around(first: Operation, o: Operation) -> list[Operation]:
    """The loops around `first`, the outermost one first: of the forall `o`, which is among them, or of a function."""
    found, at = [], first.parent.operation
    while at != o:
        found.append(at)
        at = at.parent.operation
    return [*[o] * (o.name == "scf.forall"), *[x for x in reversed(found) if x.name == "scf.for"]]


def configuration(chain: Chain) -> bytes:
    """What ldtilecfg reads: palette 1, bytes of a row and rows for each register."""
    rows, width = bytearray(16), bytearray(32)

    def put(register: int, n: int, columns: int) -> None:
        rows[register] = n
        width[2 * register] = GROUP_BYTES * columns

    for i, (_, n) in enumerate(chain.pieces):
        put(_left(i), n, chain.groups)
        for j in range(chain.right):
            put(SUMS + i * chain.right + j, n, ROWS)
    for j in range(chain.right):
        put(RIGHT + j, chain.groups, ROWS)
    return bytes([1, *[0] * 15]) + bytes(width) + bytes(rows)


def _left(piece: int) -> int:
    return LEFT + piece % 2


def _configure(module: Module, data: bytes) -> None:
    name = f"amx_{data[48:56].hex()}"
    if not any("sym_name" in o.attributes and ir.StringAttr(o.attributes["sym_name"]).value == name
               for o in module.body.operations):
        values = ", ".join(str(b) for b in data)
        text = (f"llvm.mlir.global internal constant @{name}(dense<[{values}]> : tensor<64xi8>) "
                "{addr_space = 0 : i32, alignment = 64 : i64} : !llvm.array<64 x i8>")
        ir.InsertionPoint.at_block_begin(module.body).insert(ir.Operation.parse(text))
    _call("ldtilecfg", op("llvm.mlir.addressof", [_ptr()], [], global_name=ir.FlatSymbolRefAttr.get(name)))


def _rewrite(chain: Chain) -> None:
    for step in chain.steps:
        with ir.InsertionPoint(step.contract):
            _step(chain, step)
    write = chain.write
    with ir.InsertionPoint(write):
        _move_sums(chain, "tilestored64")
    value = write.operands[0]
    write.erase()
    drop(value)


def _move_sums(chain: Chain, instruction: str) -> None:
    """Between the registers of sums and the buffer that the chain writes to."""
    buffer = chain.write.operands[1]
    strides, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
    for i, (at, _) in enumerate(chain.pieces):
        for j in range(chain.right):
            address = _address(buffer, [*(index(n) for n in at), index(ROWS * j)])
            _call(instruction, _number(SUMS + i * chain.right + j), address, _bytes(strides[-2] * 4))


def _step(chain: Chain, step: Step) -> None:
    """acc += left x right, register by register."""
    for j in range(chain.right):
        _call("tileloadd64", _number(RIGHT + j), _at(step.right, (0, ROWS * j, 0)), _stride(step.right, 0))
    for i, (at, _) in enumerate(chain.pieces):
        _call("tileloadd64", _number(_left(i)), _at(step.left, (*at, 0, 0)), _stride(step.left, len(at) - 1))
        for j in range(chain.right):
            _call(chain.instruction, _number(SUMS + i * chain.right + j), _number(_left(i)), _number(RIGHT + j))


def _at(read: Read, offsets: tuple[int, ...]) -> Value:
    """The address of the element of a Read at vector coordinates `offsets`."""
    indices = list(read.indices)
    for d, n in zip(read.dims, offsets, strict=True):
        if n:
            indices[d] = op("arith.addi", [indices[d].type], [indices[d], index(n)])
    return _address(read.memory, indices)


def _stride(read: Read, v: int) -> Value:
    """Bytes from one coordinate of vector dim `v` to the next."""
    d = read.dims[v]
    step, rank = read.strides[d], len(read.strides)
    if step is not None:
        return _bytes(step * read.width)
    i = ir.IndexType.get()
    parts = ir.Operation.create("memref.extract_strided_metadata", operands=[read.memory], results=[
        ir.MemRefType.get([], ir.MemRefType(read.memory.type).element_type), *[i] * (1 + 2 * rank)])
    wide = op("arith.muli", [i], [parts.results[2 + rank + d], index(read.width)])
    return op("arith.index_cast", [ir.IntegerType.get_signless(64)], [wide])


def _address(memory: Value, indices: list[Value]) -> Value:
    """The address of one element, a pointer."""
    t = ir.MemRefType(memory.type)
    strides, _ = t.get_strides_and_offset()
    rank, dynamic = t.rank, ir.ShapedType.get_dynamic_stride_or_offset()
    layout = ir.StridedLayoutAttr.get(dynamic, list(strides))
    view = op("memref.subview", [ir.MemRefType.get([1] * rank, t.element_type, layout=layout)], [memory, *indices],
              operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, rank, 0, 0]),
              static_offsets=ir.DenseI64ArrayAttr.get([ir.ShapedType.get_dynamic_size()] * rank),
              static_sizes=ir.DenseI64ArrayAttr.get([1] * rank),
              static_strides=ir.DenseI64ArrayAttr.get([1] * rank))
    i, i64 = ir.IndexType.get(), ir.IntegerType.get_signless(64)
    base = ir.MemRefType.get([], t.element_type)
    parts = ir.Operation.create("memref.extract_strided_metadata", results=[base, *[i] * (1 + 2 * rank)],
                                operands=[view])
    start = op("memref.extract_aligned_pointer_as_index", [i], [view])
    size = index(t.element_type.width // 8)
    byte = op("arith.addi", [i], [start, op("arith.muli", [i], [parts.results[1], size])])
    return op("llvm.inttoptr", [_ptr()], [op("arith.index_cast", [i64], [byte])])


def _ptr() -> Type:
    return ir.Type.parse("!llvm.ptr")


def _number(register: int) -> Value:
    t = ir.IntegerType.get_signless(8)
    return op("arith.constant", [t], [], value=ir.IntegerAttr.get(t, register))


def _bytes(n: int) -> Value:
    t = ir.IntegerType.get_signless(64)
    return op("arith.constant", [t], [], value=ir.IntegerAttr.get(t, n))


def _call(name: str, *operands: Value) -> None:
    op("llvm.call_intrinsic", [], list(operands), intrin=ir.StringAttr.get(f"llvm.x86.{name}"),
       operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands), 0]), op_bundle_sizes=ir.DenseI32ArrayAttr.get([]))
