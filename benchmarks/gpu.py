"""Times xcc's GPU kernels beside PyTorch (eager and Inductor) on this machine's GPU, one table.

    python benchmarks/gpu.py [--group schedules] [--only TEXT] [--no-compile] [--json FILE] [--tuning FILE]
    python benchmarks/gpu.py --tune SECONDS --tuning FILE [--only TEXT]

Every time is the median of device events around one run with a cold L2 cache (gpu_cache.py); inputs are random, and
outputs are checked against float64 or float32 PyTorch by relative error. A floor is the longer of FLOPs over peak and
bytes over bandwidth.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import gpu_cases
import gpu_schedules
import numpy as np

REPEATS = 100      # short kernels on an H100 take one of two times, 2% apart: few runs pick one by chance
GROUPS = {"kernels": gpu_cases.CASES, "schedules": gpu_schedules.CASES}
ERROR_BOUND = {"f16": 2e-3, "bf16": 1e-2, "f32": 1e-5}


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


def peer_time(run: Any, host: bool = False) -> float:
    """Median seconds of a PyTorch function, as a graph where it needs no `host`; the L2 cache is that of `own_time`."""
    import torch
    from gpu_cache import drop_kept_lines

    from xcc.runtime.gpu_profile import FLUSH_BYTES

    flush = torch.empty((2, FLUSH_BYTES), dtype=torch.uint8, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    again = run
    if not host:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            run()
        again = graph.replay
    times = []
    for _ in range(REPEATS):
        drop_kept_lines()
        flush[0].copy_(flush[1])
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        again()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 1e-3)
    return statistics.median(times)


def own_time(model: Any, inputs: dict[str, Any]) -> float:
    """Median seconds of a compiled model; the L2 cache holds what a plain copy left."""
    from gpu_cache import drop_kept_lines

    return statistics.median(model.device_times(inputs, REPEATS, before=drop_kept_lines))


def tune_cases(cases: list[gpu_cases.Case], path: Path, seconds: float) -> None:
    """Adds the best schedules found for each case to the tuning database `path`."""
    from xcc.options import CompileOptions
    from xcc.passes.linalg.tuning import Database
    from xcc.tuner import tune

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

    kinds = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i64": torch.int64}
    generator = torch.Generator(device="cuda").manual_seed(0)
    out = []
    for shape, dtype in case.inputs:
        if dtype.startswith("f") or dtype == "bf16":
            drawn = torch.randn(shape, generator=generator, device="cuda") * case.scale
        elif case.distinct:      # along the first dim
            order = torch.rand((case.high, *shape[1:]), generator=generator, device="cuda").argsort(0)
            drawn = order[:shape[0]].contiguous()
        else:
            drawn = torch.randint(case.high, shape, generator=generator, device="cuda")
        out.append(drawn.to(kinds[dtype]))
    return out


def measure(case: gpu_cases.Case, inductor: bool, tuning: str) -> dict[str, Any]:
    import torch
    import torch.nn.functional as functional

    row: dict[str, Any] = {"case": case.name}
    tensors = random_tensors(case)
    with torch.no_grad():
        row["torch"] = peer_time(lambda: case.torch(functional, *tensors), case.host)
        if inductor:
            try:
                compiled = torch.compile(case.torch, mode="max-autotune-no-cudagraphs", dynamic=False)
                row["inductor"] = peer_time(lambda: compiled(functional, *tensors), case.host)
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
        row["xcc"] = own_time(model, arrays)
        row["kernels"] = [(t.kernel, t.seconds) for t in model.profile(arrays)]
    except Exception as e:
        row["xcc_error"] = f"{type(e).__name__}: {e}"[:300]
        traceback.print_exc()
    return row


def floor(case: gpu_cases.Case, rates: dict[str, float], bandwidth: float) -> float:
    return max(case.flops / rates[case.dtype], case.bytes / bandwidth)


def show(case: gpu_cases.Case, row: dict[str, Any], least: float) -> str:
    def us(key: str) -> str:
        return f"{row[key] * 1e6:9.1f}" if key in row else "        -"

    best = min(row[k] for k in ("torch", "inductor") if k in row)
    mine = row.get("xcc")
    ratio = f"{best / mine:6.2f}x {least / mine:6.1%}" if mine else "   -"
    error = f"{row['error']:.1e}{'' if row['ok'] else ' WRONG'}" if "error" in row else row.get("xcc_error", "")
    return f"{case.name:36} {us('xcc')} {us('torch')} {us('inductor')} {ratio:>16}  {error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="only cases whose name contains this text")
    parser.add_argument("--group", choices=GROUPS, default="kernels")
    parser.add_argument("--no-compile", action="store_true", help="leave Inductor out")
    parser.add_argument("--json", default="", help="also write the rows to this file")
    parser.add_argument("--tuning", default="", help="a tuning database to compile with")
    parser.add_argument("--tune", type=float, default=0.0, metavar="SECONDS", help="only tune each case into --tuning")
    args = parser.parse_args()
    chosen = [c for c in GROUPS[args.group] if not args.only or any(o in c.name for o in args.only)]
    if args.tune:
        tune_cases(chosen, Path(args.tuning or "xcc-tuning.txt"), args.tune)
        return
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    name = torch.cuda.get_device_name()
    rates, bandwidth = {"f16": 800e12, "bf16": 800e12, "f32": 60e12}, 3.0e12
    print(f"{name}; medians of {REPEATS}, cold L2, microseconds; floors with 800 TFLOP/s (f16), 60 (f32), 3.0 TB/s")
    print(f"{'case':36} {'xcc':>9} {'torch':>9} {'inductor':>9} {'vs best  of floor':>16}  error")
    rows = []
    for case in chosen:
        row = measure(case, not args.no_compile, args.tuning)
        rows.append(row)
        print(show(case, row, floor(case, rates, bandwidth)), flush=True)
        torch.cuda.empty_cache()
    if args.json:
        Path(args.json).write_text(json.dumps({"gpu": name, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
