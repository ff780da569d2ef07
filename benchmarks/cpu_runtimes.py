"""How each runtime loads a case of benchmarks/cpu.py: a function that gives the call to time."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Feeds = dict[str, np.ndarray[Any, Any]]
Call = Callable[[], Any]                # a run; gives the outputs in the model's order
Loader = Callable[[dict[str, Any], Feeds, int, Path], Call]


class Absent(Exception):
    """The runtime has nothing to say about this case, or is not installed."""


def xcc(job: dict[str, Any], feeds: Feeds, threads: int, folder: Path) -> Call:
    """What the compiler has written to FOLDER/xcc.xcm."""
    from xcc.runtime.model import load

    model = load(folder / "xcc.xcm")
    return lambda: list(model.run(feeds).values())


def onnxruntime(job: dict[str, Any], feeds: Feeds, threads: int, folder: Path) -> Call:
    from xcc.tools.peers import onnxruntime_session

    session = onnxruntime_session(job["path"], threads)
    return lambda: session.run(None, feeds)


def openvino(job: dict[str, Any], feeds: Feeds, threads: int, folder: Path) -> Call:
    from openvino import Core

    model = Core().compile_model(job["path"], "CPU", {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": job["precision"]})
    request = model.create_infer_request()
    return lambda: [v.copy() for v in request.infer(feeds, share_inputs=True, share_outputs=True).values()]


def iree(job: dict[str, Any], feeds: Feeds, threads: int, folder: Path) -> Call:
    import subprocess

    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    source, binary, failure = folder / "iree.mlir", folder / "iree.vmfb", folder / "iree.txt"
    if failure.exists():
        raise Absent(failure.read_text())
    commands = [["iree-import-onnx", job["path"], "-o", str(source), "--opset-version", "17"],
                ["iree-compile", str(source), "-o", str(binary), "--iree-hal-target-device=local",
                 "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host",
                 "--iree-input-demote-i64-to-i32=false", "--iree-opt-level=O3"]]
    try:
        for command in [] if binary.exists() else commands:
            done = subprocess.run(command, capture_output=True, text=True, timeout=400)
            if done.returncode:
                lines = done.stderr.strip().splitlines() or ["no message"]
                failure.write_text(f"{command[0]}: {next((n for n in lines if 'error' in n), lines[-1])[:200]}")
                raise Absent(failure.read_text())
    except (FileNotFoundError, subprocess.TimeoutExpired) as e:
        raise Absent(str(e)[:200]) from None
    finally:
        source.unlink(missing_ok=True)          # as text, several times the model's size
    from iree import runtime

    runtime.flags.parse_flags(f"--task_topology_max_group_count={threads}")
    module = runtime.load_vm_flatbuffer_file(str(binary), driver="local-task")
    names = [n for n in module.vm_module.function_names if not n.startswith("__") and not n.endswith("$async")]
    function = getattr(module, names[0])
    device = function._context._device if hasattr(function, "_context") else None
    arrays = [runtime.asdevicearray(device, v) if device is not None else v for v in feeds.values()]

    def call() -> Any:
        out = function(*arrays)
        return [np.asarray(v) for v in (out if isinstance(out, (tuple, list)) else [out])]

    return call


def openblas(job: dict[str, Any], feeds: Feeds, threads: int, folder: Path) -> Call:
    """numpy's BLAS; for matrix products only."""
    if job["torch"][:1] != ["matmul"]:
        raise Absent("numpy runs matrix products only")
    w = _weight(job)
    return lambda: [np.matmul(feeds["x"], w)]


def limit(job: dict[str, Any], feeds: Feeds, threads: int, folder: Path) -> Call:
    """What this machine takes for the operations of an operator, or for its bytes."""
    from xcc.targets.cpu.machine import limit_call

    if not job["flops"] and not job["moved"]:
        raise Absent("a model's operations are not counted")
    call, times = limit_call(threads, job["flops"], job["moved"])
    return Repeated(call, times)


@dataclass(frozen=True)
class Repeated:
    """A call that does its work `times` times."""

    run: Callable[[], None]
    times: int

    def __call__(self) -> Any:
        self.run()
        return []


def torch(job: dict[str, Any], feeds: Feeds, threads: int, folder: Path) -> Call:
    """Models through torch.compile with frozen weights; operators through the kernels that it would call."""
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    if not job["torch"]:
        raise Absent("there is no PyTorch program of this case")
    kind, *rest = job["torch"]
    if kind == "model":
        return _torch_model(rest[0], feeds, job["precision"])
    x = torch.from_numpy(feeds["x"])
    if kind == "matmul":
        w = torch.from_numpy(_weight(job))
        return lambda: [torch.matmul(x, w).numpy()]
    if kind == "conv":
        return _onednn(x, torch.from_numpy(_weight(job)), *rest)
    functions = {"softmax": lambda: torch.softmax(x, -1), "gelu": lambda: torch.nn.functional.gelu(x),
                 "layernorm": lambda: torch.nn.functional.layer_norm(x, x.shape[-1:])}
    return lambda: [functions[kind]().numpy()]


def torch_nhwc(job: dict[str, Any], feeds: Feeds, threads: int, folder: Path) -> Call:
    """Convolutions alone, with images that come and go with channels last: no layout conversion at either end."""
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    if job["torch"][:1] != ["conv"]:
        raise Absent("convolutions only")
    x = torch.from_numpy(feeds["x"]).contiguous(memory_format=torch.channels_last)
    return _onednn(x, torch.from_numpy(_weight(job)), *job["torch"][1:])


def _onednn(x: Any, w: Any, stride: int, pad: int, groups: int) -> Call:
    """oneDNN's convolution with its weight packed ahead."""
    import torch

    two = [stride] * 2, [pad] * 2, [1, 1]
    ops = torch.ops.mkldnn
    packed = ops._reorder_convolution_weight(w, two[1], two[0], two[2], groups, list(x.shape))
    return lambda: [ops._convolution_pointwise(x, packed, None, two[1], two[0], two[2], groups, "none", [], "").numpy()]


def _torch_model(name: str, feeds: Feeds, precision: str) -> Call:
    import torch
    import torch._inductor.config

    sys.path.append(str(Path(__file__).resolve().parents[1] / "test" / "e2e"))
    import models

    torch._inductor.config.freezing = True
    torch._inductor.config.compile_threads = 1          # no processes that outlive the case
    program = models.MODELS[name].program
    if program is None:
        raise Absent("there is no PyTorch program of this model")
    module = program()
    arguments = [torch.from_numpy(v) for v in feeds.values()]
    compiled = torch.compile(module)
    kind = {"bf16": torch.bfloat16}.get(precision)

    def call() -> Any:
        with torch.autocast("cpu", kind, enabled=kind is not None):
            out = compiled(*arguments)
        return [v.float().numpy() for v in (out if isinstance(out, (tuple, list)) else [out])]

    call()              # compiles
    return call


def _weight(job: dict[str, Any]) -> Any:
    import onnx
    from onnx import numpy_helper

    return numpy_helper.to_array(onnx.load(job["path"]).graph.initializer[0]).copy()


RUNTIMES: dict[str, Loader] = {"xcc": xcc, "onnxruntime": onnxruntime, "openvino": openvino, "iree": iree,
                               "torch": torch, "torch-nhwc": torch_nhwc, "openblas": openblas, "limit": limit}
IMPORTS = {"onnxruntime": "onnxruntime", "openvino": "openvino", "iree": "iree.runtime", "torch": "torch",
           "torch-nhwc": "torch", "openblas": "numpy", "xcc": "xcc.runtime.model", "limit": "xcc.targets.cpu.machine"}
