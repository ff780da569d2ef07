"""Compiles tile programs and runs them: on this CPU, and a GPU's code in the interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Module, Operation, ir
from xcc.context import shared_context
from xcc.diagnostics import UserError
from xcc.dialects.tile.program import Parameter, Symbol, symbols_of
from xcc.options import CompileOptions
from xcc.targets.base import Chip, KernelBinary, chip_of, get_target
from xcc.tile.evaluate import bind
from xcc.tile.program import Program, parse

if TYPE_CHECKING:
    from xcc.runtime.library import Library

__all__ = ["Compiled", "compile", "run", "symbol_values"]

Array = np.ndarray[Any, Any]


@dataclass
class Compiled:
    """A tile program's code. `stages` has the IR of the stages that were asked for."""

    program: Program
    chip: Chip
    options: CompileOptions
    binary: KernelBinary | None
    stages: dict[str, str] = field(default_factory=dict)

    @cached_property
    def parameters(self) -> list[Parameter]:
        return self.program.parameters

    @cached_property
    def symbols(self) -> list[Symbol]:
        """The i64s that the code is given behind its pointers."""
        return symbols_of(self.parameters, self.program.grid)

    @cached_property
    def _library(self) -> Library:
        from xcc.runtime.library import load_library
        from xcc.runtime.versions import lacking
        from xcc.targets.cpu.codegen import thread_pool
        from xcc.targets.cpu.link import link_shared
        from xcc.targets.cpu.target import required_flags

        assert self.binary is not None
        lack = lacking({"triple": self.chip.triple, "requires": required_flags(self.chip)})
        if lack:
            raise UserError(f"the program is compiled for {self.chip.name}: {lack}")
        library = load_library(link_shared([self.binary.blob, thread_pool(self.chip)]))
        library.xcc_set_threads(self.options.threads or self.chip.cores)
        return library

    def launch(self, arrays: Sequence[float | np.ndarray[Any, Any]], grid: Sequence[int] = ()) -> None:
        """Runs the program on this CPU; `arrays` as in `evaluate`."""
        values, _, symbols = bind(self.program, arrays, grid)
        numbers = symbol_values(self.symbols, values, symbols)
        assert self.binary is not None
        function = getattr(self._library, self.binary.launches[0].entry)
        function.restype = None
        function(*(ctypes.c_void_p(v.ctypes.data) for v, p in zip(values, self.parameters, strict=True) if p.is_buffer),
                 *map(ctypes.c_int64, numbers))

    def interpret(self, arrays: Sequence[float | np.ndarray[Any, Any]], grid: Sequence[int] = ()) -> None:
        """Runs a GPU's code in the interpreter. Raises KernelFault where its behaviour is undefined, races
        included."""
        from xcc.interpreter.machine import Options
        from xcc.passes.base import PassContext, get_pass

        values, _, symbols = bind(self.program, arrays, grid)
        numbers = symbol_values(self.symbols, values, symbols)
        env = {f"d{i}": n for i, n in enumerate(numbers)}
        options = Options(warp=self.chip.warp, warp_order=self.chip.lanes_in_step)
        text = self.stages[get_target(self.options.target).kept_stage]
        context = shared_context()
        with context:
            module = ir.Module.parse(text)
            get_pass("warpgroup-matrix")().run(module, PassContext())
            buffers = [(v, p) for v, p in zip(values, self.parameters, strict=True) if p.is_buffer]
            memory = [_Memory(v, p, symbols) for v, p in buffers]
            for function in _functions(module):
                _interpreted(function, [m.held for m in memory], numbers, env, options)
        for m in memory:
            m.put_back()


def _functions(module: Module) -> list[Operation]:
    return [f for op in module.body.operations if op.operation.name == "gpu.module"
            for f in op.regions[0].blocks[0].operations if f.operation.name == "gpu.func"]


