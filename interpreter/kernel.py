"""Runs one `gpu.func` over a grid: it becomes a list of numpy steps, executed for batches of workgroups."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from io import StringIO
from math import prod
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Attribute, Module, Operation, Type, Value, WalkResult, ir, upstream_context
from xcc.diagnostics import UserError
from xcc.interpreter.faults import Report
from xcc.interpreter.machine import Machine, Options
from xcc.interpreter.memory import Buffer, MemRef, contiguous_strides
from xcc.interpreter.races import Tracker
from xcc.interpreter.registry import handler_of
from xcc.interpreter.types import constant_array, dtype_of, space_of

__all__ = ["Block", "Kernel", "find_kernel", "run_kernel"]

Array = np.ndarray[Any, Any]


class Block:
    """A block of ops as steps: (runner, operand slots, result slots, op)."""

    def __init__(self, arguments: list[int]) -> None:
        self.arguments = arguments
        self.steps: list[tuple[Any, tuple[int, ...], tuple[int, ...], _Source]] = []
        self.yields: tuple[int, ...] = ()

    def run(self, machine: Machine, arguments: Sequence[Any] = ()) -> list[Any]:
        """Executes the block; the operands of its terminator."""
        env, ops = machine.env, machine.report.ops
        for slot, value in zip(self.arguments, arguments, strict=True):
            env[slot] = value
        for runner, operands, results, source in self.steps:
            machine.where = source
            ops[source.name] = ops.get(source.name, 0) + 1
            out = runner(machine, *[env[s] for s in operands])
            if len(results) == 1:
                env[results[0]] = out
            elif results:
                for slot, value in zip(results, out, strict=True):
                    env[slot] = value
        return [env[s] for s in self.yields]


class _Source:
    """An op's text for messages, made when asked for, with the names of values in `kernel`."""

    def __init__(self, op: Operation, kernel: Kernel) -> None:
        self._op, self._kernel = op, kernel
        self.name: str = op.operation.name
        self._text = ""

    def __call__(self) -> str:
        if not self._text:
            text = StringIO()
            self._op.operation.print(state=self._kernel.names, file=text)
            line = text.getvalue().split("\n", 1)[0]
            self._text = f"{line} [{self._op.location}]"
        return self._text


