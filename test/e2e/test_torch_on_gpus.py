"""Graphs of inference and training that torch.compile makes, compiled for GPUs: their code in the interpreter.

What a GPU is needed for, its calls, is in test_torch_cuda.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from xcc.facade import compile_to_artifact
from xcc.frontends.torch import backend
from xcc.frontends.torch.call import results_of
from xcc.frontends.torch.capture import capture_fx
from xcc.frontends.torch.dtypes import to_numpy
from xcc.frontends.torch.layout import inverse
from xcc.frontends.torch.program import TorchProgram
from xcc.interpreter.executor import make_executor as interpreting
from xcc.options import CompileOptions
from xcc.runtime.model import Model

nn = torch.nn


class Block(nn.Module):
    """An encoder layer behind an embedding, as BERT and GPT-2 have them: views around each product."""

    def __init__(self, joined: bool) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(31, 24, padding_idx=0), nn.Embedding(9, 24)
        self.norm, self.out = nn.LayerNorm(24), nn.LayerNorm(24)
        self.joined = joined
        self.into = nn.ModuleList([nn.Linear(24, 72)] if joined else [nn.Linear(24, 24) for _ in range(3)])
        self.up, self.down = nn.Linear(24, 40), nn.Linear(40, 24)

    def forward(self, ids: Any) -> Any:
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        parts = self.into[0](x).split(24, -1) if self.joined else [f(x) for f in self.into]
        q, k, v = (p.view(*p.shape[:-1], 3, 8).transpose(1, 2) for p in parts)
        y = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
        x = self.out(x + y)
        return x + self.down(nn.functional.gelu(self.up(x)))


class Pictures(nn.Module):
    """Two convolutions with batch norms and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.norms, self.head = nn.ModuleList([nn.BatchNorm2d(8), nn.BatchNorm2d(8)]), nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        y = torch.relu(self.norms[0](self.first(x)))
        return self.head(torch.relu(self.norms[1](self.second(y)) + y).mean((2, 3)))


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "encoder": (lambda: Block(False), lambda: torch.randint(31, (2, 7))),
    "one product": (lambda: Block(True), lambda: torch.randint(31, (2, 9))),
    "attention": (lambda: nn.TransformerEncoderLayer(16, 2, 24, dropout=0.0, batch_first=True),
                  lambda: torch.randn(2, 5, 16)),
    "pictures": (Pictures, lambda: torch.randn(2, 3, 9, 9)),
}
CASES = [("encoder", "sm_90a", torch.float16), ("one product", "gfx942", torch.bfloat16),
         ("attention", "gfx1100", torch.float16), ("pictures", "sm_90a", torch.float16),
         ("pictures", "gfx942", torch.float32)]


@pytest.mark.usefixtures("fresh_torch")
@pytest.mark.parametrize(("name", "chip", "dtype"), CASES)
def test_forward_and_backward(name: str, chip: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each graph gives in the interpreter what torch's own ops give for the same tensors."""
    seen: list[tuple[TorchProgram, list[Any], list[Any]]] = []

    def recorded(module: Any, *_: Any, **__: Any) -> Any:
        program = capture_fx(module)

        def call(arguments: list[Any]) -> Any:
            given = [t.clone() if isinstance(t, torch.Tensor) else t for t in arguments]
            results = list(module(*arguments))
            arguments.clear()
            seen.append((program, given, [r.clone() if isinstance(r, torch.Tensor) else r for r in results]))
            return results

        call._boxed_call = True     # type: ignore[attr-defined]
        return call

    monkeypatch.setattr(backend, "compile_graph", recorded)
    make, draw = MODELS[name]
    module, x = make().train().to(dtype), draw()
    call = torch.compile(module, backend=backend.backend)
    call(x.to(dtype) if x.is_floating_point() else x).float().square().mean().backward()
    assert len(seen) == 2
    for program, given, results in seen:
        _compare(program, given, results, chip, dtype)


def _compare(program: TorchProgram, given: list[Any], results: list[Any], chip: str, dtype: Any) -> None:
    target = "nvptx,code=ptx" if chip.startswith("sm_") else "amdgcn"
    made = results_of(program.graph)
    options = CompileOptions.make(target, chip=chip, cache=False, keep_ir=True)
    a = compile_to_artifact(TorchProgram(replace(program.graph, outputs=made), program.weights), options)
    model = Model(a)
    model._executor = interpreting(a.program, a.members, a.weights, a.manifest)
    tensors = dict(zip((i.name for i in program.graph.inputs), given, strict=True))
    orders = {i.name: i.order for i in program.graph.inputs}
    laid = {n: t.permute(orders[n]) if orders[n] else t for n, t in tensors.items()}
    got = list(model.run({i.name: to_numpy(laid[i.name].contiguous()) for i in model.inputs}).values())
    returned = [o for o in program.graph.outputs if not o.updates]
    tolerance = {torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}[dtype]
    for o, value in zip(made, got, strict=True):
        if o.updates:
            continue
        want = results[[(r.value, r.order) for r in returned].index((o.value, o.order))]
        value = value.transpose(inverse(o.order)) if o.order else value
        wide, wanted = np.asarray(value, np.float64), want.double().numpy()
        assert wide.shape == wanted.shape
        assert np.abs(wide - wanted).max(initial=0) <= tolerance * max(1e-2, np.abs(wanted).max(initial=0)), o.name
