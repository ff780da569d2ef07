"""Times xcc's GPU kernels beside PyTorch (eager and Inductor) on this machine's GPU, one table.

    python benchmarks/gpu.py [--group schedules] [--only TEXT] [--no-compile] [--processes N] [--json FILE]
                             [--tuning FILE]
    python benchmarks/gpu.py --tune SECONDS --tuning FILE [--only TEXT]

Every time is the median of device events around one run with a cold L2 cache, those of a case in turn (gpu_times.py);
inputs are random, and outputs are checked against float64 or float32 PyTorch by relative error. A floor is the longer
of FLOPs over peak and bytes over bandwidth. Inductor picks its configuration anew in each process: with --processes,
times are the medians of so many processes, and the ratio in each follows.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import gpu_cases
import gpu_schedules
import numpy as np

GROUPS = {"kernels": gpu_cases.CASES, "schedules": gpu_schedules.CASES}
TIMES = ("xcc", "torch", "inductor", "bare")
ERROR_BOUND = {"f16": 2e-3, "bf16": 1e-2, "f32": 1e-5, "i8": 2e-2, "i64": 1e-9}


def module_text(case: gpu_cases.Case) -> str:
    """The case as an xt module."""
    from xcc._mlir import ir
    from xcc.dialects import xt

    with xt.context(), ir.Location.unknown():
        types = [ir.RankedTensorType.get(list(s), ir.Type.parse(dtype)) for s, dtype in case.inputs]
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = ir.Operation.parse(
                "func.func @main(" + ", ".join(f"%a{n}: {t} {{xt.name = \"a{n}\"}}" for n, t in enumerate(types))
                + ") { return }")
            module.body.append(function)
        block = function.regions[0].blocks[0]
        last = list(block.operations)[0]
        with ir.InsertionPoint(last):
            result = case.build(xt, *block.arguments)
            ir.Operation.create("func.return", operands=[result])
        last.operation.erase()
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [result.type]))
        function.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get({"xt.name": ir.StringAttr.get("y")})])
        return str(module)


def compile_case(case: gpu_cases.Case, tuning: str = "") -> tuple[Any, float]:
    import xcc

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.mlir")
        path.write_text(module_text(case))
        begin = time.perf_counter()
        model = xcc.compile(str(path), target="nvptx", tuning=tuning)
        return model, time.perf_counter() - begin


def tune_cases(cases: list[gpu_cases.Case], path: Path, seconds: float) -> None:
    """Adds the best schedules found for each case to the tuning database `path`."""
    from xcc.options import CompileOptions
    from xcc.passes.linalg.schedule.tuning import Database
    from xcc.tuning.tuner import tune

    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder, "case.mlir")
            model.write_text(module_text(case))
            print(case.name, flush=True)
            options = CompileOptions(target="nvptx")
            found = tune(str(model), options, seconds, lambda line: print("   ", line, flush=True))
        old = Database.read(path) if path.is_file() else Database()
        path.write_text(old.merged(found).text())


def random_tensors(case: gpu_cases.Case) -> list[Any]:
    """The inputs of a case on the GPU, from a fixed seed."""
    import torch

    kinds = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i64": torch.int64, "i8": torch.int8}
    generator = torch.Generator(device="cuda").manual_seed(0)
    out = []
    for shape, dtype in case.inputs:
        if dtype.startswith("f") or dtype == "bf16":
            drawn = torch.randn(shape, generator=generator, device="cuda") * case.scale
        elif case.distinct:      # along the first dim
            order = torch.rand((case.high, *shape[1:]), generator=generator, device="cuda").argsort(0)
            drawn = order[:shape[0]].contiguous()
        else:
            drawn = torch.randint(case.low, case.high, shape, generator=generator, device="cuda")
        out.append(drawn.to(kinds[dtype]))
    return out


def measure(case: gpu_cases.Case, inductor: bool, tuning: str) -> dict[str, Any]:
    import gpu_times
    import torch
    import torch.nn.functional as functional

    row: dict[str, Any] = {"case": case.name}
    tensors = random_tensors(case)
    runs = {}
    with torch.no_grad():
        runs["torch"] = gpu_times.peer(lambda: case.torch(functional, *tensors), case.host)
        if inductor:
            try:
                compiled = torch.compile(case.torch, mode="max-autotune-no-cudagraphs", dynamic=False)
                runs["inductor"] = gpu_times.peer(lambda: compiled(functional, *tensors), case.host)
            except Exception as e:
                row["inductor_error"] = str(e).splitlines()[0][:120]
        exact = all(t.numel() <= 1 << 25 for t in tensors) and case.flops < 3e11
        wide = [t if not t.is_floating_point() else t.double() if exact else t.float() for t in tensors]
        want = case.torch(functional, *wide).double().cpu().numpy()
        del wide
    try:
        model, row["compile_s"] = compile_case(case, tuning)
        arrays = {f"a{n}": t for n, t in enumerate(tensors)}
        got = np.asarray(torch.from_dlpack(model.run(arrays)["y"]).double().cpu())
        row["error"] = float(np.linalg.norm(got - want) / np.linalg.norm(want))
        row["ok"] = bool(row["error"] < ERROR_BOUND[case.dtype])
        row["kernels"] = [(t.kernel, t.seconds) for t in model.profile(arrays)]
        runs["xcc"] = gpu_times.own(model, arrays)
        if case.bare is not None:
            bare, _ = compile_case(case.bare, tuning)
            runs["bare"] = gpu_times.own(bare, {f"a{n}": t for n, t in enumerate(tensors[:len(case.bare.shapes)])})
    except Exception as e:
        row["xcc_error"] = f"{type(e).__name__}: {e}"[:300]
        traceback.print_exc()
    with torch.no_grad():
        return row | gpu_times.in_turn(runs)


def measure_apart(processes: int) -> list[dict[str, Any]]:
    """The rows of this command in so many processes, one after the other."""
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.json")
        for _ in range(processes):
            subprocess.run([sys.executable, *sys.argv, "--processes=1", "--json", str(path)], check=True,
                           stdout=subprocess.DEVNULL, env={**os.environ, "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"})
            runs.append(json.loads(path.read_text())["rows"])
    return [together(list(rows)) for rows in zip(*runs, strict=True)]


def together(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A case's rows of several processes as one: medians of the times, and the ratio to the best peer in each."""
    times = {k: statistics.median(r[k] for r in rows) for k in TIMES if all(k in r for r in rows)}
    ratios = [best_peer(r) / r["xcc"] for r in rows if "xcc" in r]
    return {**rows[0], **times, "error": max(r.get("error", 0.0) for r in rows), "ok": all(r.get("ok") for r in rows),
            "ratios": ratios}


