"""``xcc-run --compare --bisect``: which kernel of a compiled model is wrong.

The model runs launch by launch, each buffer in memory of its own. What a kernel made of its inputs is compared with
what its xt ops mean in numpy on the very same inputs, so that an error is found where it is made, not where it shows.
Needs an artifact that was compiled with ``--keep-ir``, which holds the kernels as they were formed.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xcc._mlir import Operation
from xcc.diagnostics import UserError
from xcc.driver.comparison import Tolerance, compare, stated
from xcc.driver.link import MEANING
from xcc.interpreter.executor import InterpretingExecutor
from xcc.interpreter.machine import Options
from xcc.runtime.executors import on_host

__all__ = ["Finding", "bisect", "save"]

Array = np.ndarray[Any, Any]
Native = Callable[[str, Sequence[int], Sequence[int], Sequence[Array], Sequence[int], int], None]

WORST = 5                       # elements that a finding shows


@dataclass(frozen=True)
class Finding:
    """A kernel whose result is wrong: how often it had run before, its inputs, and what it gave and should have."""

    kernel: str
    launches: int
    ops: tuple[str, ...]
    nodes: tuple[str, ...]
    inputs: tuple[Array, ...]
    got: tuple[Array, ...]
    wanted: tuple[Array, ...]
    symbols: tuple[tuple[str, int], ...]
    lines: tuple[str, ...]

    def __str__(self) -> str:
        sizes = f" with {', '.join(f'{n}={v}' for n, v in self.symbols)}" if self.symbols else ""
        return "\n".join([f"kernel {self.kernel}{sizes} is the first that differs, {self.launches} launches were right",
                          f"  ops: {' '.join(self.ops)}", f"  nodes: {', '.join(self.nodes) or 'unknown'}",
                          *(f"  {line}" for line in self.lines)])


class _Found(Exception):
    """Ends the run at the first difference."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding


@dataclass
class _Running:
    """A kernel some of whose launches have run."""

    kernel: str
    inputs: tuple[Array, ...]
    arrays: Sequence[Array]
    symbols: Sequence[int]
    seen: set[str]


class _Steps(InterpretingExecutor):
    """Runs a program whose launches are `native` code."""

    def kernel(self, name: str) -> tuple[Any, int]:
        return None, 0


class _Bisection:
    """Watches the launches of one run; `native` runs one, or None where the interpreter is to."""

    def __init__(self, artifact: Any, native: Native | None, tolerance: Tolerance | None) -> None:
        from xcc.context import new_context, parse_module

        if MEANING not in artifact.members:
            raise UserError("--bisect: the artifact does not hold what its kernels mean: compile it with "
                            "xcc --keep-ir, from the model or a stage up to 'kernels'")
        self.module = parse_module(bytes(artifact.members[MEANING]).decode(), new_context(), MEANING)
        self.functions = {f.attributes["sym_name"].value: f.operation for f in self.module.body
                          if "xt.kernel" in f.attributes}
        self.kernel_of = {entry: k["name"] for k in artifact.manifest["kernels"] for entry in k["entries"]}
        self.native, self.tolerance = native, tolerance
        self.running: _Running | None = None
        self.done = 0

    def watch(self, entry: str, grid: Sequence[int], block: Sequence[int], arrays: list[Array], symbols: list[int],
              shared: int, run: Callable[[], None]) -> None:
        name = self.kernel_of[entry]
        if self.running is not None and (self.running.kernel != name or entry in self.running.seen):
            self.finish()
        if self.running is None:
            count = len(self.functions[name].regions[0].blocks[0].arguments)
            self.running = _Running(name, tuple(a.copy() for a in arrays[:count]), arrays, symbols, set())
        self.running.seen.add(entry)
        if self.native is None:
            run()
        else:
            self.native(entry, grid, block, arrays, symbols, shared)

    def finish(self) -> None:
        """Compares what the kernel made that ran last; raises _Found."""
        r, self.running = self.running, None
        if r is None:
            return
        wanted = self.meaning(r)
        got = [a.reshape(-1)[:w.size].reshape(w.shape) for a, w in zip(r.arrays[len(r.inputs):], wanted, strict=False)]
        lines = [line for n, (g, w) in enumerate(zip(got, wanted, strict=True)) for line in self.differences(n, g, w)]
        if lines:
            ops = tuple(_ops(self.functions[r.kernel]))
            raise _Found(Finding(r.kernel, self.done, tuple(o.name.removeprefix("xt.") for o in ops), _nodes(ops),
                                 r.inputs, tuple(g.copy() for g in got), tuple(wanted), self.symbols(r), tuple(lines)))
        self.done += 1

    def symbols(self, r: _Running) -> tuple[tuple[str, int], ...]:
        names = [n.value for n in self.functions[r.kernel].attributes["xt.symbols"]]
        return tuple(zip(names, r.symbols, strict=True))

    def meaning(self, r: _Running) -> list[Array]:
        from xcc.dialects.xt.interpret import interpret

        with np.errstate(all="ignore"), self.module.context:
            return interpret(self.module, r.inputs, function=r.kernel, symbols=dict(self.symbols(r)))

    def differences(self, n: int, got: Array, wanted: Array) -> list[str]:
        """Nothing for a result within the tolerance."""
        tolerance = self.tolerance or stated({_float_name(a.dtype) for a in (got, wanted)})
        same, line = compare(f"result {n}", got, wanted, tolerance)
        return [] if same else [line, *(f"  {w}" for w in worst_elements(got, wanted))]


