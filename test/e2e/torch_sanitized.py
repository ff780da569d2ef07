"""Compiled models on an NVIDIA GPU, for compute-sanitizer: ``python test/e2e/torch_sanitized.py``.

    PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --error-exitcode 9 python test/e2e/torch_sanitized.py

Without torch's cache of memory each tensor is an allocation of its own, behind whose end the tool sees accesses. Each
model runs through xcc.torch.compile and as a function at several sizes, some are trained; results are compared with
eager. Names of parts (``Residual.float16 Sequence.training``) run these alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as functional
from torch import nn

import xcc.torch

SIZES = (4, 1, 7)


class Residual(nn.Module):
    """Convolutions, dense, depthwise and strided, with norms and pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 24, 3, stride=2, padding=1), nn.BatchNorm2d(24)
        self.depthwise = nn.Conv2d(24, 24, 7, padding=3, groups=24)
        self.point, self.head = nn.Conv2d(24, 40, 1), nn.Linear(40, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.norm(self.first(x)))
        x = functional.gelu(self.point(x + self.depthwise(x)))
        return self.head(functional.max_pool2d(x, 3, 2).mean((2, 3)))      # type: ignore[no-any-return]


class Sequence(nn.Module):
    """A layer of a transformer over embedded tokens, a running sum, and the best of each row."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 48)
        self.layer = nn.TransformerEncoderLayer(48, 3, 96, dropout=0.0, activation="gelu", batch_first=True)

    def forward(self, ids: torch.Tensor) -> Any:
        x = self.layer(self.embed(ids)).cumsum(1)
        places = (ids % ids.shape[1])[..., None].expand_as(x)
        return x, x.topk(5, -1)[0], torch.zeros_like(x).scatter_add(1, places, x), x.sort(1)[0]


def images(n: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(n, 3, 37, 37, device="cuda", dtype=dtype)


def tokens(n: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randint(0, 50, (n, 33), device="cuda")


def rows(n: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(n, 33, 24, device="cuda", dtype=dtype)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(24, 20, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]      # type: ignore[no-any-return]


MODELS: tuple[tuple[Callable[[], nn.Module], Callable[[int, torch.dtype], torch.Tensor]], ...] = (
    (Residual, images), (Sequence, tokens), (Recurrent, rows))


def tensors(result: Any) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)


def distance(got: Any, want: Any) -> float:
    """The largest of a result's elements' distances, as a part of its range."""
    return max(float((g.float() - w.float()).abs().max() / w.float().abs().max().clamp(min=1e-3))
               for g, w in zip(tensors(got), tensors(want), strict=True))


def inference(model: nn.Module, given: Callable[[int, torch.dtype], torch.Tensor], dtype: torch.dtype,
              tf32: bool = False) -> Iterator[float]:
    model = model.eval().to("cuda", dtype)
    torch.backends.cudnn.allow_tf32 = tf32
    with torch.no_grad():
        batch = torch.export.Dim("batch", max=64)
        program = torch.export.export(model, (given(3, dtype),), dynamic_shapes=({0: batch},))
        for call in (xcc.torch.compile(model, strict=True), xcc.torch.function(xcc.compile(program, target="nvptx"))):
            for n in (*SIZES, SIZES[0]):
                x = given(n, dtype)
                yield distance(call(x), model(x))


def training(model: nn.Module, given: Callable[[int, torch.dtype], torch.Tensor]) -> Iterator[float]:
    model = model.train().to("cuda")
    torch.backends.cudnn.allow_tf32 = False
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    call, step = xcc.torch.compile(model, strict=True), torch.compile(optimizer.step, backend="xcc")
    for n in SIZES:
        x = given(n + 1, torch.float32)
        sum(t.square().mean() for t in tensors(call(x))).backward()       # type: ignore[union-attr]
        got = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        optimizer.zero_grad()
        sum(t.square().mean() for t in tensors(model(x))).backward()      # type: ignore[union-attr]
        yield distance(got, [p.grad for p in model.parameters() if p.grad is not None])
        step()
        optimizer.zero_grad()


def parts() -> Iterator[tuple[str, float, Callable[[], Iterator[float]]]]:
    """Names, how far results may be from eager's, and what gives how far they are."""
    for build, given in MODELS:
        name = build.__name__       # type: ignore[attr-defined]
        yield f"{name}.float32", 1e-3, lambda b=build, g=given: inference(b(), g, torch.float32)     # type: ignore[misc]
        yield f"{name}.tf32", 1e-2, lambda b=build, g=given: inference(b(), g, torch.float32, True)     # type: ignore[misc]
        yield f"{name}.float16", 3e-2, lambda b=build, g=given: inference(b(), g, torch.float16)     # type: ignore[misc]
        if build is not Recurrent:
            yield f"{name}.training", 1e-2, lambda b=build, g=given: training(b(), g)        # type: ignore[misc]


def main(chosen: list[str]) -> int:
    wrong = 0
    for name, limit, distances in parts():
        if not chosen or name in chosen:
            torch.manual_seed(0)
            found = max(distances())
            print(f"{name}: {found:.1e}", flush=True)
            wrong += found > limit
    torch.cuda.synchronize()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
