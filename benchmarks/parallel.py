"""A Llama of 7B's width and 4 layers in f16 on one GPU and on several by tensor parallelism, and sums alone.

    python benchmarks/parallel.py [--ranks 2] [--folder /dev/shm] [--prepare] [sums] [norms] [b1-s512] [b8-s512]
        [b8-token] [resnet50x4] [resnet50x4-cut] [resnet50x8] [bertx4] [bertx4-cut] [bertx8] [--torch SECONDS]

Each time is the median of device times of graph replays, 20 behind one another, with what the caches hold then; ranks
are processes of this script. "peers": sums by windows where they fit (xcc.runtime.peer_collectives); "library": all by
NCCL. norms: what a sum adds to the residual add and the norm behind it. split: each rank has the logits of its part of
the vocabulary, which are gathered otherwise. --torch: the same by PyTorch, behind all others. resnet50, bert: a
training step with DistributedDataParallel by xcc and by Inductor, a batch a rank (32 images, 16 x 128 tokens; xN: N
times as many; -cut: with a graph for each bucket of gradients, behind one without). Programs of PyTorch compile side by
side, for so many seconds at most (240 where nothing is said), and are timed one after the other. --prepare compiles and
stops.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "test" / "unit"))
from parallel_models import HIDDEN, inputs_of, write_llama, write_norms  # noqa: E402
from parallel_turns import Task, in_turn, ranks_of  # noqa: E402

import xcc  # noqa: E402

CASES = {"b1-s512": (1, 512, 0), "b8-s512": (8, 512, 0), "b8-token": (8, 1, 2048)}
SUMS = (8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20)
LIMIT = 240.0       # seconds in which programs of PyTorch are ready, where nothing else is said
TRAINED = ("resnet50x4", "resnet50x4-cut", "resnet50x8", "bertx4", "bertx4-cut", "bertx8")
CUT = ", cut"
CHAIN = 20
ROWS = (8, 32, 128)         # of 4096 f16: 64 kB to 1 MB


def prepared(folder: Path, name: str, ranks: int) -> tuple[Path, ...]:
    """The models for one GPU and for all, and for all with split logits, compiled side by side where they are not
    there yet."""
    source, *outputs = (folder / f"{name}{end}" for end in (".onnx", "-1.xcm", f"-{ranks}.xcm", f"-{ranks}-split.xcm"))
    shared: list[str] = []
    if name in CASES and not source.exists():
        write_llama(source, *CASES[name])
    elif name not in CASES:
        write_norms(source, int(name.partition("-")[2]), CHAIN)
        shared = ["--shard", "a*=tp:1", "--shard", "b*=tp:0"]
    command = [sys.executable, "-m", "xcc.tools.xcc_cli", str(source), "--target=nvptx"]
    mesh = f"--mesh=tp:{ranks}"
    how = [[], [mesh, *shared], *([[mesh, "--shard", "logits=tp:2"]] if name in CASES else [])]
    begin = time.perf_counter()
    started = [subprocess.Popen([*command, "-o", str(out), *more])
               for out, more in zip(outputs, how, strict=False) if not out.exists()]
    if any(p.wait() for p in started):
        raise SystemExit(f"{name}: xcc failed")
    if started:
        print(f"{name}: compiled in {time.perf_counter() - begin:.0f} s", flush=True)
    return tuple(outputs[:len(how)])


def of_ranks(ranks: int, peers: bool, *arguments: str) -> Any:
    """What rank 0 of processes of this script prints."""
    started = ranks_of([sys.executable, __file__, *arguments], ranks, XCC_PEER_COLLECTIVES=str(int(peers)))
    said = [p.communicate()[0] for p in started]
    if any(p.returncode for p in started):
        raise SystemExit(f"a rank failed: {arguments}")
    return json.loads(said[0])


def worker(what: str, path: str) -> Any:
    """Times of one rank; the logits of rank 0 go beside the model."""
    model = xcc.load(path)
    if what == "sums":
        out = {}
        for size in SUMS:
            x = np.ones(size // 2, np.float16)
            out[str(size)] = seconds(model, {"x": x}) / CHAIN
        return out
    if what.startswith("norms"):
        x = np.random.default_rng(0).standard_normal((1, int(what.partition("-")[2]), HIDDEN), np.float32)
        return seconds(model, {"x": x.astype(np.float16)}) / CHAIN
    inputs = inputs_of(*CASES[what])
    logits = np.asarray(model.run(inputs)["logits"], np.float32)
    if model.part.place.rank == 0:      # whose part of split ones comes first
        np.save(f"{path}.npy", logits[:, -8:])
    return seconds(model, inputs)


def seconds(model: Any, inputs: dict[str, Any]) -> float:
    """Of a run, on the device."""
    arrays, symbols = model._checked(inputs)
    executor, times = model.executor, []
    executor.run(arrays, symbols, in_place=False)
    with executor.driver.current():
        for _ in range(9):
            start = executor.driver.event()
            for _ in range(20):
                executor.replay(symbols)
            times.append(executor.driver.elapsed_ms(start, executor.driver.event()) * 1e-3 / 20)
    return statistics.median(times)


def sums(folder: Path, ranks: int) -> None:
    """Of f16, a chain of them in a graph."""
    from rank_programs import N, on_gpus

    from xcc.runtime.program import Buffer, Collective, Copy, Program
    from xcc.targets.nvptx.driver import default_chip

    link = Collective("all_reduce", 2, 2, ("tp",), "add")
    buffers = (Buffer("input", (N,), "f16", "x"), Buffer("output", (N,), "f16", "y"), Buffer("temp", (N,), "f16"))
    on_gpus(Program(buffers, (Copy(0, 2), *[link] * CHAIN, Copy(2, 1)), (0,), (1,), ("n",)), ranks,
            default_chip().name).save(folder / "sums.xcm")
    found = {peers: of_ranks(ranks, peers, "--worker", "sums", str(folder / "sums.xcm")) for peers in (True, False)}
    for size in SUMS:
        print(f"all_reduce f16, {ranks} GPUs, {size:>9} bytes: peers {found[True][str(size)] * 1e6:7.1f} us  library "
              f"{found[False][str(size)] * 1e6:7.1f} us", flush=True)


def alone_of(name: str, artifact: Path) -> float:
    """Seconds on one GPU."""
    return float(json.loads(subprocess.run([sys.executable, __file__, "--worker", name, str(artifact)], check=True,
                                           text=True, stdout=subprocess.PIPE).stdout))


def norms(folder: Path, ranks: int) -> None:
    """A link of a chain of small products, a sum, a residual add and a norm, beside one without the sum."""
    for rows in ROWS:
        name = f"norms-{rows}"
        one, several = prepared(folder, name, ranks)
        alone = alone_of(name, one)
        for peers in (True, False):
            took = of_ranks(ranks, peers, "--worker", name, str(several))
            print(f"sum, residual, norm, {ranks} GPUs, {rows * HIDDEN * 2:>8} bytes, "
                  f"{'peers' if peers else 'library':7} {took * 1e6:6.1f} us a link, "
                  f"{(took - alone) * 1e6:+6.1f} over one GPU's {alone * 1e6:.1f}", flush=True)


def by_torch(names: list[str], ranks: int, limit: float) -> None:
    """PyTorch's times of the same, and training steps; `of one`: how many times as much in a second as on one GPU."""
    tasks = [task for name in names for task in _tasks(name, ranks)]
    one: dict[str, float] = {}
    for task, seconds in in_turn(tasks, limit):
        alone = one.get(task.name.removesuffix(CUT), 0.0)
        more = f", {ranks * alone / seconds:.3f} of one" if seconds and alone else ""
        if seconds and task.ranks == 1:
            one[task.name] = seconds
        print(f"{task.name}, {task.ranks} GPU{'s' if task.ranks > 1 else ''} {told(seconds, limit)}{more}", flush=True)


