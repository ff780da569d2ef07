"""One rank of the tests in test_torch_ranks.py: ``python torch_rank_worker.py TASK,TASK,... FOLDER``, by a launcher.

What it prints is JSON, an answer a task. Models train three steps; what is compared are all parameters afterwards, with
those of eager PyTorch on the same ranks and on one.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as funcol
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from torch_rank_models import WIDTH, Perceptron, Talk, Transformer, data, distance, furthest, made, trained

import xcc.torch
from xcc.frontends.torch.call import BoxedCall
from xcc.frontends.torch.group_calls import TorchGroups

MICRO_BATCHES = 4

COMPILERS: dict[str, Callable[[Any], Any]] = {
    "perceptron": lambda m: xcc.torch.compile(m, strict=True),
    "transformer": lambda m: torch.compile(m, backend="xcc", options={"strict": True})}
"""By our way and by torch's, which leave nothing to torch but what is said to stay there."""
MODELS = {"perceptron": (Perceptron, (8, WIDTH)), "transformer": (Transformer, (4, 6, WIDTH))}
"""Class, shape of the input."""


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Counts the calls of compiled graphs, and collectives in them, by kind."""
    found: Counter[str] = Counter()

    def counting(function: Any, what: Callable[..., str]) -> Any:
        def call(*args: Any) -> Any:
            found[what(*args)] += 1
            return function(*args)

        return call

    with patch.object(BoxedCall, "__call__", counting(BoxedCall.__call__, lambda *_: "graph")), \
            patch.object(TorchGroups, "__call__", counting(TorchGroups.__call__, lambda _, s, *__: s.kind)):
        yield found


def compared(spread: Callable[[Any], Any], parts: int, names: Iterable[str] = MODELS) -> Any:
    """For models `names` the distance of what compiled training gives from eager PyTorch's on these ranks, and from one
    rank's; what was counted. `parts`: a rank has one of so many of the batch."""
    out = {}
    for name in names:
        kind, shape = MODELS[name]
        whole, own = data(shape), data(shape, parts, dist.get_rank() % parts)
        one = made(kind)
        alone = trained(one, one, whole)
        model = spread(made(kind))
        eager = trained(model, model, own)
        model = spread(made(kind))
        torch._dynamo.reset()
        with counted() as found:
            ended = trained(model, COMPILERS[name](model), own)
        out[name] = [distance(ended, eager), distance(ended, alone), found]
    return out


def ddp(_: str) -> Any:
    """Buckets of a few kilobytes, by which Dynamo splits the graph."""
    with patch.object(dist, "_DEFAULT_FIRST_BUCKET_BYTES", 4096):
        return compared(lambda model: DistributedDataParallel(model, bucket_cap_mb=0.01), 2, ["transformer"])


def one_graph(_: str) -> Any:
    """DDP without cuts, and with a hook that divides buckets."""
    def spread(model: Any) -> Any:
        model = DistributedDataParallel(model, gradient_as_bucket_view=True)
        model.register_comm_hook(None, allreduce_hook)
        return model

    with torch._dynamo.config.patch(optimize_ddp=False):
        return compared(spread, 2, ["perceptron"])


def fsdp(_: str) -> Any:
    """Each block sharded on its own."""
    mesh = init_device_mesh("cpu", (2,))

    def spread(model: Any) -> Any:
        for block in getattr(model, "blocks", ()):
            fully_shard(block, mesh=mesh)
        return fully_shard(model, mesh=mesh)

    return compared(spread, 2, ["transformer"])


def plan(_: str) -> Any:
    """Columns and rows by DTensor."""
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    pair = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    block = {"q": ColwiseParallel(), "k": ColwiseParallel(), "v": ColwiseParallel(), "o": RowwiseParallel(),
             **{f"mlp.{name}": style for name, style in pair.items()}}

    def spread(model: Any) -> Any:
        for b in getattr(model, "blocks", ()):
            parallelize_module(b, mesh, block)
        return parallelize_module(model, mesh, {})

    return compared(spread, 1, ["transformer"])


def sequence(_: str) -> Any:
    """As `plan`, and what is between the pairs along the sequence, which is gathered and scattered around them."""
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    columns, rows = ColwiseParallel(), RowwiseParallel(output_layouts=Shard(1))
    along = PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Shard(1), use_local_output=True)
    block = {"first": SequenceParallel(), "second": SequenceParallel(), "q": columns, "k": columns, "v": columns,
             "o": rows, "mlp.up": columns, "mlp.down": rows}

    def spread(model: Any) -> Any:
        if isinstance(model, Perceptron):       # along the batch
            enter = PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Shard(0))
            leave = PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate())
            parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel(output_layouts=Shard(0))})
            return parallelize_module(parallelize_module(model, mesh, enter), mesh, leave)
        for b in model.blocks:
            parallelize_module(b, mesh, block)
        head = ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())
        parallelize_module(model, mesh, {"head": head})
        return parallelize_module(model, mesh, along)

    return compared(spread, 1)


