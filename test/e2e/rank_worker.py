"""One rank of the tests in test_ranks_on_cpu.py: ``python rank_worker.py TASK MODEL``, started by a launcher.

What it prints is JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from typing import Any

import numpy as np
from rank_models import greedy

import xcc
from xcc.runtime.dtypes import numpy_dtype


def sums(path: str) -> Any:
    """Runs of several sizes, each twice; all ranks have the same input."""
    model = xcc.load(path)
    out = []
    for n in (5, 900, 5):
        x = np.arange(n, dtype=np.float32)
        for _ in range(2):
            y = model.run({"x": x})["y"]
        out.append([float(v) for v in y - model.part.mesh.size * x][:3])
    return out


def kinds(path: str) -> Any:
    """Each kind of collective on numbers that tell ranks apart."""
    model = xcc.load(path)
    rank, size = model.part.place.rank, model.part.mesh.size
    x = (np.arange(4 * size) + 100 * rank) % 117
    info, = model.inputs
    outputs = model.run({"x": x.astype(numpy_dtype(info.dtype))})
    return {name: np.asarray(v, np.float64).tolist() for name, v in outputs.items()}


def totals(path: str) -> Any:
    """The largest error of sums of many sizes, and whether runs repeat bit by bit; the bits, for the others."""
    model = xcc.load(path)
    rank, size = model.part.place.rank, model.part.mesh.size
    dtype = numpy_dtype(model.inputs[0].dtype)
    worst, same, bits = 0.0, True, ""
    for n in (8, 4096, 5, 100_000, 8, 524_288, 1_000_000, 3_000_000, 64):
        xs = [np.random.default_rng(n + r).uniform(-1, 1, n).astype(dtype) for r in range(size)]
        outs = [np.array(model.run({"x": xs[rank]})["y"]) for _ in range(5)]
        same &= all(np.array_equal(o, outs[0]) for o in outs)
        want = sum(x.astype(np.float64) for x in xs)
        worst = max(worst, float(np.abs(outs[0].astype(np.float64) - want).max()))
        bits = hashlib.sha256(bits.encode() + outs[0].tobytes()).hexdigest()
    return [worst, same, bits]


def tensors(path: str) -> Any:
    """The same as a function of torch tensors."""
    import torch

    import xcc.torch

    call = xcc.torch.function(xcc.load(path))
    return [[float(v) for v in call(torch.arange(n, dtype=torch.float32))][:3] for n in (3, 5)]


def killed(path: str) -> Any:
    """Rank 1 is gone in the middle; the seconds until the others hear of it."""
    model = xcc.load(path)
    x = np.ones(4, np.float32)
    model.run({"x": x})
    if model.part.place.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    try:
        for _ in range(2):
            model.run({"x": x})
    except xcc.UserError as e:
        return [str(e), time.monotonic() - begin]
    return ["no error", 0]


def failing(path: str) -> Any:
    """Rank 1's inputs are wrong; it says so and goes on without the others."""
    model = xcc.load(path)
    x = np.ones(3, np.float64 if model.part.place.rank == 1 else np.float32)
    out = []
    for _ in range(2):
        try:
            model.run({"x": x})
            out.append("no error")
        except xcc.UserError as e:
            out.append(str(e))
    time.sleep(1)
    return out


def outliving(path: str) -> Any:
    """Rank 1's second run is an error while rank 0 waits for it, or ends its first; rank 1 stays until rank 0's process
    has ended."""
    model, said = xcc.load(path), f"{path}.rank0"
    if model.part.place.rank == 0:
        with open(f"{said}.part", "w") as f:
            f.write(str(os.getpid()))
        os.rename(f"{said}.part", said)
    try:
        model.run({"x": np.ones(4, np.float32)})
        model.run({"x": np.ones(4, np.float64 if model.part.place.rank == 1 else np.float32)})
    except xcc.UserError as e:
        if model.part.place.rank == 0:
            return str(e)
        while not os.path.exists(said):
            time.sleep(0.05)
        with open(said) as f:
            first = int(f.read())
        while _runs(first):
            time.sleep(0.05)
        return str(e)
    return "no error"


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def differing(path: str) -> Any:
    """Rank 1's inputs are larger."""
    model = xcc.load(path)
    try:
        model.run({"x": np.ones(4, np.float32)})
        model.run({"x": np.ones(3 + model.part.place.rank, np.float32)})
        model.run({"x": np.ones(3 + model.part.place.rank, np.float32)})
    except xcc.UserError as e:
        return str(e)
    return "no error"


def sharded(path: str) -> Any:
    """A run on the array beside the model, of which a rank along dp takes its part of the batch."""
    model = xcc.load(path)
    x = np.load(os.path.join(os.path.dirname(path), "x.npy"))
    mesh, rank = model.part.mesh, model.part.place.rank
    own = np.split(x, mesh.group_size(["dp"]))[mesh.place(rank, ["dp"])]
    return np.asarray(model.run({"x": own})["y"], np.float64).tolist()


def again(path: str) -> Any:
    """Runs on parts of x.npy beside the model, of as many rows as it takes, over and over: the last of each size."""
    model, x = xcc.load(path), np.load(os.path.join(os.path.dirname(path), "x.npy"))
    out = {}
    for turn in range(40):
        rows = x.shape[0] if turn % 2 or model.inputs[0].shape[0] == x.shape[0] else 3 + turn % 4
        out[rows] = np.asarray(model.run({"x": x[:rows] + np.float32(turn)})["y"]).tolist()
    return out


def tokens(path: str) -> list[int]:
    return greedy(xcc.load(path))


def loading(path: str) -> Any:
    """The file of a name that has the rank in it."""
    try:
        xcc.load(path.replace("RANK", os.environ["RANK"]))
    except xcc.UserError as e:
        return str(e)
    return "no error"


if __name__ == "__main__":
    answer = globals()[sys.argv[1]](sys.argv[2])
    print(json.dumps(answer), flush=True)
