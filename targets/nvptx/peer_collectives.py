"""Sums, gathers and exchanges over GPUs that map each other's memory, each one kernel of LLVM dialect.

Each block pushes its part of the source into the windows of the others, says so by a flag there, waits for theirs, and
adds what came to its own, in the order of the ranks, so that all have the same bits, or puts all of it in their order.
Windows have two halves, which take turns: who writes to a half again has been told that all have read it. The number of
the turn, the epoch, is counted in memory of each block's own, so that a captured graph can be replayed.

A window: FLAGS bytes of flags, one of i32 for each rank and block, then in each half a slot for each rank.
"""

from __future__ import annotations

from typing import Any

from xcc._mlir import ir
from xcc.passes.gpu.early_launch import TEXT
from xcc.runtime.arena import walk
from xcc.runtime.peer_collectives import BLOCKS, EARLY, FLAGS, THREADS, kernel_name
from xcc.runtime.peer_places import SWAP
from xcc.runtime.program import Collective, Program
from xcc.targets.base import Chip, KernelBinary

__all__ = ["collective_kernels", "exchange_text", "gather_text", "meeting_text", "sum_text"]

_LANES = {"f32": 4, "f16": 8, "bf16": 8}
_POLLS = 1023       # reads of a flag between looks at whether the run was given up


def collective_kernels(program: Program, chip: Chip, options: Any) -> tuple[KernelBinary, ...]:
    """The kernels for the sums and gathers of `program`."""
    from xcc.targets.nvptx.emit import emit_kernel

    found = {(s.kind, s.combine, program.buffers[s.source].dtype)
             for s in walk(program.body) if isinstance(s, Collective)}
    texts = [sum_text(dtype) for dtype in _LANES if ("all_reduce", "add", dtype) in found]
    if any(kind == "all_gather" for kind, *_ in found):
        texts.append(gather_text())
    if any(isinstance(s, Collective) and s.kind == "permute" and s.pairs == SWAP for s in walk(program.body)):
        texts += [exchange_text(), meeting_text(chip.early_launch)]
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        return tuple(emit_kernel(ir.Module.parse(text), chip, options) for text in texts)


def sum_text(dtype: str) -> str:
    """``kernel(source, target, windows, epochs, given_up, count, place, ranks, slot)``: `windows` has the address of
    each rank's, `epochs` one of i32 a block, `given_up` is not 0 when nobody is to wait any more; `count` is in vectors
    of 16 bytes, `slot` in bytes."""
    vector, wide = f"vector<{_LANES[dtype]}x{dtype}>", f"vector<{_LANES[dtype]}xf32>"
    extend, narrow = ("fpext", "fptrunc") if vector != wide else ("bitcast", "bitcast")
    use = _SUM.format(vector=vector, wide=wide, extend=extend, narrow=narrow, take=_TAKE)
    return _text(kernel_name("all_reduce", "add", dtype), use)


def gather_text() -> str:
    """The same arguments; the target has room for all."""
    return _text(kernel_name("all_gather", "", ""), _GATHER.format(take=_TAKE))


def exchange_text() -> str:
    """The same arguments, of which it has no use for the target: the source goes to the others' windows, `slot` bytes
    behind their beginning."""
    return _text(kernel_name("permute", "", ""), "    llvm.br ^done\n", "llvm.add %slot, %c0 : i64")


def meeting_text(early: bool) -> str:
    """``kernel(told, awaited, epochs, given_up)``: says in the other rank's flag `told` that this one has come, with
    all that kernels before it wrote, and waits until its own flag says so of the other. early: it may be launched
    before the kernel ahead of it has ended."""
    name = kernel_name("meeting", "", "") + (EARLY if early else "")
    return _MEET.format(name=name, polls=_POLLS, wait=_WAIT, depends=_DEPENDS if early else "",
                        mark=" xcc.early," if early else "")


def _text(name: str, use: str, sent: str = "llvm.add %sent0, %flags : i64") -> str:
    return _MEETING.format(name=name, use=use, sent=sent, wait=_WAIT, blocks=BLOCKS, threads=THREADS, flags=FLAGS,
                           polls=_POLLS)


_DEPENDS = f"""    llvm.inline_asm has_side_effects "{TEXT}", "~{{memory}}" : () -> ()
"""
_WAIT = """    llvm.br ^wait(%zero : i32)
  ^wait(%n: i32):
    %seen = llvm.load %awaited atomic acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
    %ahead = llvm.sub %seen, %epoch : i32
    %there_now = llvm.icmp "sge" %ahead, %zero : i32
    llvm.cond_br %there_now, ^met, ^poll
  ^poll:
    %n1 = llvm.add %n, %one : i32
    %phase = llvm.and %n1, %polls : i32
    %looks = llvm.icmp "eq" %phase, %zero : i32
    llvm.cond_br %looks, ^look, ^wait(%n1 : i32)
  ^look:
    %up = llvm.load volatile %given_up : !llvm.ptr<1> -> i32
    %goes_on = llvm.icmp "eq" %up, %zero : i32
    llvm.cond_br %goes_on, ^wait(%n1 : i32), ^met
"""
"""Waits until %awaited says %epoch, or the run was given up; goes on at ^met."""

