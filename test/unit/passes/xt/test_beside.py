"""Kernels that share a launch: which do, and that the launch computes what they compute apart."""

from __future__ import annotations

import numpy as np
import pytest
from small_graphs import compiled, model_of, node

import xcc
from xcc._mlir import ir
from xcc.dialects import xt
from xcc.interpreter.executor import make_executor
from xcc.passes.base import PassContext
from xcc.passes.xt.form_kernels import FormKernels
from xcc.targets.nvptx.chip import chips

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


CHAIN = """
func.func @main(%x0: tensor<4x8xf32> {{xt.name = "x"}}) -> (tensor<4x8xf32> {{xt.name = "y"}}) {{
{ops}
  return %x{last} : tensor<4x8xf32>
}}
"""


def test_a_chain_of_thousands_of_ops():
    """No walk of the pass goes as deep as the graph."""
    last = 3000
    kind = "tensor<4x8xf32>"
    ops = "\n".join(f'%x{i + 1} = "xt.{"exp" if i % 3 else "neg"}"(%x{i}) : ({kind}) -> {kind}' for i in range(last))
    with xt.context(), ir.Location.unknown():
        module = ir.Module.parse(CHAIN.format(ops=ops, last=last))
        FormKernels(beside=4).run(module, PassContext(chip=chips()["sm_90a"]))
        assert "xtv.dispatch" in str(module)


@pytest.mark.parametrize("target", ["cpu", "nvptx"])
def test_a_size_that_is_counted_from_a_value_of_the_kernel(target):
    """relu(x) is counted, and multiplied by the count: the count's kernel is between the two."""
    x = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    nodes = [node("Relu", "x", "r"), node("NonZero", "r", "z"), node("Shape", "z", "s", start=1, end=2),
             node("Cast", "s", "f", to=1), node("Mul", "r f", "y")]
    model = model_of(nodes, {"x": x}, "y")
    made = compiled(model, "" if target == "cpu" else "sm_80")
    np.testing.assert_allclose(made.run({"x": x})["y"], np.maximum(x, 0) * np.count_nonzero(x > 0), rtol=1e-6)


@pytest.mark.parametrize("chip", ["", "sm_80"])
def test_sizes_that_are_values_of_an_input(chip):
    """They are known before the first launch: no kernel makes them, and all that read them may share one."""
    nodes = [node("ConstantOfShape", "n", "o"), node("Add", "o x", "a"), node("Exp", "a", "e"),
             node("ReduceSum", "e", "y", keepdims=0)]
    inputs = {"n": np.array([3, 5]), "x": np.array(0.5, np.float32)}
    made = compiled(model_of(nodes, inputs, "y"), chip)
    for sizes in ([3, 5], [1, 70]):
        got = made.run({"n": np.array(sizes), "x": inputs["x"]})["y"]
        np.testing.assert_allclose(got, np.exp(np.float32(0.5)) * np.prod(sizes), rtol=1e-5)
