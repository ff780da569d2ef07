"""The compiler's walk: import, then stage by stage to an artifact.

A model-wide stage runs here; from stage ``kernels`` on each kernel goes its own way in a worker process, and what is
left, @main, becomes the host program here, when they are done.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcc.diagnostics import CompilerBug, UserError, XccError
from xcc.driver.dumps import Dumper, stage_text
from xcc.driver.link import link_model
from xcc.driver.plugins import loaded_plugins, plugins_of
from xcc.driver.reproducer import save_module
from xcc.driver.sources import Source, is_reference, load_source
from xcc.driver.split import join_kernels, kernel_texts, kernel_work, strip_kernels
from xcc.driver.stages import Clock, run_stage
from xcc.driver.updates import mark_updates, proposed_updates
from xcc.options import CompileOptions
from xcc.passes.base import PassContext
from xcc.passes.host.placement.places import note_shares
from xcc.passes.pipeline import Pipeline, Stage
from xcc.passes.xt.sizes.equal_dims import note_equal_dims
from xcc.process import kernels
from xcc.process.worker import KernelJob, KernelResult
from xcc.runtime.artifact import Artifact
from xcc.targets.base import Chip, KernelBinary, Target, chip_of, get_target
from xcc.targets.front import tile_pipeline

if TYPE_CHECKING:
    from xcc.driver.verify_numbers import NumbersCheck

__all__ = ["Compiled", "Observer", "compile_model"]

NUMBERS = "numbers"         # --verify: what the model gives for random inputs is the same after each pass


@dataclass
class Observer:
    """Who watches a compilation: progress, notes, times, and a guard that is told before anything can crash."""

    progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None
    note: Callable[[str], None] = lambda _line: None
    guard: Callable[[Callable[[], CompilerBug]], None] = lambda _describe: None
    clock: Clock = field(default_factory=Clock)


@dataclass
class Compiled:
    """What came out: an artifact, or the text of the stage that was asked for. `files` holds external data, read."""

    artifact: Artifact | None = None
    text: str = ""
    kernels: tuple[KernelBinary, ...] = ()
    files: tuple[Path, ...] = ()


def compile_model(model: Any, options: CompileOptions, pipeline: Pipeline | None = None, stop: str = "",
                  observer: Observer | None = None, emit: bool = False) -> Compiled:
    """Compiles `model` (see :func:`xcc.driver.sources.load_source`); `stop` names a stage to return the IR of.

    With `emit` that is the last stage, as the kernels' code was made of it: those that spilled were compiled again."""
    watch = observer or Observer()
    target = get_target(options.target)
    chip = chip_of(target, options.chip)
    written = is_reference(model)
    plan = pipeline or (tile_pipeline(options) if written else target.pipeline(options))
    if options.verify not in ("stage", "each", NUMBERS, *plan.stage_names()):
        raise UserError(f"verify '{options.verify}' is none of 'stage', 'each', '{NUMBERS}' and the target's stages")
    if stop:
        plan = plan.upto(stop)
    if written:
        return _compile_written(model, options, plan, stop, emit)
    watch.progress("import", 0, 1)
    source: Source = watch.clock.timed("import", "import", lambda: load_source(model, options))
    if source.stage == "":
        note_equal_dims(source.module)
        mark_updates(source.module, dict(options.updates))
        if options.verbose:
            proposed_updates(source.module, watch.note)
    elif options.updates:
        raise UserError(f"{source.name}: updates are chosen before the first stage, this is behind '{source.stage}'")
    _check_interpretable(plan, source, options)
    ctx = PassContext(weights=source.weights, chip=chip, options=options, verbose=watch.note)
    dumper = Dumper(options.dump_stages, plan.stage_names())
    rest = plan.after(source.stage) if source.stage else plan
    numbers = _numbers_check(source, options) if rest.model_part().stages else None
    for stage in rest.model_part():
        watch.progress(stage.name, 0, 1)
        watch.guard(lambda stage=stage: _crash(stage, source, options, chip))  # type: ignore[misc]
        _model_stage(stage, source, ctx, watch, chip, numbers)
        dumper.module(stage.name, source.module, source.weights)
    if stop and not emit and not (rest.kernel_part().stages or rest.main_part().stages):
        return Compiled(text=stage_text(source.module, stop))
    return _behind_model(source, rest, ctx, watch, dumper, target, stop, emit or not stop)


def _compile_written(reference: str, options: CompileOptions, plan: Pipeline, stop: str, emit: bool) -> Compiled:
    """A kernel written in Python, ``file.py::name``."""
    from xcc.frontends.kernel.ahead import compile_reference

    made, artifact = compile_reference(reference, options, plan, stop, emit)
    dumper = Dumper(options.dump_stages, plan.stage_names())
    for stage, text in made.stages.items():
        dumper.text(stage, text)
    return Compiled(artifact, made.stages.get(stop, ""), () if made.binary is None else (made.binary,))