_MEET = """
gpu.module @peers {{
  llvm.func @{name}(%told: !llvm.ptr<1>, %awaited: !llvm.ptr<1>, %epochs: !llvm.ptr<1>, %given_up: !llvm.ptr<1>)
      attributes {{nvvm.kernel, nvvm.maxntid = array<i32: 1, 1, 1>,{mark} xcc.grid = "1",
                  xcc.shared_bytes = 0 : i64}} {{
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %polls = llvm.mlir.constant({polls} : i32) : i32
{depends}    %last = llvm.load %epochs : !llvm.ptr<1> -> i32
    %epoch = llvm.add %last, %one : i32
    llvm.store %epoch, %told atomic release {{alignment = 4 : i64}} : i32, !llvm.ptr<1>
    llvm.store %epoch, %epochs : i32, !llvm.ptr<1>
{wait}  ^met:
    llvm.return
  }}
}}
"""
_MEETING = """
gpu.module @peers {{
  llvm.func @{name}(%source: !llvm.ptr<1>, %target: !llvm.ptr<1>, %windows: !llvm.ptr<1>, %epochs: !llvm.ptr<1>,
      %given_up: !llvm.ptr<1>, %count: i64, %place: i64, %ranks: i64, %slot: i64)
      attributes {{nvvm.kernel, nvvm.maxntid = array<i32: {threads}, 1, 1>, xcc.grid = "{blocks}",
                  xcc.shared_bytes = 0 : i64}} {{
    %c0 = llvm.mlir.constant(0 : i64) : i64
    %c1 = llvm.mlir.constant(1 : i64) : i64
    %c4 = llvm.mlir.constant(4 : i64) : i64
    %c16 = llvm.mlir.constant(16 : i64) : i64
    %blocks = llvm.mlir.constant({blocks} : i64) : i64
    %flags = llvm.mlir.constant({flags} : i64) : i64
    %stride = llvm.mlir.constant({blocks} : i64) : i64
    %threads = llvm.mlir.constant({threads} : i64) : i64
    %step = llvm.mul %stride, %threads : i64
    %one = llvm.mlir.constant(1 : i32) : i32
    %zero = llvm.mlir.constant(0 : i32) : i32
    %polls = llvm.mlir.constant({polls} : i32) : i32
    %tid32 = nvvm.read.ptx.sreg.tid.x : i32
    %bid32 = nvvm.read.ptx.sreg.ctaid.x : i32
    %tid = llvm.zext %tid32 : i32 to i64
    %bid = llvm.zext %bid32 : i32 to i64
    %first0 = llvm.mul %bid, %threads : i64
    %first = llvm.add %first0, %tid : i64
    %epoch_at = llvm.getelementptr %epochs[%bid] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    %last = llvm.load %epoch_at : !llvm.ptr<1> -> i32
    %epoch = llvm.add %last, %one : i32
    %odd = llvm.and %epoch, %one : i32
    %half = llvm.zext %odd : i32 to i64
    %before = llvm.mul %half, %ranks : i64
    %own_at = llvm.getelementptr %windows[%place] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
    %own64 = llvm.load %own_at : !llvm.ptr<1> -> i64
    %own = llvm.inttoptr %own64 : i64 to !llvm.ptr<1>
    %sender = llvm.add %before, %place : i64
    %sent0 = llvm.mul %sender, %slot : i64
    %sent = {sent}
    llvm.br ^send(%first : i64)
  ^send(%i: i64):
    %more = llvm.icmp "slt" %i, %count : i64
    llvm.cond_br %more, ^read, ^sent
  ^read:
    %at = llvm.mul %i, %c16 : i64
    %from = llvm.getelementptr %source[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %value = llvm.load %from {{alignment = 16 : i64}} : !llvm.ptr<1> -> vector<4xi32>
    %behind = llvm.add %sent, %at : i64
    llvm.br ^to(%c0 : i64)
  ^to(%r: i64):
    %others = llvm.icmp "slt" %r, %ranks : i64
    llvm.cond_br %others, ^other, ^next
  ^other:
    %self = llvm.icmp "eq" %r, %place : i64
    llvm.cond_br %self, ^pushed, ^push
  ^push:
    %peer_at = llvm.getelementptr %windows[%r] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
    %peer64 = llvm.load %peer_at : !llvm.ptr<1> -> i64
    %peer = llvm.inttoptr %peer64 : i64 to !llvm.ptr<1>
    %there = llvm.getelementptr %peer[%behind] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    llvm.store %value, %there {{alignment = 16 : i64}} : vector<4xi32>, !llvm.ptr<1>
    llvm.br ^pushed
  ^pushed:
    %r1 = llvm.add %r, %c1 : i64
    llvm.br ^to(%r1 : i64)
  ^next:
    %i1 = llvm.add %i, %step : i64
    llvm.br ^send(%i1 : i64)
  ^sent:
    llvm.fence release
    nvvm.barrier
    %is_rank = llvm.icmp "slt" %tid, %ranks : i64
    %is_other = llvm.icmp "ne" %tid, %place : i64
    %speaks = llvm.and %is_rank, %is_other : i1
    llvm.cond_br %speaks, ^say, ^met
  ^say:
    %told_at = llvm.getelementptr %windows[%tid] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
    %told64 = llvm.load %told_at : !llvm.ptr<1> -> i64
    %told = llvm.inttoptr %told64 : i64 to !llvm.ptr<1>
    %mine0 = llvm.mul %place, %blocks : i64
    %mine = llvm.add %mine0, %bid : i64
    %flag = llvm.getelementptr %told[%mine] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    llvm.store %epoch, %flag atomic release {{alignment = 4 : i64}} : i32, !llvm.ptr<1>
    %theirs0 = llvm.mul %tid, %blocks : i64
    %theirs = llvm.add %theirs0, %bid : i64
    %awaited = llvm.getelementptr %own[%theirs] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
{wait}  ^met:
    nvvm.barrier
    llvm.fence acquire
{use}  ^done:
    %is_first = llvm.icmp "eq" %tid, %c0 : i64
    llvm.cond_br %is_first, ^count, ^end
  ^count:
    llvm.store %epoch, %epoch_at : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }}
}}
"""
_TAKE = """%is_own = llvm.icmp "eq" %q, %place : i64
    %came0 = llvm.add %before, %q : i64
    %came1 = llvm.mul %came0, %slot : i64
    %came2 = llvm.add %came1, %flags : i64
    %came_at = llvm.getelementptr %own[%came2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %whose = llvm.select %is_own, %source, %came_at : i1, !llvm.ptr<1>
    %place_at = llvm.getelementptr %whose[%here] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %raw = llvm.load volatile %place_at {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
    %q1 = llvm.add %q, %c1 : i64"""
