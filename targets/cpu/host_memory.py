"""Buffers and symbols of a host program in the native functions that it becomes."""

from __future__ import annotations

from typing import Any

from xcc import symbolic
from xcc._mlir import Attribute, Block, Type, Value, ir
from xcc.passes.shared.dims import emit_dim
from xcc.passes.shared.values import op
from xcc.runtime.native_program import symbol_names
from xcc.runtime.program import DTYPE_BYTES, Program
from xcc.symbolic import Dim

FLOATS = {"f64": "f64", "f32": "f32", "f16": "f16", "bf16": "bf16", "f8E4M3FN": "f8E4M3FN", "f8E5M2": "f8E5M2"}
EQ, NE, UNE = ("arith.cmpi", 0), ("arith.cmpi", 1), ("arith.cmpf", 13)


class HostMemory:
    """Reads and writes the memory of `program`; `arguments` of a function are the tables of buffers and of symbols."""

    def __init__(self, program: Program, arguments: list[Value]) -> None:
        self.program = program
        self.buffers, self.symbols = arguments
        self.ptr, self.i64 = ir.Type.parse("!llvm.ptr"), ir.IntegerType.get_signless(64)
        self.slots = {name: i for i, name in enumerate(symbol_names(program))}
        self._block: Block | None = None
        # what the block that is written has computed: calls may write to memory, so that LLVM would read symbols, and
        # divide them, at each use anew
        self._known: dict[Dim, Value] = {}
        self._read: dict[str, Value] = {}

    def element(self, base: Value, i: Value | int, elem: Type) -> Value:
        """The address of element `i` (an int or an i64 value) of an array of `elem`."""
        i32 = ir.IntegerType.get_signless(32)
        static = i if isinstance(i, int) else -(1 << 31)
        return op("llvm.getelementptr", [self.ptr], [base] if isinstance(i, int) else [base, i],
                  rawConstantIndices=ir.DenseI32ArrayAttr.get([static]), elem_type=ir.TypeAttr.get(elem),
                  noWrapFlags=ir.IntegerAttr.get(i32, 0))

    def load(self, address: Value, t: Type) -> Value:
        return op("llvm.load", [t], [address], ordering=ir.IntegerAttr.get(self.i64, 0))

    def store(self, value: Any, address: Any) -> None:
        op("llvm.store", [], [value, address], ordering=ir.IntegerAttr.get(self.i64, 0))

    def compare(self, how: tuple[str, int], a: Value, b: Value) -> Value:
        """Whether a and b are equal, or not, as i1."""
        name, code = how
        return op(name, [ir.IntegerType.get_signless(1)], [a, b], predicate=ir.IntegerAttr.get(self.i64, code))

    def call(self, results: list[Type], operands: list[Value], **callee: Attribute) -> Value:
        """Calls a function by name, or the one whose address is the first operand."""
        return op("llvm.call", results, operands, op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
                  operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands), 0]), **callee)

    def dim(self, d: Dim) -> Value:
        """The value of `d` as i64, which a block computes once."""
        block = ir.InsertionPoint.current.block
        if self._block is None or block != self._block:
            self._block, self._known, self._read = block, {}, {}
        if d not in self._known:
            for s in symbolic.symbols_of(d):
                if s not in self._read:
                    self._read[s] = op("arith.index_cast", [ir.IndexType.get()], [self.load(self.slot(s), self.i64)])
            self._known[d] = op("arith.index_cast", [self.i64], [emit_dim(d, self._read)])
        return self._known[d]

    def bind(self, symbol: str, value: Value) -> None:
        """Gives a symbol its value from here on."""
        self.store(value, self.slot(symbol))
        self._block = None

    def slot(self, symbol: str) -> Value:
        return self.element(self.symbols, self.slots[symbol], self.i64)

    def address(self, buffer: int) -> Value:
        b = self.program.buffers[buffer]
        if b.kind != "alias":
            return self.load(self.element(self.buffers, buffer, self.ptr), self.ptr)
        base = self.address(b.base)
        if b.offset == 0:
            return base
        return self.element(base, self.dim(b.offset), ir.IntegerType.get_signless(8))

    def constant(self, value: int, t: Type | None = None) -> Value:
        """A number, of i64 where `t` is left out."""
        return op("arith.constant", [t or self.i64], [], value=ir.IntegerAttr.get(t or self.i64, value))

    def element_type(self, dtype: str) -> Type:
        """The type of one element in memory."""
        if dtype in FLOATS:
            return ir.Type.parse(dtype)
        return ir.IntegerType.get_signless(8 * DTYPE_BYTES[dtype])
