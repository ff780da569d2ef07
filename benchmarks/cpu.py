"""Times models and single operators on this CPU: xcc and the other runtimes that are installed, in turn in one run.

    python benchmarks/cpu.py                               # all cases, writes benchmarks/results/cpu-MODEL.json and .md
    python benchmarks/cpu.py --threads 2 resnet50 matmul_1024
    python benchmarks/cpu.py --list

In each round every runtime runs once, after a pause that lets the threads of the one before go to sleep and one call
that is not timed; medians over the rounds. An operator is an ONNX model of one node with constant weights, so that each
runtime may rearrange them ahead.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test" / "e2e"))
import models  # noqa: E402
from models_table import TIMED  # noqa: E402

import xcc  # noqa: E402
from xcc.tools.peers import onnxruntime_session  # noqa: E402

Feeds = Mapping[str, np.ndarray[Any, Any]]
Runs = dict[str, Callable[[], Any]]
NAMES = ("resnet50", "bert", "vit", "gpt2", "mobilenetv2", "ppocr_det", "ppocr_rec", "ppocr_cls", "silero_vad")
PAUSE = 0.02
LENGTH = {"batch": 1, "seq": 128}

# m, k, n
MATMULS = {f"matmul_{n}": (n, n, n) for n in (512, 1024, 2048)} | {
    "bert_ffn1": (128, 768, 3072), "bert_ffn2": (128, 3072, 768), "bert_qkv": (128, 768, 768),
    "gemv_4096": (1, 4096, 4096), "gpt2_head": (128, 768, 50257)}
# size of the result, channels in, channels out, window, stride, groups
CONVOLUTIONS = {
    "conv_first": (112, 3, 64, 7, 2, 1), "conv_3x3_56": (56, 64, 64, 3, 1, 1), "conv_3x3_28": (28, 128, 128, 3, 1, 1),
    "conv_3x3_14": (14, 256, 256, 3, 1, 1), "conv_3x3_7": (7, 512, 512, 3, 1, 1),
    "conv_3x3_7_s2": (7, 512, 512, 3, 2, 1), "conv_1x1_56": (56, 64, 256, 1, 1, 1),
    "conv_1x1_7": (7, 2048, 512, 1, 1, 1), "depthwise_112": (112, 32, 32, 3, 1, 32),
    "depthwise_14": (14, 576, 576, 3, 1, 576)}


def matmul(m: int, k: int, n: int) -> tuple[Any, Feeds, float]:
    """The model, its input, and its number of operations."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((k, n), np.float32)
    return (_model([helper.make_node("MatMul", ["x", "w"], ["y"])], (m, k), {"w": w}),
            {"x": rng.standard_normal((m, k), np.float32)}, 2.0 * m * k * n)


