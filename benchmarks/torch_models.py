"""Full-size models as PyTorch modules with random weights, for benchmarks that run them beside PyTorch itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as functional
from torch import nn


@dataclass(frozen=True)
class Spec:
    """`build()` gives the module, `inputs(batch)` its named inputs. optimize: whether the exporter's optimiser is worth
    its time, which grows with the weights (15 s for Llama, whose kernels are the same without it)."""

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[[int], dict[str, torch.Tensor]]
    optimize: bool = True


class Call(nn.Module):
    """A module of `transformers` whose positional arguments go through `call`."""

    def __init__(self, model: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.model, self.call = model, call

    def forward(self, *args: torch.Tensor) -> Any:
        return self.call(self.model, *args)


@dataclass(frozen=True)
class LlamaConfig:
    """Llama-2-7B with 4 of its 32 layers."""

    hidden: int = 4096
    heads: int = 32
    inner: int = 11008
    layers: int = 4
    vocab: int = 32000
    eps: float = 1e-5
    positions: int = 4096

    @property
    def dim(self) -> int:
        return self.hidden // self.heads


class LlamaLayer(nn.Module):
    def __init__(self, c: LlamaConfig) -> None:
        super().__init__()
        self.c = c
        self.q, self.k, self.v, self.o = (nn.Linear(c.hidden, c.hidden, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(c.hidden, c.inner, bias=False) for _ in range(2))
        self.down = nn.Linear(c.inner, c.hidden, bias=False)
        self.norm1, self.norm2 = (nn.RMSNorm(c.hidden, eps=c.eps) for _ in range(2))

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, past: tuple[torch.Tensor, ...]
                ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """x [batch, seq, hidden]; past is () or (keys, values) [batch, heads, past, dim]."""
        batch, seq, _ = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(batch, seq, self.c.heads, self.c.dim).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if past:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=not past)
        x = x + self.o(y.transpose(1, 2).reshape(batch, seq, self.c.hidden))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y)), k, v


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary position embedding, halves convention; x [batch, heads, seq, dim], cos and sin [seq, dim]."""
    a, b = x[..., :x.shape[-1] // 2], x[..., x.shape[-1] // 2:]
    return x * cos + torch.cat((-b, a), -1) * sin


class Llama(nn.Module):
    """Logits of every position, or, with a past of keys and values, of one further token, and the new cache."""

    cos: torch.Tensor
    sin: torch.Tensor

    def __init__(self, c: LlamaConfig, past: int = 0) -> None:
        super().__init__()
        self.past = past
        self.embed = nn.Embedding(c.vocab, c.hidden)
        self.layers = nn.ModuleList(LlamaLayer(c) for _ in range(c.layers))
        self.norm = nn.RMSNorm(c.hidden, eps=c.eps)
        self.head = nn.Linear(c.hidden, c.vocab, bias=False)
        angles = torch.outer(torch.arange(c.positions), 10000.0 ** (-torch.arange(0, c.dim, 2) / c.dim)).repeat(1, 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, ids: torch.Tensor, *past: torch.Tensor) -> Any:
        x, seq = self.embed(ids), ids.shape[1]
        cos, sin = self.cos[self.past:self.past + seq], self.sin[self.past:self.past + seq]
        cache: list[torch.Tensor] = []
        for n, layer in enumerate(self.layers):
            x, k, v = layer(x, cos, sin, past[2 * n:2 * n + 2])
            cache += (k, v)
        logits = self.head(self.norm(x))
        return (logits, *cache) if past else logits


def _resnet50() -> nn.Module:
    import transformers

    model = transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=1000))
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean.uniform_(-0.2, 0.2)
            m.running_var.uniform_(0.5, 1.5)
    return Call(model, lambda m, x: m(pixel_values=x).logits)


def _vit() -> nn.Module:
    import transformers

    model = transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=1000))
    return Call(model, lambda m, x: m(pixel_values=x).logits)


def _bert() -> nn.Module:
    import transformers

    model = transformers.BertModel(transformers.BertConfig())
    return Call(model, lambda m, ids: m(input_ids=ids).last_hidden_state)


def _llama(past: int = 0) -> nn.Module:
    model = Llama(LlamaConfig(), past)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.7 / math.sqrt(p.shape[-1]))
    return model


def _image(batch: int) -> dict[str, torch.Tensor]:
    return {"x": torch.rand(batch, 3, 224, 224) * 2 - 1}


def _tokens(seq: int, past: int = 0) -> Callable[[int], dict[str, torch.Tensor]]:
    def inputs(batch: int) -> dict[str, torch.Tensor]:
        c = LlamaConfig()
        made = {"ids": torch.randint(0, 30000, (batch, seq))}
        if past:
            for n in range(c.layers):
                for kind in "kv":
                    made[f"{kind}{n}"] = torch.randn(batch, c.heads, past, c.dim)
        return made

    return inputs


SPECS: dict[str, Spec] = {s.name: s for s in (
    Spec("resnet50", _resnet50, _image),
    Spec("bert", _bert, _tokens(128)),
    Spec("vit", _vit, _image),
    Spec("llama-4l-s512", _llama, _tokens(512), optimize=False),
    Spec("llama-4l-token", lambda: _llama(511), _tokens(1, 511), optimize=False),
)}


def make(spec: Spec, batch: int) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """The module and inputs in f16 on the CPU, from a fixed seed (drawn where it is quick)."""
    torch.manual_seed(0)
    with torch.no_grad(), torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = spec.build().eval().half().cpu()
        inputs = {k: (v.half() if v.is_floating_point() else v).cpu() for k, v in spec.inputs(batch).items()}
    return model, inputs


def export(model: nn.Module, inputs: dict[str, torch.Tensor], path: Path, optimize: bool = True) -> None:
    """Writes the module for these sizes of inputs as an ONNX file with its weights beside it."""
    with torch.no_grad():
        torch.onnx.export(model, tuple(inputs.values()), str(path), dynamo=True, verbose=False,
                          input_names=list(inputs), external_data=True, optimize=optimize)