def _tasks(name: str, ranks: int) -> list[Task]:
    beside = Path(__file__).parent
    if name not in CASES:
        kind, _, cut = name.partition("-")
        case, _, batches = kind.partition("x")
        return [Task(f"{kind:10} step, {backend}{CUT if cut else ''}", beside / "parallel_train.py", count,
                     (case, backend, batches or "1", cut))
                for backend in ("xcc", "inductor") for count in ((ranks,) if cut else (1, ranks))]
    return [Task(f"{name:9} PyTorch, {'parallelize_module' if count > 1 else 'torch.compile'}",
                 beside / "parallel_torch.py", count, tuple(map(str, CASES[name]))) for count in (1, ranks)]


def told(seconds: float | None, limit: float) -> str:
    if not seconds:
        return "failed" if seconds == 0 else f"not ready in {limit:.0f} s"
    return f"{seconds * 1e6:8.1f} us"


def compare(folder: Path, name: str, ranks: int) -> None:
    """One line: times, and how far the logits are apart, as a share of their range."""
    one, several, split = prepared(folder, name, ranks)
    alone = alone_of(name, one)
    print(f"{name:9} one GPU {alone * 1e6:8.1f} us", flush=True)
    want = np.load(f"{one}.npy")
    for peers, model, what in ((True, several, "peers"), (False, several, "library"), (True, split, "split")):
        took = of_ranks(ranks, peers, "--worker", name, str(model))
        got = np.load(f"{model}.npy")
        error = np.abs(got - want[..., :got.shape[-1]]).max() / np.abs(want).max()
        print(f"{name:9} {ranks} GPUs, {what:7} {took * 1e6:8.1f} us, {took / alone:5.3f} of one; error {error:.1e}",
              flush=True)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("cases", nargs="*", metavar="CASE")
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--folder", type=Path)
    p.add_argument("--prepare", action="store_true")
    p.add_argument("--torch", nargs="?", type=float, const=LIMIT, default=0, metavar="SECONDS")
    p.add_argument("--worker", nargs=2)
    args = p.parse_args()
    if args.worker:
        print(json.dumps(worker(*args.worker)))
        return
    with tempfile.TemporaryDirectory() as made:
        folder = args.folder or Path(made)
        folder.mkdir(exist_ok=True)
        cases = args.cases or ["sums", "norms", *CASES, *TRAINED]
        for name in cases:
            if name == "sums":
                sums(folder, args.ranks)
            elif name == "norms":
                norms(folder, args.ranks)
            elif name in CASES and args.prepare:
                prepared(folder, name, args.ranks)
            elif name in CASES:
                compare(folder, name, args.ranks)
        others = [name for name in cases if name not in ("sums", "norms") and (name not in CASES or args.torch)]
        if others and not args.prepare:
            by_torch(others, args.ranks, args.torch or LIMIT)


if __name__ == "__main__":
    main()
