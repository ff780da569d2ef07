"""What is made when a model is loaded, so that its first run is like any other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import xcc
from xcc.diagnostics import UserError

# Two kernels: a product whose result is 4 MB (n = 1024) in the arena, and what is computed of all of it.
PRODUCT = """
func.func @main(%x: tensor<NxKxf32ENCODING> {xt.name = "x"}) -> (tensor<NxNxf32SQUARE> {xt.name = "y"}) {
  %0 = "xt.dot_general"(%x, %x) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]}
    : (tensor<NxKxf32ENCODING>, tensor<NxKxf32ENCODING>) -> tensor<NxNxf32SQUARE>
  %1 = "xt.softmax"(%0) {axis = 0 : i64} : (tensor<NxNxf32SQUARE>) -> tensor<NxNxf32SQUARE>
  return %1 : tensor<NxNxf32SQUARE>
}
"""
STATIC = PRODUCT.replace("ENCODING", "").replace("SQUARE", "").replace("N", "1024").replace("K", "32")
SYMBOLIC = PRODUCT.replace("ENCODING", ', ["n", 32]').replace("SQUARE", ', ["n", "n"]').replace("N", "?").replace(
    "K", "32")
SMALL = """
func.func @main(%x: tensor<8xf32> {xt.name = "x"}) -> (tensor<8xf32> {xt.name = "y"}) {
  %0 = "xt.add"(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
RUN = """
import json, os, resource, sys
import numpy as np
from xcc.runtime.model import load

def counts():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt, len(os.listdir("/proc/self/task"))

path, shape, options = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
x = np.ones(shape, np.float32)
counts()
before = counts()
model = load(path, **options)
loaded = counts()
y, = model.run({"x": x}).values()
run = counts()
assert y.shape[0] == shape[0]
print(json.dumps({"faults": run[0] - loaded[0], "started": loaded[1] - before[1], "started_later": run[1] - loaded[1]}))
"""
linux = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="Linux counts threads and page faults")


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    for name, text in {"static": STATIC, "symbolic": SYMBOLIC, "small": SMALL}.items():
        (folder / f"{name}.mlir").write_text(text)
        xcc.compile(folder / f"{name}.mlir", threads=2).save(folder / f"{name}.xcm")
    return folder


def first_run(path: Path, shape: tuple[int, ...], **options: object) -> dict[str, int]:
    """Page faults and threads of the first run in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    environment.pop("XCC_THREADS", None)
    done = subprocess.run([sys.executable, "-c", RUN, str(path), json.dumps(shape), json.dumps(options)], check=True,
                          capture_output=True, text=True, env=environment)
    return dict(json.loads(done.stdout))


FEW = 100       # page faults; the arena and the output of the product have 2048 small pages


@linux
def test_memory_and_threads_are_there(artifacts: Path) -> None:
    seen = first_run(artifacts / "static.xcm", (1024, 32))
    assert seen["faults"] < FEW
    assert (seen["started"], seen["started_later"]) == (1, 0)


@linux
def test_not_without_preparing(artifacts: Path) -> None:
    """The counts of the test above are those of the work that loading does."""
    seen = first_run(artifacts / "static.xcm", (1024, 32), prepare=False)
    assert (seen["started"], seen["started_later"]) == (0, 1)


@linux
def test_memory_for_the_sizes_that_the_caller_names(artifacts: Path) -> None:
    assert first_run(artifacts / "symbolic.xcm", (700, 32), dims={"n": 700})["faults"] < FEW


@linux
def test_memory_for_larger_sizes_than_the_least(artifacts: Path) -> None:
    model = xcc.load(artifacts / "symbolic.xcm")
    least = model.executor.memory.planner.plan({"n": 1}).size
    assert model.executor.memory.room == 64 * least
    assert xcc.load(artifacts / "symbolic.xcm", dims={"n": 1}).executor.memory.room == least


@linux
def test_no_threads_where_no_kernel_can_use_them(artifacts: Path) -> None:
    seen = first_run(artifacts / "small.xcm", (8,))
    assert (seen["started"], seen["started_later"]) == (0, 0)


def expected(x: np.ndarray) -> np.ndarray:
    e = np.exp((x @ x.T) - (x @ x.T).max(0))
    return e / e.sum(0)


def test_other_sizes_than_those_made_ready(artifacts: Path) -> None:
    rng = np.random.default_rng(0)
    model = xcc.load(artifacts / "symbolic.xcm", dims={"n": 300})
    for n in (1, 700, 300, 2):
        x = rng.standard_normal((n, 32), np.float32)
        np.testing.assert_allclose(model(x), expected(x), rtol=2e-4, atol=1e-6)


def test_outputs_are_each_their_own(artifacts: Path) -> None:
    """The output that was made ready is not handed out twice."""
    model = xcc.load(artifacts / "static.xcm")
    inputs = [np.full((1024, 32), v, np.float32) for v in (0, 1)]
    inputs[1][0] = 2
    first, second = model(inputs[0]), model(inputs[1])
    np.testing.assert_allclose(first, expected(inputs[0]), rtol=1e-5)
    np.testing.assert_allclose(second, expected(inputs[1]), rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize(("dims", "message"), [
    ({"m": 3}, "no symbolic dim 'm'; it has n"), ({"n": 1 << 40}, "does not suffice"),
    ({"n": -1}, "cannot have these sizes")])
def test_dims_that_do_not_fit(artifacts: Path, dims: dict[str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        xcc.load(artifacts / "symbolic.xcm", dims=dims)


RELATED = """
module attributes {xt.dims = {n = [7, 40]}, xt.equal = [["RELATION", RESULT]]} {
  func.func @main(%x: tensor<?xf32, ["n"]> {xt.name = "x"}) -> (tensor<?xf32, ["n"]> {xt.name = "y"}) {
    %0 = "xt.add"(%x, %x) : (tensor<?xf32, ["n"]>, tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
    return %0 : tensor<?xf32, ["n"]>
  }
}
"""


@pytest.mark.parametrize(("relation", "result", "message"), [
    ("mod(n, 20)", "0", "sizes do not fit"), ("floordiv(26, n - 7)", "2", "sizes do not fit|division by zero")])
def test_sizes_that_a_model_cannot_have_do_not_stop_it_from_loading(tmp_path: Path, relation: str, result: str,
                                                                    message: str) -> None:
    (tmp_path / "m.mlir").write_text(RELATED.replace("RELATION", relation).replace("RESULT", result))
    model = xcc.compile(tmp_path / "m.mlir")
    np.testing.assert_array_equal(model(np.ones(20, np.float32)), 2)
    for n in (7, 22):
        with pytest.raises(UserError, match=message):
            model.prepare({"n": n})
        with pytest.raises(UserError, match=message):
            model(np.ones(n, np.float32))
    with pytest.raises(UserError, match=r"compiled for 7\.\.40"):
        model.prepare({"n": 60})
