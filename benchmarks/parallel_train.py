"""A training step in f16 on one GPU, or with DistributedDataParallel on several, by a backend of torch.compile.

    python benchmarks/parallel_train.py resnet50|bert xcc|inductor [BATCHES] [cut]

Run by parallel.py, a process a rank; prints seconds of a step: forward, backward, gradients reduced, SGD. A rank has
BATCHES times the case's batch (pytorch_cases). The model is one graph, and buckets of gradients are divided whole;
cut: a graph a bucket, and each gradient by itself, as torch does where nothing is said.
"""

from __future__ import annotations

import os
import statistics
import sys

import torch
from parallel_turns import turn
from pytorch_cases import GPU_CASES
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

__all__ = ["seconds_of"]


def seconds_of(name: str, backend: str, batches: str = "1", how: str = "") -> float:
    """The median of five times ten steps one behind the other."""
    ranks, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(rank)
    torch.manual_seed(0)
    module, inputs = next(c for c in GPU_CASES if c.name == name).build()
    module = module.cuda().half().train()
    given = [torch.cat([x.cuda().half() if x.is_floating_point() else x.cuda()] * int(batches)) for x in inputs]
    if ranks > 1:
        torch.distributed.init_process_group("nccl")
        module = torch.nn.parallel.DistributedDataParallel(module, device_ids=[rank], gradient_as_bucket_view=True)
        if how != "cut":
            torch._dynamo.config.optimize_ddp = False
            module.register_comm_hook(None, allreduce_hook)
    model = torch.compile(module, backend=backend, dynamic=False)
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-6, foreach=True)

    def step() -> None:
        out = model(*given)
        results = [out] if isinstance(out, torch.Tensor) else list(out.values())
        sum(r.float().square().mean() for r in results).backward()      # DDP waits for each parameter's gradient
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    turn()
    step()
    times = []
    for _ in range(5):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        for _ in range(10):
            step()
        events[1].record()
        torch.cuda.synchronize()
        times.append(events[0].elapsed_time(events[1]) * 1e-3 / 10)
    return statistics.median(times)


if __name__ == "__main__":
    print(seconds_of(*sys.argv[1:]), flush=True)
    os._exit(0)         # process groups take their time to end
