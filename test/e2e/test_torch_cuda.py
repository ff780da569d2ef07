"""torch.compile, compiled models as functions, and model.run on tensors of an NVIDIA GPU."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch._dynamo.utils import counters

import xcc.torch
from xcc.frontends.torch.backend import backend
from xcc.runtime.cuda_driver import CudaDriver

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("fresh_torch"),
              pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")]
STRICT = {"strict": True}


def perceptron(dtype: Any = torch.float32) -> torch.nn.Module:
    layers = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 16))
    return layers.to("cuda", dtype)


def close(got: Any, want: Any, limit: float = 1e-4) -> None:
    """Within `limit` of the range."""
    assert got.shape == want.shape and got.dtype == want.dtype and got.device == want.device
    if want.numel():
        assert (got.float() - want.float()).abs().max() <= limit * want.float().abs().max()


def equal(f: Any, *args: Any) -> Any:
    compiled = torch.compile(f, backend=backend, fullgraph=True, options=STRICT)
    want, got = f(*args), compiled(*args)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
    if isinstance(want, torch.Tensor):
        assert got.stride() == want.stride()
    return compiled


@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 1e-4), (torch.float16, 1e-2), (torch.bfloat16, 1e-2)])
def test_all_sizes_run_from_one_compilation(dtype: Any, limit: float) -> None:
    model = perceptron(dtype)
    compiled = xcc.torch.compile(model, strict=True)
    counters.clear()
    with torch.no_grad():
        for n in (1, 0, 5, 2, 9, 5):
            x = torch.randn(n, 64, device="cuda", dtype=dtype)
            close(compiled(x), model(x), limit)
    assert counters["stats"]["unique_graphs"] == 1


def test_layouts_are_read_and_promised() -> None:
    x = torch.randn(2, 3, 4, 5, device="cuda")
    last = x.to(memory_format=torch.channels_last)
    for layout in (x, last, x.transpose(1, 3), x[:, :, ::2], x[:1].expand(2, 3, 4, 5), x.reshape(-1)[1:]):
        equal(lambda t: torch.nn.functional.gelu(t) * 2, layout)


def test_an_input_that_is_written() -> None:
    def step(x: Any, y: Any) -> Any:
        x.add_(y)
        return x * 2

    compiled = torch.compile(step, backend=backend, fullgraph=True, options=STRICT)
    y = torch.randn(3, device="cuda")
    with torch.no_grad():
        for a in (torch.ones(3, device="cuda"), torch.zeros(4, device="cuda")[1:]):     # the second begins at 4 bytes
            b = a.clone()
            close(compiled(a, y), step(b, y))
            close(a, b)
        wide, same = torch.zeros(3, 2, device="cuda"), torch.zeros(3, 2, device="cuda")
        close(compiled(wide[:, 0], y), step(same[:, 0], y))
        close(wide, same)


def test_numbers_of_the_host_and_sizes() -> None:
    scale = torch.tensor(2.5)
    equal(lambda t: t * scale + t.shape[0], torch.randn(4, 6, device="cuda"))
    compiled = torch.compile(lambda t, n: t.sum(0) / n, backend=backend, fullgraph=True, options=STRICT, dynamic=True)
    for n in (3, 7, 12):
        x = torch.randn(n, 5, device="cuda")
        close(compiled(x, n), x.sum(0) / n)


def test_a_graph_of_two_devices_runs_in_torch() -> None:
    x = torch.randn(4, device="cuda")
    with pytest.warns(UserWarning, match="tensors on cpu and cuda:0"):
        got = torch.compile(lambda t: (t + 1).cpu() * 2, backend=backend)(x)
    close(got, (x.cpu() + 1) * 2)


def test_frozen_parameters() -> None:
    model = perceptron()
    compiled = torch.compile(model, backend=backend, options={"freeze": True, **STRICT})
    x = torch.randn(8, 64, device="cuda")
    with torch.no_grad():
        close(compiled(x), model(x))
        model[0].weight.mul_(2)
        close(compiled(x), model(x))


def test_gradients_and_optimizer_steps() -> None:
    losses = []
    for way in ("eager", "compiled"):
        torch.manual_seed(3)
        model = perceptron()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        call = model if way == "eager" else torch.compile(model, backend=backend)
        step = optimizer.step if way == "eager" else torch.compile(optimizer.step, backend=backend)
        x, y = torch.randn(32, 64, device="cuda"), torch.randn(32, 16, device="cuda")
        losses.append([])
        for _ in range(20):
            optimizer.zero_grad()
            loss = (call(x) - y).square().mean()
            loss.backward()
            step()
            losses[-1].append(float(loss))
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-3)


def test_random_numbers_follow_torchs_generator() -> None:
    x = torch.ones(1000, device="cuda")
    compiled = torch.compile(lambda t: torch.nn.functional.dropout(t, 0.5), backend=backend, options=STRICT)
    torch.manual_seed(7)
    first, second = compiled(x), compiled(x)
    torch.manual_seed(7)
    assert torch.equal(compiled(x), first) and not torch.equal(first, second)
    assert 400 < int((first == 0).sum()) < 600


def test_nothing_waits_for_the_device() -> None:
    model = perceptron()
    compiled = torch.compile(model, backend=backend, options=STRICT)
    x = torch.randn(8, 64, device="cuda")
    with torch.no_grad():
        want = compiled(x)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        torch.cuda._sleep(2_000_000_000)        # about a second
        got = compiled(x)
        assert time.perf_counter() - begin < 0.2
        assert torch.equal(got, want)


def test_side_streams() -> None:
    """Each run's numbers are its own, while runs on two streams are in flight."""
    model = perceptron()
    compiled = torch.compile(model, backend=backend, options=STRICT)
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    with torch.no_grad():
        inputs = [torch.randn(64, 64, device="cuda") for _ in range(2)]
        want = [model(x) for x in inputs]
        compiled(inputs[0])
        torch.cuda.synchronize()
        got: list[list[Any]] = [[], []]
        for _ in range(50):
            for n, stream in enumerate(streams):
                with torch.cuda.stream(stream):
                    got[n].append(compiled(inputs[n]))
        torch.cuda.synchronize()
    for n in range(2):
        for result in got[n]:
            close(result, want[n])


