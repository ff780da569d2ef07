"""Finds schedules by measurement: ``xcc MODEL --tune[=SECONDS]``.

Every kernel of the model is compiled with the strategy's schedule and with its neighbours (other tile sizes, other
chunks), in parallel; each variant is run on random data on this machine, checked against the first, and timed. The
fastest goes into the tuning database. Variants run in a process of their own: one that crashes only loses its place.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from xcc import kernels
from xcc.diagnostics import CompilerBug, UserError
from xcc.options import CompileOptions
from xcc.passes.base import PassContext
from xcc.passes.linalg.tuning import Database, signature
from xcc.plugins import loaded_plugins
from xcc.sources import load_source
from xcc.split import kernel_texts
from xcc.stages import Clock, run_stage
from xcc.symbolic import Dim
from xcc.targets.base import KernelBinary, chip_of, get_target
from xcc.worker import KernelJob

__all__ = ["Subject", "tune"]

RUNNERS = {"cpu": "xcc.targets.cpu.measure", "nvptx": "xcc.targets.nvptx.measure"}
"""Target -> module with ``Runner().measure(binary, subject, seconds) -> Measured``."""

FASTER = 0.97       # a variant must take less than this share of the default's time to replace it
SYMBOL = 128        # the size of a symbolic dim without bounds


@dataclass(frozen=True)
class Subject:
    """The buffers of a kernel: (shape, dtype) of inputs, then of outputs, and the symbols' values in order."""

    inputs: tuple[tuple[tuple[int, ...], str], ...]
    outputs: tuple[tuple[tuple[int, ...], str], ...]
    symbols: tuple[int, ...]


@dataclass(frozen=True)
class Measured:
    """Seconds of one run, and the outputs for the comparison with the default schedule's."""

    seconds: float
    outputs: tuple[Any, ...]


def tune(model: Any, options: CompileOptions, seconds: float = 60.0,
         note: Callable[[str], None] = lambda _line: None) -> Database:
    """The entries found for the kernels of `model`, in about `seconds` of measuring."""
    if options.target not in RUNNERS:
        raise UserError(f"--tune measures on this machine; it knows {', '.join(RUNNERS)}, not '{options.target}'")
    target = get_target(options.target)
    chip = chip_of(target, options.chip)
    plan = target.pipeline(options)
    source = load_source(model, options)
    ctx = PassContext(weights=source.weights, chip=chip, options=options, verbose=lambda _line: None)
    clock = Clock()
    for stage in plan.model_part():
        run_stage(stage, source.module, ctx, clock, "stage")
    texts = kernel_texts(source.module)
    front, back = plan.kernel_part().upto("linalg"), plan.after("linalg")
    jobs = [KernelJob(name, text, str(front), chip, options, ("linalg",), False, loaded_plugins())
            for name, text in texts.items()]
    lowered = {j.name: r.kept["linalg"] for j, r in zip(jobs, kernels.compile_all(jobs), strict=True)}
    subjects = [s for name, text in lowered.items() for s in _candidates(name, text, options, chip)]
    found = Database()
    share = seconds / max(1, sum(len(s.variants) for s in subjects))
    bench = _Bench(RUNNERS[options.target])
    try:
        for n, s in enumerate(subjects):
            best = _tune_kernel(s, str(back), chip, options, bench, share)
            note(f"[{n + 1}/{len(subjects)}] {s.name}: {best[1]}")
            if best[0] is not None:
                found.entries[chip.name, s.key] = best[0]
    finally:
        bench.close()
    return found


@dataclass(frozen=True)
class _Kernel:
    name: str
    key: str
    subject: Subject
    variants: tuple[tuple[str, str], ...]       # (schedule text, IR with it), the strategy's own first


def _candidates(name: str, text: str, options: CompileOptions, chip: Any) -> list[_Kernel]:
    from xcc._mlir import ir
    from xcc.context import new_context, parse_module
    from xcc.passes.linalg.configure import STRATEGIES
    from xcc.passes.linalg.kernel import read
    from xcc.passes.linalg.neighbours import neighbours

    context = new_context()
    module = parse_module(text, context, name)
    with context, ir.Location.unknown():
        function = next((f for f in module.body.operations if "xt.kernel" in f.operation.attributes
                         and "xcc.loops" not in f.operation.attributes), None)
        if function is None:
            return []
        subject = _subject(function, options)
        kernel = read(function)
        base = importlib.import_module(STRATEGIES[options.target]).configure(kernel, chip)
        variants = []
        for schedule in [base, *neighbours(kernel, base, chip)]:
            attr = schedule.to_attr()
            function.attributes["xcc.config"] = attr
            variants.append((str(attr), str(module)))
        return [_Kernel(name, signature(kernel), subject, tuple(variants))]


