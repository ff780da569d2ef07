"""Models, graphs of torch and kernels on the second GPU of a machine, beside the first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper

import xcc.torch
from xcc.frontends.torch.backend import backend

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two NVIDIA GPUs")]
SECOND = "cuda:1"


@pytest.fixture(autouse=True)
def the_current_device_stays() -> Any:
    with torch.cuda.device(0):
        yield
        assert torch.cuda.current_device() == 0


def model() -> Any:
    """y = gelu(x w)."""
    rng = np.random.default_rng(0)
    w = helper.make_tensor("w", TensorProto.FLOAT, [64, 32], rng.standard_normal((64, 32)).astype(np.float32).ravel())
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Gelu", ["h"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 32])], [w])
    return xcc.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), target="nvptx")


def test_models_on_both(tmp_path: Any) -> None:
    first = model()
    first.save(tmp_path / "m.xcm")
    second = xcc.load(tmp_path / "m.xcm", device=1)
    x = np.random.default_rng(1).standard_normal((9, 64)).astype(np.float32)
    want = first.run({"x": x})["y"]
    np.testing.assert_array_equal(second.run({"x": x})["y"], want)
    assert (first.device, second.device) == (0, 1)
    for device in ("cuda:0", SECOND):       # what is on the other one is copied
        y = torch.from_dlpack(second.run({"x": torch.from_numpy(x).to(device)})["y"])
        assert str(y.device) == SECOND
        np.testing.assert_array_equal(y.cpu(), want)
    out = torch.zeros(9, 32, device=SECOND)
    with torch.cuda.device(1):
        stream = torch.cuda.Stream()
    second.run({"x": torch.from_numpy(x).to(SECOND)}, out={"y": out}, stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(out.cpu(), want)
    with pytest.raises(xcc.UserError, match="there is no GPU 99"):
        xcc.load(tmp_path / "m.xcm", device=99).run({"x": x})


def test_tensors_decide() -> None:
    m = model()
    y = torch.from_dlpack(m.run({"x": torch.ones(3, 64, device=SECOND)})["y"])
    assert m.device == 1 and str(y.device) == SECOND


@pytest.mark.usefixtures("fresh_torch")
def test_a_graph_of_the_second_gpu() -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 16)).to(SECOND)
    compiled = torch.compile(layers, backend=backend, fullgraph=True, options={"strict": True})
    for n in (4, 7, 4):
        x = torch.randn(n, 64, device=SECOND)
        y = compiled(x)
        assert y.device == x.device
        torch.testing.assert_close(y, layers(x), rtol=1e-4, atol=1e-4)
    y.sum().backward()
    assert all(p.grad.device == p.device for p in layers.parameters())


@xcc.kernel
def doubled(x: Any, y: Any, BLOCK: xcc.constexpr) -> None:
    at = xcc.program_id(0) * BLOCK
    y.store(at, x.tile(at, BLOCK, other=0) * 2)


def test_a_kernel_on_each() -> None:
    for device in ("cuda:0", SECOND, "cuda:0"):
        x = torch.randn(1000, device=device)
        y = torch.zeros_like(x)
        doubled[(xcc.cdiv(1000, 256),)](x, y, BLOCK=256)
        torch.cuda.synchronize(x.device)
        torch.testing.assert_close(y, 2 * x)
