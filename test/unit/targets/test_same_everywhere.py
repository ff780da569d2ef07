"""The same command gives the same bytes on every machine: named chips do not ask the host."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from xcc.runtime.artifact import Artifact
from xcc.targets.chip_spec import chip_from_facts
from xcc.targets.cpu.chip import CHIPS, PRETENDED

pytestmark = pytest.mark.early

HOSTS = sorted((Path(__file__).parents[2] / "hosts").glob("*.json"))
NAMED = ("x86-64-v3", "znver4", "sapphirerapids", "neoverse-v1,cores=3")
PAIR = HOSTS[:2]       # unlike in all that is seen of them: cores, caches, vectors
COMPILE = """
import sys, xcc
model, folder, *chips = sys.argv[1:]
for chip in chips:
    xcc.compile(model, chip=chip, isolate=False, cache=False, jobs=1).save(f"{folder}/{chip}.xcm")
"""


def write_model(path: Path) -> None:
    """A product, a convolution, and a softmax with a sum, of sizes for which cores and caches decide something."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
               for name, shape in (("w", (256, 512)), ("k", (32, 32, 3, 3)))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Softmax", ["p"], ["s"], axis=-1),
             helper.make_node("ReduceSum", ["s", "axes"], ["y"], keepdims=0),
             helper.make_node("Conv", ["i", "k"], ["c"], pads=[1, 1, 1, 1])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 256)),
              helper.make_tensor_value_info("i", TensorProto.FLOAT, (1, 32, 24, 24))]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("p", "s", "y", "c")]
    axes = numpy_helper.from_array(np.array([0]), "axes")
    graph = helper.make_graph(nodes, "g", inputs, outputs, [*weights, axes])
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                       ir_version=9).SerializeToString())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Artifacts for each named chip and `native`, in a folder a host; of hosts beyond two for one of the chips."""
    root = tmp_path_factory.mktemp("hosts")
    write_model(root / "m.onnx")
    paths = os.pathsep.join(p for p in sys.path if p)
    for number, host in enumerate(HOSTS):
        chips = NAMED if host in PAIR else NAMED[:1]
        folder = root / host.stem
        folder.mkdir()
        subprocess.run([sys.executable, "-c", COMPILE, str(root / "m.onnx"), str(folder), *chips, "native"], check=True,
                       env={**os.environ, PRETENDED: str(host), "PYTHONPATH": paths, "PYTHONHASHSEED": str(number)})
    return root


def contents(path: Path) -> dict[str, bytes]:
    a = Artifact.read(path)
    return {**{k: bytes(v) for k, v in a.members.items()}, **{k: v.tobytes() for k, v in a.weights.items()}}


@pytest.mark.parametrize("chip", NAMED)
def test_named_chips(made: Path, chip: str) -> None:
    first, *others = [made / host.stem / f"{chip}.xcm" for host in (HOSTS if chip == NAMED[0] else PAIR)]
    wanted = contents(first)
    for other in others:
        found = contents(other)
        assert [k for k in {**wanted, **found} if wanted.get(k) != found.get(k)] == [], other
        assert other.read_bytes() == first.read_bytes()


def test_native_is_another_chip_on_each(made: Path) -> None:
    manifests = {host.stem: Artifact.read(made / host.stem / "native.xcm").manifest for host in HOSTS}
    chips = {host: chip_from_facts(m["chip_attributes"], m["target"]) for host, m in manifests.items()}
    assert {name: (c.name, c.cores) for name, c in chips.items()} == {
        "avx2": ("haswell", 4), "xeon-16": ("sapphirerapids", 16), "zen4-2": ("znver4", 2),
        "zen5-2": ("znver5", 2)}


def test_the_manifest_holds_the_chips_attributes(made: Path) -> None:
    manifest = Artifact.read(made / HOSTS[0].stem / "neoverse-v1,cores=3.xcm").manifest
    assert manifest["chip"] == "neoverse-v1"
    assert manifest["chip_attributes"]["cores"] == 3
    assert chip_from_facts(manifest["chip_attributes"], "cpu").l2_bytes == CHIPS["neoverse-v1"].l2_bytes
