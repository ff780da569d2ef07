"""Models that are compiled for several ranks: as processes on this CPU, and exported ones on simulated ranks."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch.distributed
from models import MODELS
from onnx import TensorProto, helper, numpy_helper
from sharded import check_model
from test_ranks_on_cpu import start

import xcc
from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.driver.sources import load_source
from xcc.options import CompileOptions
from xcc.passes.base import PassContext, get_pass
from xcc.passes.xt.sizes.equal_dims import note_equal_dims
from xcc.runtime.artifact import Artifact
from xcc.tools.xcc_cli import main

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


def perceptron(path: Path, batch: Any = "batch") -> Path:
    """x [batch, 32] through 32 -> 64 -> 32, with a residual."""
    rng = np.random.default_rng(0)
    weights = {n: rng.standard_normal(s).astype(np.float32) / 6 for n, s in
               {"up": (32, 64), "up.bias": (64,), "down": (64, 32), "down.bias": (32,)}.items()}
    nodes = [helper.make_node("MatMul", ["x", "up"], ["a"]), helper.make_node("Add", ["a", "up.bias"], ["b"]),
             helper.make_node("Relu", ["b"], ["c"]), helper.make_node("MatMul", ["c", "down"], ["d"]),
             helper.make_node("Add", ["d", "down.bias"], ["e"]), helper.make_node("Add", ["e", "x"], ["y"])]
    graph = helper.make_graph(nodes, "perceptron", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 32])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 32])],
                              [numpy_helper.from_array(v, n) for n, v in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
@pytest.mark.parametrize("mesh", ("tp:2", "dp:2", "pp:2"))
def test_two_processes_give_what_one_does(mesh: str, tmp_path: Path) -> None:
    model = perceptron(tmp_path / "m.onnx")
    assert main([str(model), f"--mesh={mesh}", "-o", str(tmp_path / "m.xcm"), "--no-cache"]) == 0
    x = np.random.default_rng(1).standard_normal((6, 32)).astype(np.float32)
    want = xcc.compile(model, cache=False).run({"x": x})["y"]
    np.save(tmp_path / "x.npy", x)
    got = start("sharded", tmp_path / "m.xcm")
    if mesh != "dp:2":
        for y in got:
            np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_allclose(np.concatenate(got), want, rtol=1e-5, atol=1e-5)


def test_an_artifact_has_each_weight_once(tmp_path: Path) -> None:
    model = xcc.compile(perceptron(tmp_path / "m.onnx"), mesh={"tp": 2}, shard={"up": "tp:1"}, cache=False)
    model.save(tmp_path / "m.xcm")
    artifact = Artifact.read(tmp_path / "m.xcm")
    assert artifact.manifest["mesh"] == [["tp", 2]] and len(artifact.manifest["ranks"]) == 2
    assert "ranks/1/program.json" in artifact.members and "ranks/0/program.json" not in artifact.members
    held = sum(w.nbytes for w in artifact.weights.values())
    assert held <= 4 * (2 * 32 * 64 + 64 + 2 * 32)
    other = json.loads(bytes(artifact.members["ranks/1/program.json"]))
    names = {b["name"] for b in other["buffers"] if b["kind"] == "weight"}
    assert names <= set(artifact.weights) and any(n.endswith("@rank1") for n in names)


def test_what_is_exchanged_is_printed(tmp_path: Path, capsys: Any) -> None:
    model = str(perceptron(tmp_path / "m.onnx", 8))
    assert main([model, "--mesh=tp:2", "--print-sharding", "--target=nvptx", "--chip=sm_90a"]) == 0
    first, down, up, line = capsys.readouterr().out.splitlines()
    assert first.startswith("axis tp: 2 ranks, 1 collective of 1024 bytes a run, 8192 of 16384 bytes of weights a rank")
    assert (down, up) == ("  weight down, split(0)", "  weight up, split(1)")
    assert line.startswith("  all_reduce 1024 bytes, partial(add) -> whole: node '")


def test_what_is_exchanged_is_printed_ahead_of_an_output(tmp_path: Path, capsys: Any) -> None:
    model, out = str(perceptron(tmp_path / "m.onnx", 8)), tmp_path / "k.mlir"
    options = ["--mesh=tp:2", "--print-sharding", "--target=nvptx", "--chip=sm_90a", "--emit=kernels"]
    assert main([model, *options, "-o", str(out)]) == 0
    assert capsys.readouterr().out.startswith("axis tp: 2 ranks") and '"xt.permute"' in out.read_text()


@pytest.mark.parametrize("options, why", [
    ({"mesh": "tp"}, "write NAME:SIZE"), ({"shard": {"up": "tp:0"}}, "give a mesh"),
    ({"mesh": {"tp": 2}, "rank": 2}, "the mesh has 2 ranks"),
    ({"mesh": {"tp": 2}, "chip": "x86-64-v4,x86-64-v3"}, "is for one chip"),
    ({"mesh": {"tp": 2}, "verify": "numbers"}, "on one rank"),
    ({"mesh": {"tp": 5}, "shard": {"up": "tp:0"}}, "not known to divide among 5 ranks"),
])
def test_what_cannot_be(options: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=why):
        xcc.compile(perceptron(tmp_path / "m.onnx"), isolate=False, cache=False, **options)


TRANSFORMERS = ("bert_tiny", "gpt2_tiny", "llama_tiny", "vit_tiny")
DETECTORS = ("silero_vad_16k_op15", "silero_vad_16k_sequence", "silero_vad_8k", "silero_vad_half",
             "silero_vad_op18_ifless", "silero_vad_openvino_16k")
MESHES = ("tp:2", "tp:3", "tp:4", "dp:2,tp:2", "pp:2")
DIVIDED = [(name, mesh) for name in (*TRANSFORMERS, "resnet_tiny") for mesh in MESHES] + [
    (name, MESHES[(i + step) % len(MESHES)]) for i, name in enumerate(DETECTORS) for step in (0, 2)]
"""Each model with each mesh; of the exports of one voice detector each with two."""


@pytest.mark.parametrize(("name", "mesh"), DIVIDED)
def test_exported_models(name: str, mesh: str) -> None:
    """Transformers have two sums a layer, where heads divide, and what embeddings and logits are gathered of."""
    model = MODELS[name]
    source = load_source(model.get(), CompileOptions(dims=tuple((k, n, n) for k, n in model.dims.items())))
    note_equal_dims(source.module)
    get_pass("xt-simplify")().run(source.module, PassContext(weights=source.weights))
    rng = np.random.default_rng(0)
    case = {**model.cases[-1], **({"batch": 4} if "batch" in model.cases[-1] else {})}
    feeds = {k: v.draw(rng, case) for k, v in model.inputs.items()}
    main = source.module.body.operations[0].operation.attributes
    inputs = [feeds[ir.StringAttr(ir.DictAttr(a)["xt.name"]).value] for a in ir.ArrayAttr(main["arg_attrs"])]
    if "dp" in mesh and (name not in TRANSFORMERS or "batch" not in case):
        mesh = "sp:2,tp:2"
    names = check_model(source.module, inputs, mesh, source.weights, chip="sm_90a")
    if mesh == "tp:2" and name in TRANSFORMERS:
        found = Counter(n for n in names if n in COLLECTIVES)
        assert found["all_reduce"] == 4 and found["all_gather"] <= 2 and len(found) <= 2
