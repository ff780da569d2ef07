"""Models of benchmarks/pytorch.py: from configurations, with random weights; nothing is downloaded."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "test" / "e2e"))
from exported.exporting import declare_compiled_ops  # noqa: E402


@dataclass(frozen=True)
class Case:
    """`build()` gives the module and its arguments; `trains`: it is in the table of training steps, too."""

    name: str
    build: Callable[[], tuple[torch.nn.Module, tuple[torch.Tensor, ...]]]
    trains: bool = False


def _vision(name: str, size: int = 224, batch: int = 1) -> Callable[[], Any]:
    def build() -> Any:
        declare_compiled_ops()
        import torchvision

        return getattr(torchvision.models, name)(weights=None), (torch.randn(batch, 3, size, size),)

    return build


def _text(model: str, config: str, tokens: int = 128, batch: int = 1, **options: Any) -> Callable[[], Any]:
    def build() -> Any:
        declare_compiled_ops()
        import transformers

        made = getattr(transformers, config)(**options)
        made.use_cache = False
        return getattr(transformers, model)(made), (torch.randint(0, 1000, (batch, tokens)),)

    return build


class _Lstm(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(128, 256, 2, batch_first=True)
        self.head = torch.nn.Linear(256, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0])       # type: ignore[no-any-return]


def _mlp() -> Any:
    linear = torch.nn.Linear
    return torch.nn.Sequential(linear(512, 2048), torch.nn.GELU(), linear(2048, 512)), (torch.randn(64, 512),)


CASES = [
    Case("mlp", _mlp, trains=True),
    Case("lstm", lambda: (_Lstm(), (torch.randn(4, 50, 128),))),
    Case("resnet18", _vision("resnet18"), trains=True),
    Case("mobilenet_v3_small", _vision("mobilenet_v3_small")),
    Case("convnext_tiny", _vision("convnext_tiny")),
    Case("swin_t", _vision("swin_t")),
    Case("bert", _text("BertModel", "BertConfig", hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
                       intermediate_size=1024), trains=True),
    Case("gpt2", _text("GPT2LMHeadModel", "GPT2Config", n_embd=512, n_layer=4, n_head=8, vocab_size=8000,
                       bos_token_id=None, eos_token_id=None), trains=True),
    Case("llama", _text("LlamaForCausalLM", "LlamaConfig", hidden_size=512, intermediate_size=1376, vocab_size=8000,
                        num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4)),
    Case("qwen3", _text("Qwen3ForCausalLM", "Qwen3Config", hidden_size=256, intermediate_size=768, vocab_size=4000,
                        num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=64)),
]


GPU_CASES = [
    Case("resnet50", _vision("resnet50", batch=32), trains=True),
    Case("convnext_tiny", _vision("convnext_tiny", batch=16)),
    Case("vit_b_16", _vision("vit_b_16", batch=16)),
    Case("swin_t", _vision("swin_t", batch=16)),
    Case("mobilenet_v3_small", _vision("mobilenet_v3_small", batch=32)),
    Case("bert", _text("BertModel", "BertConfig", 128, 16), trains=True),
    Case("gpt2", _text("GPT2LMHeadModel", "GPT2Config", 512, 4, bos_token_id=None, eos_token_id=None), trains=True),
    Case("llama", _text("LlamaForCausalLM", "LlamaConfig", 512, 4, hidden_size=2048, intermediate_size=5504,
                        vocab_size=32000, num_hidden_layers=4, num_attention_heads=16, num_key_value_heads=4)),
    Case("llama, a token", _text("LlamaForCausalLM", "LlamaConfig", 1, 8, hidden_size=2048, intermediate_size=5504,
                                 vocab_size=32000, num_hidden_layers=4, num_attention_heads=16,
                                 num_key_value_heads=4)),
    Case("lstm", lambda: (_Lstm(), (torch.randn(16, 50, 128),))),
]
"""With batches that fill a GPU."""


class _Function(torch.nn.Module):
    """A function of tensors, which have no parameters to say their sizes."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        return self.function(*tensors)


def _function(name: str, function: Callable[..., torch.Tensor], *shapes: tuple[int, ...]) -> Case:
    """Named by its sizes, too."""
    sizes = ", ".join("x".join(map(str, s)) for s in shapes)
    return Case(f"{name} of {sizes}", lambda: (_Function(function), tuple(torch.randn(s) for s in shapes)))


def _functions(scale: int) -> list[Case]:
    """As users write them; `scale`: so many times as many rows on a GPU."""
    f, n = torch.nn.functional, 256 * scale
    return [
        _function("a @ b", torch.matmul, (n, n), (n, n)),
        _function("a @ b", torch.matmul, (n - 24, n - 24), (n - 24, n - 24)),
        _function("a @ b", torch.matmul, (8 * scale, 64, 128), (8 * scale, 128, 64)),
        _function("a @ b.T", lambda a, b: a @ b.T, (128, 768), (2304, 768)),
        _function("gelu(linear)", lambda x, w, b: f.gelu(f.linear(x, w, b)), (n, 768), (3072, 768), (3072,)),
        _function("attention", f.scaled_dot_product_attention, *[(2, 2 * scale, 512, 64)] * 3),
        _function("conv2d", lambda x, w: f.conv2d(x, w, padding=1), (2 * scale, 64, 28, 28), (64, 64, 3, 3)),
        _function("softmax", lambda x: x.softmax(-1), (n, 1000)),
        _function("layer_norm", lambda x, w, b: f.layer_norm(x, w.shape, w, b), (n, 768), (768,), (768,)),
        _function("sum over rows", lambda x: x.sum(0), (20 * n, 64)),
        _function("sum over columns", lambda x: x.sum(1), (n, 4096)),
        _function("cumsum", lambda x: x.cumsum(-1), (n, 1024)),
        _function("sort", lambda x: x.sort(-1)[0], (n, 1000)),
        _function("topk", lambda x: x.topk(8, -1)[0], (n, 1000)),
        _function("transpose", lambda x: x.T.contiguous(), (n, 3000)),
    ]


FUNCTIONS, GPU_FUNCTIONS = _functions(2), _functions(8)


class Parameters(torch.nn.Module):
    """x times each of `count` small parameters: what a call costs beside its kernels."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.parts = torch.nn.ParameterList([torch.ones(8) for _ in range(count)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for p in self.parts:
            x = x * p
        return x
