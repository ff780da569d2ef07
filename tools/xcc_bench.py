"""xcc-bench: times a model against the other runtimes that are installed, on the same inputs, in one run."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from xcc.diagnostics import UserError
from xcc.options import CompileOptions, parse_dim, parse_fix, parse_target
from xcc.tools.common import ArgumentParser, guarded


def parser() -> ArgumentParser:
    p = ArgumentParser(prog="xcc-bench", description=__doc__)
    p.add_argument("model", metavar="MODEL", help=".onnx (compiled first), or an .xcm")
    p.add_argument("--against", default="", metavar="MODEL.onnx", help="what the peers run when MODEL is an .xcm")
    p.add_argument("--target", default="cpu", help="target to compile for (default cpu)")
    p.add_argument("--chip", default="native", help="chip to compile for (see xcc --chip list)")
    p.add_argument("--precision", default="", help="compute type, as for xcc")
    p.add_argument("--dim", action="append", default=[], metavar="N=SIZE",
                   help="size of a symbolic dim; N=LOW..HIGH compiles for these bounds and runs with LOW")
    p.add_argument("--fix", action="append", default=[], metavar="INPUT=VALUE",
                   help="make an input a constant: a number or [..., ...]")
    p.add_argument("--tuning", default="", metavar="FILE", help="a tuning database to take schedules from")
    p.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="an input (default: random)")
    p.add_argument("--threads", type=int, default=0, metavar="N", help="cpu threads of all (default: physical cores)")
    p.add_argument("--seconds", type=float, default=2.0, help="how long each runtime is timed (default 2)")
    p.add_argument("--kernels", action="store_true",
                   help="also print each kernel's time, operations, bytes and share of this machine's limit")
    p.add_argument("--measure-again", action="store_true",
                   help="measure the machine's limits anew (they are kept after the first time)")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    return guarded("xcc-bench", _run, argv)


def _run(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    if not 0 <= args.seconds < float("inf"):
        raise UserError(f"--seconds {args.seconds}: give a number of seconds")
    from xcc.driver.comparison import compare, computed_in, stated
    from xcc.tools.arrays import check_dims, fresh, gather_inputs

    model = _model(args)
    dims = {name: low for name, low, _ in map(parse_dim, args.dim)}
    check_dims([parse_dim(text)[0] for text in args.dim if ".." not in text], model.artifact.program.symbols)
    inputs = gather_inputs(model.inputs, args.input, [], 0, dims)
    written = fresh(model, inputs)
    rows = [("xcc", *measure(lambda: model.run(written), args.seconds))]
    onnx = args.against or (args.model if args.model.endswith(".onnx") else "")
    if onnx:
        model.reset()
        outputs, tolerance = model.run(fresh(model, inputs)), stated(computed_in(model.artifact))
        fixed = {name: json.loads(text) for name, text in map(parse_fix, args.fix)}
        for name, value, run in _peers(onnx, inputs, fixed, args.threads, outputs):
            rows.append((name, *measure(run, args.seconds)))
            for output, array in outputs.items():
                print(f"{name}: {compare(output, array, value[output], tolerance)[1]}")
    _print(rows)
    if args.kernels:
        from xcc.tools.kernel_report import kernel_rows, kernel_text, limits_of

        limits, line = limits_of(model, args.measure_again)
        print(f"{line}\n{kernel_text(kernel_rows(model, inputs, limits))}")
    return 0


def measure(run: Callable[[], Any], seconds: float) -> tuple[float, float]:
    """Median and best seconds of a call, after warm-up, timed for about `seconds`."""
    begin = time.perf_counter()
    run()
    first = time.perf_counter() - begin
    for _ in range(min(5, int(seconds / 4 / max(first, 1e-6)))):
        run()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    times.sort()
    return times[len(times) // 2], times[0]


def _model(args: Any) -> Any:
    if args.model.endswith(".xcm"):
        if args.fix:
            raise UserError(f"{args.model}: inputs are fixed when a model is compiled, not in an .xcm")
        from xcc.runtime.model import load

        return load(args.model, threads=args.threads)
    from xcc.compiler import compile_model
    from xcc.runtime.model import Model

    name, extra = parse_target(args.target)
    bounds = tuple(d for d, text in zip(map(parse_dim, args.dim), args.dim, strict=True) if ".." in text)
    options = CompileOptions(target=name, target_options=extra, chip=args.chip, precision=args.precision, dims=bounds,
                             fix=tuple(map(parse_fix, args.fix)), tuning=args.tuning, threads=args.threads)
    artifact = compile_model(args.model, options).artifact
    assert artifact is not None
    return Model(artifact)


def _peers(onnx: str, inputs: dict[str, Any], fixed: dict[str, Any],
           threads: int, outputs: dict[str, Any]) -> list[tuple[str, dict[str, Any], Callable[[], Any]]]:
    """(name, outputs by name, call) of each runtime that is installed; `fixed` are inputs that only the peers have,
    `outputs` those that they must have."""
    from xcc.tools.peers import onnxruntime_session, run_session, typed_input

    try:
        session = onnxruntime_session(onnx, threads)
    except UserError as e:
        sys.stderr.write(f"xcc-bench: {e}\n")
        return []
    inputs = inputs | {k: typed_input(session, k, v) for k, v in fixed.items()}
    made = run_session(session, onnx, inputs, outputs)
    return [("onnxruntime", made, lambda: session.run(list(made), inputs))]


def _print(rows: list[tuple[str, float, float]]) -> None:
    print(f"{'':14} {'median ms':>10} {'best ms':>10} {'xcc is':>12}")
    ours = rows[0][1]
    for name, median, best in rows:
        ratio = "" if name == "xcc" else f"{median / ours:.2f}x as fast"
        print(f"{name:14} {median * 1e3:10.3f} {best * 1e3:10.3f} {ratio:>12}")


if __name__ == "__main__":
    sys.exit(main())
