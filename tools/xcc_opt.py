"""xcc-opt: reads IR, runs passes on it, prints IR. What the lit tests drive, and what replays a reproducer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xcc.diagnostics import CompilerBug, UserError, listed
from xcc.targets.folders import target_names
from xcc.tools.common import ArgumentParser, guarded, write_output

SPLIT_MARK = "// -----"


def parser() -> ArgumentParser:
    p = ArgumentParser(prog="xcc-opt", description=__doc__)
    p.add_argument("input", nargs="?", default="-", help="an .mlir file, - for standard input")
    p.add_argument("-o", "--output", default="-", help="where the IR goes (default: standard output)")
    p.add_argument("--pass-pipeline", default="", metavar="TEXT",
                   help="passes to run: 'a, b{key=value}, mlir(canonicalize, cse)', or stages 'xt: a, b; linalg: c'")
    p.add_argument("--target", default="", help=f"{listed(target_names())}, with ,key=value options: "
                   "what passes are told")
    p.add_argument("--chip", default="", help="a chip, as xcc takes it (see xcc --chip list)")
    p.add_argument("--stage", default="", metavar="NAME", help="run the passes of this stage of the target's pipeline")
    p.add_argument("--weights", default="", metavar="FILE", help="weights of the module, .safetensors")
    p.add_argument("--precision", default="", help="the compute precision that passes are told")
    p.add_argument("--split-input-file", action="store_true", help=f"handle the parts between '{SPLIT_MARK}' alone")
    p.add_argument("--verify-each", action="store_true", help="verify after each pass")
    p.add_argument("--verify-diagnostics", action="store_true",
                   help="succeed when each part fails with the text of its '// expected-error: TEXT' line")
    p.add_argument("--check-legal", default="", metavar="STAGE", help="also check for ops that STAGE must not leave")
    p.add_argument("--print-locations", action="store_true", help="print locations too")
    p.add_argument("--emit-kernel", action="store_true", help="also run the target's code generator, output its code")
    p.add_argument("--debug-patterns", action="store_true", help="say why a pattern did not apply")
    p.add_argument("--plugin", action="append", default=[], metavar="FILE", help="a Python file that registers passes")
    p.add_argument("--list-passes", action="store_true", help="print all passes with their help")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    return guarded("xcc-opt", _run, argv)


def _run(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    from xcc.driver.plugins import load_plugin

    for plugin in args.plugin:
        load_plugin(plugin)
    if args.list_passes:
        _list_passes()
        return 0
    source = _read(args.input)
    parts = _split_parts(source) if args.split_input_file else [source]
    outputs: list[str | bytes] = []
    for number, part in enumerate(parts):
        where = args.input if args.input != "-" else "<stdin>"
        where += f" part {number + 1}" if len(parts) > 1 else ""
        if args.verify_diagnostics and "// expected-error:" in part:
            outputs.append(_expect_failure(part, where, args))
        else:
            outputs.append(_process(part, where, args))
    _write(args.output, outputs)
    return 0


def _process(text: str, where: str, args: Any) -> str | bytes:
    """The IR (or code) that comes out for one part of the input."""
    from xcc.context import new_context, parse_module

    prepared = _prepare(args)
    module = parse_module(text, new_context(), where)
    if prepared[0].stages and any(op.operation.name == "builtin.module" for op in module.body):
        return _process_dump(module, where, args, *prepared)
    return _process_module(module, args, *prepared)


def _process_dump(module: Any, where: str, args: Any, pipeline: Any, ctx: Any, target: Any) -> str:
    """In a dump the kernels are what passes work on, and what is left of the module those of @main's stages."""
    from xcc.context import parse_module
    from xcc.driver.sources import STAGE_ATTRIBUTE
    from xcc.driver.split import join_kernels, kernel_texts, strip_kernels
    from xcc.passes.pipeline import Pipeline

    texts, main = kernel_texts(module), pipeline.main_part()
    if args.emit_kernel:
        raise UserError(f"{where}: holds {len(texts)} kernels; the code generator takes one")
    others = Pipeline(tuple(s for s in pipeline if s not in main.stages))
    if others.stages:
        texts = {name: str(_process_module(parse_module(text, module.context, f"{where}: kernel '{name}'"), args,
                                           others, ctx, target)) for name, text in texts.items()}
    strip_kernels(module)
    before = module.operation.attributes
    stage = args.stage or (before[STAGE_ATTRIBUTE].value if STAGE_ATTRIBUTE in before else "")
    with module.context:
        _run_pipeline(main, module, ctx, args.verify_each)
    return join_kernels(str(module), texts, stage, module.context)


