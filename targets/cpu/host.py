"""The host program as native functions.

    int32 xcc_main(void **buffers, int64 *symbols)
    int32 xcc_setup(void **buffers, int64 *symbols)       only where the program has a setup; 0

`buffers` has an entry for each buffer of the program; those of aliases are not read (their address is computed from
their base). `symbols` has an entry for each of its symbol_names (:mod:`xcc.runtime.native_program`): the caller fills
in those bound from inputs, the function writes those bound on the way. Returns 0, or which of its requirements, counted
from 1, does not hold, or FAILED where a collective failed: nothing behind it has run then.

    int32 (*xcc_communicate)(int64 n, void *source, void *target, int64 bytes)      only where there are collectives

is a variable that the runtime sets: what executes the n-th of the program's collectives, whose source has so many
bytes; 0, or FAILED.

    int64 xcc_plan(...)                                   only where the program has symbols; see xcc.targets.cpu.plan
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from xcc._mlir import Block, Module, Value, ir
from xcc.context import shared_context
from xcc.passes.shared.values import index, op, scalar_attr
from xcc.passes.upstream import Upstream
from xcc.runtime.arena import walk
from xcc.runtime.native_program import collectives, requirements
from xcc.runtime.program import (
    BindSymbol,
    Collective,
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
from xcc.targets.cpu.host_memory import EQ, FLOATS, NE, UNE, HostMemory
from xcc.targets.cpu.plan import plan_function
from xcc.targets.llvm_text import llvm_ir

_LOWERING = ("convert-scf-to-cf,arith-expand,convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},convert-to-llvm,"
             "reconcile-unrealized-casts")
_COMMUNICATE = """llvm.mlir.global external @xcc_communicate() : !llvm.ptr {
  %0 = llvm.mlir.zero : !llvm.ptr
  llvm.return %0 : !llvm.ptr
}"""


def host_program(program: Program) -> str:
    """LLVM IR text of ``xcc_main``, and of ``xcc_setup`` and ``xcc_plan`` where they have work, for `program`."""
    functions = {"xcc_main": program.body} | ({"xcc_setup": program.setup} if program.setup else {})
    with shared_context(), ir.Location.unknown():
        empty = [f"func.func @{name}(%buffers: !llvm.ptr, %symbols: !llvm.ptr) -> i32 {{\n"
                 "  %zero = arith.constant 0 : i32\n  return %zero : i32\n}" for name in functions]
        dims = [d for i in program.outputs for d in program.buffers[i].shape]
        variable = _COMMUNICATE if collectives(program) else ""
        module = ir.Module.parse("\n".join([*empty, plan_function(program, dims), variable]))
        declared: set[str] = set()
        entries = list(module.body.operations)[:len(functions)]
        for function, body in zip(entries, functions.values(), strict=True):
            block = function.regions[0].blocks[0]
            host = _Host(program, module, list(block.arguments), declared)
            host.whole(block, body)
        return lowered(module)


def lowered(module: Module) -> str:
    """LLVM IR text of a `module` of host functions; buffers of fixed shapes are plain pointers."""
    Upstream(pipeline=_LOWERING).run(module, None)  # type: ignore[arg-type]
    return llvm_ir(module)


class _Host(HostMemory):
    """Writes one function. `declared`: the kernels that `module` declares so far."""

    def __init__(self, program: Program, module: Module, arguments: list[Value], declared: set[str]) -> None:
        super().__init__(program, arguments)
        self.module = module
        self.declared = declared
        self.status: Any = None                         # the address of what the function returns, where it can fail
        self.codes = {id(s): n for n, s in enumerate(requirements(program), 1)}
        self.places = {id(s): n for n, s in enumerate(collectives(program))}

    def whole(self, block: Block, body: Sequence[Statement]) -> None:
        """`body` as a function, whose only `block` returns 0: each stretch that ends with what can fail in a block."""
        if not any(map(self._can_fail, body)):
            with ir.InsertionPoint.at_block_terminator(block):
                self.statements(body)
            return
        i32, blocks = ir.IntegerType.get_signless(32), block.region.blocks
        end = blocks.append()
        leaving = block.operations[len(block.operations) - 1].operation
        leaving.detach_from_parent()
        with ir.InsertionPoint(block):
            self.status = op("llvm.alloca", [self.ptr], [self.constant(1)], elem_type=ir.TypeAttr.get(i32))
            self.store(self.constant(0, i32), self.status)
        pieces = self._pieces(body)
        for n, piece in enumerate(pieces):
            following = blocks.append() if n + 1 < len(pieces) else end
            with ir.InsertionPoint(block):
                self.statements(piece)
                ir.Operation.create("cf.cond_br", operands=[self._good()], successors=[following, end],
                                    attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0])})
            block = following
        with ir.InsertionPoint(end) as at:
            at.insert(leaving)
            with ir.InsertionPoint(leaving):
                leaving.operands[0] = self.load(self.status, i32)

    def _pieces(self, body: Sequence[Statement]) -> list[list[Statement]]:
        """`body`, cut behind what can fail; requirements that follow one another are together."""
        pieces: list[list[Statement]] = [[]]
        for n, s in enumerate(body):
            pieces[-1].append(s)
            together = isinstance(s, Require) and n + 1 < len(body) and isinstance(body[n + 1], Require)
            if self._can_fail(s) and not together:
                pieces.append([])
        return pieces if pieces[-1] else pieces[:-1]

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
        return any(isinstance(inner, (Require, Collective)) for inner in walk((s,)))

    def _collective(self, s: Collective) -> None:
        i32 = ir.IntegerType.get_signless(32)
        variable = op("llvm.mlir.addressof", [self.ptr], [], global_name=ir.FlatSymbolRefAttr.get("xcc_communicate"))
        operands = [self.load(variable, self.ptr), self.constant(self.places[id(s)]), self.address(s.source),
                    self.address(s.target), self.dim(self.program.nbytes(s.source))]
        self.store(self.call([i32], operands), self.status)

    def _requirements(self, group: Sequence[Statement]) -> None:
        """Several together: the first that fails is written last."""
        i32 = ir.IntegerType.get_signless(32)
        for s in reversed(group):
            assert isinstance(s, Require)
            with self._when(self.compare(NE, self.dim(s.left), self.dim(s.right))):
                self.store(self.constant(self.codes[id(s)], i32), self.status)

    @contextmanager
    def _when(self, condition: Value) -> Iterator[None]:
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
        return self.compare(EQ, self.load(self.status, i32), self.constant(0, i32))

    def _launch(self, s: Launch) -> None:
        operands = [self.address(b) for b in s.buffers] + [self.dim(d) for d in s.symbols]
        if s.kernel not in self.declared:
            self.declared.add(s.kernel)
            types = ", ".join(["!llvm.ptr"] * len(s.buffers) + ["i64"] * len(s.symbols))
            declaration = ir.Operation.parse(f"llvm.func @{s.kernel}({types})")
            ir.InsertionPoint.at_block_begin(self.module.body).insert(declaration)
        self.call([], operands, callee=ir.FlatSymbolRefAttr.get(s.kernel))

    def _copy(self, s: Copy) -> None:
        op("llvm.intr.memmove", [], [self.address(s.target), self.address(s.source),
                                     self.dim(self.program.nbytes(s.source))],
           isVolatile=ir.BoolAttr.get(False))

    def _setscalar(self, s: SetScalar) -> None:
        dtype = self.program.buffers[s.target].dtype
        elem = self.element_type(dtype)
        base = self.address(s.target)
        for i, d in enumerate(s.values):
            value = self.dim(d)
            if dtype in FLOATS:
                value = op("arith.sitofp", [elem], [value])
            elif dtype == "i1":
                value = op("arith.extui", [elem], [self.compare(NE, value, self.constant(0))])
            elif elem != self.i64:
                value = op("arith.trunci", [elem], [value])
            self.store(value, self.element(base, i, elem))

    def _bindsymbol(self, s: BindSymbol) -> None:
        dtype = self.program.buffers[s.source].dtype
        elem = self.element_type(dtype)
        value = self.load(self.element(self.address(s.source), s.index, elem), elem)
        if elem != self.i64:
            value = op("arith.extui" if dtype.startswith(("ui", "i1")) and dtype != "i16" else "arith.extsi",
                       [self.i64], [value])
        self.bind(s.name, value)

    def _condition(self, buffer: int) -> Value:
        elem = self.element_type(self.program.buffers[buffer].dtype)
        value = self.load(self.address(buffer), elem)
        zero = op("arith.constant", [elem], [], value=scalar_attr(elem, 0))
        return self.compare(UNE if isinstance(elem, ir.FloatType) else NE, value, zero)

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
                self.bind(s.counter, op("arith.index_cast", [self.i64], [block.arguments[0]]))
                self.statements(s.body)
            op("scf.yield", [], [])