def best_peer(row: dict[str, Any]) -> float:
    return float(min(row[k] for k in ("torch", "inductor") if k in row))


def floor(case: gpu_cases.Case, rates: dict[str, float], bandwidth: float) -> float:
    return max(case.flops / rates.get(case.dtype, rates["f32"]), case.bytes / bandwidth)


def show(case: gpu_cases.Case, row: dict[str, Any], least: float) -> str:
    def us(key: str) -> str:
        return f"{row[key] * 1e6:9.1f}" if key in row else "        -"

    mine = row.get("xcc")
    ratio = f"{best_peer(row) / mine:6.2f}x {least / mine:6.1%}" if mine else "   -"
    error = f"{row['error']:.1e}{'' if row['ok'] else ' WRONG'}" if "error" in row else row.get("xcc_error", "")
    more = f"  {mine / row['bare'] - 1:+.1%} of the bare product" if mine and "bare" in row else ""
    more += f"  ratios {', '.join(f'{r:.2f}' for r in row['ratios'])}" if "ratios" in row else ""
    return f"{case.name:46} {us('xcc')} {us('torch')} {us('inductor')} {ratio:>16}  {error}{more}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="only cases whose name contains this text")
    parser.add_argument("--group", choices=GROUPS, default="kernels")
    parser.add_argument("--no-compile", action="store_true", help="leave Inductor out")
    parser.add_argument("--json", default="", help="also write the rows to this file")
    parser.add_argument("--tuning", default="", help="a tuning database to compile with")
    parser.add_argument("--tune", type=float, default=0.0, metavar="SECONDS", help="only tune each case into --tuning")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="measure in N processes, one by one")
    args = parser.parse_args()
    chosen = [c for c in GROUPS[args.group] if not args.only or any(o in c.name for o in args.only)]
    if args.tune:
        tune_cases(chosen, Path(args.tuning or "xcc-tuning.txt"), args.tune)
        return
    import gpu_times
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    name = torch.cuda.get_device_name()
    rates, bandwidth = {"f16": 800e12, "bf16": 800e12, "f32": 60e12, "i8": 1600e12}, 3.0e12
    print(f"{name}; medians of {gpu_times.ROUNDS * gpu_times.REPEATS}, cold L2, microseconds; "
          "floors with 800 TFLOP/s (f16), 1600 (i8), 60 (f32), 3.0 TB/s")
    print(f"{'case':46} {'xcc':>9} {'torch':>9} {'inductor':>9} {'vs best  of floor':>16}  error")
    apart = measure_apart(args.processes) if args.processes > 1 else []
    rows = []
    for n, case in enumerate(chosen):
        row = apart[n] if apart else measure(case, not args.no_compile, args.tuning)
        rows.append(row)
        print(show(case, row, floor(case, rates, bandwidth)), flush=True)
        torch.cuda.empty_cache()
    if args.json:
        Path(args.json).write_text(json.dumps({"gpu": name, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