class Kernel:
    """A `gpu.func` ready to run. Handlers call `slot`, `block` and `space` while it is compiled.

    Workgroups run side by side, in lockstep; where a loop waits for what an atomic update gives (`spins`), one after
    the other, as the one that has a lock would wait for all others to leave their loops.
    """

    def __init__(self, function: Operation) -> None:
        self._slots: dict[Value, int] = {}
        self._unknown: dict[str, int] = {}
        self.function = function
        self.granule = 4
        self.spins = False
        self.shared_types: list[Any] = []
        entry = function.operation.regions[0].blocks[0]
        self.body = self.block(entry)
        if self._unknown:
            names = ", ".join(f"{name} ({count})" for name, count in sorted(self._unknown.items()))
            raise UserError(f"kernel {self.name}: the interpreter has no handler for {names}")
        count = len(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs)
        self.parameters = [a.type for a in entry.arguments][:count]
        self.attributions = [a.type for a in entry.arguments][count:]

    @property
    def name(self) -> str:
        return ir.StringAttr(self.function.attributes["sym_name"]).value

    @cached_property
    def names(self) -> Any:
        """The names of its values in texts, which take long to find in a long kernel."""
        return ir.AsmState(self.function.operation)

    @property
    def slot_count(self) -> int:
        return len(self._slots)

    def slot(self, value: Value) -> int:
        """The environment slot of an SSA value."""
        return self._slots.setdefault(value, len(self._slots))

    def saw_shared(self, itemsize: int) -> None:
        """Notes that shared memory is accessed in elements of `itemsize` bytes."""
        self.granule = min(self.granule, itemsize)

    def global_value(self, name: str, type_: Any) -> MemRef:
        """The `memref.global` called `name` with its initial value."""
        module = self.function.operation.parent
        symbols = ir.SymbolTable(module)
        if name not in symbols:
            raise UserError(f"kernel {self.name}: there is no memref.global '{name}' beside it")
        value = constant_array(symbols[name].attributes["initial_value"], type_)[0]
        data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        sizes = list(type_.shape)
        return MemRef(Buffer(data, data.nbytes, "global", name), dtype_of(type_), 0, 0, sizes,
                      contiguous_strides(sizes))

    def block(self, block: Any) -> Block:
        """Compiles one block."""
        out = Block([self.slot(a) for a in block.arguments])
        operations = list(block.operations)
        for op in operations:
            name = op.operation.name
            if op is operations[-1] and name in ("scf.yield", "scf.condition", "gpu.return", "func.return", "gpu.yield",
                                                 "scf.reduce", "memref.atomic_yield"):
                out.yields = tuple(self.slot(o) for o in op.operands)
                break
            handler = handler_of(name)
            if handler is None:
                self._unknown[name] = self._unknown.get(name, 0) + 1
                continue
            runner = handler(op, self)
            if runner is not None:
                out.steps.append((runner, tuple(self.slot(o) for o in op.operands),
                                  tuple(self.slot(r) for r in op.results), _Source(op, self)))
        return out

    def run(self, grid: tuple[int, int, int], block: tuple[int, int, int],
            arguments: Sequence[int | np.ndarray[Any, Any]],
            options: Options, dynamic_shared: int = 0) -> Report:
        """Executes the grid. `arguments`: numpy arrays (changed in place) for memrefs, ints for scalars."""
        report = Report()
        values = [self._argument(i, t, a, options, dims)
                  for i, (t, a, dims) in enumerate(self._bind(arguments))]
        total = grid[0] * grid[1] * grid[2]
        threads = block[0] * block[1] * block[2]
        step = 1 if self.spins else max(1, options.max_threads // threads)
        with np.errstate(all="ignore"):
            for start in range(max(0, total - options.last_groups) if options.last_groups else 0, total, step):
                groups = np.arange(start, min(total, start + step))
                machine = Machine(options, report, grid, block, groups, [None] * self.slot_count,
                                  granule=self.granule, dynamic_shared=dynamic_shared)
                extra = [machine.allocate(f"attribution {i}", space_of(t), dtype_of(t), list(t.shape))
                         for i, t in enumerate(self.attributions)]
                self.body.run(machine, [*values, *extra])
                report.shared_bytes = machine.shared_bytes
        return report

    def _bind(self, arguments: Sequence[int | np.ndarray[Any, Any]]
              ) -> list[tuple[Type, int | np.ndarray[Any, Any], Sequence[int] | None]]:
        """(type, argument, shape) of every parameter; the shape of a memref where the kernel's attributes give it."""
        if len(arguments) != len(self.parameters):
            raise UserError(f"kernel {self.name} takes {len(self.parameters)} arguments, {len(arguments)} were given")
        attributes = self.function.attributes
        dims = [d for key in ("xt.arg_dims", "xt.result_dims", "xt.scratch_dims") if key in attributes
                for d in attributes[key]]
        names = [s.value for s in attributes["xt.symbols"]] if "xt.symbols" in attributes else []
        symbols = dict(zip(names, [int(a) for a in arguments[len(arguments) - len(names):]], strict=True))
        shapes: list[Sequence[int] | None] = [tuple(symbolic.evaluate(_dim(d), symbols) for d in shape)
                                              for shape in dims]
        shapes += [None] * (len(arguments) - len(shapes))
        return list(zip(self.parameters, arguments, shapes, strict=False))

    def _argument(self, number: int, type_: Type, value: int | np.ndarray[Any, Any], options: Options,
                  shape: Sequence[int] | None) -> MemRef | np.ndarray[Any, Any]:
        if not isinstance(type_, ir.MemRefType):
            return np.full(1, value, dtype_of(type_))
        dtype, name = dtype_of(type_), f"argument {number} of {self.name}"
        array = np.asarray(value)
        if array.dtype == np.int8 and shape is not None and array.nbytes == prod(shape) * dtype.itemsize:
            array = array.view(dtype)       # memory that launches hand to each other has no type
        if not array.flags.c_contiguous or array.dtype.itemsize != dtype.itemsize:
            raise UserError(f"{name} is {type_}: a contiguous array of {dtype} is needed, {array.dtype} was given")
        sizes = list(array.shape if shape is None else shape)
        wanted = list(type_.shape)
        if len(wanted) != len(sizes) or any(w >= 0 and w != s for w, s in zip(wanted, sizes, strict=True)):
            raise UserError(f"{name} is {type_}: an array of shape {tuple(sizes)} was given")
        if prod(sizes) != array.size:
            raise UserError(f"{name} has shape {tuple(sizes)}: an array of {array.size} elements was given")
        if not array.size:
            data = np.full(prod(max(n, 1) for n in sizes) * dtype.itemsize, 0xFF, np.uint8)
            return MemRef(Buffer(data, data.nbytes, "global", name, empty=True), dtype, 0, 0, sizes,
                          contiguous_strides(sizes))
        data = array.reshape(-1).view(np.uint8)
        tracker = Tracker(max(1, array.nbytes), dtype.itemsize) if options.races else None
        return MemRef(Buffer(data, array.nbytes, "global", name, tracker), dtype, 0, 0, sizes,
                      contiguous_strides(sizes))


def _dim(attr: Attribute) -> symbolic.Dim:
    """A dim of ``xt.arg_dims``: an integer or text."""
    return symbolic.parse(attr.value) if isinstance(attr, ir.StringAttr) else int(ir.IntegerAttr(attr).value)


def find_kernel(module: Module, name: str) -> Operation:
    """The function `name` of `module`, a gpu.func where there is one; UserError when there is none."""
    found = []

    def visit(op: Operation) -> WalkResult:
        if op.name in ("gpu.func", "func.func") and ir.StringAttr(op.attributes["sym_name"]).value == name:
            found.append(op.opview)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if not found:
        raise UserError(f"the module has no kernel '{name}'")
    return next((op for op in found if op.operation.name == "gpu.func"), found[0])


def run_kernel(module: Module, name: str, grid: tuple[int, int, int], block: tuple[int, int, int],
               buffers: Sequence[Array], scalars: Sequence[int] = (), options: Options | None = None,
               dynamic_shared: int = 0) -> Report:
    """Runs the kernel `name` of `module` (text, or an ir.Module at stage `gpu`); `buffers` are changed in place.

    grid: workgroups, block: threads (x, y, z). Raises KernelFault where the kernel's behaviour is undefined and
    UserError where the interpreter cannot run it.
    """
    options = options or Options()
    if isinstance(module, str):
        with upstream_context():
            return run_kernel(ir.Module.parse(module), name, grid, block, buffers, scalars, options, dynamic_shared)
    return Kernel(find_kernel(module, name)).run(grid, block, [*buffers, *scalars], options, dynamic_shared)