"""Reads vector %j, %here in bytes, of rank %q."""

_SUM = """    llvm.br ^use(%first : i64)
  ^use(%j: i64):
    %left = llvm.icmp "slt" %j, %count : i64
    llvm.cond_br %left, ^add, ^done
  ^add:
    %here = llvm.mul %j, %c16 : i64
    %nothing = llvm.mlir.constant(dense<0.0> : {wide}) : {wide}
    llvm.br ^rank(%c0, %nothing : i64, {wide})
  ^rank(%q: i64, %a: {wide}):
    %some = llvm.icmp "slt" %q, %ranks : i64
    llvm.cond_br %some, ^take, ^write
  ^take:
    {take}
    %v = llvm.bitcast %raw : vector<4xi32> to {vector}
    %w = llvm.{extend} %v : {vector} to {wide}
    %s0 = llvm.fadd %a, %w : {wide}
    llvm.br ^rank(%q1, %s0 : i64, {wide})
  ^write:
    %y = llvm.{narrow} %a : {wide} to {vector}
    %out = llvm.bitcast %y : {vector} to vector<4xi32>
    %to_at = llvm.getelementptr %target[%here] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    llvm.store %out, %to_at {{alignment = 16 : i64}} : vector<4xi32>, !llvm.ptr<1>
    %j1 = llvm.add %j, %step : i64
    llvm.br ^use(%j1 : i64)
"""

_GATHER = """    %size = llvm.mul %count, %c16 : i64
    llvm.br ^use(%first : i64)
  ^use(%j: i64):
    %left = llvm.icmp "slt" %j, %count : i64
    llvm.cond_br %left, ^vector, ^done
  ^vector:
    %here = llvm.mul %j, %c16 : i64
    llvm.br ^rank(%c0 : i64)
  ^rank(%q: i64):
    %some = llvm.icmp "slt" %q, %ranks : i64
    llvm.cond_br %some, ^take, ^after
  ^take:
    {take}
    %part = llvm.mul %q, %size : i64
    %behind_it = llvm.add %part, %here : i64
    %to_at = llvm.getelementptr %target[%behind_it] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    llvm.store %raw, %to_at {{alignment = 16 : i64}} : vector<4xi32>, !llvm.ptr<1>
    llvm.br ^rank(%q1 : i64)
  ^after:
    %j1 = llvm.add %j, %step : i64
    llvm.br ^use(%j1 : i64)
"""
