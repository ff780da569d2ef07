"""Runs a whole compiled GPU model without a GPU: its host program in numpy, its kernels in the interpreter."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Module, ir
from xcc.context import shared_context
from xcc.diagnostics import UserError
from xcc.interpreter.kernel import Kernel, find_kernel
from xcc.interpreter.machine import Options
from xcc.passes.base import PassContext, get_pass
from xcc.runtime.arena import walk
from xcc.runtime.collectives import Communicate, alone
from xcc.runtime.dtypes import numpy_dtype
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
from xcc.runtime.signature import require
from xcc.runtime.state import HostState
from xcc.symbolic import Dim
from xcc.targets.chip_spec import chip_from_facts

__all__ = ["InterpretingExecutor", "make_executor", "untouched"]

Array = np.ndarray[Any, Any]
Watch = Callable[[str, Sequence[int], Sequence[int], list[Array], list[int], int, Callable[[], None]], None]
"""Sees each launch: (entry, grid, block, arrays, symbols, shared bytes, run); it must call `run`."""


def make_executor(program: Program, members: Mapping[str, Any], weights: Mapping[str, Array],
                  manifest: Mapping[str, Any]) -> InterpretingExecutor:
    """The executor of an artifact that was compiled with its kernels' IR kept."""
    chip = chip_from_facts(manifest.get("chip_attributes"), str(manifest.get("target")))
    modules: dict[str, str] = {}
    for kernel in manifest["kernels"]:
        path = f"ir/{kernel['name']}.mlir"
        if path not in members:
            raise UserError(f"the artifact has no {path}: compile it with xcc --keep-ir")
        modules |= {entry: bytes(members[path]).decode() for entry in kernel["entries"]}
    return InterpretingExecutor(program, modules, weights, Options(warp=chip.warp, warp_order=chip.lanes_in_step))


class InterpretingExecutor:
    """Executes programs statement by statement; fresh buffers hold a pattern that is NaN in every float type."""

    def __init__(self, program: Program, modules: Mapping[str, str], weights: Mapping[str, Array],
                 options: Options) -> None:
        self.program, self.modules, self.weights, self.options = program, modules, weights, options
        self.context = shared_context()
        self.watch: Watch | None = None
        self.communicate: Communicate = alone       # with the other ranks, where there are some
        self.state = HostState(program, weights)
        self._kernels: dict[str, tuple[Kernel, int]] = {}
        self._parsed: list[Module] = []

    def kernel(self, name: str) -> tuple[Kernel, int]:
        """The kernel `name` and the bytes of shared memory that its code object reserves (AMD)."""
        if name not in self._kernels:
            module = ir.Module.parse(self.modules[name], self.context)
            with self.context:
                get_pass("warpgroup-matrix")().run(module, PassContext())     # registers count from there on
            self._parsed.append(module)         # owns the kernel's ops
            function = find_kernel(module, name)
            attributes = function.operation.attributes
            static = ir.IntegerAttr(attributes["xcc.shared_bytes"]).value if "xcc.shared_bytes" in attributes else 0
            with self.context:
                self._kernels[name] = Kernel(function), static
        return self._kernels[name]

    def run(self, inputs: Sequence[Array], symbols: Mapping[str, int]) -> list[Array]:
        """The outputs, in the program's order. Raises KernelFault where a kernel's behaviour is undefined.

        Inputs that outputs update are written in place.
        """
        state = _State(self, inputs, dict(symbols))
        state.execute((*self.program.setup, *self.program.body))
        return [state.array(i) for i in self.program.outputs]


