"""Several code versions in one artifact, and which of them runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import xcc
from xcc.runtime import versions
from xcc.runtime.artifact import Artifact
from xcc.tools import xcc_cli

CHIPS = ("x86-64-v4", "x86-64-v3", "neoverse-v1")
V3 = {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}
V4 = V3 | {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
RNG = np.random.default_rng(0)
X, W, B = RNG.standard_normal((5, 70)), RNG.standard_normal((70, 96)), RNG.standard_normal((5, 96))


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Add", ["t", "b"], ["u"]),
         helper.make_node("Tanh", ["u"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 70))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(W.astype(np.float32), "w"), numpy_helper.from_array(B[0].astype(np.float32), "b")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = tmp_path_factory.mktemp("m") / "m.xcm"
    xcc.compile(model, chip="x86-64-v3,neoverse-v1,x86-64-v4").save(path)
    return path


@pytest.fixture
def cpu(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes this machine look like another."""
    def pretend(machine: str, flags: set[str] | None) -> None:
        monkeypatch.setattr(versions.platform, "machine", lambda: machine)
        monkeypatch.setattr(versions, "_cpu_flags", lambda: flags)
    return pretend


def chosen(path: Path) -> str:
    a = Artifact.read(path)
    return versions.choose(a.program, a.members, a.weights, a.manifest).chip


def test_the_first_version_that_fits_is_taken(artifact: Path, cpu: Callable[..., None]) -> None:
    for machine, flags, chip in (("x86_64", V4, "x86-64-v4"), ("x86_64", V3, "x86-64-v3"), ("AMD64", V4, "x86-64-v4"),
                                 ("aarch64", set(), "neoverse-v1")):
        cpu(machine, flags)
        assert chosen(artifact) == chip


def test_no_version_that_fits(artifact: Path, cpu: Callable[..., None]) -> None:
    cpu("x86_64", V3 - {"fma", "f16c"})
    model = xcc.load(artifact)              # it can be looked at
    assert model.chip == "x86-64-v4,x86-64-v3,neoverse-v1"
    with pytest.raises(xcc.UserError, match=r"none of the model's code versions runs on this machine \(x86-64-v4: this "
                                            r"CPU lacks .*; x86-64-v3: this CPU lacks f16c, fma; neoverse-v1: it is "
                                            r"for aarch64 and this machine is x86_64\)"):
        model(X.astype(np.float32))


def here() -> list[str]:
    flags = versions._cpu_flags() or set()
    machine = versions.platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        return [c for c, needed in (("x86-64-v4", V4), ("x86-64-v3", V3)) if needed <= flags]
    return ["neoverse-v1"] if machine in ("aarch64", "arm64") else []


@pytest.mark.parametrize("chip", CHIPS)
def test_each_gives_the_same_result(artifact: Path, monkeypatch: pytest.MonkeyPatch, chip: str) -> None:
    if chip not in here():
        pytest.skip(f"this machine does not run code for {chip}")
    monkeypatch.setenv("XCC_CPU_VERSION", chip)
    model = xcc.load(artifact)
    assert model.executor.version == chip
    np.testing.assert_allclose(model(X.astype(np.float32)), np.tanh(X @ W + B[0]), rtol=2e-5, atol=2e-5)


def test_a_version_by_name_that_is_not_there(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_CPU_VERSION", "znver4")
    with pytest.raises(xcc.UserError, match="XCC_CPU_VERSION is 'znver4'; the model holds code for x86-64-v4,"):
        chosen(artifact)


def test_equal_weights_are_stored_once(artifact: Path) -> None:
    a = Artifact.read(artifact)
    shared = [w for w in a.weights.values() if w.size == 96]
    panels = [w for w in a.weights.values() if w.size == W.size]
    assert len(shared) == 1                                 # the bias
    assert len(panels) == len({w.shape for w in panels})    # panels of one width are the same bytes
    assert [v["chip"] for v in a.manifest["versions"]] == list(CHIPS)
    assert all(v["weights"] == 4 * (W.size + 96) for v in a.manifest["versions"])


def test_saved_and_loaded_again(artifact: Path, tmp_path: Path) -> None:
    xcc.load(artifact).save(tmp_path / "again.xcm")
    assert (tmp_path / "again.xcm").read_bytes() == artifact.read_bytes()


@pytest.mark.parametrize(("change", "what"), [
    (lambda p: p | {"inputs": []}, "its inputs and outputs are not those of the model"),
    (lambda p: p | {"buffers": [b | {"name": "none"} if b["kind"] == "weight" else b for b in p["buffers"]]},
     "uses weight 'none', which the file does not have"),
    (lambda _p: [], "expected an object"),
])
def test_versions_that_do_not_belong(artifact: Path, change: Callable[[Any], Any], what: str) -> None:
    a = Artifact.read(artifact)
    name = "versions/x86-64-v3/program.json"
    data = json.dumps(change(json.loads(bytes(a.members[name])))).encode()
    with pytest.raises(xcc.UserError, match=what):
        versions.choose(a.program, dict(a.members) | {name: data}, a.weights, a.manifest)


def test_chips_without_a_linker(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text("""
func.func @main(%x: tensor<8xf32> {xt.name = "x"}) -> (tensor<8xf32> {xt.name = "y"}) {
  %0 = "xt.add"(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}""")
    with pytest.raises(xcc.UserError, match="code for apple-m1 is compiled .* but cannot be linked"):
        xcc.compile(tmp_path / "m.mlir", chip="apple-m1")


@pytest.mark.parametrize(("flags", "what"), [
    (("--chip=x86-64-v3,x86-64-v4", "--emit=vector"), "stages are written for one chip"),
    (("--chip=x86-64-v3,nothing",), "has no chip 'nothing'"),
])
def test_what_cannot_be_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...],
                                  what: str) -> None:
    (tmp_path / "m.mlir").write_text("func.func @main() { return }")
    assert xcc_cli.main([str(tmp_path / "m.mlir"), *flags]) == 1
    assert what in capsys.readouterr().err
