"""Runs a model compiled for CPUs: one shared object, one call a run.

The object exports ``xcc_main(buffers, symbols)``, ``xcc_setup`` (see xcc.targets.cpu.host), and of the thread pool
``xcc_set_threads``, ``xcc_make_stack``, ``xcc_stop`` and ``xcc_after_fork``; with symbolic sizes ``xcc_plan``. It is
loaded from memory, and unloaded when nothing refers to the executor any more; weights stay where the artifact has
mapped them.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from xcc import symbolic
from xcc.diagnostics import UserError
from xcc.runtime.arena import ALIGNMENT, touched, walk
from xcc.runtime.collectives import Communicate
from xcc.runtime.cores import physical_cores
from xcc.runtime.cpu_collectives import FAILED, CollectiveCalls
from xcc.runtime.given_outputs import check_size
from xcc.runtime.gloo import Gloo
from xcc.runtime.immortal import keep_forever
from xcc.runtime.large_pages import address_of, load_pages, release, reserve
from xcc.runtime.launch_time import LaunchTime
from xcc.runtime.library import load_library
from xcc.runtime.native_program import collectives, requirements, symbol_names
from xcc.runtime.outputs import FinalShape, OutputMemory, cut
from xcc.runtime.poison import poison_cpu, wanted
from xcc.runtime.program import DTYPE_BYTES, Collective, Program
from xcc.runtime.ranks import Ranks
from xcc.runtime.run_memory import RunMemory
from xcc.runtime.signature import refusal
from xcc.runtime.state import HostState
from xcc.runtime.versions import choose

__all__ = ["CpuExecutor", "make_executor"]

_MOST_THREADS = 256     # of a pool: targets/cpu/threads.ll


def make_executor(program: Program, members: Mapping[str, Any], weights: Any,
                  manifest: Mapping[str, Any], threads: int = 0, ranks: Ranks | None = None) -> CpuExecutor:
    """The executor of an artifact's members; UserError when this machine cannot run them. `ranks`: with the others."""
    version = choose(program, members, weights, manifest)
    share = ranks.world.place.local_size if ranks is not None else 1
    executor = CpuExecutor(version.program, bytes(version.members["kernels/model.so"]), weights,
                           _threads(version.facts, threads, share), version.chip, int(version.facts.get("stack", 0)))
    if ranks is not None and ranks.collectives:
        executor.communicate(Gloo(ranks.world, ranks.mesh, ranks.groups), ranks.group_size)
    if wanted():
        poison_cpu(executor)
    return executor


