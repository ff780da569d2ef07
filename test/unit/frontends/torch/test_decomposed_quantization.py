"""Ops of namespace ``quantized_decomposed``: what an export has of them gives torch's results, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  declares the ops
from torch_programs import check, check_traced

import xcc.torch
from xcc.frontends.torch import archive
from xcc.passes.xt.integer_contractions import IntegerContractions

Q = torch.ops.quantized_decomposed
INT8 = (-128, 127, torch.int8)
UINT8 = (0, 255, torch.uint8)
ONE, THREE = torch.tensor([0.05]), torch.tensor([3])
BOUNDS = (torch.tensor(-100), torch.tensor(127))
SCALES, ZEROS = torch.linspace(0.02, 0.1, 8), torch.arange(-4, 4)
GROUPS, GROUP_ZEROS = torch.linspace(0.02, 0.4, 8).reshape(4, 2), torch.arange(8, dtype=torch.int8).reshape(4, 2)


def _both(quantize: Any, dequantize: Any, *by: Any, more: tuple[Any, ...] = ()) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        q = quantize(x, *by)
        return q, dequantize(q, *by, *more)
    return f


def _dynamic(choose: Any, x: Any) -> Any:
    by = choose(x, *INT8[:2], 1e-3, torch.int8)
    return by, *_both(Q.quantize_per_tensor.tensor, Q.dequantize_per_tensor.tensor, *by, *INT8)(x)


def _by_token(choose: Any, x: Any) -> Any:
    by = choose(x, torch.int8)
    return by, *_both(Q.quantize_per_token, Q.dequantize_per_token, *by, *INT8, more=(torch.float32,))(x)


CASES: dict[str, Callable[[Any], Any]] = {
    "numbers": _both(Q.quantize_per_tensor.default, Q.dequantize_per_tensor.default, 0.05, 3, *INT8),
    "unsigned": _both(Q.quantize_per_tensor.default, Q.dequantize_per_tensor.default, 0.05, 3, 0, 255, torch.uint8),
    "words": _both(Q.quantize_per_tensor.default, Q.dequantize_per_tensor.default, 1e-3, 3, -32768, 32767, torch.int16),
    "tensors": _both(Q.quantize_per_tensor.tensor, Q.dequantize_per_tensor.tensor, ONE, THREE, *INT8),
    "bounds": _both(Q.quantize_per_tensor.tensor2, Q.dequantize_per_tensor.tensor2, ONE, THREE, *BOUNDS, torch.int8),
    "half": lambda x: Q.dequantize_per_tensor.tensor(
        Q.quantize_per_tensor.tensor(x.half(), ONE, THREE, *INT8), ONE, THREE, *INT8, out_dtype=torch.float16),
    "channels": _both(Q.quantize_per_channel, Q.dequantize_per_channel, SCALES, ZEROS, 1, *INT8),
    "narrow": _both(Q.quantize_per_tensor.default, Q.dequantize_per_tensor.default, 0.7, 3, -8, 7, torch.int8),
    "zeros of floats": _both(Q.quantize_per_channel, Q.dequantize_per_channel, SCALES, ZEROS / 2, 1, *INT8),
    "groups": _both(Q.quantize_per_channel_group, Q.dequantize_per_channel_group, GROUPS, GROUP_ZEROS, -8, 7,
                    torch.int8, 4, more=(torch.float32,)),
    "dynamic": partial(_dynamic, Q.choose_qparams.tensor),
    "dynamic symmetric": partial(_dynamic, Q.choose_qparams_symmetric.tensor),
    "tokens": partial(_by_token, Q.choose_qparams_per_token),
    "tokens with zeros": partial(_by_token, Q.choose_qparams_per_token_asymmetric)}


class Model(torch.nn.Module):
    def __init__(self, f: Callable[[Any], Any]) -> None:
        super().__init__()
        self.f = f

    def forward(self, x: Any) -> Any:
        return self.f(x)


@pytest.mark.parametrize("case", CASES)
def test_results_of_exports(case: str) -> None:
    """Some are clamped, one lies half way; zeros alone have the least scale that is allowed."""
    torch.manual_seed(0)
    x = torch.cat((torch.randn(3, 8) * 4, torch.full((1, 8), 0.125)))
    check(Model(CASES[case]), (x,), (torch.zeros(4, 8),), tolerance=0)


@pytest.mark.parametrize("case", ["numbers", "tensors", "channels", "dynamic", "tokens"])
def test_results_at_other_sizes(case: str) -> None:
    check_traced(CASES[case], torch.randn(4, 8), others=((torch.randn(7, 8) + 2,),), tolerance=0)


@pytest.mark.parametrize("quantized", [True, False])
def test_a_file_declares_the_ops_that_it_has(quantized: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's loader does not know them before; other files do not wait for the import."""
    calls: list[bool] = []
    monkeypatch.setattr(archive, "declare_quantized_ops", lambda: calls.append(True))
    model = Model(CASES["numbers"] if quantized else torch.relu)
    torch.export.save(torch.export.export(model, (torch.ones(4, 8),)), tmp_path / "m.pt2")
    archive.load(str(tmp_path / "m.pt2"))
    assert bool(calls) == quantized


class Layers(torch.nn.Module):
    """As PT2E writes them: weights in bytes by channel, bytes between a convolution and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        for name, shape in (("filter", (4, 3, 3, 3)), ("matrix", (5, 16))):
            self.register_buffer(name, torch.randint(-127, 128, shape, dtype=torch.int8))
            self.register_buffer(f"{name}_scales", torch.rand(shape[0]) / 500 + 1e-3)
            self.register_buffer(f"{name}_zeros", torch.zeros(shape[0], dtype=torch.int64))

    def _weight(self, name: str) -> Any:
        return Q.dequantize_per_channel(getattr(self, name), getattr(self, f"{name}_scales"),
                                        getattr(self, f"{name}_zeros"), 0, *INT8)

    def forward(self, x: Any) -> Any:
        y = torch.nn.functional.conv2d(_as_bytes(x, 0.02, 120), self._weight("filter"), torch.ones(4)).relu()
        y = torch.nn.functional.max_pool2d(_as_bytes(y, 0.03, 0), 2).flatten(1)
        y = torch.nn.functional.linear(_as_bytes(y, 0.03, 0), self._weight("matrix"))
        return Q.quantize_per_tensor(y, 0.01, 128, *UINT8)


def _as_bytes(x: Any, scale: float, zero: int) -> Any:
    return Q.dequantize_per_tensor(Q.quantize_per_tensor(x, scale, zero, *UINT8), scale, zero, *UINT8)


@pytest.mark.parametrize("way", ["exported", "frozen"])
def test_layers_are_products_of_bytes(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled program multiplies no floats, and results are one step apart at most."""
    seen: list[str] = []
    run = IntegerContractions.run
    monkeypatch.setattr(IntegerContractions, "run", lambda own, module, ctx: (run(own, module, ctx),
                                                                              seen.append(str(module)))[0])
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, x = Layers().eval(), torch.randn(3, 3, 6, 6)
    with torch.no_grad():
        options = {"chip": "x86-64-v3", "cache": False}
        compiled = xcc.torch.compile(model, freeze=True, **options) if way == "frozen" else xcc.torch.function(
            xcc.compile(torch.export.export(model, (x,)), **options))
        apart = compiled(x).int() - model(x).int()
    assert apart.abs().max() <= 1 and (apart == 0).float().mean() > 0.9
    products = [line for line in seen[-1].split("\n") if "xt.convolution" in line or "xt.dot_general" in line]
    assert len(products) == 2 and all("dtype = i32" in line for line in products)
