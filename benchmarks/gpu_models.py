"""Compiles test models for this machine's GPU, checks them against onnxruntime on the CPU, and times them.

    python benchmarks/gpu_models.py [--precision f16] [--json benchmarks/results/models-nvptx-h100.json] [name ...]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test" / "e2e"))
import models  # noqa: E402
from models_table import Row, error_of, save  # noqa: E402

import xcc  # noqa: E402
from xcc.tools.peers import onnxruntime_session  # noqa: E402


def check(name: str, precision: str) -> Row:
    """Errors over all sizes; the time is of the last size, on the device alone, with a cold L2 cache."""
    model = models.MODELS[name]
    source = model.source()
    begin = time.perf_counter()
    compiled = xcc.compile(source, target="nvptx", dims=dict(model.dims) or None, precision=precision)
    seconds = time.perf_counter() - begin
    session = onnxruntime_session(str(model.get()))
    row = Row(name, "nvptx", compiled.chip, precision, len(compiled.artifact.manifest["kernels"]), cold_s=seconds)
    row.error = 0.0
    for case, sizes in enumerate(model.cases):
        feeds = {i.name: model.feeds(case)[i.name] for i in compiled.inputs}
        row.error = max(row.error, error_of(compiled.run(feeds), session, {**model.feeds(case), **model.fix}))
        row.ms = statistics.median(compiled.device_times(feeds)) * 1e3
        row.sizes = ", ".join(f"{k} {v}" for k, v in sizes.items())
    return row


def gpu_name() -> str:
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True)
        return done.stdout.splitlines()[0]
    except (OSError, IndexError):
        return "an NVIDIA GPU"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", help="default: every model that is at hand")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--json", type=Path, help="add the rows to this file, for models_table.py")
    args = parser.parse_args()
    for name in args.name or models.MODELS:
        try:
            row = check(name, args.precision)
            print(f"{name:26} {args.precision:5} compile {row.cold_s:6.1f} s  {row.kernels:4} kernels  "
                  f"error {row.error:.2e}  {row.ms:.3f} ms {row.sizes}", flush=True)
            if args.json:
                save([row], args.json, gpu_name())
        except FileNotFoundError as e:
            print(f"{name:26} skipped: {e}", flush=True)
        except Exception as e:
            traceback.print_exc()
            print(f"{name:26} {args.precision:5} FAILED {type(e).__name__}: {str(e)[:300]}", flush=True)


if __name__ == "__main__":
    main()