def pipeline(_: str) -> Any:
    """A block a stage, the head behind the last, one forward and one backward at a time (1F1B). The largest distance of
    the stage's parameters from one rank's after training; that of the losses, where they are known; what was counted.
    """
    def loss_of(y: Any, wanted: Any) -> Any:
        return (y - wanted).square().mean()

    batches = [(x, x.flip(1)[..., :8].contiguous()) for x in data((2 * MICRO_BATCHES, 6, WIDTH))]
    one, whole, rank = made(Transformer), made(Transformer), dist.get_rank()
    wanted = []
    optimizer = torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9)
    for x, target in batches:
        loss = loss_of(one(x), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        wanted.append(loss.item())
    part = nn.Sequential(whole.blocks[rank], *([whole.head] if rank else []))
    torch._dynamo.reset()
    stage = PipelineStage(COMPILERS["transformer"](part), rank, 2, torch.device("cpu"))
    schedule = Schedule1F1B(stage, MICRO_BATCHES, loss_of)
    optimizer = torch.optim.SGD(part.parameters(), lr=0.1, momentum=0.9)
    apart = 0.0
    with counted() as found:
        for (x, target), loss in zip(batches, wanted, strict=True):
            losses: list[Any] = []
            schedule.step(**{"target": target, "losses": losses}) if rank else schedule.step(x)
            optimizer.step()
            optimizer.zero_grad()
            apart = max(apart, abs(torch.stack(losses).mean().item() - loss) if rank else 0.0)
    own = {n: p for n, p in whole.named_parameters() if any(p is q for q in part.parameters())}
    return [distance(own, {n: p for n, p in one.named_parameters() if n in own}), apart, found]


def exported(folder: str) -> Any:
    """Distances from eager: of the program compiled in the process, loaded from the file, called with tensors."""
    alone = [dist.new_group([n]) for n in range(2)][dist.get_rank()]
    model, x = Talk(dist.group.WORLD, alone), data((6, WIDTH))[0]
    with torch.no_grad():
        want = model(x)
    compiled = xcc.compile(torch.export.export(model, (x,)))
    path = f"{folder}/{dist.get_rank()}.xcm"
    compiled.save(path)
    out = [furthest(own.run({"x": x.numpy()}).values(), want) for own in (compiled, xcc.load(path))]
    out.append(furthest(xcc.torch.function(compiled)(x), want))
    return [out, compiled.artifact.manifest["mesh"]]


def between(_: str) -> Any:
    """Collectives of compiled code between eager ones of its group, begun before and waited for inside or behind."""
    group = dist.group.WORLD
    rank = float(dist.get_rank())

    @torch.compile(backend="xcc", options={"strict": True}, fullgraph=True)
    def inside(x: Any, begun: Any) -> Any:
        return funcol.all_reduce(x * 2, "sum", group) + torch.ops._c10d_functional.wait_tensor(begun)

    with torch.no_grad(), counted() as found:
        for n in range(3):
            first = torch.full((5,), rank + n)
            work = dist.all_reduce(first, async_op=True)
            begun = torch.ops._c10d_functional.all_reduce(torch.full((5,), rank), "sum", group.group_name)
            y = inside(torch.full((5,), rank), begun)
            last = torch.full((5,), rank)
            dist.all_reduce(last)
            work.wait()
            assert y.tolist() == [3.0] * 5 and last.tolist() == [1.0] * 5 and first.tolist() == [1.0 + 2 * n] * 5
    return found


def refused(_: str) -> Any:
    """What is said of parts that are not even, and that torch sends them."""
    group = dist.group.WORLD
    x = torch.ones(3, 2)

    class Uneven(nn.Module):
        def forward(self, x: Any) -> Any:
            sizes = [1, 2] if dist.get_rank() == 0 else [2, 1]
            return funcol.wait_tensor(funcol.all_to_all_single(x, sizes, sizes, group))

    said = []
    program = torch.export.export(Uneven(), (x,))
    for compiled in (lambda: xcc.compile(program), lambda: torch.compile(Uneven(), backend="xcc", options={
            "strict": True})(x)):
        try:
            compiled()
            said.append("no error")
        except Exception as e:
            said.append(str(e))
    left = torch.compile(Uneven(), backend="xcc")(x)
    return [said, bool((left == Uneven()(x)).all())]


if __name__ == "__main__":
    os.environ.setdefault("XCC_THREADS", "1")       # ranks on one machine
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    answers = []
    for task in sys.argv[1].split(","):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            answer = globals()[task](sys.argv[2])
        answers.append([answer, [str(w.message) for w in said if "xcc" in str(w.message)]])
    print(json.dumps(answers), flush=True)
    dist.destroy_process_group()