def convolution(size: int, inputs: int, outputs: int, window: int, stride: int,
                groups: int) -> tuple[Any, Feeds, float]:
    rng = np.random.default_rng(0)
    w = rng.standard_normal((outputs, inputs // groups, window, window), np.float32)
    pad = window // 2
    shape = (1, inputs, size * stride, size * stride)
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[stride] * 2, pads=[pad] * 4, group=groups)
    return (_model([node], shape, {"w": w}), {"x": rng.standard_normal(shape, np.float32)},
            2.0 * size * size * w.size)


def _model(nodes: list[Any], shape: tuple[int, ...], weights: Feeds) -> Any:
    graph = helper.make_graph(
        nodes, "case", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, name) for name, w in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def case(name: str, folder: Path) -> tuple[Any, str, Feeds, float, dict[str, int]]:
    """What xcc compiles, the file for the others, inputs, operations (0: not counted) and dims to compile for."""
    if name in NAMES:
        model = models.MODELS[name]
        free = {d for i in model.inputs.values() for d in i.shape if isinstance(d, str)}
        dims = {d: TIMED.get(name, LENGTH).get(d, dict(model.cases[0]).get(d, 1)) for d in free}
        rng = np.random.default_rng(0)
        feeds = {k: i.draw(rng, dims) for k, i in model.inputs.items()}
        source = model.source()
        path = model.get()
        if model.fix:
            path = folder / f"{name}.onnx"
            onnx.save(source, str(path))
        return source, str(path), feeds, 0.0, dict(model.dims)
    make = matmul(*MATMULS[name]) if name in MATMULS else convolution(*CONVOLUTIONS[name])
    path = folder / f"{name}.onnx"
    onnx.save(make[0], str(path))
    return str(path), str(path), make[1], make[2], {}


def runtimes(source: Any, path: str, feeds: Feeds, dims: dict[str, int], threads: int) -> Runs:
    """A call for each runtime that takes the model."""
    compiled = xcc.compile(source, target="cpu", threads=threads, dims=dims)
    out: Runs = {"xcc": lambda: compiled.run(feeds)}
    session = onnxruntime_session(path, threads)
    out["onnxruntime"] = lambda: session.run(None, dict(feeds))
    wanted, got = session.run(None, dict(feeds)), list(compiled.run(feeds).values())
    for w, g in zip(wanted, got, strict=True):
        scale = float(np.abs(w).max()) or 1.0
        if not np.allclose(np.asarray(g, np.float64), w, rtol=1e-3, atol=1e-3 * scale):
            raise SystemExit(f"{path}: xcc's output differs from onnxruntime's")
    vino = _openvino(path, feeds, threads)
    if vino is not None:
        out["openvino"] = vino
    return out


def _openvino(path: str, feeds: Feeds, threads: int) -> Callable[[], Any] | None:
    try:
        import openvino
    except ImportError:
        return None
    try:
        compiled = openvino.Core().compile_model(path, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
        compiled(dict(feeds))
    except RuntimeError as e:
        sys.stderr.write(f"openvino refuses {path}: {str(e).splitlines()[0]}\n")
        return None
    return lambda: compiled(dict(feeds))


def with_torch(name: str, feeds: Feeds, threads: int) -> Runs:
    """The same operator in eager PyTorch; nothing for models."""
    try:
        import torch
    except ImportError:
        return {}
    if name not in MATMULS and name not in CONVOLUTIONS:
        return {}
    torch.set_num_threads(threads)
    x = torch.from_numpy(feeds["x"])
    if name in MATMULS:
        w = torch.randn(MATMULS[name][1:])
        return {"torch": lambda: torch.matmul(x, w)}
    _, inputs, outputs, window, stride, groups = CONVOLUTIONS[name]
    x = x.contiguous(memory_format=torch.channels_last)
    layer = torch.nn.Conv2d(inputs, outputs, window, stride, window // 2, groups=groups, bias=False)
    layer = layer.to(memory_format=torch.channels_last).eval().requires_grad_(False)
    return {"torch": lambda: layer(x)}


def measured(runs: Runs, rounds: int, seconds: float) -> dict[str, float]:
    """Median seconds of each call; the runtimes take turns. At least 20 rounds unless `rounds` says less."""
    times: dict[str, list[float]] = {k: [] for k in runs}
    end = time.perf_counter() + seconds
    while len(times["xcc"]) < rounds or time.perf_counter() < end:
        for k, run in runs.items():
            time.sleep(PAUSE)
            run()
            begin = time.perf_counter()
            run()
            times[k].append(time.perf_counter() - begin)
    return {k: statistics.median(v) for k, v in times.items()}


def cpu_model() -> str:
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    fields = [line.split(":", 1)[1].strip() for line in text.splitlines() if ":" in line]
    keys = [line.split(":", 1)[0].strip() for line in text.splitlines() if ":" in line]
    found = dict(zip(reversed(keys), reversed(fields), strict=True))
    family = f" family {found['cpu family']} model {found['model']}" if "cpu family" in found else ""
    return found.get("model name", platform.processor() or platform.machine()) + family


def rows(names: list[str], threads: int, rounds: int, seconds: float) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            source, path, feeds, flops, dims = case(name, Path(folder))
            runs = runtimes(source, path, feeds, dims, threads) | with_torch(name, feeds, threads)
            found = measured(runs, rounds, seconds)
            best = min(v for k, v in found.items() if k != "xcc")
            row = {"case": name, "ms": {k: round(v * 1e3, 4) for k, v in found.items()},
                   "ratio": round(best / found["xcc"], 3)}
            if flops:
                row["gflops"] = round(flops / found["xcc"] / 1e9, 1)
            print(json.dumps(row), flush=True)
            yield row


def table(head: Mapping[str, Any], found: list[dict[str, Any]]) -> str:
    peers = list(dict.fromkeys(k for r in found for k in r["ms"]))
    lines = [f"# CPU: {head['cpu']}, {head['threads']} threads", "",
             "Generated by `python benchmarks/cpu.py`. Median ms; *ratio* is the best peer's time over xcc's.", "",
             "| case | " + " | ".join(peers) + " | ratio | GFLOP/s |", "|---" * (len(peers) + 3) + "|"]
    for r in found:
        cells = [f"{r['ms'][p]:.3f}" if p in r["ms"] else "-" for p in peers]
        lines.append(f"| {r['case']} | " + " | ".join(cells) + f" | {r['ratio']:.2f} | {r.get('gflops', '')} |")
    whole = [r["ratio"] for r in found if r["case"] in NAMES]
    if whole:
        lines += ["", f"Geometric mean of the models: {statistics.geometric_mean(whole):.2f}."]
    return "\n".join(lines) + "\n"


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("case", nargs="*", help="default: all")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--seconds", type=float, default=2.0, help="at least this long a case")
    p.add_argument("--list", action="store_true")
    args = p.parse_args()
    every = [*NAMES, *MATMULS, *CONVOLUTIONS]
    if args.list:
        print("\n".join(every))
        return 0
    unknown = [c for c in args.case if c not in every]
    if unknown:
        p.error(f"no case {', '.join(unknown)}; --list shows them")
    head = {"cpu": cpu_model(), "threads": args.threads, "rounds": args.rounds, "load": os.getloadavg()[0]}
    found = list(rows(args.case or every, args.threads, args.rounds, args.seconds))
    if not args.case:
        slug = "".join(c if c.isalnum() else "-" for c in head["cpu"].lower()).strip("-")
        base = ROOT / "benchmarks" / "results" / f"cpu-{slug}-{args.threads}t"
        base.parent.mkdir(exist_ok=True)
        base.with_suffix(".json").write_text(json.dumps({**head, "rows": found}, indent=1) + "\n")
        base.with_suffix(".md").write_text(table(head, found))
    else:
        print(table(head, found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
