"""What benchmarks/cpu.py times: models, and operators as ONNX models of one node with constant weights.

Every runtime may rearrange the constant weights ahead; inputs and outputs are plain row-major arrays (images NCHW).
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from xcc.cache.cache import folder

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "test" / "e2e"))
import models  # noqa: E402
from models_table import TIMED  # noqa: E402

Feeds = dict[str, np.ndarray[Any, Any]]
LENGTH = {"batch": 1, "seq": 128}


@dataclass
class Job:
    """One case as every runtime gets it.

    path: the ONNX file. feeds: its inputs. xcc: further flags of the compiler. flops, moved: what a run has to compute
    and to move at least, 0 where that is not one number. torch: what the PyTorch program is. precision: what OpenVINO
    computes f32 in. tolerance: relative to the largest output. weights: bytes of the model's weights.
    """

    path: str
    feeds: Feeds
    xcc: list[str] = field(default_factory=list)
    flops: float = 0.0
    moved: float = 0.0
    torch: list[Any] = field(default_factory=list)
    precision: str = "f32"
    tolerance: float = 1e-3
    weights: int = 0

    def data(self) -> dict[str, Any]:
        return asdict(self) | {"feeds": {}}


@dataclass(frozen=True)
class Case:
    """`make` builds the job, with files in the folder that it gets. `model`: the test model that it is of."""

    name: str
    group: str
    make: Callable[[Path], Job]
    model: str = ""

    def prepared(self) -> tuple[Path, Job]:
        """The case's folder among what xcc keeps between runs, with job.json and feeds.npz, and its job without
        feeds. It is made anew when this file or that of the model has changed."""
        place = folder() / "benchmarks" / self.name
        text = Path(__file__).read_bytes()
        if self.model:
            path = models.MODELS[self.model].get()
            text += repr((str(path), path.stat().st_size, path.stat().st_mtime_ns)).encode()
        key = hashlib.blake2b(text, digest_size=12).hexdigest()
        if not (place / "key").exists() or (place / "key").read_text() != key:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            job = self.make(place)
            (place / "job.json").write_text(json.dumps(job.data()))
            np.savez(place / "feeds.npz", **job.feeds)  # type: ignore[arg-type]
            (place / "key").write_text(key)
        return place, Job(**json.loads((place / "job.json").read_text()))


def model_job(name: str, folder: Path, *, precision: str = "f32", tolerance: float = 1e-3,
              change: Callable[[Path, Path], Path] | None = None) -> Job:
    """A model of test/e2e/models.py at the size that it is used with."""
    model = models.MODELS[name]
    free = {d for i in model.inputs.values() for d in (*i.shape, i.value) if isinstance(d, str) and d}
    dims = {d: TIMED.get(name, LENGTH).get(d, dict(model.cases[0]).get(d, 1)) for d in free}
    rng = np.random.default_rng(0)
    feeds = {k: i.draw(rng, dims) for k, i in model.inputs.items()}
    path = model.get()
    if change is not None:
        path = change(path, folder)
    flags = [f"--dim={k}={v}" for k, v in model.dims.items()]
    if precision != "f32":
        flags.append(f"--precision={precision}")
    size = sum(p.stat().st_size for p in (path, Path(f"{path}.data")) if p.exists())
    return Job(str(path), feeds, flags, torch=["model", name] if change is None else [],
               precision=precision, tolerance=tolerance, weights=size)


def quantised(path: Path, folder: Path) -> Path:
    """`path` quantised to int8 in QDQ form by onnxruntime's static quantiser, on random images."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Images(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            rng = np.random.default_rng(1)
            self.rest = [{"pixel_values": rng.uniform(-1, 1, (1, 3, 224, 224)).astype(np.float32)} for _ in range(4)]

        def get_next(self) -> Any:
            return self.rest.pop() if self.rest else None

    out = folder / f"{path.stem}_int8.onnx"
    whole = folder / path.name
    onnx.save(onnx.load(str(path)), str(whole))
    quantize_static(str(whole), str(out), Images(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    return out


def matmul(folder: Path, m: int, k: int, n: int) -> Job:
    w = np.random.default_rng(0).standard_normal((k, n), np.float32)
    return _job(folder, helper.make_node("MatMul", ["x", "w"], ["y"]), (m, k), {"w": w}, flops=2.0 * m * k * n,
                moved=4.0 * (m * k + k * n + m * n), torch=["matmul"])


def convolution(folder: Path, size: int, inputs: int, outputs: int, window: int, stride: int, groups: int) -> Job:
    w = np.random.default_rng(0).standard_normal((outputs, inputs // groups, window, window), np.float32)
    pad = window // 2
    shape = (1, inputs, size * stride, size * stride)
    node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[stride] * 2, pads=[pad] * 4, group=groups)
    return _job(folder, node, shape, {"w": w}, flops=2.0 * size * size * w.size,
                moved=4.0 * (w.size + np.prod(shape) + size * size * outputs), torch=["conv", stride, pad, groups])


def rows(folder: Path, op: str, *shape: int) -> Job:
    """softmax, layernorm or gelu of an array; its bytes in and out are what has to move."""
    weights: Feeds = {}
    if op == "layernorm":
        weights = {"g": np.ones(shape[-1:], np.float32), "b": np.zeros(shape[-1:], np.float32)}
        node = helper.make_node("LayerNormalization", ["x", "g", "b"], ["y"])
    else:
        node = helper.make_node({"softmax": "Softmax", "gelu": "Gelu"}[op], ["x"], ["y"])
    return _job(folder, node, shape, weights, moved=8.0 * np.prod(shape), torch=[op], opset=20)


def _job(folder: Path, node: Any, shape: tuple[int, ...], weights: Mapping[str, Any], *, flops: float = 0.0,
         moved: float = 0.0, torch: list[Any], opset: int = 17) -> Job:
    graph = helper.make_graph(
        [node], "case", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, name) for name, w in weights.items()])
    path = folder / "case.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.save(onnx.shape_inference.infer_shapes(model, strict_mode=True), str(path))
    x = np.random.default_rng(1).standard_normal(shape, np.float32)
    return Job(str(path), {"x": x}, [], flops, float(moved), torch, weights=sum(w.nbytes for w in weights.values()))


# m, k, n
MATMULS = {f"matmul_{n}": (n, n, n) for n in (512, 768, 1024, 1536, 2048, 3072, 4096)} | {
    "bert_qkv": (128, 768, 768), "bert_ffn1": (128, 768, 3072), "bert_ffn2": (128, 3072, 768),
    "gpt2_qkv": (128, 768, 2304), "gpt2_head": (128, 768, 50257), "gemv_4096": (1, 4096, 4096),
    "gemv_768": (1, 768, 3072)}
# size of the result, channels in, channels out, window, stride, groups
RESNET = ((112, 3, 64, 7, 2), (56, 64, 64, 1, 1), (56, 64, 64, 3, 1), (56, 64, 256, 1, 1), (56, 256, 64, 1, 1),
          (56, 256, 128, 1, 1), (28, 128, 128, 3, 2), (28, 128, 512, 1, 1), (28, 256, 512, 1, 2), (28, 512, 128, 1, 1),
          (28, 128, 128, 3, 1), (28, 512, 256, 1, 1), (14, 256, 256, 3, 2), (14, 256, 1024, 1, 1),
          (14, 512, 1024, 1, 2), (14, 1024, 256, 1, 1), (14, 256, 256, 3, 1), (14, 1024, 512, 1, 1),
          (7, 512, 512, 3, 2), (7, 512, 2048, 1, 1), (7, 1024, 2048, 1, 2), (7, 2048, 512, 1, 1), (7, 512, 512, 3, 1))
CONVOLUTIONS = {f"conv_{k}x{k}_{i}_{o}_{n}{'_s2' * (s - 1)}": (n, i, o, k, s, 1) for n, i, o, k, s in RESNET} | {
    "depthwise_112": (112, 32, 32, 3, 1, 32), "depthwise_56_s2": (56, 96, 96, 3, 2, 96),
    "depthwise_14": (14, 576, 576, 3, 1, 576)}
ROWS = {"softmax_12x128x128": ("softmax", 12, 128, 128), "softmax_16384x1024": ("softmax", 16384, 1024),
        "layernorm_128x768": ("layernorm", 128, 768), "layernorm_16384x1024": ("layernorm", 16384, 1024),
        "gelu_128x3072": ("gelu", 128, 3072), "gelu_8192x3072": ("gelu", 8192, 3072)}
NAMES = ("resnet50", "mobilenetv2", "bert", "vit", "gpt2", "ppocr_det", "ppocr_rec", "ppocr_cls", "silero_vad")


def _cases() -> list[Case]:
    out = [Case(n, "models", lambda f, n=n: model_job(n, f), n) for n in NAMES]  # type: ignore[misc]
    out += [Case("bert_bf16", "formats", lambda f: model_job("bert", f, precision="bf16", tolerance=6e-2), "bert"),
            Case("resnet50_int8", "formats", lambda f: model_job("resnet50", f, change=quantised, tolerance=0.2),
                 "resnet50")]
    out += [Case(n, "matmul", lambda f, s=s: matmul(f, *s)) for n, s in MATMULS.items()]  # type: ignore[misc]
    out += [Case(n, "conv", lambda f, s=s: convolution(f, *s)) for n, s in CONVOLUTIONS.items()]  # type: ignore[misc]
    out += [Case(n, "rows", lambda f, s=s: rows(f, *s)) for n, s in ROWS.items()]  # type: ignore[misc]
    return out


CASES = {c.name: c for c in _cases()}
GROUPS = tuple(dict.fromkeys(c.group for c in CASES.values()))