class _State:
    """One run: the symbols and the memory of each buffer that is not an alias."""

    def __init__(self, executor: InterpretingExecutor, inputs: Sequence[Array], symbols: dict[str, int]) -> None:
        self.executor, self.program, self.symbols = executor, executor.program, symbols
        self.memory: dict[int, Array] = dict(zip(self.program.inputs, inputs, strict=True)) | executor.state.arrays
        self.limits: dict[str, int] = {}
        for s in walk(self.program.body):
            if isinstance(s, BindSymbol):
                self.limits[s.name] = symbolic.evaluate(s.limit, symbols | self.limits)

    def value(self, d: Dim) -> int:
        return d if isinstance(d, int) else symbolic.evaluate(d, self.symbols)

    def array(self, index: int) -> Array:
        """The buffer as an array of its shape and type; an alias shows its base's bytes.

        A shape with a symbol that a kernel defines has room for the symbol's limit, and is flat before it is known.
        """
        b = self.program.buffers[index]
        known = all(s in self.symbols for d in b.shape for s in symbolic.symbols_of(d))
        size = int(np.prod([symbolic.evaluate(d, self.symbols | self.limits) for d in b.shape]))
        shape, dtype = tuple(map(self.value, b.shape)) if known else (size,), numpy_dtype(b.dtype)
        if b.kind == "alias":
            begin = self.value(b.offset)
            raw = self.array(b.base).reshape(-1).view(np.uint8)
            return raw[begin:begin + int(np.prod(shape)) * dtype.itemsize].view(dtype).reshape(shape)
        held = self.memory.get(index)
        if held is None or held.size != size:
            if b.kind == "weight":
                held = np.ascontiguousarray(self.executor.weights[b.name])
            else:
                part = self.executor.options.last_groups        # then pages that nothing touches are not there
                held = untouched(size, dtype) if part else np.full(size * dtype.itemsize, 0xFF, np.uint8).view(dtype)
            self.memory[index] = held
        return held.reshape(-1)[:int(np.prod(shape))].reshape(shape)

    def execute(self, body: Sequence[Statement]) -> None:
        for s in body:
            self.statement(s)

    def statement(self, s: Statement) -> None:
        if isinstance(s, Launch):
            self.launch(s)
        elif isinstance(s, Copy):
            target = self.array(s.target)
            target[...] = self.array(s.source).reshape(-1).view(target.dtype).reshape(target.shape)
        elif isinstance(s, SetScalar):
            self.array(s.target).reshape(-1)[:len(s.values)] = [self.value(v) for v in s.values]
        elif isinstance(s, BindSymbol):
            self.symbols[s.name] = int(self.array(s.source).reshape(-1)[s.index])
        elif isinstance(s, Require):
            require(s, self.symbols)
        elif isinstance(s, Collective):
            self.executor.communicate(s, self.array(s.source), self.array(s.target))
        elif isinstance(s, If):
            self.execute(s.then if self.true(s.condition) else s.orelse)
        elif isinstance(s, While):
            self.execute(s.before)
            while self.true(s.condition):
                self.execute(s.body)
                self.execute(s.before)
        elif isinstance(s, For):
            for i in range(self.value(s.trips)):
                self.symbols[s.counter] = i
                self.execute(s.body)

    def true(self, condition: int) -> bool:
        return bool(self.array(condition).reshape(-1)[0])

    def launch(self, s: Launch) -> None:
        grid, block = _three([self.value(d) for d in s.grid]), _three(s.block)
        if 0 in grid:
            return
        kernel, static = self.executor.kernel(s.kernel)
        arrays, symbols, shared = [*map(self.array, s.buffers)], [*map(self.value, s.symbols)], s.shared_bytes or static

        def run() -> None:
            kernel.run(grid, block, [*arrays, *symbols], self.executor.options, shared)

        if self.executor.watch is None:
            run()
        else:
            self.executor.watch(s.kernel, grid, block, arrays, symbols, shared, run)


def untouched(size: int, dtype: Any) -> Array:
    """Zeros of which only what is written to takes memory, also where an allocator fills what it hands out."""
    wide = np.dtype(dtype)
    return np.frombuffer(mmap.mmap(-1, max(1, size) * wide.itemsize), wide, size)


def _three(sizes: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1, 1)[:3]
    return x, y, z