def worst_elements(got: Array, wanted: Array) -> list[str]:
    """The elements that differ most, one a line."""
    g, w = got.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(invalid="ignore"):
        off = np.where((g == w) | (np.isnan(g) & np.isnan(w)), 0.0, np.abs(g - w))
    order = np.argsort(-np.nan_to_num(off, nan=np.inf), axis=None, kind="stable")[:WORST]
    places = [np.unravel_index(int(i), g.shape) for i in order]
    return [f"{list(map(int, p))}: {g[p]:.8g}, wanted {w[p]:.8g}" for p in places]


def bisect(model: Any, inputs: Sequence[Array], symbols: Mapping[str, int], interpret: bool,
           tolerance: Tolerance | None = None) -> Finding | None:
    """The first kernel of `model` (an xcc.Model) whose result leaves the tolerance; None where all are right.

    `inputs` are in the program's order, `symbols` as the executor takes them. `interpret`: the interpreter runs GPU
    kernels. Without a `tolerance` each result has that of its own type.
    """
    artifact = model.artifact
    if artifact.manifest.get("versions"):
        raise UserError("--bisect takes an artifact for one chip: compile the model for one of "
                        f"{artifact.manifest['chip']}")
    native = None if interpret else _native(model)
    steps: InterpretingExecutor
    if native is None:
        from xcc.interpreter.executor import make_executor

        steps = make_executor(artifact.program, artifact.members, artifact.weights, artifact.manifest)
    else:
        steps = _Steps(artifact.program, {}, artifact.weights, Options())
    bisection = _Bisection(artifact, native, tolerance)
    steps.watch = bisection.watch
    try:
        steps.run(inputs, symbols)
        bisection.finish()
    except _Found as found:
        return found.finding
    return None


def _native(model: Any) -> Native:
    executor = model.executor
    return _gpu_launch(executor) if hasattr(executor, "driver") else _cpu_launch(executor)


def _cpu_launch(executor: Any) -> Native:
    def run(entry: str, _grid: Any, _block: Any, arrays: Sequence[Array], symbols: Sequence[int], _shared: int) -> None:
        function = executor._library[entry]
        function.restype = None
        function(*(ctypes.c_void_p(a.ctypes.data) for a in arrays), *map(ctypes.c_int64, symbols))

    return run


def _gpu_launch(executor: Any) -> Native:
    driver = executor.driver

    def run(entry: str, grid: Sequence[int], block: Sequence[int], arrays: Sequence[Array], symbols: Sequence[int],
            shared: int) -> None:
        driver.activate()
        pointers = [driver.alloc(a.nbytes) for a in arrays]
        try:
            for p, a in zip(pointers, arrays, strict=True):
                driver.upload(p, np.ascontiguousarray(a))
            driver.launch(executor.functions[entry], grid, block, shared, pointers, symbols)
            for p, a in zip(pointers, arrays, strict=True):
                driver.download(a, p)
        finally:
            driver.synchronize()
            for p in pointers:
                driver.free(p)

    return run


