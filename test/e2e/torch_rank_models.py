"""Models that the tests in test_torch_ranks.py train and export on each rank, what is trained on, and distances."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as funcol
from torch.distributed.tensor import DTensor

STEPS, WIDTH, HEADS = 3, 32, 4


class Perceptron(nn.Module):
    """32 -> 64 -> 32."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        return self.down(torch.relu(self.up(x)))


class Block(nn.Module):
    """Attention of as many heads as the projections have columns for, and a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.mlp = Perceptron()

    def attend(self, x: Any) -> Any:
        q, k, v = (p(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for p in (self.q, self.k, self.v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(mixed.transpose(1, 2).flatten(2))

    def forward(self, x: Any) -> Any:
        x = x + self.attend(self.first(x))
        return x + self.mlp(self.second(x))


class Transformer(nn.Module):
    """Two blocks and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(WIDTH, 8)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def made(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return kind()


def data(shape: tuple[int, ...], parts: int = 1, part: int = 0) -> list[Any]:
    """What is trained on, the same on all ranks; `part` of it along the batch."""
    torch.manual_seed(1)
    return [torch.randn(shape).chunk(parts)[part] for _ in range(STEPS)]


def trained(model: Any, call: Callable[..., Any], batches: list[Any], after: Callable[[], None] = lambda: None
            ) -> dict[str, Any]:
    """The whole parameters of `model` after a step of each batch."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for x in batches:
        y = call(x)
        loss = (y.square() + y).mean()
        loss.backward()
        after()
        optimizer.step()
        optimizer.zero_grad()
    return {n.removeprefix("module."): (p.full_tensor() if isinstance(p, DTensor) else p).detach().clone()
            for n, p in model.named_parameters()}


def distance(own: dict[str, Any], other: dict[str, Any]) -> float:
    assert own.keys() == other.keys()
    return max(float((own[n] - other[n]).abs().max()) for n in own)


class Talk(nn.Module):
    """Each functional collective, among all ranks and in groups of one; weights differ from rank to rank."""

    def __init__(self, group: Any, alone: Any) -> None:
        super().__init__()
        torch.manual_seed(dist.get_rank())
        self.group, self.alone, self.weight = group, alone, nn.Parameter(torch.randn(WIDTH, WIDTH))

    def forward(self, x: Any) -> Any:
        y, group = x @ self.weight, self.group
        ops = torch.ops._c10d_functional
        combined = [funcol.all_reduce(y, op, group) for op in ("sum", "max", "min", "product")]
        gathered = funcol.all_gather_tensor(y, 1, group)
        scattered = funcol.reduce_scatter_tensor(y, "sum", 1, group)
        swapped = funcol.all_to_all_single(y, None, None, group)
        sent = funcol.broadcast(y, 1, group)
        several = [ops.wait_tensor(t) for t in ops.all_gather_into_tensor_coalesced([y, y + 1], 2, group.group_name)]
        kept = funcol.all_reduce(y, "sum", self.alone)
        return [funcol.wait_tensor(t) for t in (*combined, gathered, scattered, swapped, sent)] + several + [kept]


def furthest(made: Iterable[Any], wanted: Iterable[Any]) -> float:
    """The largest distance, as a part of the range of the tensor."""
    return max(float((torch.as_tensor(a) - b).abs().max() / b.abs().max()) for a, b in zip(made, wanted, strict=True))
