"""The limits of this machine, measured once: arithmetic peak by number type, memory bandwidth by working set.

Small loops of LLVM IR run on all threads at once: independent multiply-adds in registers; reads and copies of arrays
that fit into one cache or another, or into none. The result is a file in xcc's folder.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from xcc.targets.base import Chip

VERSION = 2
SIZES = tuple(1 << n for n in (15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 28))
ROUNDS = 15
SECONDS = 0.005
STREAMS = ("stream_read", "stream_copy", "stream_copy_past_caches", "stream_copy_ahead")
PIECES = 8               # of a thread's work where threads take pieces
AHEAD = 8192             # bytes that the last of them fetches before it reads them
_ACCUMULATORS = 12          # latency times ports of any core so far, and under 16 registers


@dataclass(frozen=True)
class Machine:
    """Rates of `threads` threads together.

    flops: operations a second by type ("f32", "bf16", "i8"), a multiply-add counting two.
    bandwidth: (bytes, bytes/s) for working sets of growing size; the last is memory's.
    """

    cpu: str
    threads: int
    flops: Mapping[str, float]
    bandwidth: tuple[tuple[int, float], ...]

    def bandwidth_at(self, size: int) -> float:
        """Bytes/s for data of `size` bytes, read and written over and over."""
        return next((rate for limit, rate in self.bandwidth if size <= limit), self.bandwidth[-1][1])

    def limit(self, flops: float, moved: float, dtype: str = "f32") -> float:
        """The least seconds that `flops` operations and `moved` bytes can take."""
        peak = self.flops.get(dtype, self.flops["f32"])
        return max(flops / peak, moved / self.bandwidth_at(int(moved)))


def measured(threads: int = 0, again: bool = False) -> Machine:
    """The limits for `threads` threads (0: one a physical core), from the file or measured now."""
    from xcc.cache.cache import folder
    from xcc.runtime.cores import physical_cores
    from xcc.targets.cpu.chip import real_host

    threads = threads or physical_cores()
    chip = real_host()
    key = hashlib.blake2b(repr((VERSION, chip, threads, _cpu_name())).encode(), digest_size=8).hexdigest()
    path = folder() / "machine" / f"{key}.json"
    found = None if again else _read(path)
    if found is None:
        found = _measure(chip, threads)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_suffix(f".{os.getpid()}.tmp")
            temporary.write_text(json.dumps(asdict(found), indent=1) + "\n")
            os.replace(temporary, path)
        except OSError:
            pass            # measured again next time
    return found


def _read(path: Path) -> Machine | None:
    try:
        data = json.loads(path.read_text())
        return Machine(data["cpu"], int(data["threads"]), {k: float(v) for k, v in data["flops"].items()},
                       tuple((int(n), float(rate)) for n, rate in data["bandwidth"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    found: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    return f"{found.get('model name', '')} family {found.get('cpu family', '')} model {found.get('model', '')}"


def _library(chip: Chip) -> Any:
    from xcc.runtime.library import load_library
    from xcc.targets.cpu.codegen import emit_object
    from xcc.targets.cpu.link import link_shared

    ir = "\n".join([*(_loop_of_steps(f"peak_{t}", *form) for t, form in _arithmetic(chip).items()), *_streams(chip)])
    return load_library(link_shared([emit_object(_DECLARATIONS + ir, chip)]))


def _measure(chip: Chip, threads: int) -> Machine:
    library = _library(chip)
    flops = {t: _rate(library[f"peak_{t}"], threads, form[2] * _ACCUMULATORS, [_scratch(1 << 13)] * threads)
             for t, form in _arithmetic(chip).items()}
    bandwidth: list[tuple[int, float]] = []
    for size in reversed(SIZES):
        part = max(1024, size // threads // 1024 * 1024)
        arrays = [_scratch(part) for _ in range(threads)]
        rates = [_rate(library[name], threads, part, arrays, part) for name in STREAMS]
        bandwidth.insert(0, (size, max([*rates, *(rate for _, rate in bandwidth)])))
    return Machine(_cpu_name(), threads, flops, tuple(bandwidth))


def limit_call(threads: int, flops: float, moved: float) -> tuple[Callable[[], None], int]:
    """A call for which this machine takes the time of `flops` operations in f32, or where there are none of `moved`
    bytes read and copied in the fastest way, so many times that it takes some ms; and how many times.

    To be timed in turn with what it is the limit of: a machine that others use, too, is not always equally fast.
    """
    from xcc.targets.cpu.chip import real_host

    chip = real_host()
    library, pool = _library(chip), ThreadPoolExecutor(threads)
    if flops:
        work = _arithmetic(chip)["f32"][2] * _ACCUMULATORS
        functions, sizes, share = [library["peak_f32"]], list[int](), max(1, round(flops / work / threads))
        arrays = [_scratch(1 << 13) for _ in range(threads)]
    else:
        part = max(1024, int(moved) // threads // 1024 * 1024)
        functions, sizes, share = [library[name] for name in STREAMS], [part], 1
        arrays = [_scratch(part) for _ in range(threads)]

    def run(function: Any, times: int) -> None:
        """Threads take pieces as they come: one that is held up leaves more to the others, as a kernel's would."""
        function.restype = None
        turns = share * times
        piece = max(1, turns // PIECES)
        pieces = iter([piece] * (turns * threads // piece))

        def work_off(a: Any) -> None:
            for n in pieces:
                function(ctypes.c_void_p(a.ctypes.data), *map(ctypes.c_int64, sizes), ctypes.c_int64(n))

        list(pool.map(work_off, arrays))

    def seconds(function: Any, times: int) -> float:
        """The least of several: another program may hold one up."""
        found = []
        for _ in range(5):
            begin = time.perf_counter()
            run(function, times)
            found.append(time.perf_counter() - begin)
        return min(found)

    times = 1
    while seconds(functions[0], times) < SECONDS:
        times *= 2
    best = min(functions, key=lambda f: seconds(f, times))
    return partial(run, best, times), times


def _scratch(size: int) -> Any:
    """`size` bytes of f32 ones on a page boundary, touched."""
    raw = np.ones(size // 4 + 1024, np.float32)
    at = -raw.ctypes.data % 4096 // 4
    return raw[at:at + size // 4]


def _rate(function: Any, threads: int, work: float, arrays: list[Any], *sizes: int) -> float:
    """Best rate of `work` a turn and thread, all threads at it at once."""
    function.restype = None
    arguments = [[ctypes.c_void_p(a.ctypes.data), *map(ctypes.c_int64, sizes)] for a in arrays]

    def run(turns: int) -> float:
        return _together([partial(function, *a, ctypes.c_int64(turns)) for a in arguments])

    turns = 1
    while (seconds := run(turns)) < SECONDS:
        turns *= 8 if seconds < SECONDS / 8 else 2
    return max(work * threads * turns / run(turns) for _ in range(ROUNDS))


def _together(calls: Sequence[Callable[[], Any]]) -> float:
    """Seconds from the first start to the last end of calls in threads of their own."""
    gate = threading.Barrier(len(calls))
    times: list[tuple[float, float]] = []

    def body(call: Callable[[], Any]) -> None:
        gate.wait()
        begin = time.perf_counter()
        call()
        times.append((begin, time.perf_counter()))

    workers = [threading.Thread(target=body, args=(c,)) for c in calls]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return max(end for _, end in times) - min(begin for begin, _ in times)


_DECLARATIONS = """
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>, <32 x bfloat>, <32 x bfloat>)
declare <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32>, <64 x i8>, <64 x i8>)
"""


def _arithmetic(chip: Chip) -> dict[str, tuple[str, str, int]]:
    """Type -> (vector type of the sums, the step on ``%a``, its operations)."""
    lanes = chip.vector_bytes // 4
    v = f"<{lanes} x float>"
    forms = {"f32": (v, f"call {v} @llvm.fma.v{lanes}f32({v} %a, {v} %x, {v} %y)", 2 * lanes)}
    features = chip.features.split(",")
    if chip.vector_bytes == 64 and "+avx512bf16" in features:
        forms["bf16"] = (v, f"call {v} @llvm.x86.avx512bf16.dpbf16ps.512({v} %a, <32 x bfloat> splat (bfloat 0xR3C00), "
                         "<32 x bfloat> splat (bfloat 0xR3C00))", 4 * lanes)
    if chip.vector_bytes == 64 and "+avx512vnni" in features:
        forms["i8"] = ("<16 x i32>", "call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %a, "
                       "<64 x i8> splat (i8 1), <64 x i8> splat (i8 1))", 8 * lanes)
    return forms


def _loop_of_steps(name: str, vector: str, step: str, _operations: int) -> str:
    """``name(ptr, turns)``: sums that start from memory, each one step a turn, stored at the end."""
    sums = range(_ACCUMULATORS)
    address = [f"  %p{i} = getelementptr {vector}, ptr %data, i64 {i}" for i in sums]
    loads = [f"  %s{i} = load {vector}, ptr %p{i}, align 4" for i in sums]
    phis = [f"  %a{i} = phi {vector} [ %s{i}, %entry ], [ %n{i}, %loop ]" for i in sums]
    steps = [f"  %n{i} = {step.replace('%a', f'%a{i}')}" for i in sums]
    stores = [f"  store {vector} %n{i}, ptr %p{i}, align 4" for i in sums]
    factors = [f"  %{f} = load {vector}, ptr %data, align 4" for f in "xy"]
    return "\n".join([f"define void @{name}(ptr %data, i64 %turns) {{", "entry:", *address, *loads, *factors,
                      "  br label %loop", "loop:", "  %t = phi i64 [ 0, %entry ], [ %t1, %loop ]", *phis, *steps,
                      "  %t1 = add i64 %t, 1", "  %more = icmp slt i64 %t1, %turns",
                      "  br i1 %more, label %loop, label %done", "done:", *stores, "  ret void", "}"])


def _streams(chip: Chip) -> list[str]:
    """``name(ptr, bytes, turns)``: reads all of the array a turn, or copies its first half to its second."""
    v = f"<{chip.vector_bytes // 4} x float>"

    def loop(name: str, limit: str, before: str, carried: list[str], body: list[str], after: list[str]) -> str:
        return "\n".join([
            f"define void @{name}(ptr %data, i64 %bytes, i64 %turns) {{", "entry:", "  %half = lshr i64 %bytes, 1",
            f"  %first = load {v}, ptr %data, align 4", before, "  br label %turn",
            "turn:", "  %t = phi i64 [ 0, %entry ], [ %t1, %next ]", "  br label %loop",
            "loop:", "  %i = phi i64 [ 0, %turn ], [ %i1, %loop ]", *carried, *body,
            f"  %i1 = add i64 %i, {8 * chip.vector_bytes}", f"  %more = icmp slt i64 %i1, {limit}",
            "  br i1 %more, label %loop, label %next",
            "next:", *after, "  %t1 = add i64 %t, 1", "  %again = icmp slt i64 %t1, %turns",
            "  br i1 %again, label %turn, label %done", "done:", "  ret void", "}"])

    def at(i: int, base: str = "%data") -> list[str]:
        tag = "d" if base != "%data" else "p"
        return [f"  %o{tag}{i} = add i64 %i, {i * chip.vector_bytes}",
                f"  %{tag}{i} = getelementptr i8, ptr {base}, i64 %o{tag}{i}"]

    lanes = range(8)
    load = [line for i in lanes for line in (*at(i), f"  %v{i} = load {v}, ptr %p{i}, align {chip.vector_bytes}")]
    add = [f"  %n{i} = fadd {v} %a{i}, %v{i}" for i in lanes]
    phi = [f"  %a{i} = phi {v} [ %first, %turn ], [ %n{i}, %loop ]" for i in lanes]
    keep = [f"  call void asm sideeffect \"\", \"{'x' if 'x86' in chip.triple else 'w'}\"({v} %n{i})" for i in lanes]

    def store(hint: str) -> list[str]:
        return [line for i in lanes for line in
                (*at(i, "%to"), f"  store {v} %v{i}, ptr %d{i}, align {chip.vector_bytes}{hint}")]

    fetch = [line for i in lanes for line in
             (f"  %f{i} = getelementptr i8, ptr %p{i}, i64 {AHEAD}",
              f"  call void @llvm.prefetch.p0(ptr %f{i}, i32 0, i32 3, i32 1)")]
    past = store(", !nontemporal !0")
    to = "  %to = getelementptr i8, ptr %data, i64 %half"
    return [loop("stream_read", "%bytes", "", phi, [*load, *add], keep),
            loop("stream_copy", "%half", to, [], [*load, *store("")], []),
            loop("stream_copy_past_caches", "%half", to, [], [*load, *past], []),
            loop("stream_copy_ahead", "%half", to, [], [*load, *fetch, *past], []),
            "!0 = !{i32 1}"]