def test_inside_a_graph_of_torch() -> None:
    model = perceptron()
    compiled = torch.compile(model, backend=backend, options=STRICT)
    x = torch.randn(8, 64, device="cuda")
    with torch.no_grad():
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            compiled(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = compiled(x * 2) + 1
        for _ in range(3):
            x.copy_(torch.randn(8, 64))
            graph.replay()
            close(out, model(x * 2) + 1)
        compiled(x)     # and outside, again
        graph.replay()
        close(out, model(x * 2) + 1)


def test_memory_is_flat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this process: torch's, what the driver was asked for, and graphs."""
    asked: Counter[str] = Counter()

    def count(name: str) -> None:
        own = getattr(CudaDriver, name)

        def counted(*args: Any) -> Any:
            asked[name] += 1
            return own(*args)

        monkeypatch.setattr(CudaDriver, name, counted)

    for name in ("alloc", "end_capture", "load"):
        count(name)
    model = perceptron()
    compiled = torch.compile(model, backend=backend, options=STRICT)
    with torch.no_grad():
        seen = []
        held: list[Any] = []
        for n in range(1000):
            held = [*held[-3:], compiled(torch.randn(8, 64, device="cuda"))]        # addresses change
            if n in (100, 999):
                torch.cuda.synchronize()
                seen.append((torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), dict(asked)))
    assert seen[0] == seen[1] and asked["end_capture"]


def exported(model: Any, *args: Any) -> Any:
    rows = torch.export.Dim("rows")
    program = torch.export.export(model, args, dynamic_shapes=({0: rows},))
    return xcc.compile(program, target="nvptx")


def test_an_exported_model_as_a_function() -> None:
    model = perceptron().eval()
    run = xcc.torch.function(exported(model, torch.randn(4, 64, device="cuda")))
    with torch.no_grad():
        for n in (4, 1, 9, 0, 4):
            x = torch.randn(n, 64, device="cuda")
            close(run(x), model(x))
        odd = torch.randn(64 * 3 + 1, device="cuda")[1:].reshape(3, 64)
        close(run(odd), model(odd))
    with pytest.raises(xcc.UserError, match="is on cpu, the model runs on cuda:0"):
        run(torch.randn(4, 64))


def test_model_run_with_outputs_and_streams_of_the_caller() -> None:
    model = perceptron().eval()
    compiled = exported(model, torch.randn(4, 64, device="cuda"))
    name, out_name = compiled.inputs[0].name, compiled.outputs[0].name
    x, out = torch.randn(5, 64, device="cuda"), torch.empty(5, 16, device="cuda")
    with torch.no_grad():
        assert compiled.run({name: x}, out={out_name: out})[out_name] is out
        close(out, model(x))
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            begin = time.perf_counter()
            torch.cuda._sleep(2_000_000_000)
            compiled.run({name: x * 2}, out={out_name: out}, stream=stream)
            assert time.perf_counter() - begin < 0.2
        stream.synchronize()
        close(out, model(x * 2))
        made = compiled.run({name: x}, stream=stream)[out_name]
        close(torch.from_dlpack(made), model(x))
        lent = compiled.run({name: x}, borrow=True)[out_name]
        close(torch.from_dlpack(lent), model(x))
        host = np.empty((5, 16), np.float32)
        compiled.run({name: x.cpu().numpy()}, out={out_name: host})
        np.testing.assert_allclose(host, model(x).cpu(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["convolution", "product"])
def test_tf32_is_used_where_torch_allows_it(kind: str) -> None:
    """Rounded to nearest as torch does: nearer to its result than either is to the exact one, which is given else."""
    torch.manual_seed(0)
    x, w = (torch.randn(8, 64, 32, 32, device="cuda"), torch.randn(128, 64, 3, 3, device="cuda")) \
        if kind == "convolution" else (torch.randn(512, 1024, device="cuda"), torch.randn(256, 1024, device="cuda"))
    f = torch.nn.functional.conv2d if kind == "convolution" else torch.nn.functional.linear
    exact = f(x.double(), w.double())

    def error(allowed: bool) -> float:
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = allowed
        try:
            got = torch.compile(f, backend=backend, fullgraph=True, options=STRICT)(x, w)
        finally:
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        return float((got - exact).abs().max() / exact.abs().max())

    assert error(False) < 1e-5
    assert 5e-5 < error(True) < 5e-4