def _threads(facts: Mapping[str, Any], asked: int, share: int) -> int:
    """`asked`, or what ``XCC_THREADS`` says, what the model was compiled for, or one a core, which so many processes
    share; 1 where no kernel can use more."""
    text = os.environ.get("XCC_THREADS", "0")
    if not text.isdecimal():
        raise UserError(f"XCC_THREADS is '{text}', which is no number of threads")
    if facts.get("parallel") is False:
        return 1
    wanted = facts.get("threads", 0)
    count = asked or int(text) or (wanted if isinstance(wanted, int) and wanted > 0 else 0)
    return min(count or max(1, physical_cores() // share), _MOST_THREADS)


class NativeCall(NamedTuple):
    """What is to be done in a run that differs from the last one in addresses alone, when these are in `pointers`, by
    buffer: ``main(pointers, values)`` returns 0, or a status to `refuse`."""

    pointers: Any
    values: Any
    main: Callable[[Any, Any], int]
    refuse: Callable[[int], None]


class CpuExecutor:
    """Calls the host program. `threads` counts the calling thread; not for calls from several threads at once.

    `version` is the chip that the code is for, `stack` how many bytes of buffers a kernel has there. `outside` are the
    buffers that lie where callers say: inputs and own outputs.
    """

    def __init__(self, program: Program, blob: bytes, weights: Any, threads: int, version: str = "",
                 stack: int = 0) -> None:
        self.program, self.version = program, version
        try:
            self._library = load_library(blob)
            main = self._library.xcc_main
        except (OSError, AttributeError) as e:
            raise UserError(f"the model's kernels/model.so cannot be loaded: {e}") from None
        main.restype = ctypes.c_int32
        self._main: Callable[[Any, Any], int] = main
        if stack:
            self._library.xcc_make_stack(ctypes.c_int64(stack))
        self.threads = int(self._library.xcc_set_threads(ctypes.c_int32(threads)))
        self._names = symbol_names(program)
        self._symbols = (ctypes.c_int64 * max(1, len(self._names)))()
        self._pointers: Any = (ctypes.c_void_p * max(1, len(program.buffers)))()
        self.memory = RunMemory(program, self._library, self._pointers, self._symbols)
        self._limits = bool(self.memory.planner.limits)     # a run tells how large an output is
        self._shapes = [FinalShape(program.buffers[i].shape, self._names) for i in program.outputs]
        self._dtypes = {i: _dtype(program.buffers[i].dtype) for i in program.outputs}
        self._output_memory = [OutputMemory() if program.buffers[i].kind == "output" else None for i in program.outputs]
        self._own = [program.outputs[n] for n in self.own_outputs]
        self.outside = [*program.inputs, *self._own]
        self._updated = {output: program.inputs.index(source) for output, source in program.updates}
        self._plain = not self._limits and all(         # outputs are what the kernels write
            m is not None or i in self._updated for i, m in zip(program.outputs, self._output_memory, strict=True))
        self._keep: list[Any] = []
        self._collectives: CollectiveCalls | None = None
        self._arrays: dict[int, Any] = {}       # of weights, by buffer
        for i, b in enumerate(program.buffers):
            if b.kind == "weight":
                array = np.ascontiguousarray(weights[b.name])
                self._arrays[i] = array
                self._pointers[i] = array.ctypes.data
        self.state = HostState(program, weights)
        for i, array in self.state.arrays.items():
            self._pointers[i] = address_of(array)
        if program.setup:
            self._set_up()

    def communicate(self, communicate: Communicate, group_size: Callable[[Collective], int]) -> None:
        """Has `communicate` execute the program's collectives, of groups of so many ranks."""
        found = collectives(self.program)
        self._collectives = CollectiveCalls(self.program, found, communicate, list(map(group_size, found)),
                                            self._library)

    def _set_up(self) -> None:
        """Makes the kept buffers, and lets go of the pages of weights that nothing else reads."""
        kept = [i for i, b in enumerate(self.program.buffers) if b.kind == "kept"]
        sizes = [-(-symbolic.evaluate(self.program.nbytes(i), {}) // ALIGNMENT) * ALIGNMENT for i in kept]
        memory, begin = reserve(sum(sizes), exact=True)
        self._keep.append(memory)
        at = address_of(memory) + begin
        for i, size in zip(kept, sizes, strict=True):
            self._pointers[i] = at
            at += size
        self._library.xcc_setup(self._pointers, self._symbols)
        again = {self.program.root(b) for s in walk(self.program.body) for b in touched(s)}
        for i in {self.program.root(b) for s in self.program.setup for b in s.buffers} - again:
            if self.program.buffers[i].kind == "weight":
                release(self._arrays[i])
        for i in again & self._arrays.keys():       # those beside them have lost their large pages
            load_pages(self._arrays[i])

    def kernel(self, entry: str, buffers: int, symbols: int) -> Callable[..., None]:
        """A kernel of the program, called with so many addresses and values: for a program that is one launch."""
        function: Any = self._library[entry]
        function.restype = None
        function.argtypes = [ctypes.c_void_p] * buffers + [ctypes.c_int64] * symbols
        return cast(Callable[..., None], function)

    def make_ready(self, symbols: Mapping[str, int], *, spare: bool = False) -> None:
        """Makes the memory for a run on these sizes. `spare`: and for larger ones, as far as a large page goes."""
        plan = self.memory.plan(symbols)
        self.memory.make_ready(plan, spare=spare)
        for i, size, memory in zip(self.program.outputs, plan.outputs, self._output_memory, strict=True):
            if memory is not None:
                memory.make_ready(size, self._dtypes[i])

    def set_threads(self, threads: int) -> int:
        """Changes the number of threads; returns how many there are."""
        self.threads = int(self._library.xcc_set_threads(ctypes.c_int32(threads)))
        return self.threads

    def run(self, inputs: Sequence[Any], symbols: Mapping[str, int], given: Sequence[Any] = ()) -> list[Any]:
        """The outputs for contiguous `inputs`, in the program's order. `given`: for each what it is written to, a
        contiguous array, or None."""
        plan = self.memory.plan(symbols)
        pointers = self._pointers
        for i, array in zip(self.program.inputs, inputs, strict=True):
            pointers[i] = address_of(array)
        self.memory.place(plan)
        outputs: list[Any] = []
        for i, size, memory in zip(self.program.outputs, plan.outputs, self._output_memory, strict=True):
            out = given[len(outputs)] if given and memory is not None and not self._limits else None
            if out is not None:
                check_size(self.program.buffers[i].name, size, out)
                pointers[i] = address_of(out)
            elif memory is not None:
                out, pointers[i] = memory.empty(size, self._dtypes[i])
            outputs.append(inputs[self._updated[i]] if i in self._updated else out)
        if plan.void:
            self._place_empty(self.memory.address + plan.void, [*zip(self.program.inputs, inputs, strict=True),
                                                              *zip(self.program.outputs, outputs, strict=True),
                                                              *self._arrays.items()])
        if status := self._main(self._pointers, self._symbols):
            self._refuse(status, inputs, outputs)
        if not self._plain:
            outputs = [self._result(n, out, plan.outputs[n]) for n, out in enumerate(outputs)]
        return self._written(outputs, given) if given else outputs

    def _written(self, outputs: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        """What was `given` for outputs, with their numbers."""
        for n, (out, target) in enumerate(zip(outputs, given, strict=True)):
            if target is None or target is out:
                continue
            check_size(self.program.buffers[self.program.outputs[n]].name, out.shape, target)
            target[...] = out
        return [out if target is None else target for out, target in zip(outputs, given, strict=True)]

    def _place_empty(self, address: int, arrays: Sequence[tuple[int, Any]]) -> None:
        """Points buffers whose arrays have no element to `address`, where kernels may read (see ArenaPlan)."""
        for i, array in arrays:
            if array is not None and not array.size:
                self._pointers[i] = address

    def output_shapes(self, symbols: Mapping[str, int]) -> list[tuple[int, ...]]:
        """Of all outputs; a size that only the run tells has its largest value."""
        return self.memory.plan(symbols).outputs

    @property
    def own_outputs(self) -> list[int]:
        """Which outputs are buffers of their own, that the kernels write."""
        return [n for n, memory in enumerate(self._output_memory) if memory is not None]

    @property
    def copied_outputs(self) -> list[int]:
        """Which outputs :meth:`output` is to be asked for after a run: neither buffers of their own nor inputs, or
        larger than what is in them."""
        return [n for n, (i, memory) in enumerate(zip(self.program.outputs, self._output_memory, strict=True))
                if i not in self._updated and (memory is None or self._limits)]

    def run_at(self, inputs: Sequence[int], symbols: Mapping[str, int], outputs: Sequence[int]) -> None:
        """Runs on the addresses of contiguous `inputs`, in the program's order, and writes to the addresses `outputs`,
        one for each of :attr:`own_outputs`. 0 is the address of what has no element. The same dict of symbols has the
        same values in the next run."""
        memory, pointers = self.memory, self._pointers
        plan = None
        if memory.ready_for is not symbols:
            plan = memory.plan(symbols)
            memory.place(plan)
        for i, address in zip(self.outside, [*inputs, *outputs], strict=True):
            pointers[i] = address
        if plan is not None and plan.void:
            empty = memory.address + plan.void
            for i in self.outside:
                pointers[i] = pointers[i] or empty
            self._place_empty(empty, [*self._arrays.items()])
        if status := self._main(pointers, self._symbols):
            self._refuse(status)

    def repeat(self, symbols: Mapping[str, int]) -> NativeCall | None:
        """What the last :meth:`run_at`, with these symbols, has come to; None where something has no element."""
        if self.memory.ready_for is not symbols:
            return None
        return NativeCall(self._pointers, self._symbols, self._main, self._refuse)

    def output(self, n: int) -> Any:
        """After :meth:`run_at`: a copy of output `n`, cut to its size."""
        return self._result(n, None, ())

    def _refuse(self, status: int, *arrays: object) -> None:
        """The error of a run on `arrays` that has returned `status`."""
        if status == FAILED and self._collectives is not None:
            keep_forever(self.memory, *arrays)      # a collective that has not ended may still write
            raise self._collectives.failure()
        env = {name: int(self._symbols[k]) for k, name in enumerate(self._names)}
        raise UserError(refusal(requirements(self.program)[status - 1], env))

    def profile(self, inputs: Sequence[Any], symbols: Mapping[str, int]) -> list[LaunchTime]:
        """Each kernel launch and its median seconds, after one whole run on `inputs`."""
        from xcc.runtime.cpu_profile import profile

        held = self.run(inputs, symbols)
        env = {name: int(self._symbols[k]) for k, name in enumerate(self._names)}
        times = profile(self._library, self.program, lambda i: self._address(i, env), env)
        del held
        return times

    def _result(self, n: int, out: Any, limit: tuple[int, ...]) -> Any:
        """Output `n`, cut to its size where that was only known at the end, copied where it is no buffer of its own."""
        size = self._shapes[n](self._symbols)
        if out is not None:
            return out if size == limit else cut(out, size)
        i = self.program.outputs[n]
        env = {name: int(self._symbols[k]) for k, name in enumerate(self._names)}
        count = math.prod(size) * DTYPE_BYTES[self.program.buffers[i].dtype]
        raw = ctypes.string_at(self._address(i, env), count)
        return np.frombuffer(bytearray(raw), self._dtypes[i]).reshape(size)

    def _address(self, i: int, env: Mapping[str, int]) -> int:
        b = self.program.buffers[i]
        if b.kind == "alias":
            return self._address(b.base, env) + symbolic.evaluate(b.offset, env)
        return int(self._pointers[i] or 0)


def _dtype(name: str) -> Any:
    from xcc.runtime.dtypes import numpy_dtype

    return numpy_dtype(name)