def _interpreted(function: Any, arrays: list[Array], numbers: list[int], env: dict[str, int], options: Any) -> None:
    from xcc.interpreter.kernel import Kernel

    attributes = function.operation.attributes
    count = symbolic.parse(ir.StringAttr(attributes["xcc.grid"]).value)
    count = count if isinstance(count, int) else symbolic.evaluate(count, env)
    block = tuple(int(n) for n in attributes["known_block_size"])
    if count:
        Kernel(function).run((count, 1, 1), (block[0], block[1], block[2]), [*arrays, *numbers], options,
                             int(ir.IntegerAttr(attributes["xcc.shared_bytes"]).value))


class _Memory:
    """A strided array as the memory that the code is given, contiguous, of the sizes that it takes it to have."""

    def __init__(self, given: Array, p: Parameter, symbols: dict[str, int]) -> None:
        from xcc.dialects.tile.program import stride_name
        from xcc.passes.tile.lowering.views import physical

        strides = [s // given.itemsize for s in given.strides]
        known = symbols | {stride_name(p, d): s for d, s in enumerate(strides)}
        shape = [d if isinstance(d, int) else symbolic.evaluate(d, known) for d in physical(p)]
        self.given, self.held = given, np.zeros(shape, given.dtype)
        self.held.reshape(-1).view(np.uint8)[:] = 0xFF
        if given.size and 1 + sum((n - 1) * s for n, s in zip(given.shape, strides, strict=True)) > self.held.size:
            raise UserError(f"{p.name} has elements that share memory, of which no bounds are known; pass a copy")
        raw = f"u{given.itemsize}"      # strides of bits: numpy knows no strides of some narrow floats
        self.view = np.lib.stride_tricks.as_strided(self.held.view(raw), given.shape, given.strides) \
            if given.size else self.held.view(raw)
        self.view[...] = given.view(raw)
        self.held = self.held.view(np.int8) if self.held.dtype == bool else self.held

    def put_back(self) -> None:
        if self.given.flags.writeable:
            self.given.view(self.view.dtype)[...] = self.view


def symbol_values(wanted: Sequence[Symbol], values: Sequence[np.ndarray[Any, Any]],
                  symbols: dict[str, int]) -> list[int]:
    """The i64 of each symbol, from what `bind` gave."""
    out = []
    for s in wanted:
        if s.kind == "stride":
            out.append(values[s.argument].strides[s.dim] // values[s.argument].itemsize)
            if out[-1] < 0:
                raise UserError(f"{s.name} is {out[-1]}: code reads no array backwards; pass a copy")
        elif s.kind == "scalar":
            raw = np.asarray(values[s.argument])
            out.append(int(raw) if raw.dtype.kind == "i" else int(raw.view(f"i{raw.itemsize}")))
        else:
            out.append(symbols[s.name])
    return out


def compile(program: Program | str | Path, target: str = "cpu", chip: str = "", keep: Sequence[str] = (),
            emit: bool = True) -> Compiled:
    """The code of a program for `target` (as ``--target`` takes it) and `chip`. keep: stages whose IR is wanted; emit:
    False for no machine code."""
    from xcc.process.worker import KernelJob, compile_kernel
    from xcc.targets.front import tile_pipeline

    p = program if isinstance(program, Program) else parse(program)
    options = CompileOptions.make(target, chip=chip)
    known = get_target(options.target)
    plan = tile_pipeline(options)
    stages = [s for s in dict.fromkeys((*keep, known.kept_stage)) if s]
    if not emit:
        plan = plan.upto(known.kept_stage)
    job = KernelJob(p.name, p.text, str(plan), chip_of(known, chip), options, tuple(stages), emit, stage="")
    result = compile_kernel(job)
    return Compiled(p, job.chip, options, result.binary, result.kept)


def run(program: Program | str | Path, arrays: Sequence[float | np.ndarray[Any, Any]], target: str = "cpu",
        chip: str = "",
        grid: Sequence[int] = ()) -> None:
    """Compiles a program and runs it on `arrays`, one for each parameter, which are written in place: on this CPU, or a
    GPU's code in the interpreter."""
    known = get_target(CompileOptions.make(target, chip=chip).target)
    if known.name == "cpu":
        compile(program, target, chip).launch(arrays, grid)
        return
    if not known.kept_stage:
        raise UserError(f"target '{target}': its code is not run here")
    compile(program, target, chip, emit=False).interpret(arrays, grid)
