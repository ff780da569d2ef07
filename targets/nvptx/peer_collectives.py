"""Sums, gathers and exchanges over GPUs that map each other's memory, each one kernel.

Each block pushes its part of the source into the windows of the others, says so by a flag there, waits for theirs, and
adds what came to its own, in the order of the ranks, so that all have the same bits, or puts all of it in their order.
Windows have two halves, which take turns: who writes to a half again has been told that all have read it. The number of
the turn, the epoch, is counted in memory of each block's own, so that a captured graph can be replayed.

A window: FLAGS bytes of flags, one of i32 for each rank and block, then in each half a slot for each rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from xcc._mlir import Module, Type, Value, arith_d, ir, llvm_d, nvvm_d, scf_d
from xcc.passes.base import PassContext
from xcc.passes.gpu.early_launch import EarlyLaunch
from xcc.passes.gpu.layout.registers import guarded
from xcc.passes.shared.regions import either
from xcc.passes.shared.values import splat_constant
from xcc.passes.upstream import Upstream
from xcc.runtime.arena import walk
from xcc.runtime.peer_collectives import BLOCKS, EARLY, FLAGS, THREADS, kernel_name
from xcc.runtime.peer_places import SWAP
from xcc.runtime.program import Collective, Program
from xcc.targets.base import Chip, KernelBinary

_LOWERING = Upstream(pipeline="convert-scf-to-cf,canonicalize,convert-to-llvm,reconcile-unrealized-casts")
_BYTES = 16         # of a vector
_POLLS = 1023       # reads of a flag between looks at whether the run was given up
_I, _Order = arith_d.CmpIPredicate, llvm_d.AtomicOrdering


def collective_kernels(program: Program, chip: Chip, options: Any) -> tuple[KernelBinary, ...]:
    """The kernels for the sums and gathers of `program`."""
    from xcc.targets.nvptx.emit import emit_kernel

    found = {(s.kind, s.combine, program.buffers[s.source].dtype)
             for s in walk(program.body) if isinstance(s, Collective)}
    if not found:
        return ()
    with ir.Context(), ir.Location.unknown():
        modules = [_pushed(kernel_name("all_reduce", "add", dtype), partial(_Push.sum, dtype=dtype))
                   for dtype in ("f32", "f16", "bf16") if ("all_reduce", "add", dtype) in found]
        if any(kind == "all_gather" for kind, *_ in found):
            modules.append(_pushed(kernel_name("all_gather", "", ""), _Push.gather))
        if any(isinstance(s, Collective) and s.kind == "permute" and s.pairs == SWAP for s in walk(program.body)):
            modules += [_pushed(kernel_name("permute", "", ""), None), _meeting(chip)]
        return tuple(emit_kernel(module, chip, options) for module in modules)


def _pushed(name: str, use: Callable[[_Push], None] | None) -> Module:
    """``kernel(source, target, windows, epochs, given_up, count, place, ranks, slot)``: `windows` has the address of
    each rank's, `epochs` one of i32 a block, `given_up` is not 0 when nobody is to wait any more; `count` is in vectors
    of 16 bytes, `slot` in bytes. use: makes the target of what came. Without it the kernel has no use for the target:
    the source goes to the others' windows, `slot` bytes behind their beginning."""
    def build(*arguments: Value) -> None:
        push = _Push(*arguments)
        push.send(apart=use is not None)
        push.meet()
        if use is not None:
            use(push)
        push.count_epoch()

    return _kernel(name, [_pointer()] * 5 + [_bits(64)] * 4, BLOCKS, THREADS, build)


def _meeting(chip: Chip) -> Module:
    """``kernel(told, awaited, epochs, given_up)``: says in the other rank's flag `told` that this one has come, with
    all that kernels before it wrote, and waits until its own flag says so of the other. Where the chip can, it may be
    launched before the kernel ahead of it has ended."""
    def build(told: Value, awaited: Value, epochs: Value, given_up: Value) -> None:
        epoch = arith_d.addi(_load(_bits(32), epochs), _int(1, 32))
        _store(epoch, told, ordering=_Order.release)
        _store(epoch, epochs)
        _wait(awaited, epoch, given_up)

    name = kernel_name("meeting", "", "") + (EARLY if chip.early_launch else "")
    module = _kernel(name, [_pointer()] * 4, 1, 1, build)
    EarlyLaunch().run(module, PassContext(chip=chip))
    return module


