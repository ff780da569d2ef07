"""The host program as native functions.

    int32 xcc_main(void **buffers, int64 *symbols)
    int32 xcc_setup(void **buffers, int64 *symbols)       only where the program has a setup; 0

`buffers` has an entry for each buffer of the program; those of aliases are not read (their address is computed from
their base). `symbols` has an entry for each name of :func:`xcc.runtime.cpu.symbol_names`: the caller fills in those
bound from inputs, the function writes those bound on the way. Returns 0, or which of
:func:`xcc.runtime.cpu.requirements`, counted from 1, does not hold: nothing behind it has run then.

    int64 xcc_plan(...)                                   only where the program has symbols; see xcc.targets.cpu.plan
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from xcc import symbolic
from xcc._mlir import ir
from xcc.passes.shared.dims import emit_dim
from xcc.passes.shared.values import index, op, scalar_attr
from xcc.passes.upstream import Upstream
from xcc.runtime.arena import walk
from xcc.runtime.cpu import requirements, symbol_names
from xcc.runtime.program import (
    DTYPE_BYTES,
    BindSymbol,
    Copy,
    For,
    If,
    Launch,
    Program,
    Require,
    SetScalar,
    Statement,
    While,
)
from xcc.symbolic import Dim
from xcc.targets.cpu.plan import plan_function
from xcc.targets.llvm_text import llvm_ir

_LOWERING = ("convert-scf-to-cf,arith-expand,convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},convert-to-llvm,"
             "reconcile-unrealized-casts")
_FLOATS = {"f64": "f64", "f32": "f32", "f16": "f16", "bf16": "bf16", "f8E4M3FN": "f8E4M3FN", "f8E5M2": "f8E5M2"}


def host_program(program: Program) -> str:
    """LLVM IR text of ``xcc_main``, and of ``xcc_setup`` and ``xcc_plan`` where they have work, for `program`."""
    functions = {"xcc_main": program.body} | ({"xcc_setup": program.setup} if program.setup else {})
    with ir.Context(), ir.Location.unknown():
        empty = [f"func.func @{name}(%buffers: !llvm.ptr, %symbols: !llvm.ptr) -> i32 {{\n"
                 "  %zero = arith.constant 0 : i32\n  return %zero : i32\n}" for name in functions]
        dims = [d for i in program.outputs for d in program.buffers[i].shape]
        module = ir.Module.parse("\n".join([*empty, plan_function(program, dims)]))
        declared: set[str] = set()
        entries = list(module.body.operations)[:len(functions)]
        for function, body in zip(entries, functions.values(), strict=True):
            block = function.regions[0].blocks[0]
            host = _Host(program, module, list(block.arguments), declared)
            with ir.InsertionPoint.at_block_terminator(block):
                host.whole(body)
        return lowered(module)


def lowered(module: Any) -> str:
    """LLVM IR text of a `module` of host functions; buffers of fixed shapes are plain pointers."""
    Upstream(pipeline=_LOWERING).run(module, None)  # type: ignore[arg-type]
    return llvm_ir(module)



class _Host:
    """Writes one function. `declared`: the kernels that `module` declares so far."""

    def __init__(self, program: Program, module: Any, arguments: list[Any], declared: set[str]) -> None:
        self.program, self.module = program, module
        self.buffers, self.symbols = arguments
        self.ptr, self.i64 = ir.Type.parse("!llvm.ptr"), ir.IntegerType.get_signless(64)
        self.slots = {name: i for i, name in enumerate(symbol_names(program))}
        self.declared = declared
        self.status: Any = None                         # the address of what the function returns, where it can fail
        self.codes = {id(s): n for n, s in enumerate(requirements(program), 1)}

    def element(self, base: Any, i: Any, elem: Any) -> Any:
        """The address of element `i` (an int or an i64 value) of an array of `elem`."""
        i32 = ir.IntegerType.get_signless(32)
        static = i if isinstance(i, int) else -(1 << 31)
        return op("llvm.getelementptr", [self.ptr], [base] if isinstance(i, int) else [base, i],
                  rawConstantIndices=ir.DenseI32ArrayAttr.get([static]), elem_type=ir.TypeAttr.get(elem),
                  noWrapFlags=ir.IntegerAttr.get(i32, 0))

    def load(self, address: Any, t: Any) -> Any:
        return op("llvm.load", [t], [address], ordering=ir.IntegerAttr.get(self.i64, 0))

    def store(self, value: Any, address: Any) -> None:
        op("llvm.store", [], [value, address], ordering=ir.IntegerAttr.get(self.i64, 0))

    def dim(self, d: Dim) -> Any:
        """The value of `d` as i64."""
        index_type = ir.IndexType.get()
        env = {s: op("arith.index_cast", [index_type], [self.load(self.slot(s), self.i64)])
               for s in symbolic.symbols_of(d)}
        return op("arith.index_cast", [self.i64], [emit_dim(d, env)])

    def slot(self, symbol: str) -> Any:
        return self.element(self.symbols, self.slots[symbol], self.i64)

    def address(self, buffer: int) -> Any:
        b = self.program.buffers[buffer]
        if b.kind != "alias":
            return self.load(self.element(self.buffers, buffer, self.ptr), self.ptr)
        base = self.address(b.base)
        if b.offset == 0:
            return base
        return self.element(base, self.dim(b.offset), ir.IntegerType.get_signless(8))

    def whole(self, body: Sequence[Statement]) -> None:
        """The function's body, in front of its return."""
        if not any(isinstance(s, Require) for s in walk(tuple(body))):
            self.statements(body)
            return
        i32 = ir.IntegerType.get_signless(32)
        self.status = op("llvm.alloca", [self.ptr], [self._constant(1)], elem_type=ir.TypeAttr.get(i32))
        self.store(self._constant(0, i32), self.status)
        self.statements(body)
        ending = ir.InsertionPoint.current.ref_operation
        ending.operation.operands[0] = self.load(self.status, i32)

    def statements(self, body: Sequence[Statement]) -> None:
        """`body` in order; what stands behind a statement that can fail is skipped when it has."""
        for n, s in enumerate(body):
            if isinstance(s, Require):
                behind = next((i for i in range(n, len(body)) if not isinstance(body[i], Require)), len(body))
                self._requirements(body[n:behind])
            else:
                behind = n + 1
                getattr(self, "_" + type(s).__name__.lower())(s)
            if self._can_fail(s):
                if behind < len(body):
                    with self._unless_failed():
                        self.statements(body[behind:])
                return

    def _can_fail(self, s: Statement) -> bool:
        return any(isinstance(inner, Require) for inner in walk((s,)))

    def _requirements(self, group: Sequence[Statement]) -> None:
        """Several together: the first that fails is written last."""
        i32 = ir.IntegerType.get_signless(32)
        for s in reversed(group):
            assert isinstance(s, Require)
            differ = op("arith.cmpi", [ir.IntegerType.get_signless(1)], [self.dim(s.left), self.dim(s.right)],
                        predicate=ir.IntegerAttr.get(self.i64, 1))
            with self._when(differ):
                self.store(self._constant(self.codes[id(s)], i32), self.status)

    @contextmanager
    def _when(self, condition: Any) -> Iterator[None]:
        branch = ir.Operation.create("scf.if", operands=[condition], regions=2)
        with ir.InsertionPoint(branch.regions[0].blocks.append()):
            yield
            op("scf.yield", [], [])

    @contextmanager
    def _unless_failed(self) -> Iterator[None]:
        with self._when(self._good()):
            yield

    def _good(self) -> Any:
        """Whether nothing has failed so far, as i1."""
        i32 = ir.IntegerType.get_signless(32)
        return op("arith.cmpi", [ir.IntegerType.get_signless(1)], [self.load(self.status, i32), self._constant(0, i32)],
                  predicate=ir.IntegerAttr.get(self.i64, 0))

    def _constant(self, value: int, t: Any = None) -> Any:
        return op("arith.constant", [t or self.i64], [], value=ir.IntegerAttr.get(t or self.i64, value))

    def _launch(self, s: Launch) -> None:
        operands = [self.address(b) for b in s.buffers] + [self.dim(d) for d in s.symbols]
        if s.kernel not in self.declared:
            self.declared.add(s.kernel)
            types = ", ".join(["!llvm.ptr"] * len(s.buffers) + ["i64"] * len(s.symbols))
            declaration = ir.Operation.parse(f"llvm.func @{s.kernel}({types})")
            ir.InsertionPoint.at_block_begin(self.module.body).insert(declaration)
        op("llvm.call", [], operands, callee=ir.FlatSymbolRefAttr.get(s.kernel),
           op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
           operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands), 0]))

    def _copy(self, s: Copy) -> None:
        op("llvm.intr.memmove", [], [self.address(s.target), self.address(s.source),
                                     self.dim(self.program.nbytes(s.source))],
           isVolatile=ir.BoolAttr.get(False))

    def _setscalar(self, s: SetScalar) -> None:
        dtype = self.program.buffers[s.target].dtype
        elem = self._type(dtype)
        base = self.address(s.target)
        for i, d in enumerate(s.values):
            value = self.dim(d)
            if dtype in _FLOATS:
                value = op("arith.sitofp", [elem], [value])
            elif dtype == "i1":
                zero = self._constant(0)
                ne = ir.IntegerAttr.get(self.i64, 1)
                bit = op("arith.cmpi", [ir.IntegerType.get_signless(1)], [value, zero], predicate=ne)
                value = op("arith.extui", [elem], [bit])
            elif elem != self.i64:
                value = op("arith.trunci", [elem], [value])
            self.store(value, self.element(base, i, elem))

    def _type(self, dtype: str) -> Any:
        """The type of one element in memory."""
        if dtype in _FLOATS:
            return ir.Type.parse(dtype)
        return ir.IntegerType.get_signless(8 * DTYPE_BYTES[dtype])

    def _bindsymbol(self, s: BindSymbol) -> None:
        dtype = self.program.buffers[s.source].dtype
        elem = self._type(dtype)
        value = self.load(self.element(self.address(s.source), s.index, elem), elem)
        if elem != self.i64:
            value = op("arith.extui" if dtype.startswith(("ui", "i1")) and dtype != "i16" else "arith.extsi",
                       [self.i64], [value])
        self.store(value, self.slot(s.name))

    def _condition(self, buffer: int) -> Any:
        elem = self._type(self.program.buffers[buffer].dtype)
        value = self.load(self.address(buffer), elem)
        zero = op("arith.constant", [elem], [], value=scalar_attr(elem, 0))
        name, code = ("arith.cmpf", 13) if isinstance(elem, ir.FloatType) else ("arith.cmpi", 1)
        return op(name, [ir.IntegerType.get_signless(1)], [value, zero], predicate=ir.IntegerAttr.get(self.i64, code))

    def _if(self, s: If) -> None:
        branch = ir.Operation.create("scf.if", operands=[self._condition(s.condition)], regions=2)
        for region, body in zip(branch.regions, (s.then, s.orelse), strict=True):
            with ir.InsertionPoint(region.blocks.append()):
                self.statements(body)
                op("scf.yield", [], [])

    def _while(self, s: While) -> None:
        loop = ir.Operation.create("scf.while", regions=2)
        with ir.InsertionPoint(loop.regions[0].blocks.append()):
            self.statements(s.before)
            goes_on = self._condition(s.condition)
            if self._can_fail(s):
                goes_on = op("arith.andi", [ir.IntegerType.get_signless(1)], [goes_on, self._good()])
            op("scf.condition", [], [goes_on])
        with ir.InsertionPoint(loop.regions[1].blocks.append()):
            self.statements(s.body)
            op("scf.yield", [], [])

    def _for(self, s: For) -> None:
        index_type = ir.IndexType.get()
        trips = op("arith.index_cast", [index_type], [self.dim(s.trips)])
        loop = ir.Operation.create("scf.for", operands=[index(0), trips, index(1)], regions=1)
        block = loop.regions[0].blocks.append(index_type)
        with ir.InsertionPoint(block):
            with self._unless_failed() if self._can_fail(s) else nullcontext():
                self.store(op("arith.index_cast", [self.i64], [block.arguments[0]]), self.slot(s.counter))
                self.statements(s.body)
            op("scf.yield", [], [])
