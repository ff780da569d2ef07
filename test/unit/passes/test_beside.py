"""Kernels that share a launch: which do, and that the launch computes what they compute apart."""

from __future__ import annotations

import numpy as np
import pytest

import xcc
from xcc.interpreter.executor import make_executor

MODEL = """
func.func @main(%x: tensor<?x40xf32, ["n", 40]> {xt.name = "x"}, %y: tensor<6x300xf32> {xt.name = "y"})
    -> (tensor<?x40xf32, ["n", 40]> {xt.name = "a"}, tensor<6xf32> {xt.name = "b"}, tensor<300x6xf32> {xt.name = "c"},
        tensor<?x40xf32, ["n", 40]> {xt.name = "d"}) {
  %a = "xt.exp"(%x) : (tensor<?x40xf32, ["n", 40]>) -> tensor<?x40xf32, ["n", 40]>
  %b = "xt.reduce"(%y) {axes = [1], keepdims = false, kind = "sum"} : (tensor<6x300xf32>) -> tensor<6xf32>
  %c = "xt.transpose"(%y) {perm = [1, 0]} : (tensor<6x300xf32>) -> tensor<300x6xf32>
  %s = "xt.reduce"(%a) {axes = [1], keepdims = true, kind = "max"}
      : (tensor<?x40xf32, ["n", 40]>) -> tensor<?x1xf32, ["n", 1]>
  %t = "xt.reduce"(%s) {axes = [0], keepdims = true, kind = "sum"} : (tensor<?x1xf32, ["n", 1]>) -> tensor<1x1xf32>
  %d = "xt.sub"(%x, %t) : (tensor<?x40xf32, ["n", 40]>, tensor<1x1xf32>) -> tensor<?x40xf32, ["n", 40]>
  return %a, %b, %c, %d : tensor<?x40xf32, ["n", 40]>, tensor<6xf32>, tensor<300x6xf32>, tensor<?x40xf32, ["n", 40]>
}
"""


@pytest.fixture(scope="module", params=["nvptx", "amdgcn"])
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("beside") / "m.mlir"
    path.write_text(MODEL)
    chip = {"nvptx": "sm_80", "amdgcn": "gfx1100"}[request.param]
    made = xcc.compile(str(path), target=request.param, chip=chip, keep_ir=True)
    a = made.artifact
    made._executor = make_executor(a.program, a.members, a.weights, a.manifest)
    return made


def test_independent_kernels_of_any_kind_are_one_launch(model):
    launches = [s for s in model.artifact.program.body if type(s).__name__ == "Launch"]
    kernels = {k["name"]: k["entries"] for k in model.artifact.manifest["kernels"]}
    assert [s.kernel for s in launches][0].startswith("beside")
    assert len(kernels["beside_0"]) == 1
    assert len(launches) == 3        # exp with its maximum, a sum and a transpose; the total; the difference


@pytest.mark.parametrize("n", [1, 77])
def test_the_launch_computes_what_they_compute_apart(model, n):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((n, 40), np.float32), rng.standard_normal((6, 300), np.float32)
    out = model.run({"x": x, "y": y})
    e = np.exp(x)
    for name, want in (("a", e), ("b", y.sum(1)), ("c", y.T), ("d", x - e.max(1).sum())):
        np.testing.assert_allclose(out[name], want, rtol=1e-4, atol=1e-4)