def _check_interpretable(plan: Pipeline, source: Source, options: CompileOptions) -> None:
    """UserError where --keep-ir cannot keep what the interpreter runs, as the compilation begins behind it."""
    names = plan.stage_names()
    kept = get_target(options.target).kept_stage
    if options.keep_ir and kept in names and source.stage in names and names.index(source.stage) > names.index(kept):
        raise UserError(f"--keep-ir: the interpreter runs the kernels of stage '{kept}', which is before stage "
                        f"'{source.stage}' of {source.name}: begin with stage '{kept}' or one before it")


def _numbers_check(source: Source, options: CompileOptions) -> NumbersCheck | None:
    """What looks at the numbers after each pass of a model's stage, where that was asked for."""
    if options.verify != NUMBERS:
        return None
    from xcc.driver.verify_numbers import NumbersCheck

    return NumbersCheck(source.module, source.weights, options.precision)


def _model_stage(stage: Stage, source: Source, ctx: PassContext, watch: Observer, chip: Chip,
                 numbers: NumbersCheck | None) -> None:
    before = source.module.operation.clone()
    after = (lambda p: numbers.after(p, source.module)) if numbers is not None else lambda _pass: None
    try:
        run_stage(stage, source.module, ctx, watch.clock, ctx.options.verify, after)
    except CompilerBug as e:
        raise save_module(str(before), source.weights, stage, ctx.options, chip, e.message, e.details) from e


def _crash(stage: Stage, source: Source, options: CompileOptions, chip: Chip) -> CompilerBug:
    """For a guard that outlived this process: its copy of the module is as it was before the stage."""
    return save_module(str(source.module), source.weights, stage, options, chip,
                       f"the compiler died in stage '{stage.name}'")


def _behind_model(source: Source, plan: Pipeline, ctx: PassContext, watch: Observer, dumper: Dumper, target: Target,
                  stop: str, emit: bool) -> Compiled:
    """The kernels' stages, those of @main, then the artifact."""
    options, context = ctx.options, source.module.context
    work = kernel_work(source)
    meaning = source.module.operation.get_asm(enable_debug_info=True) if work and options.keep_ir else ""
    names = plan.kernel_part().stage_names()
    keep = names if options.dump_stages else (stop,) if stop in names else names[-1:] if stop else ()
    texts = kernel_texts(source.module)
    results = _kernel_results(source, texts, plan, ctx, watch, keep, emit)
    binaries = tuple(r.binary for r in results.values() if r.binary is not None)
    if target.shares_after in names:
        note_shares(source.module, {name: r.shares for name, r in results.items()})
    if keep:
        dumper.kernels(str(source.module), {name: r.kept for name, r in results.items()}, source.weights, context)

    def whole(stage: str) -> str:
        """The module at `stage`, with the kernels as they are there, or were at the last stage that they have."""
        last = stage if stage in names else (*names[-1:], "")[0]
        return join_kernels(str(source.module), {name: r.kept.get(last, texts[name]) for name, r in results.items()},
                            stage, context)

    if stop in names:
        return Compiled(text=whole(stop), kernels=binaries)
    watch.guard(lambda: CompilerBug("the compiler died while it made the host program, or linked"))
    for stage in plan.main_part():
        watch.progress(stage.name, 0, 1)
        _model_stage(stage, source, ctx, watch, ctx.chip, None)
        if options.dump_stages:
            dumper.text(stage.name, whole(stage.name), source.weights)
    if stop:
        return Compiled(text=whole(stop), kernels=binaries)
    watch.progress("link", 0, 1)
    try:
        artifact = watch.clock.timed("link", "link", lambda: link_model(source, binaries, target, ctx, work, meaning))
    except XccError:
        raise
    except Exception as e:
        raise CompilerBug(f"linking: {type(e).__name__}: {e}", details=traceback.format_exc()) from e
    return Compiled(artifact=artifact, kernels=binaries, files=tuple(source.weights.files))



def _kernel_results(source: Source, texts: dict[str, str], plan: Pipeline, ctx: PassContext, watch: Observer,
                    keep: tuple[str, ...], emit: bool) -> dict[str, KernelResult]:
    """What became of each kernel, which are taken out of the module."""
    plugins = (*loaded_plugins(), *plugins_of(plan.kernel_part()))
    jobs = [KernelJob(name, text, str(plan.kernel_part()), ctx.chip, ctx.options, keep, emit, plugins, source.stage)
            for name, text in texts.items()]
    begin = time.perf_counter()
    results = kernels.compile_all(jobs, lambda done, total: watch.progress("kernels", done, total))
    watch.clock.add("kernels", "compile (wall time)", time.perf_counter() - begin)
    for result in results:
        for line in result.notes:
            watch.note(line)
        for (stage, what), seconds in result.seconds.items():
            watch.clock.add(stage, what, seconds)
    strip_kernels(source.module)
    return dict(zip(texts, results, strict=True))
