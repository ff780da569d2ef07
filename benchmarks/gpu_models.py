"""Compiles test models for this machine's GPU, checks them against onnxruntime on the CPU, and times them.

    python benchmarks/gpu_models.py [--precision f16] [name ...]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import traceback
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test" / "e2e"))
import models  # noqa: E402

import xcc  # noqa: E402


def reference(source: object, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    import onnxruntime

    blob = str(source) if isinstance(source, (str, Path)) else source.SerializeToString()  # type: ignore[attr-defined]
    session = onnxruntime.InferenceSession(blob, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    wanted = {i.name for i in session.get_inputs()}
    return dict(zip(names, session.run(None, {k: v for k, v in feeds.items() if k in wanted}), strict=True))


def check(name: str, precision: str) -> str:
    model = models.MODELS[name]
    source = model.source()
    begin = time.perf_counter()
    compiled = xcc.compile(source if not isinstance(source, Path) else str(source), target="nvptx",
                           dims=dict(model.dims) or None, precision=precision)
    seconds = time.perf_counter() - begin
    worst, times = 0.0, []
    for case in range(len(model.cases)):
        feeds = {i.name: model.feeds(case)[i.name] for i in compiled.inputs}
        got, want = compiled.run(feeds), reference(source, model.feeds(case))
        for output, value in want.items():
            a, b = np.asarray(got[output]).astype(np.float64), value.astype(np.float64)
            error = float(np.linalg.norm(a - b) / max(float(np.linalg.norm(b)), 1e-30)) if b.size else 0.0
            worst = max(worst, error if np.isfinite(error) else float("inf"))
        times.append(statistics.median(compiled.device_times(feeds)))
    launches = len(compiled.artifact.manifest["kernels"])
    shown = ", ".join(f"{t * 1e6:.0f}" for t in times)
    return f"{name:26} {precision:5} compile {seconds:6.1f} s  {launches:4} kernels  error {worst:.2e}  us {shown}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", help="default: every model that is at hand")
    parser.add_argument("--precision", default="f32")
    args = parser.parse_args()
    for name in args.name or models.MODELS:
        try:
            print(check(name, args.precision), flush=True)
        except FileNotFoundError as e:
            print(f"{name:26} skipped: {e}", flush=True)
        except Exception as e:
            traceback.print_exc()
            print(f"{name:26} {args.precision:5} FAILED {type(e).__name__}: {str(e)[:300]}", flush=True)


if __name__ == "__main__":
    main()
