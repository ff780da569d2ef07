"""Finds schedules by measurement: ``xcc MODEL --tune[=SECONDS]``.

Every kernel of the model starts with the strategy's schedule and goes to the best of its neighbours (other tiles,
chunks, threads, stages) for a few rounds. A round's variants are compiled in parallel; each is run on random data on
this machine, checked against the strategy's, and timed. What is faster in the end goes into the tuning database. The
kernels that take longest come first, so that a short search is spent where it counts.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcc.diagnostics import CompilerBug, UserError
from xcc.driver.plugins import loaded_plugins
from xcc.driver.sources import load_source
from xcc.driver.split import kernel_texts
from xcc.driver.stages import Clock, run_stage
from xcc.options import CompileOptions
from xcc.passes.base import PassContext
from xcc.passes.linalg.schedule.tuning import Database, signature
from xcc.process import kernels
from xcc.process.worker import KernelJob
from xcc.runtime.executors import on_host
from xcc.symbolic import Dim
from xcc.targets.base import Chip, KernelBinary, chip_of, get_target
from xcc.targets.folders import part, target_names
from xcc.tuning.tuner_bench import Bench, Measured, Subject
from xcc.tuning.tuner_parts import tune_parts

if TYPE_CHECKING:
    from xcc._mlir import Type

__all__ = ["Measured", "Subject", "tune"]

FASTER = 0.97       # a variant must take less than this share of the default's time to replace it
ROUNDS = 4          # of neighbours, each around the best of the round before
ONE = 0.05          # most seconds for one measurement
PARTS_SHARE = 0.25  # of the time for the sums of products, before their kernels
SYMBOL = 128        # the size of a symbolic dim without bounds


@dataclass(frozen=True)
class _Kernel:
    """A kernel at stage linalg; `config` is the strategy's own schedule, as text."""

    name: str
    key: str
    text: str
    subject: Subject
    config: str


def tune(model: Any, options: CompileOptions, seconds: float = 60.0,
         note: Callable[[str], None] = lambda _line: None) -> Database:
    """The entries found for the kernels of `model`, in about `seconds` once they are lowered."""
    if part(options.target, "measure") is None:
        known = [t for t in target_names() if part(t, "measure") is not None]
        raise UserError(f"--tune measures on this machine; it knows {', '.join(known)}, not '{options.target}'")
    found = tune_parts(model, options, seconds * PARTS_SHARE, note)
    subjects, pipeline, chip = _lowered(model, options, found)
    with ThreadPoolExecutor(options.workers) as pool:
        search = _Search(options, chip, pipeline, pool, Bench(options.target), time.perf_counter() + seconds,
                         min(ONE, seconds / max(1, 10 * len(subjects))))
        try:
            for n, (k, start) in enumerate(search.longest_first(subjects)):
                best, line = search.improve(k, start)
                note(f"[{n + 1}/{len(subjects)}] {k.name}: {line}")
                if best is not None:
                    found.entries[chip.name, k.key] = best
        finally:
            search.bench.close()
            pool.shutdown(cancel_futures=True)
    return found


def _lowered(model: Any, options: CompileOptions, found: Database) -> tuple[list[_Kernel], str, Any]:
    """The kernels of `model` with the parts that were found, the passes that follow their schedules, and the chip."""
    target = get_target(options.target)
    chip = chip_of(target, options.chip)
    plan = target.pipeline(options)
    source = load_source(model, options)
    plan = plan.after(source.stage) if source.stage else plan
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="xcc-tuning-") as folder:
        path = Path(folder, "found.txt")
        path.write_text(found.text())
        reading = replace(options, tuning=str(path))
        ctx = PassContext(weights=source.weights, chip=chip, options=reading, verbose=lambda _line: None)
        for stage in plan.model_part():
            run_stage(stage, source.module, ctx, clock, "stage")
    texts = kernel_texts(source.module)
    front, back = plan.kernel_part().upto("linalg"), plan.kernel_part().after("linalg")
    jobs = [KernelJob(name, text, str(front), chip, options, ("linalg",), False, loaded_plugins())
            for name, text in texts.items()]
    lowered = [(j.name, r.kept["linalg"]) for j, r in zip(jobs, kernels.compile_all(jobs), strict=True)]
    made = (k for name, text in lowered for k in _kernels(name, text, options, chip))
    return list({k.key: k for k in made}.values()), str(back), chip