def _ops(function: Operation) -> list[Any]:
    return [o.operation for o in function.regions[0].blocks[0].operations if o.operation.name.startswith("xt.")]


def _nodes(ops: Sequence[Any]) -> tuple[str, ...]:
    """The model's nodes that `ops` come from."""
    names = [name for o in ops for name in re.findall(r'"([^"]+)"', str(o.location)) if ":" not in name]
    return tuple(dict.fromkeys(names))


def _float_name(dtype: Any) -> str:
    return {"float16": "f16", "bfloat16": "bf16", "float64": "f64"}.get(str(dtype), "f32")


def save(finding: Finding, artifact: Any, folder: Path) -> list[str]:
    """Writes the kernel, its inputs and its wanted results into `folder`; the commands that replay it."""
    from xcc.compiler import compile_model
    from xcc.context import new_context, parse_module
    from xcc.driver.dumps import stage_text
    from xcc.options import CompileOptions
    from xcc.targets.base import get_target

    folder.mkdir(parents=True, exist_ok=True)
    path, alone = folder / f"{finding.kernel}-model.mlir", folder / f"{finding.kernel}.mlir"
    module = parse_module(bytes(artifact.members[MEANING]).decode(), new_context(), MEANING)
    for op in list(module.body):
        if op.operation.attributes["sym_name"].value != finding.kernel:
            op.operation.erase()
    alone.write_text(stage_text(module, "kernels"))
    path.write_text(_model(module, finding.kernel))
    np.savez(folder / "inputs.npz", **{f"in{n}": a for n, a in enumerate(finding.inputs)})      # type: ignore[arg-type]
    np.savez(folder / "wanted.npz", **{f"out{n}": a for n, a in enumerate(finding.wanted)})     # type: ignore[arg-type]
    m = artifact.manifest
    target = m["target"]
    chip = m["chip"] if m["chip"] in get_target(target).chips() else "native"       # a CPU without a line in the table
    lines = [f"xcc-opt {alone} --target={target} --chip={chip} --stage=linalg"]
    try:
        options = CompileOptions.make(target, chip=chip, precision=m["options"]["precision"], keep_ir=True)
        compiled = compile_model(str(path), options).artifact
    except UserError as e:          # a size that no input has
        return [*lines, f"(it does not compile alone: {e})"]
    assert compiled is not None
    compiled.save(alone.with_suffix(".xcm"))
    interpret = "" if on_host(target) else " --interpret"
    return [*lines, f"xcc-run {alone.with_suffix('.xcm')}{interpret} --inputs {folder / 'inputs.npz'} "
            f"--compare {folder / 'wanted.npz'}"]


def _model(module: Any, kernel: str) -> str:
    """The `kernel` of `module` and a main that calls it, on inputs in0, in1, ..."""
    from xcc._mlir import ir
    from xcc.driver.dumps import stage_text

    function = next(iter(module.body)).operation
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    names = ", ".join(f'"{n.value}"' for n in function.attributes["xt.symbols"])
    arguments = ", ".join(f'%a{n}: {t} {{xt.name = "in{n}"}}' for n, t in enumerate(kind.inputs))
    results = ", ".join(f'{t} {{xt.name = "out{n}"}}' for n, t in enumerate(kind.results))
    operands, types = (", ".join(x) for x in ([f"%a{n}" for n in range(len(kind.inputs))], map(str, kind.inputs)))
    many = ", ".join(f"%r#{n}" for n in range(len(kind.results))) if len(kind.results) > 1 else "%r"
    given = "" if len(kind.results) == 1 else f":{len(kind.results)}"
    out = ", ".join(map(str, kind.results))
    main = (f"func.func @main({arguments}) -> ({results}) {{\n"
            f'  %r{given} = "xtv.dispatch"({operands}) {{kernel = @{kernel}, symbols = [{names}]}} : '
            f"({types}) -> ({out})\n"
            f"  return {many} : {out}\n}}\n")
    with module.context:
        whole = ir.Module.parse(main + str(function))
    return stage_text(whole, "kernels")