def _kernel(name: str, arguments: Sequence[Type], blocks: int, threads: int, build: Callable[..., None]) -> Module:
    """A module with the kernel `name`, whose code `build` makes of its arguments."""
    module, types = ir.Module.create(), ", ".join(map(str, arguments))
    attributes = {
        "sym_name": ir.StringAttr.get(name), "nvvm.kernel": ir.UnitAttr.get(),
        "function_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.func<void ({types})>")),
        "nvvm.maxntid": ir.DenseI32ArrayAttr.get([threads, 1, 1]),
        "xcc.grid": ir.StringAttr.get(str(blocks)), "xcc.shared_bytes": ir.IntegerAttr.get(_bits(64), 0)}
    with ir.InsertionPoint(module.body):
        outer = ir.Operation.create("gpu.module", regions=1, attributes={"sym_name": ir.StringAttr.get("peers")})
    with ir.InsertionPoint(outer.regions[0].blocks.append()):
        function = ir.Operation.create("llvm.func", regions=1, attributes=attributes)
    with ir.InsertionPoint(function.regions[0].blocks.append(*arguments)) as entry:
        build(*entry.block.arguments)
        llvm_d.return_()
    _LOWERING.run(module, PassContext())
    return module


class _Push:
    """One thread's code; its methods build at the insertion point, in the order in which they stand here."""

    def __init__(self, source: Value, target: Value, windows: Value, epochs: Value, given_up: Value, count: Value,
                 place: Value, ranks: Value, slot: Value) -> None:
        self.source, self.target, self.windows, self.given_up = source, target, windows, given_up
        self.vectors, self.place, self.ranks, self.slot = count, place, ranks, slot
        numbers = [read(results=[_bits(32)]) for read in (nvvm_d.read_ptx_sreg_tid_x, nvvm_d.read_ptx_sreg_ctaid_x)]
        self.thread, self.block = (arith_d.extui(_bits(64), number) for number in numbers)
        self.first = arith_d.addi(arith_d.muli(self.block, _int(THREADS)), self.thread)
        self.counted = _at(epochs, self.block, _bits(32))
        self.epoch = arith_d.addi(_load(_bits(32), self.counted), _int(1, 32))
        half = arith_d.extui(_bits(64), arith_d.andi(self.epoch, _int(1, 32)))
        self.before = arith_d.muli(half, ranks)         # slots before this epoch's half
        self.own = self.window(place)

    def window(self, rank: Value) -> Any:
        return llvm_d.inttoptr(_pointer(), _load(_bits(64), _at(self.windows, rank, _bits(64))))

    def came(self, rank: Value) -> Any:
        """Where in a window that lies which `rank` sent."""
        return arith_d.addi(arith_d.muli(arith_d.addi(self.before, rank), self.slot), _int(FLAGS))

    def each_vector(self, body: Callable[[Any], None]) -> None:
        """`body` of the place in bytes of each of this thread's vectors."""
        _loop(self.first, self.vectors, _int(BLOCKS * THREADS), lambda i: body(arith_d.muli(i, _int(_BYTES))))

    def send(self, apart: bool) -> None:
        """apart: into this rank's slot of a half; else `slot` bytes behind the beginning."""
        begin = self.came(self.place) if apart else self.slot

        def push(at: Any) -> None:
            value = _load(_words(), _at(self.source, at))
            there = arith_d.addi(begin, at)
            _loop(_int(0), self.ranks, _int(1), lambda rank: guarded(
                arith_d.cmpi(_I.ne, rank, self.place), lambda: _store(value, _at(self.window(rank), there))))

        self.each_vector(push)

    def meet(self) -> None:
        """What this block sent is there before its flags say so; what the others' blocks sent is there behind it."""
        llvm_d.fence(_Order.release)
        nvvm_d.barrier()
        speaks = arith_d.andi(arith_d.cmpi(_I.slt, self.thread, self.ranks),
                              arith_d.cmpi(_I.ne, self.thread, self.place))
        guarded(speaks, self._speak)
        nvvm_d.barrier()
        llvm_d.fence(_Order.acquire)

    def _speak(self) -> None:
        """With the rank of this thread's number."""
        told, own = self.window(self.thread), self.own
        _store(self.epoch, self._flag(told, self.place), ordering=_Order.release)
        _wait(self._flag(own, self.thread), self.epoch, self.given_up)

    def _flag(self, window: Any, rank: Value) -> Any:
        return _at(window, arith_d.addi(arith_d.muli(rank, _int(BLOCKS)), self.block), _bits(32))

    def take(self, rank: Value, at: Any) -> Any:
        """The vector `at` of what `rank` sent, past the first cache; of this one, of the source."""
        is_own = arith_d.cmpi(_I.eq, rank, self.place)
        whose = arith_d.select(is_own, self.source, _at(self.own, self.came(rank)))
        return _load(_words(), _at(whose, at), volatile_=True)

    def sum(self, dtype: str) -> None:
        """The target is the sum of all, made in f32 in the order of the ranks."""
        kind = ir.Type.parse(dtype)
        lanes = 8 * _BYTES // kind.width
        narrow, wide = (ir.VectorType.get([lanes], t) for t in (kind, ir.F32Type.get()))

        def add(at: Any) -> None:
            def one(rank: Any, total: Any) -> Any:
                value = arith_d.bitcast(narrow, self.take(rank, at))
                return arith_d.addf(total, value if narrow == wide else arith_d.extf(wide, value))

            total = _loop(_int(0), self.ranks, _int(1), one, splat_constant(wide, 0.0))
            total = total if narrow == wide else arith_d.truncf(narrow, total)
            _store(arith_d.bitcast(_words(), total), _at(self.target, at))

        self.each_vector(add)

    def gather(self) -> None:
        """The target, which has room for all, is what the ranks sent, one behind the other."""
        size = arith_d.muli(self.vectors, _int(_BYTES))

        def put(at: Any) -> None:
            _loop(_int(0), self.ranks, _int(1), lambda rank: _store(
                self.take(rank, at), _at(self.target, arith_d.addi(arith_d.muli(rank, size), at))))

        self.each_vector(put)

    def count_epoch(self) -> None:
        guarded(arith_d.cmpi(_I.eq, self.thread, _int(0)), lambda: _store(self.epoch, self.counted))