@dataclass
class _Search:
    """One tuning run: compiles ahead in `pool`, measures in `bench` until `deadline`, `share` seconds a variant."""

    options: CompileOptions
    chip: Chip
    pipeline: str
    pool: ThreadPoolExecutor
    bench: Bench
    deadline: float
    share: float

    def longest_first(self, subjects: list[_Kernel]) -> list[tuple[_Kernel, tuple[KernelBinary, float]]]:
        """Kernels with the binary and seconds of the strategy's own schedule."""
        compiled = [(k, self._compile(k, _with_config(k, k.config))) for k in subjects]
        timed = []
        for k, future in compiled:
            binary = future.result()
            seconds = None if binary is None else self.bench.seconds(binary, binary, k.subject, self.share)
            if binary is not None and seconds is not None:
                timed.append((k, (binary, seconds)))
        return sorted(timed, key=lambda t: (-t[1][1], t[0].key))

    def improve(self, k: _Kernel, start: tuple[KernelBinary, float]) -> tuple[str | None, str]:
        """The best schedule's text, or None where the strategy's own stays, and a line about it."""
        base, first = start
        config, seconds, binary = k.config, first, base
        tried = {config}
        for _ in range(ROUNDS):
            variants = [(c, text) for c, text in _variants(k, config, self.options, self.chip) if c not in tried]
            tried |= {c for c, _ in variants}
            step = self._best(k, base, variants, seconds)
            if step is None:
                break
            config, seconds, binary = step
        if seconds > FASTER * first:
            return None, f"{first * 1e6:.1f} us, kept"
        again = [self.bench.seconds(base, b, k.subject, 2 * self.share) for b in (base, binary)]
        if again[0] is None or again[1] is None or again[1] > FASTER * again[0]:
            return None, f"{first * 1e6:.1f} us, kept ({seconds * 1e6:.1f} was not stable)"
        return config, f"{again[0] * 1e6:.1f} -> {again[1] * 1e6:.1f} us, {len(tried)} tried"

    def _best(self, k: _Kernel, base: KernelBinary, variants: list[tuple[str, str]],
              seconds: float) -> tuple[str, float, KernelBinary] | None:
        """The fastest of `variants` that takes less than `seconds`, within the time that is left."""
        best: tuple[str, float, KernelBinary] | None = None
        futures = [self._compile(k, text) for _, text in variants]
        if on_host(self.options.target):        # compilers and the kernel would share the cores
            for f in futures:
                f.result()
        for (config, _), future in zip(variants, futures, strict=True):
            if time.perf_counter() > self.deadline:
                future.cancel()
                continue
            binary = future.result()
            found = self.bench.seconds(base, binary, k.subject, self.share) if binary is not None else None
            if found is not None and found < (FASTER * seconds if best is None else best[1]) and binary is not None:
                best = config, found, binary
        return best

    def _compile(self, k: _Kernel, text: str) -> Future[KernelBinary | None]:
        job = KernelJob(k.name, text, self.pipeline, self.chip, self.options, (), True, loaded_plugins())
        return self.pool.submit(_compiled, job)


def _kernels(name: str, text: str, options: CompileOptions, chip: Chip) -> Iterator[_Kernel]:
    """The kernels in `text` that have a schedule to choose (no loops); those that share a launch one by one."""
    from xcc._mlir import ir
    from xcc.context import new_context, parse_module
    from xcc.passes.linalg.kernel.kernel_reader import read
    from xcc.passes.shared.attributes import PART

    module = parse_module(text, new_context(), name)
    with module.context, ir.Location.unknown():
        functions = [f for f in module.body.operations if "xt.kernel" in f.operation.attributes
                     and not {"xcc.loops", "xcc.tiles"} & set(f.operation.attributes)]
        for f in functions:
            alone = ir.Module.create()
            function = f.operation.clone(ip=ir.InsertionPoint(alone.body))
            if PART in function.attributes:
                del function.attributes[PART]
            apart = name if len(functions) == 1 else ir.StringAttr(function.attributes["sym_name"]).value
            subject, text = _subject(function, options), str(alone)
            kernel = read(function)
            yield _Kernel(apart, signature(kernel), text, subject, str(_strategy(options)(kernel, chip).to_attr()))


def _strategy(options: CompileOptions) -> Any:
    return part(options.target, "strategy").configure


def _with_config(k: _Kernel, config: str) -> str:
    return _texts(k, lambda _kernel: [config])[0][1]


def _variants(k: _Kernel, config: str, options: CompileOptions, chip: Chip) -> list[tuple[str, str]]:
    """(schedule, IR with it) of the neighbours of `config`."""
    from xcc._mlir import ir
    from xcc.passes.linalg.schedule.neighbours import neighbours
    from xcc.passes.linalg.schedule.schedule import Schedule

    return _texts(k, lambda kernel: [str(s.to_attr()) for s in neighbours(
        kernel, Schedule.from_attr(ir.Attribute.parse(config)), chip)])


def _texts(k: _Kernel, choose: Callable[[Any], list[str]]) -> list[tuple[str, str]]:
    from xcc._mlir import ir
    from xcc.context import new_context, parse_module
    from xcc.passes.linalg.kernel.kernel_reader import read

    module = parse_module(k.text, new_context(), k.name)
    with module.context, ir.Location.unknown():
        function = next(f for f in module.body.operations if "xt.kernel" in f.operation.attributes)
        out = []
        for config in choose(read(function)):
            function.attributes["xcc.config"] = ir.Attribute.parse(config)
            out.append((config, str(module)))
        return out


def _subject(function: Any, options: CompileOptions) -> Subject:
    from xcc import symbolic
    from xcc.dialects.xt import dims_from_attr

    names = [a.value for a in function.attributes["xt.symbols"]]
    values = dict.fromkeys(names, SYMBOL)
    block = function.regions[0].blocks[0]

    def buffers(attr: str, types: list[Type]) -> tuple[tuple[tuple[int, ...], str], ...]:
        dims: list[tuple[Dim, ...]] = [dims_from_attr(a) for a in function.attributes[attr]]
        return tuple((tuple(symbolic.evaluate(d, values) for d in shape), str(t.element_type))
                     for shape, t in zip(dims, types, strict=True))

    arguments = [a.type for a in block.arguments][:len(block.arguments) - len(names)]
    results = list(function.type.results)
    return Subject(buffers("xt.arg_dims", arguments), buffers("xt.result_dims", results), tuple(values.values()))


def _compiled(job: KernelJob) -> KernelBinary | None:
    try:
        return kernels.compile_all([job])[0].binary
    except (CompilerBug, UserError):
        return None
