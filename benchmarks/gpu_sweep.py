"""Times matrix products on this machine's GPU with many tiles each, to judge the strategy's choice.

    python benchmarks/gpu_sweep.py [--only TEXT] [--limit 60] [--jobs 16] [--top 12] [--json FILE]

Cases are those of ``gpu_cases`` with "matmul" or "linear" in their name. Each tile is written as an entry of a tuning
database, compiled as a user would compile with it, checked against PyTorch, and timed with a cold L2 cache. The
strategy's own choice comes first in the list and is marked in the table.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import gpu
import gpu_cases


def lowered(text: str, options: Any) -> str:
    """The one kernel of an xt module at stage linalg."""
    from xcc import kernels
    from xcc.passes.base import PassContext
    from xcc.sources import load_source
    from xcc.split import kernel_texts
    from xcc.stages import Clock, run_stage
    from xcc.targets.base import chip_of, get_target
    from xcc.worker import KernelJob

    target = get_target(options.target)
    chip = chip_of(target, options.chip)
    plan = target.pipeline(options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.mlir")
        path.write_text(text)
        source = load_source(str(path), options)
    ctx = PassContext(weights=source.weights, chip=chip, options=options, verbose=lambda _line: None)
    for stage in plan.model_part():
        run_stage(stage, source.module, ctx, Clock(), "stage")
    front = str(plan.kernel_part().upto("linalg"))
    jobs = [KernelJob(name, k, front, chip, options, ("linalg",), False)
            for name, k in kernel_texts(source.module).items()]
    (result,) = kernels.compile_all(jobs)
    return result.kept["linalg"]


def entries(text: str, case: gpu_cases.Case, options: Any, limit: int) -> list[tuple[str, str]]:
    """(label, text of a tuning database) for each tile; the strategy's own first."""
    from xcc._mlir import ir
    from xcc.context import new_context, parse_module
    from xcc.passes.linalg.kernel import read
    from xcc.passes.linalg.tuning import Database, signature
    from xcc.targets.base import chip_of, get_target
    from xcc.targets.gpu_contraction import variants
    from xcc.targets.nvptx.strategy import configure

    chip = chip_of(get_target(options.target), options.chip)
    context = new_context()
    module = parse_module(lowered(text, options), context, case.name)
    with context, ir.Location.unknown():
        function = next(f for f in module.body.operations if "xt.kernel" in f.operation.attributes)
        kernel = read(function)
        base = configure(kernel, chip)
        schedules = [base]
        for t in variants(gpu_cases.SIZE[case.dtype], case.dtype == "f32", chip):
            tile = (*base.block[:-2], t.m, t.n)
            reduce = ((*base.reduce[0][:-1], t.k), *base.reduce[1:])
            schedules.append(replace(base, block=tile, vector=tile, reduce=reduce, threads=t.threads, stages=t.stages))
        schedules.sort(key=lambda s: _distance(s, base))
        out = []
        for s in dict.fromkeys(schedules[:limit]):
            label = f"{'x'.join(map(str, s.block))}x{s.reduce[0][-1]} threads {s.threads} stages {s.stages}"
            database = Database({(chip.name, signature(kernel)): str(s.to_attr())})
            out.append((label, database.text()))
        return out


def _distance(a: Any, b: Any) -> float:
    """How many factors of two lie between two schedules; other stages count half."""
    pairs = [*zip(a.block, b.block, strict=True), (a.reduce[0][-1], b.reduce[0][-1]), (a.threads, b.threads)]
    return sum(abs(math.log2(x / y)) for x, y in pairs) + abs(a.stages - b.stages) / 2


def compile_one(text: str, tuning: str, folder: Path, number: int) -> Any:
    import xcc

    path, entry = folder / f"{number}.mlir", folder / f"{number}.txt"
    path.write_text(text)
    entry.write_text(tuning)
    try:
        return xcc.compile(str(path), target="nvptx", tuning=str(entry), jobs=1, cache=False)
    except Exception as e:
        return f"{type(e).__name__}: {e}".splitlines()[0][:100]


def sweep(case: gpu_cases.Case, limit: int, jobs: int) -> list[dict[str, Any]]:
    import torch
    import torch.nn.functional as functional

    from xcc.options import CompileOptions

    kind = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[case.dtype]
    generator = torch.Generator(device="cuda").manual_seed(0)
    tensors = [(torch.randn(s, generator=generator, device="cuda") * case.scale).to(kind) for s in case.shapes]
    with torch.no_grad():
        want = case.torch(functional, *[t.float() for t in tensors])
        peer = gpu.peer_time(lambda: case.torch(functional, *tensors))
    text = gpu.module_text(case)
    tiles = entries(text, case, CompileOptions(target="nvptx"), limit)
    arrays = {f"a{n}": t for n, t in enumerate(tensors)}
    rows = [{"config": "peer", "seconds": peer, "ok": True}]
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(jobs) as pool:
        models = pool.map(lambda n: compile_one(text, tiles[n][1], Path(name), n), range(len(tiles)))
        for (label, entry), model in zip(tiles, models, strict=True):
            row: dict[str, Any] = {"config": label, "entry": entry.splitlines()[-1], "ok": False}
            rows.append(row)
            if isinstance(model, str):
                row["error"] = model
                continue
            try:
                got = torch.from_dlpack(model.run(arrays)["y"]).cuda().float()
                row["ok"] = bool(((got - want).norm() / want.norm()).item() < gpu.ERROR_BOUND[case.dtype])
                row["seconds"] = statistics.median(model.device_times(arrays, gpu.REPEATS))
            except Exception as e:
                row["error"] = str(e).splitlines()[0][:100]
    rows[1]["own"] = True
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="only cases whose name contains this text")
    parser.add_argument("--limit", type=int, default=60, help="tiles a case")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="compilations at once")
    parser.add_argument("--top", type=int, default=12, help="rows of the table a case")
    parser.add_argument("--json", default="", help="also write all rows to this file")
    args = parser.parse_args()
    found: dict[str, Any] = {}
    for case in gpu_cases.CASES:
        wanted = case.name.startswith(("matmul", "linear")) and case.shapes[0][0] > 1
        if not wanted or args.only and not any(t in case.name for t in args.only):
            continue
        rows = found[case.name] = sweep(case, args.limit, args.jobs)
        print(f"{case.name}: {rows[0]['seconds'] * 1e6:.1f} us the peer, {len(rows) - 1} tiles, "
              f"{sum('error' in r for r in rows)} failed, {sum('seconds' in r and not r['ok'] for r in rows)} wrong")
        good = sorted((r for r in rows[1:] if r["ok"] and "seconds" in r), key=lambda r: float(r["seconds"]))
        for r in [*good[:args.top], *(r for r in good[args.top:] if r.get("own"))]:
            print(f"    {r['seconds'] * 1e6:9.1f}  {r['config']}{'   <- strategy' if r.get('own') else ''}")
        for message in sorted({r["error"] for r in rows if "error" in r})[:3]:
            print(f"    error: {message}")
        if args.json:
            Path(args.json).write_text(json.dumps({"cases": found}, indent=1))


if __name__ == "__main__":
    main()
