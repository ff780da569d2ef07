"""The Llama of parallel_models.py in PyTorch: one GPU by torch.compile with CUDA graphs, several by parallelize_module.

Run by parallel.py, a process a rank; prints the seconds of a run.
"""

from __future__ import annotations

import os
import statistics
import sys
from typing import Any

import torch
import torch.nn.functional as F
from parallel_models import DIM, HEADS, HIDDEN, INNER, LAYERS, VOCAB
from parallel_turns import turn
from torch import nn

__all__ = ["Llama", "seconds_of"]


class Block(nn.Module):
    """A layer; `heads` are those of this rank."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(HIDDEN, 1e-5), nn.RMSNorm(HIDDEN, 1e-5)
        self.q, self.k, self.v, self.o = (nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(HIDDEN, INNER, bias=False), nn.Linear(HIDDEN, INNER, bias=False)
        self.down = nn.Linear(INNER, HIDDEN, bias=False)

    def forward(self, x: Any, cos: Any, sin: Any, past: Any) -> Any:
        """past: (keys, values) of this rank's heads, or None."""
        y = self.norm1(x)
        q, k, v = (f(y).unflatten(-1, (self.heads, DIM)).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = (turned(t, cos, sin) for t in (q, k))
        if past is not None:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.o(y.transpose(1, 2).flatten(-2))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def turned(x: Any, cos: Any, sin: Any) -> Any:
    """Rotary embedding, halves apart."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Llama(nn.Module):
    """Logits of all positions."""

    def __init__(self, ranks: int, first: int, seq: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList(Block(HEADS // ranks) for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(HIDDEN, 1e-5), nn.Linear(HIDDEN, VOCAB, bias=False)
        angles = torch.outer(torch.arange(first, first + seq), 10000.0 ** (-torch.arange(0, DIM, 2) / DIM))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, ids: Any, *past: Any) -> Any:
        """past: keys and values of each layer in turn."""
        x = self.embed(ids)
        for n, layer in enumerate(self.layers):
            x = layer(x, self.cos, self.sin, past[2 * n:2 * n + 2] or None)
        return self.head(self.norm(x))


def plan() -> dict[str, Any]:
    """Megatron's, with whole logits on each rank."""
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel

    columns = ("q", "k", "v", "gate", "up")
    layer = dict.fromkeys(columns, ColwiseParallel()) | dict.fromkeys(("o", "down"), RowwiseParallel())
    whole = {"embed": RowwiseParallel(input_layouts=Replicate()), "head": ColwiseParallel(output_layouts=Replicate())}
    return whole | {f"layers.{n}.{name}": style for n in range(LAYERS) for name, style in layer.items()}


def seconds_of(batch: int, seq: int, past: int) -> float:
    """The median of nine times 20 runs one behind the other."""
    ranks, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(rank)
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = Llama(ranks, past, seq).half().eval()
    if ranks > 1:
        torch.distributed.init_process_group("nccl")
        from torch.distributed.tensor.parallel import parallelize_module

        mesh = torch.distributed.device_mesh.init_device_mesh("cuda", (ranks,))
        model = parallelize_module(model, mesh, plan())
    run = torch.compile(model, dynamic=False, mode=None if ranks > 1 else "reduce-overhead")
    ids = torch.randint(0, VOCAB, (batch, seq), device="cuda")
    cache = torch.randn(batch, HEADS // ranks, past, DIM, device="cuda", dtype=torch.float16)
    given = [cache.clone() for _ in range(2 * LAYERS)] if past else []
    times = []
    with torch.no_grad():
        for _ in range(3):
            run(ids, *given)
        torch.cuda.synchronize()
        turn()
        run(ids, *given)
        for _ in range(9):
            events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            events[0].record()
            for _ in range(20):
                run(ids, *given)
            events[1].record()
            torch.cuda.synchronize()
            times.append(events[0].elapsed_time(events[1]) * 1e-3 / 20)
    return statistics.median(times)


if __name__ == "__main__":
    print(seconds_of(*map(int, sys.argv[1:])), flush=True)
    os._exit(0)         # process groups take their time to end
