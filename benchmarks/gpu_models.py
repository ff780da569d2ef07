"""Compiles models for this machine's GPU, checks and times them.

    python benchmarks/gpu_models.py [--precision f16] [--json benchmarks/results/models-nvptx-h100.json] [name ...]
    python benchmarks/gpu_models.py --torch [--batch 1,32] [--kernels] [name ...]

The first form takes the test models, checks them against onnxruntime on the CPU, and times what PyTorch exported beside
torch.compile with a CUDA graph (unless --no-compile). The second takes full-size f16
models (torch_models.py), exports them to ONNX, and runs PyTorch (torch.compile and a CUDA graph) beside xcc. Times are
medians of device events with a cold L2 cache, both sides in turn.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "test" / "e2e"))
import gpu_times  # noqa: E402
import models  # noqa: E402
from models_table import TIMED, Row, error_of, random_feeds, save  # noqa: E402

import xcc  # noqa: E402
from xcc.tools.peers import onnxruntime_session  # noqa: E402


def check(name: str, precision: str, inductor: bool) -> Row:
    """Errors over all sizes; times are on the device alone, with a cold L2 cache."""
    model = models.MODELS[name]
    source = model.get()
    compiled = xcc.compile(source, target="nvptx", dims=dict(model.dims) or None, precision=precision)
    session = onnxruntime_session(str(model.get()))
    row = Row(name, "nvptx", compiled.chip, precision, len(compiled.artifact.manifest["kernels"]))
    row.error = 0.0
    timed = TIMED.get(name, model.cases[0])
    for sizes in [*model.cases, timed]:
        feeds = random_feeds(model, sizes)
        got = compiled.run({i.name: feeds[i.name] for i in compiled.inputs})
        row.error = max(row.error, error_of(got, session, feeds))
    row.sizes = ", ".join(f"{k} {v}" for k, v in timed.items())
    runs = {"xcc": gpu_times.own(compiled, {i.name: feeds[i.name] for i in compiled.inputs})}
    if inductor and model.program is not None:
        row.peer = "torch.compile"
        runs[row.peer] = torch_run(model.program(), feeds, precision)
    times = gpu_times.in_turn(runs)
    row.ms = times["xcc"] * 1e3
    if row.peer:
        row.peer_ms = times[row.peer] * 1e3
    return row


def torch_run(module: Any, feeds: dict[str, Any], precision: str) -> gpu_times.Timed:
    """The module under torch.compile and a CUDA graph; its weights and inputs have `precision`."""
    import torch

    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    kind = {"f16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)
    arguments = [torch.from_numpy(v).cuda() for v in feeds.values()]
    arguments = [a.to(kind) if a.is_floating_point() else a for a in arguments]
    fast = torch.compile(module.cuda().to(kind), dynamic=False)
    with torch.no_grad():
        return gpu_times.peer(lambda: fast(*arguments))


def beside_torch(name: str, batch: int, kernels: bool, keep: Path | None) -> None:
    """Prints xcc's time, and where asked its kernels', then PyTorch's, their ratio, and the error against f32.

    `keep` is a folder for the exported models, in which an earlier run may have left them.
    """
    import torch
    import torch_models

    spec = torch_models.SPECS[name]
    module, inputs = torch_models.make(spec, batch)
    with tempfile.TemporaryDirectory(dir=_quick_folder()) as folder:
        path = Path(keep or folder, f"{name}-b{batch}.onnx")
        if not path.exists():
            torch_models.export(module, inputs, path, spec.optimize)
        begin = time.perf_counter()
        compiled = xcc.compile(path, target="nvptx")
        seconds = time.perf_counter() - begin
        feeds = {k: v.cuda() for k, v in inputs.items()}
        got = torch.from_dlpack(next(iter(compiled.run(feeds).values()))).float().cuda()
        print(f"{name:16} b{batch:<3} compile {seconds:5.1f} s", flush=True)
    module = module.cuda()
    with torch.no_grad():
        want = _first(module.float()(*(v.float() if v.is_floating_point() else v for v in feeds.values())))
        error = float((got - want).norm() / want.norm())
        del got, want
        fast = torch.compile(module.half(), dynamic=False)
        times = gpu_times.in_turn({"xcc": gpu_times.own(compiled, feeds),
                                   "torch": gpu_times.peer(lambda: fast(*feeds.values()))})
    if kernels:
        print(_kernel_table(compiled.profile(feeds)), flush=True)
    print(f"{name:16} b{batch:<3} torch {times['torch'] * 1e6:8.1f} us  xcc {times['xcc'] * 1e6:8.1f} us  "
          f"{times['torch'] / times['xcc']:5.2f}x  error {error:.1e}", flush=True)


def _quick_folder() -> str | None:
    """Where files of some gigabytes are written quickly: memory, where there is enough."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > 16 << 30 else None


def _first(outputs: Any) -> Any:
    return outputs[0] if isinstance(outputs, tuple) else outputs


def _kernel_table(profile: list[Any]) -> str:
    """A line a kernel, by its share of the time: launches, microseconds of one, of all."""
    times: dict[str, list[float]] = defaultdict(list)
    for launch in profile:
        times[launch.kernel].append(launch.seconds * 1e6)
    rows = sorted(times.items(), key=lambda r: -sum(r[1]))
    return "\n".join(f"    {k:20} x{len(t):<3} {statistics.median(t):8.1f} {sum(t):9.1f}" for k, t in rows)


def gpu_name() -> str:
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True)
        return done.stdout.splitlines()[0]
    except (OSError, IndexError):
        return "an NVIDIA GPU"


def compare(names: list[str], batches: list[int], kernels: bool, keep: Path | None) -> None:
    import torch_models

    print(f"{gpu_name()}; f16, torch.compile with a CUDA graph; medians of device events, cold L2", flush=True)
    for name in names or torch_models.SPECS:
        for batch in batches:
            try:
                beside_torch(name, batch, kernels, keep)
            except Exception as e:
                traceback.print_exc()
                print(f"{name:16} b{batch:<3} FAILED {type(e).__name__}: {str(e)[:300]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", help="default: every model that is at hand")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--json", type=Path, help="add the rows to this file, for models_table.py")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--torch", action="store_true", help="full-size f16 models beside torch.compile")
    parser.add_argument("--batch", default="1,32", help="with --torch: the batch sizes")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="with --torch: keep and find the exported models here")
    parser.add_argument("--kernels", action="store_true", help="with --torch: also the kernels' times")
    args = parser.parse_args()
    if args.torch:
        compare(args.name, [int(b) for b in args.batch.split(",")], args.kernels, args.keep)
        return
    for name in args.name or models.MODELS:
        try:
            row = check(name, args.precision, not args.no_compile)
            print(f"{name:26} {args.precision:5} {row.kernels:4} kernels  "
                  f"error {row.error:.2e}  {row.ms:.3f} ms {row.sizes}"
                  + (f"  {row.peer} {row.peer_ms:.3f} ms" if row.peer_ms else ""), flush=True)
            if args.json:
                save([row], args.json, gpu_name())
        except FileNotFoundError as e:
            print(f"{name:26} skipped: {e}", flush=True)
        except Exception as e:
            traceback.print_exc()
            print(f"{name:26} {args.precision:5} FAILED {type(e).__name__}: {str(e)[:300]}", flush=True)


if __name__ == "__main__":
    main()