def _subject(function: Any, options: CompileOptions) -> Subject:
    from xcc import symbolic
    from xcc.dialects.xt import dims_from_attr

    names = [a.value for a in function.attributes["xt.symbols"]]
    values = dict.fromkeys(names, SYMBOL)
    block = function.regions[0].blocks[0]

    def buffers(attr: str, types: list[Any]) -> tuple[tuple[tuple[int, ...], str], ...]:
        dims: list[tuple[Dim, ...]] = [dims_from_attr(a) for a in function.attributes[attr]]
        return tuple((tuple(symbolic.evaluate(d, values) for d in shape), str(t.element_type))
                     for shape, t in zip(dims, types, strict=True))

    arguments = [a.type for a in block.arguments][:len(block.arguments) - len(names)]
    results = list(function.type.results)
    return Subject(buffers("xt.arg_dims", arguments), buffers("xt.result_dims", results), tuple(values.values()))


def _tune_kernel(k: _Kernel, pipeline: str, chip: Any, options: CompileOptions, bench: _Bench,
                 share: float) -> tuple[str | None, str]:
    """The best schedule's text, or None where the strategy's own stays, and a line about it."""
    jobs = [KernelJob(k.name, text, pipeline, chip, options, (), True, loaded_plugins()) for _, text in k.variants]
    with ThreadPoolExecutor(options.workers) as pool:
        binaries = list(pool.map(_compiled, jobs))
    if binaries[0] is None:
        return None, "does not compile"
    base = bench.measure(binaries[0], k.subject, share)
    if base is None:
        return None, "cannot be measured"
    best, at = base.seconds, 0
    for n, binary in enumerate(binaries[1:], 1):
        result = bench.measure(binary, k.subject, share) if binary is not None else None
        if result is not None and result.seconds < best and _agree(base, result):
            best, at = result.seconds, n
    if best > FASTER * base.seconds:
        return None, f"{base.seconds * 1e6:.1f} us, kept"
    again = [bench.measure(b, k.subject, 2 * share) for b in (binaries[0], binaries[at]) if b is not None]
    if len(again) < 2 or any(r is None for r in again):
        return None, "not stable"
    first, second = (r.seconds for r in again if r is not None)
    if second > FASTER * first:
        return None, f"{first * 1e6:.1f} us, kept"
    return k.variants[at][0], f"{first * 1e6:.1f} -> {second * 1e6:.1f} us"


def _compiled(job: KernelJob) -> KernelBinary | None:
    try:
        return kernels.compile_all([job])[0].binary
    except (CompilerBug, UserError):
        return None


def _agree(a: Measured, b: Measured) -> bool:
    import numpy as np

    for x, y in zip(a.outputs, b.outputs, strict=True):
        if x.dtype.kind in "iub":
            if not np.array_equal(x, y):
                return False
            continue
        wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
        scale = float(np.abs(wide_x).max(initial=0.0))
        narrow = x.dtype.itemsize < 4
        if not np.allclose(wide_x, wide_y, rtol=0, atol=(2e-2 if narrow else 1e-4) * max(scale, 1e-30)):
            return False
    return True


class _Bench:
    """The process that runs variants; started again when one takes it down."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.pool: ProcessPoolExecutor | None = None

    def measure(self, binary: KernelBinary, subject: Subject, seconds: float) -> Measured | None:
        if self.pool is None:
            self.pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        try:
            return self.pool.submit(_measure, self.module, binary, subject, seconds).result(timeout=60 + 4 * seconds)
        except (BrokenProcessPool, TimeoutError, RuntimeError, OSError):
            self.close()
            return None

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)
            self.pool = None


def _measure(module: str, binary: KernelBinary, subject: Subject, seconds: float) -> Measured:
    measured: Measured = importlib.import_module(module).measure(binary, subject, seconds)
    return measured
