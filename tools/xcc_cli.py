"""xcc: compiles a model to an artifact, or to the IR of any stage."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xcc.diagnostics import UserError, counted
from xcc.options import CompileOptions, parse_dim, parse_fix, parse_target, parse_update
from xcc.runtime.executors import on_host
from xcc.targets.base import chip_of, get_target
from xcc.targets.chip_spec import NATIVE, split_specs
from xcc.tools.arguments import TUNING_FILE, parser
from xcc.tools.code_output import CODE, check_emit, size_text, write_code, write_folder
from xcc.tools.common import check_writable, guarded, write_output

if TYPE_CHECKING:
    from xcc.cache.model_cache import Ticket

def main(argv: Sequence[str] | None = None) -> int:
    """The command line. A program that calls it with arguments of its own is not forked (xcc/process/fork_guard.py):
    the copy that goes on would have none of its threads."""
    return guarded("xcc", partial(_run, guard=argv is None), argv)


def _run(argv: Sequence[str], guard: bool = False) -> int:
    args = parser().parse_args(argv)
    if args.version:
        return _version()
    if args.chip == "list":
        return _list_chips(args.target)
    if not 0 <= args.tune < float("inf"):
        raise UserError(f"--tune={args.tune}: give a number of seconds")
    options = _options(args)
    from xcc.cache.model_cache import ticket
    from xcc.driver.plugins import load_plugin

    for plugin in args.plugin:
        load_plugin(plugin)
    stops = args.print_pipeline or args.print_sharding and not (args.output or args.emit)
    if args.model and not stops:
        _check_outputs(args)
    plain = not (args.emit or args.pipeline or args.print_pipeline or args.print_sharding or args.tune or args.timing)
    entry = ticket(args.model, options, args.plugin) if plain and args.model else None
    if entry is not None and _found(args, options, entry):
        return 0
    pipeline = _pipeline(args, options)
    if args.print_pipeline:
        _print_pipeline(pipeline, options)
        return 0
    if not args.model:
        raise UserError("no model given (see xcc --help)")
    options = _with_mesh(args, options)
    if args.print_sharding:
        _print_sharding(args.model, options, pipeline if args.pipeline else None)
    if stops:
        return 0
    if args.tune:
        options = _tune(args, options)
    return _compile(args, options, pipeline, entry, guard)


def _with_mesh(args: Any, options: CompileOptions) -> CompileOptions:
    """The options with the mesh that is chosen, where its ranks alone are given."""
    from xcc.driver.mesh_choice import choose_mesh, table, wants_choice

    if not wants_choice(options):
        return options
    options, predictions = choose_mesh(args.model, options)
    if args.print_sharding:
        print("\n".join(table(predictions)))
    else:
        _note(f"mesh {options.mesh}: {predictions[0].seconds * 1e6:.0f} us a run predicted")
    return options


def _print_sharding(model: str, options: CompileOptions, pipeline: Any) -> None:
    from xcc.driver.ranks import sharding_lines

    if not options.mesh:
        raise UserError("--print-sharding: give a mesh, as in --mesh=tp:2")
    print("\n".join(sharding_lines(model, options, pipeline)))


def _print_pipeline(pipeline: Any, options: CompileOptions) -> None:
    """The passes, what the chip does with them, and what happens behind them."""
    target = get_target(options.target)
    chip = chip_of(target, split_specs(options.chip)[0])
    print(f"# for {target.name} {chip.name}\n{pipeline.table(chip)}", end="")
    if target.fewer_registers:
        print("# a kernel whose code spills is compiled again, tiled for "
              f"{', '.join(map(str, target.fewer_registers))} registers")


def _check_outputs(args: Any) -> None:
    """UserError, before work that may take minutes, where its result could not be written or would replace MODEL."""
    output = args.output if args.emit else _artifact_path(args)
    if os.path.isfile(output) and os.path.exists(args.model) and os.path.samefile(output, args.model):
        raise UserError(f"{output}: is the model itself, which the output would replace: give another -o")
    if output not in ("", "-") and args.emit != CODE:
        check_writable(output)
    if args.tune:
        check_writable(args.tuning or TUNING_FILE)


def _tune(args: Any, options: CompileOptions) -> CompileOptions:
    """Measures, writes the database, and returns options that read it."""
    from xcc.passes.linalg.schedule.tuning import Database
    from xcc.tuning.tuner import tune

    path = Path(args.tuning or TUNING_FILE)
    old = Database.read(path) if path.is_file() else Database()
    found = tune(args.model, replace(options, tuning=""), args.tune, _note)
    write_output(str(path), old.merged(found).text())
    _note(f"{path}: {len(found.entries)} schedules found, {len(old.merged(found).entries)} in all")
    return replace(options, tuning=str(path))


def _found(args: Any, options: CompileOptions, entry: Ticket) -> bool:
    """Whether the artifact was in the cache, now written."""
    begin = time.perf_counter()
    found = entry.find()
    try:
        if found is None or not found.copy(_artifact_path(args)):
            return False
    except OSError as e:
        raise UserError(f"{_artifact_path(args)}: cannot be written: {e.strerror}") from None
    _note(f"{args.model} for {options.target} {found.facts['chip']} -> {_artifact_path(args)}: "
          f"{size_text(found.facts['size'])}, {counted(found.facts['kernels'], 'kernel')}, "
          f"{time.perf_counter() - begin:.1f} s (from the cache)")
    return True


def _artifact_path(args: Any) -> str:
    return args.output or f"{args.model.partition('::')[2] or Path(args.model).stem}.xcm"


def _compile(args: Any, options: CompileOptions, pipeline: Any, entry: Ticket | None, guard: bool) -> int:
    from xcc.compiler import Observer
    from xcc.driver.ranks import compile_ranks
    from xcc.process.fork_guard import fork_guard
    from xcc.progress import Progress

    target, stages = get_target(options.target), pipeline.stage_names()
    check_emit(args.emit, args.output, stages, target)
    code = args.emit in target.formats
    stop = pipeline.kernel_part().stage_names()[-1] if code else "" if args.emit == CODE else args.emit
    specs = split_specs(options.chip)
    chip = ",".join(dict.fromkeys(chip_of(target, spec).name for spec in specs))
    progress = Progress()
    observer = Observer(progress=progress, note=_note if options.verbose else lambda _line: None)
    if guard:
        observer.guard = fork_guard()
    begin = time.perf_counter()
    try:
        own = pipeline if args.pipeline or len(specs) == 1 else None        # else each chip has its own
        compiled = compile_ranks(args.model, options, own, stop, observer, emit=code)
    finally:
        progress.clear()
    seconds = time.perf_counter() - begin
    what = f"{args.model} for {options.target} {chip}"
    if code:
        one = chip_of(target, options.chip)
        written = write_code(args.output, compiled.text, compiled.kernels, target, one, args.emit)
        _note(f"{what}: {written}, {seconds:.1f} s")
    elif stop:
        write_output(args.output or "-", compiled.text)
        _note(f"{what}: stage {stop}, {seconds:.1f} s")
    elif args.emit:
        _note(f"{what}: {write_folder(args.output, compiled.kernels, target)}, {seconds:.1f} s")
    else:
        assert compiled.artifact is not None
        path = _artifact_path(args)
        size = compiled.artifact.save(path)
        if entry is not None and Path(path).is_file():
            entry.store(Path(path), compiled.files, {"chip": chip, "kernels": len(compiled.kernels)})
        _note(f"{what} -> {path}: {size_text(size)}, {counted(len(compiled.kernels), 'kernel')}, {seconds:.1f} s")
        _note_versions(compiled.artifact)
    if options.verbose and not on_host(options.target):
        from xcc.driver.kernel_table import kernel_table

        for line in kernel_table(compiled.kernels):
            _note(line)
    if args.timing:
        _print_timing(observer.clock.seconds, time.perf_counter() - begin)
    return 0


def _note_versions(artifact: Any) -> None:
    """What several code versions cost."""
    versions = artifact.manifest.get("versions", [])
    if versions:
        alone = ", ".join(f"{v['chip']} needs {size_text(v['weights'])}" for v in versions)
        size = size_text(sum(w.nbytes for w in artifact.weights.values()))
        _note(f"{len(versions)} code versions, {size} of weights: {alone}, what they share is stored once")


def _options(args: Any) -> CompileOptions:
    name, extra = parse_target(args.target)
    return CompileOptions(
        target=name, target_options=extra, chip=args.chip, dims=tuple(parse_dim(d) for d in args.dim),
        fix=tuple(parse_fix(f) for f in args.fix), updates=tuple(parse_update(u) for u in args.update),
        mesh=args.mesh, shard=tuple(args.shard), precision=args.precision, tuning="" if args.tune else args.tuning,
        winograd=not args.no_winograd, threads=args.threads, verify=args.verify, keep_ir=args.keep_ir,
        dump_stages=args.dump_stages, jobs=args.jobs, cache=not args.no_cache, debug_patterns=args.debug_patterns,
        verbose=args.verbose)


def _pipeline(args: Any, options: CompileOptions) -> Any:
    from xcc.driver.sources import is_reference
    from xcc.passes.pipeline import Pipeline
    from xcc.targets.front import tile_pipeline

    text = args.pipeline
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text()
        except (OSError, UnicodeDecodeError) as e:
            raise UserError(f"--pipeline {args.pipeline}: {getattr(e, 'strerror', None) or e}") from None
    if text:
        return Pipeline.parse(text)
    options = replace(options, chip=split_specs(options.chip)[0])
    return tile_pipeline(options) if is_reference(args.model) else get_target(options.target).pipeline(options)


def _version() -> int:
    from importlib import metadata

    try:
        print(f"xcc {metadata.version('xcc')}")
    except metadata.PackageNotFoundError:
        print("xcc (a checkout)")
    return 0


def _list_chips(target: str) -> int:
    t = get_target(parse_target(target)[0])
    for name, chip in [(NATIVE, t.default_chip()), *sorted(t.chips().items())]:
        what = f"{chip.triple} {chip.cpu}, {counted(chip.cores, 'core')}"
        print(f"{name:18} {what}{' (the default: this machine, or what is taken for it)' if name == NATIVE else ''}")
    return 0


def _note(line: str) -> None:
    sys.stderr.write(f"xcc: {line}\n")


def _print_timing(seconds: dict[tuple[str, str], float], wall: float) -> None:
    """Kernel stages run in parallel, so that their seconds are sums over processes and may exceed the wall time."""
    stages: dict[str, list[tuple[str, float]]] = {}
    for (stage, what), t in seconds.items():
        stages.setdefault(stage, []).append((what, t))
    sys.stderr.write(f"{'seconds':>9}  stage and pass (kernel stages: summed over processes)\n")
    for stage, entries in stages.items():
        sys.stderr.write(f"{sum(t for _, t in entries):9.3f}  {stage}\n")
        for what, t in sorted(entries, key=lambda e: -e[1]):
            sys.stderr.write(f"{t:9.3f}      {what}\n")
    sys.stderr.write(f"{wall:9.3f}  wall time\n")


if __name__ == "__main__":
    sys.exit(main())