def _wait(awaited: Any, epoch: Any, given_up: Value) -> None:
    """Waits until the flag `awaited` says `epoch`, or the run was given up."""
    kind, zero = _bits(32), _int(0, 32)
    loop = scf_d.WhileOp([kind], [zero])
    with ir.InsertionPoint(loop.before.blocks.append(kind)):
        (n,) = loop.before.blocks[0].arguments
        seen = _load(kind, awaited, ordering=_Order.acquire)
        late = arith_d.cmpi(_I.slt, arith_d.subi(seen, epoch), zero)
        polled = arith_d.addi(n, _int(1, 32))
        goes_on = _where(late, lambda: _where(
            arith_d.cmpi(_I.eq, arith_d.andi(polled, _int(_POLLS, 32)), zero),
            lambda: arith_d.cmpi(_I.eq, _load(kind, given_up, volatile_=True), zero), late), late)
        scf_d.ConditionOp(goes_on, [polled])
    with ir.InsertionPoint(loop.after.blocks.append(kind)):
        scf_d.YieldOp(loop.after.blocks[0].arguments)


def _loop(begin: Any, end: Any, step: Any, body: Callable[..., Any], *carried: Any) -> Any:
    """`body` of each number, and of what the one before it made."""
    loop = scf_d.ForOp(begin, end, step, carried)
    with ir.InsertionPoint(loop.body):
        made = body(*loop.body.arguments)
        scf_d.YieldOp([made] if carried else [])
    return loop.results[0] if carried else None


def _where(condition: Any, make: Callable[[], Any], otherwise: Any) -> Any:
    """What `make` gives, which is evaluated where the condition holds."""
    return either(condition, otherwise.type, make, lambda: otherwise)


def _bits(width: int) -> Any:
    return ir.IntegerType.get_signless(width)


def _pointer() -> Any:
    return ir.Type.parse("!llvm.ptr<1>")


def _words() -> Any:
    return ir.VectorType.get([_BYTES // 4], _bits(32))


def _int(value: int, width: int = 64) -> Any:
    return arith_d.constant(_bits(width), ir.IntegerAttr.get(_bits(width), value))


def _at(base: Any, place: Any, kind: Any = None) -> Any:
    """The address of element `place` of an array of `kind`; of bytes where nothing is said."""
    wraps = ir.IntegerAttr.get(_bits(32), 0)
    return llvm_d.getelementptr(_pointer(), base, [place], [-1 << 31], kind or _bits(8), wraps)


def _load(kind: Any, at: Any, **how: Any) -> Any:
    return llvm_d.load(kind, at, alignment=_alignment(kind), **how)


def _store(value: Any, at: Any, **how: Any) -> None:
    llvm_d.store(value, at, alignment=_alignment(value.type), **how)


def _alignment(kind: Any) -> int:
    return _BYTES if kind == _words() else kind.width // 8