def _process_module(module: Any, args: Any, pipeline: Any, ctx: Any, target: Any) -> str | bytes:
    from xcc.passes.legality import check_legal

    with module.context:
        _run_pipeline(pipeline, module, ctx, args.verify_each)
        if args.check_legal:
            check_legal(module, args.check_legal, target.legal)
        if args.emit_kernel:
            blob: bytes = target.emit_kernel(module, ctx.chip, ctx.options).blob
            return blob
        return str(module.operation.get_asm(enable_debug_info=args.print_locations))


def _prepare(args: Any) -> tuple[Any, Any, Any]:
    from xcc.options import CompileOptions
    from xcc.passes.base import PassContext
    from xcc.passes.pipeline import Pipeline
    from xcc.targets.base import chip_of, get_target
    from xcc.targets.front import tile_pipeline

    weights = None
    if args.weights:
        from xcc.weight_files import read_weights

        weights = read_weights(args.weights)
    options = CompileOptions.make(args.target or "cpu", chip=args.chip, precision=args.precision,
                                  debug_patterns=args.debug_patterns)
    target = get_target(options.target)
    chip: Any = chip_of(target, args.chip) if args.target or args.chip or args.stage or args.emit_kernel else None
    pipeline = Pipeline.parse(args.pass_pipeline)
    if args.stage:
        whole = target.pipeline(options)
        if args.stage not in whole.stage_names():       # one of tile programs
            whole = tile_pipeline(options)
        pipeline = Pipeline((whole[args.stage], *pipeline.stages))
    ctx = PassContext(weights=weights, chip=chip, options=options, verbose=lambda line: print(line, file=sys.stderr))
    return pipeline, ctx, target


def _run_pipeline(pipeline: Any, module: Any, ctx: Any, verify_each: bool) -> None:
    """Runs the stages as the compiler does; one without a name, or of an unknown name, allows every op."""
    from xcc.driver.stages import Clock, run_stage

    for stage in pipeline:
        run_stage(stage, module, ctx, Clock(), "each" if verify_each else "stage")
    if not pipeline.stages:
        module.operation.verify()


def _expect_failure(text: str, where: str, args: Any) -> str:
    """Empty output when the part fails as it says; UserError otherwise."""
    mark = "// expected-error:"
    wanted = [line.split(mark, 1)[1].strip() for line in text.splitlines() if mark in line]
    try:
        _process(text, where, args)
    except (UserError, CompilerBug) as e:
        missing = [w for w in wanted if w not in str(e)]
        if missing:
            raise UserError(f"{where}: expected an error with '{missing[0]}', got: {e}") from None
        return ""
    raise UserError(f"{where}: expected an error with '{wanted[0]}', but it was accepted")


def _list_passes() -> None:
    import inspect

    from xcc.passes.base import registered_passes

    for name, cls in registered_passes().items():
        help_text = (inspect.getdoc(cls) or "").splitlines()
        print(f"{name:32} {help_text[0] if help_text else ''}")


def _split_parts(text: str) -> list[str]:
    parts: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if line.startswith(SPLIT_MARK):
            parts.append([])
        else:
            parts[-1].append(line)
    return ["".join(p) for p in parts]


def _read(path: str) -> str:
    try:
        return Path(path).read_text() if path != "-" else sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        where = "standard input" if path == "-" else path
        raise UserError(f"{where}: no MLIR text; xcc --emit=STAGE writes that of a model") from None
    except OSError as e:
        raise UserError(f"{path}: cannot be read: {e.strerror or e}") from None


def _write(path: str, outputs: list[str | bytes]) -> None:
    if any(isinstance(o, bytes) for o in outputs):
        write_output(path, b"".join(o if isinstance(o, bytes) else o.encode() for o in outputs))
    else:
        parts = (o.rstrip("\n") + "\n" for o in outputs if isinstance(o, str))
        write_output(path, f"\n{SPLIT_MARK}\n".join(parts))


if __name__ == "__main__":
    sys.exit(main())
