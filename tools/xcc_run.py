"""xcc-run: runs a compiled model on arrays from files or random ones.

A model of several ranks is started once for each: torchrun --nproc-per-node=2 -m xcc.tools.xcc_run MODEL.xcm ...; in
the names of files {rank} is the rank's number, and what is compared, and written to a name without it, is rank 0's.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from xcc.diagnostics import UserError, counted, listed
from xcc.runtime.executors import on_host
from xcc.targets.folders import target_names
from xcc.tools.common import ArgumentParser, guarded


def parser() -> ArgumentParser:
    p = ArgumentParser(prog="xcc-run", description=__doc__)
    p.add_argument("model", metavar="MODEL.xcm", help="what xcc wrote")
    p.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy", help="an input")
    p.add_argument("--inputs", action="append", default=[], metavar="FILE.npz", help="inputs by name")
    p.add_argument("--random", nargs="?", type=int, const=0, default=None, metavar="SEED",
                   help="inputs that are not given are random: normal floats, integers 0 and 1")
    p.add_argument("--dim", action="append", default=[], metavar="N=SIZE", help="a symbolic dim of random inputs")
    p.add_argument("--threads", type=int, default=0, metavar="N",
                   help="cpu threads (default: XCC_THREADS, what the model was compiled for, or one a core)")
    p.add_argument("--device", type=int, default=None, metavar="N", help="the number of the GPU to run on (default 0)")
    p.add_argument("-o", "--output", default="", metavar="PATH", help="write outputs: FILE.npz, or a folder for .npy")
    p.add_argument("--repeat", type=int, default=0, metavar="N", help="run N times more and print the times")
    p.add_argument("--compare", default="", metavar="OTHER",
                   help="compare with another .xcm, with an .onnx (run by onnxruntime), or with outputs in an .npz")
    p.add_argument("--rtol", type=float, default=None, metavar="SHARE",
                   help="--compare allows SHARE of each element's magnitude (default: a share of the output's largest "
                        "magnitude, by the least precise type computed in: f32 1e-4, tf32 1e-2, f16 2e-2, bf16 1e-1)")
    p.add_argument("--atol", type=float, default=None, metavar="X", help="--compare allows X on top (default 0)")
    p.add_argument("--bisect", nargs="?", const="xcc-bisect", default="", metavar="FOLDER",
                   help="where --compare finds a difference, name the first kernel that is wrong (xcc --keep-ir), and "
                        "leave it and its inputs in FOLDER (default xcc-bisect)")
    p.add_argument("--interpret", action="store_true",
                   help="run the kernels' IR (xcc --keep-ir) in the interpreter, no device needed")
    p.add_argument("--info", action="store_true", help="print what the artifact holds and stop")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    return guarded("xcc-run", _run, argv)


def _run(argv: Sequence[str]) -> int:
    args = parser().parse_args(argv)
    if args.repeat < 0:
        raise UserError(f"--repeat {args.repeat}: give a number of runs")
    for flag, value in (("--rtol", args.rtol), ("--atol", args.atol)):
        if value is not None and not 0 <= value < float("inf"):
            raise UserError(f"{flag} {value}: a tolerance is a finite number that is not negative")
    if args.bisect and not args.compare:
        raise UserError("--bisect needs --compare")
    from xcc.options import parse_dim
    from xcc.runtime.model import load
    from xcc.tools.arrays import check_dims, fresh, gather_inputs, summary, write_outputs

    model = load(args.model, prepare=not (args.info or args.interpret), threads=args.threads,
                 device=args.device)
    if args.info:
        return _info(model)
    if args.interpret:
        _interpret(model)
    dims = {name: low for name, low, _ in map(parse_dim, args.dim)}
    check_dims(dims, model.artifact.program.symbols)
    rank, several = model.part.place.rank, model.part.mesh.size > 1
    named, whole = ([text.replace("{rank}", str(rank)) if several else text for text in texts]
                    for texts in (args.input, args.inputs))
    inputs = gather_inputs(model.inputs, named, whole, args.random, dims)
    outputs = model.run(fresh(model, inputs))
    for name, value in outputs.items():
        print(f"rank {rank}: {summary(name, value)}" if several else summary(name, value))
    if args.output and (rank == 0 or "{rank}" in args.output):
        write_outputs(args.output.replace("{rank}", str(rank)) if several else args.output, outputs)
    if args.repeat:
        _time(model, inputs, args.repeat, rank == 0)
    return _compare(args, model, inputs, outputs) if args.compare and rank == 0 else 0


def _time(model: Any, inputs: dict[str, Any], repeat: int, said: bool) -> None:
    from xcc.tools.arrays import fresh

    times = []
    inputs = fresh(model, inputs)       # the same ones each time: what a run updates costs no copy
    for _ in range(repeat):
        begin = time.perf_counter()
        model.run(inputs)
        times.append(time.perf_counter() - begin)
    times.sort()
    if said:
        print(f"{repeat} runs: median {times[repeat // 2] * 1e3:.3f} ms, best {times[0] * 1e3:.3f} ms")


def _interpret(model: Any) -> None:
    a = model.artifact
    if on_host(model.target):
        gpus = listed([t for t in target_names() if not on_host(t)])
        raise UserError(f"--interpret is for models compiled for GPUs (xcc --target={gpus} --keep-ir); this one is for "
                        f"{model.target}: run it without")
    if not any(name.startswith("ir/") for name in a.members):
        raise UserError("the artifact holds no kernel IR: compile it with xcc --keep-ir")
    try:
        from xcc.interpreter.executor import make_executor
    except ModuleNotFoundError as e:
        raise UserError(f"--interpret needs the compiler's packages ({e.name} is missing)") from None
    model._executor = make_executor(a.program, a.members, a.weights, a.manifest)


def _compare(args: Any, model: Any, inputs: dict[str, Any], outputs: dict[str, Any]) -> int:
    from xcc.driver.comparison import Tolerance, compare, computed_in, stated

    wanted, other = _reference(args.compare, inputs, outputs)
    if args.rtol is None and args.atol is None:
        tolerance = stated(computed_in(model.artifact) | (computed_in(other.artifact) if other else set()))
    else:
        tolerance = Tolerance(args.rtol or 0.0, args.atol or 0.0)
    fine = True
    for name, value in outputs.items():
        if name not in wanted:
            raise UserError(f"{args.compare} has no output '{name}'; it has {', '.join(wanted) or 'none'}")
        same, line = compare(name, value, wanted[name], tolerance)
        fine &= same
        print(f"{'same' if same else 'DIFFERENT'}  {line}")
    if args.bisect and not fine:
        _bisect(args, model, other, inputs)
    return 0 if fine else 1


def _bisect(args: Any, model: Any, other: Any, inputs: dict[str, Any]) -> None:
    """Names the first wrong kernel of `model`, or else of the `other` one, if that is compiled by xcc too."""
    from pathlib import Path

    from xcc.driver.link import MEANING
    from xcc.tools.arrays import fresh
    from xcc.tools.bisect import bisect, save

    sides = [(args.model, model, args.interpret)]
    if other is not None and MEANING in other.artifact.members:
        sides.append((args.compare, other, False))
    for path, side, interpret in sides:
        arrays, symbols = side._checked(fresh(side, inputs))
        found = bisect(side, arrays, symbols, interpret)
        if found is not None:
            print(f"{path}: {found}")
            print("to look at it alone:")
            for line in save(found, side.artifact, Path(args.bisect)):
                print(f"  {line}")
            return
        print(f"{path}: each kernel gives what its ops mean in numpy")
    print("the difference is made before there are kernels (xcc --verify=numbers finds the pass) or in the other side")


def _reference(path: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """What `outputs` are compared with, by name, and the compiled model that made it or None."""
    from xcc.tools.arrays import read_array

    if path.endswith(".npz"):
        data = read_array(path)
        if not isinstance(data, dict):
            raise UserError(f"--compare {path}: holds an array without a name, it is no .npz file")
        strange = next((name for name in outputs if name in data and data[name].dtype.kind not in "biuf"), None)
        if strange is not None:
            raise UserError(f"--compare {path}: '{strange}' is of type {data[strange].dtype}, which no output is of")
        return data, None
    if path.endswith(".onnx"):
        from xcc.tools.peers import onnxruntime_session, run_session

        return run_session(onnxruntime_session(path), path, inputs, outputs), None
    from xcc.runtime.model import load
    from xcc.tools.arrays import fresh

    if not path.endswith(".xcm"):
        raise UserError(f"--compare {path}: takes an .xcm, an .onnx or an .npz file")
    other = load(path)
    return other.run(fresh(other, inputs)), other


def _state(model: Any) -> list[tuple[str, Any]]:
    """What the model holds, where it holds something."""
    from xcc.runtime.signature import tensor_infos

    program = model.artifact.program
    held = [s.buffer for s in program.states]
    return [("state", tensor_infos(program, held))] if held else []


def _info(model: Any) -> int:
    m = model.artifact.manifest
    compiler = m.get("compiler", {})
    print(f"{m.get('name', '')} for {model.target} {model.chip}, compiled by xcc {compiler.get('version')}")
    for title, infos in (("inputs", model.inputs), ("outputs", model.outputs), *_state(model)):
        print(f"{title}:")
        for info in infos:
            print(f"  {info}")
    weights = sum(w.nbytes for w in model.artifact.weights.values())
    print(f"weights: {counted(len(model.artifact.weights), 'array')}, {weights} bytes")
    for name, data in model.artifact.members.items():
        print(f"{name}: {len(data)} bytes")
    for version in m.get("versions", [m]):
        attributes = (f"{k} {v}" for k, v in version.get("chip_attributes", {}).items() if k != "name")
        print(", ".join([f"code for {version.get('chip')}", *attributes]))
        for kernel in version.get("kernels", []):
            print("kernel " + ", ".join(f"{k} {v}" for k, v in kernel.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
