"""Exports a model of the table into a folder: the ONNX file, its inputs and what it gives for them.

The folder holds all that a machine without torch needs, and little of it: weights that are random numbers are drawn
anew from a seed, and only their mean and deviation are kept (:mod:`exported.weights`).
"""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from exported.spec import Array, Exported, calling
from exported.weights import forget_random_weights, restore


def export(model: Exported, folder: Path) -> None:
    """Writes ``model.onnx``, ``case0.npz``... (inputs and outputs) and, last, ``model.json``."""
    declare_compiled_ops()
    module = _built(model)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as partial:
        path = Path(partial, "model.onnx")
        _export(module, model, path)
        outputs = forget_random_weights(path, folder / "model.onnx", seed=_seed(model.name))
    restore(folder / "model.onnx")
    for case in range(len(model.cases)):
        feeds = model.feeds(case)
        wanted = dict(zip(outputs, _reference(module, feeds, folder / "model.onnx"), strict=True))
        np.savez_compressed(folder / f"case{case}.npz", **{f"in.{k}": v for k, v in feeds.items()},
                            **{f"out.{k}": v for k, v in wanted.items()})
    facts = {"library": model.library, "cases": list(model.cases)}
    (folder / "model.json").write_text(json.dumps(facts, indent=1) + "\n")


@functools.cache
def declare_compiled_ops() -> Any:
    """Declares the ops that torchvision's Python code asks torch for when it is imported, and gives their owner.

    Its library is for one build of torch; beside another one it is not loaded, and no model here runs those ops.
    """
    import torch

    if importlib.util.find_spec("torchvision") is None:
        return None
    try:
        importlib.import_module("torchvision")
    except RuntimeError:        # an op that it asks for is not there
        for name in [n for n in sys.modules if n.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "FRAGMENT")
        for op in ("nms", "qnms"):
            library.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return library
    return None


def _seed(name: str) -> int:
    return zlib.crc32(name.encode())


def _built(model: Exported) -> Any:
    """The module, its weights from a fixed seed."""
    import torch

    torch.manual_seed(_seed(model.name))
    module = calling(model.build(), lambda m, *inputs: m(*inputs)).eval()
    with torch.no_grad():
        for p in module.parameters():
            if p.is_floating_point() and p.numel() > 1 and bool((p == p.flatten()[0]).all()):
                p.add_(torch.randn_like(p) * 0.1)       # a fresh norm is an identity, which hides mistakes
        for name, b in module.named_buffers():
            if name.endswith("running_mean"):
                b.uniform_(-0.2, 0.2)
            elif name.endswith("running_var"):
                b.uniform_(0.5, 1.5)
    return module


def _export(module: Any, model: Exported, path: Path) -> None:
    import torch

    case = len(model.cases) - 1
    args = tuple(map(torch.from_numpy, model.feeds(case).values()))
    free = [{axis: torch.export.Dim.DYNAMIC for axis, d in enumerate(given.shape) if isinstance(d, str)}
            for given in model.inputs.values()]
    with torch.no_grad():
        torch.onnx.export(module, args, str(path), dynamo=True, verbose=False, external_data=False,
                          input_names=list(model.inputs), dynamic_shapes=(tuple(free),) if any(free) else None)


def _reference(module: Any, feeds: dict[str, Array], path: Path) -> list[Array]:
    """What onnxruntime gives."""
    from xcc.tools.peers import onnxruntime_session

    return list(onnxruntime_session(str(path)).run(None, feeds))
