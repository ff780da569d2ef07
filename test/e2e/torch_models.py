"""Small PyTorch models of the usual kinds: right by torch.compile and as exported programs, at four sizes each.

    python test/e2e/torch_models.py [NAME ...]              # checks, prints a table
    python test/e2e/torch_models.py --json FILE [NAME ...]  # adds the rows to a file
    python test/e2e/torch_models.py --dtype f16             # weights and inputs in half precision

``xcc.torch.compile(model, strict=True)`` gives what eager gives, from one compilation; so does the artifact of the
program that torch.export makes of it, in a process without torch. Each check is a process of its own.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
LIMITS = {"f32": 1e-4, "f16": 1e-2, "bf16": 1e-2}
"""Largest difference from eager, as a part of the largest magnitude of its result. Where eager's own narrow floats are
further than that from what the same weights give in f32, xcc is measured from there, and may be as far as eager and a
quarter more: both are the largest of thousands of roundings in another order."""

BARE = """
import sys; sys.modules["torch"] = None
import numpy as np, xcc
from xcc.runtime.dtypes import numpy_dtype
model = xcc.load("model.xcm")
for n in range(int(sys.argv[1])):
    with np.load(f"given{n}.npz") as given:
            feeds = {i.name: given[i.name].astype(numpy_dtype(i.dtype)) for i in model.inputs}
    np.savez(f"made{n}.npz", *[np.float64(x) for x in model.run(feeds).values()])
"""


@dataclass
class Row:
    """What one check of one model gave: `error` is its largest difference from eager, of four sizes; of narrow floats
    `exact` is that from the model in f32, and `eager` is eager's."""

    name: str
    way: str
    dtype: str
    problem: str = ""
    error: float = 0.0
    exact: float = 0.0
    eager: float = 0.0
    graphs: int = 0
    kernels: int = 0
    nodes: int = 0
    seconds: float = 0.0


def built(name: str, dtype: str) -> Any:
    """The module, its weights of a fixed seed."""
    import torch
    from exported.exporting import _built
    from torch_zoo import zoo

    types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    return _built(zoo()[name]).to(types[dtype])


def given(name: str, module: Any) -> list[tuple[Any, ...]]:
    """The inputs at each size, floats in the type of the weights."""
    import torch
    from torch_zoo import zoo

    kind = next(p.dtype for p in module.parameters() if p.is_floating_point())
    model = zoo()[name]
    return [tuple(t.to(kind) if t.is_floating_point() else t
                  for t in map(torch.from_numpy, model.feeds(case).values())) for case in range(len(model.cases))]


def distance(got: Any, want: Any) -> float:
    """The largest difference, as a part of the largest magnitude that is wanted."""
    got, want = (np.asarray(x, np.float64) for x in (got, want))
    if got.shape != want.shape:
        raise ValueError(f"the shape is {got.shape}, not {want.shape}")
    if not want.size:
        return 0.0
    worst = float(np.abs(got - want).max() / max(float(np.abs(want).max()), 1e-6))
    return worst if worst == worst else float("inf")


def arrays(results: Any) -> list[Any]:
    return [r.detach().double().numpy() for r in (results if isinstance(results, tuple | list) else (results,))]


def measure(row: Row, module: Any, inputs: tuple[Any, ...], got: Any, run: Callable[..., Any]) -> None:
    """Adds how far `got` is from what ``run(module, inputs)`` gives."""
    want = run(module, inputs)
    row.error = max(row.error, *map(distance, got, want))
    if row.dtype == "f32":
        return
    wide = copy.deepcopy(module).float()
    exact = run(wide, tuple(t.float() if t.is_floating_point() else t for t in inputs))
    row.exact = max(row.exact, *map(distance, got, exact))
    row.eager = max(row.eager, *map(distance, want, exact))


def _forward(module: Any, inputs: tuple[Any, ...]) -> list[Any]:
    return arrays(module(*inputs))


def by_compile(name: str, dtype: str) -> Row:
    """``xcc.torch.compile``, strict; gradients too, of models that are trained."""
    import torch
    from torch._dynamo.utils import counters
    from torch_zoo import TRAINED

    import xcc.torch

    row, module = Row(name, "compile", dtype), built(name, dtype)
    sizes = given(name, module)
    trained = name in TRAINED
    compiled = xcc.torch.compile(module.train(trained), strict=True)
    run = _gradients if trained else _forward
    start = time.perf_counter()
    for n, inputs in enumerate(sizes):
        with torch.set_grad_enabled(trained):
            got = run(compiled, inputs)
            if not n:
                row.seconds, row.graphs = time.perf_counter() - start, counters["stats"]["unique_graphs"]
            measure(row, module, inputs, got, run)
    again = counters["stats"]["unique_graphs"] - row.graphs
    if again or counters["graph_break"]:
        row.problem = f"compiled {again} times more; breaks: {dict(counters['graph_break'])}"
    return row


def _gradients(module: Any, inputs: tuple[Any, ...]) -> list[Any]:
    """Results, and the gradients of parameters."""
    module.zero_grad()
    out = module(*inputs)
    out.square().mean().backward()
    return [*arrays(out), *arrays([p.grad.clone() for p in module.parameters()])]


def by_export(name: str, dtype: str) -> Row:
    """A .pt2 file, compiled, and loaded by a process that has no torch."""
    import torch
    from torch_zoo import zoo

    import xcc
    from xcc.runtime.arena import walk
    from xcc.runtime.program import Launch

    row, module = Row(name, "export", dtype), built(name, dtype).eval()
    sizes, spec = given(name, module), zoo()[name].inputs
    free = tuple({axis: torch.export.Dim.AUTO for axis, d in enumerate(i.shape) if isinstance(d, str)}
                 for i in spec.values())
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        shapes = (free,) if type(module).__name__ == "Calling" else free
        program = torch.export.export(module, sizes[0], dynamic_shapes=shapes)
        torch.export.save(program, Path(folder, "model.pt2"))
        start = time.perf_counter()
        model = xcc.compile(Path(folder, "model.pt2"))
        row.seconds, row.kernels = time.perf_counter() - start, len({
            s.kernel for s in walk(model.artifact.program.body) if isinstance(s, Launch)})
        row.nodes = len(program.graph.nodes)
        model.save(Path(folder, "model.xcm"))
        for n, inputs in enumerate(sizes):
            np.savez(Path(folder, f"given{n}.npz"),
                     **{i.name: (t.float() if t.dtype == torch.bfloat16 else t).numpy()
                        for i, t in zip(model.inputs, inputs, strict=True)})
        subprocess.run([sys.executable, "-c", BARE, str(len(sizes))], cwd=folder, check=True)
        for n, inputs in enumerate(sizes):
            with np.load(Path(folder, f"made{n}.npz")) as made:
                measure(row, module, inputs, list(made.values()), _forward)
    return row


WAYS: dict[str, Callable[[str, str], Row]] = {"compile": by_compile, "export": by_export}


def check(name: str, way: str, dtype: str) -> Row:
    """The row of a check, which may raise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row = WAYS[way](name, dtype)
    limit = LIMITS[dtype]
    as_eager = row.dtype != "f32" and row.exact <= max(limit, 1.25 * row.eager)
    if not row.problem and not row.error <= limit and not as_eager:
        row.problem = "too far from eager"
    return row


def in_child(name: str, way: str, dtype: str, limit: int) -> Row:
    """The check in a process of its own."""
    command = [sys.executable, str(Path(__file__)), "--one", way, "--dtype", dtype, name]
    own = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = os.environ | {"PYTHONPATH": own}      # a script's folder is not searched where PYTHONSAFEPATH is set
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False, env=env)
    except subprocess.TimeoutExpired:
        return Row(name, way, dtype, f"took more than {limit} s")
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        said = [line for line in done.stderr.strip().splitlines() if "Error" in line or "error" in line]
        return Row(name, way, dtype, (said or [f"exit status {done.returncode}"])[-1][:600])
    return Row(**json.loads(lines[-1]))


def kept(rows: list[Row], path: Path) -> None:
    """Adds the rows to those of `path`."""
    import torch

    before = json.loads(path.read_text()) if path.exists() else {"rows": []}
    all_rows = {(r["name"], r["way"], r["dtype"]): r for r in before["rows"]}
    all_rows |= {(r.name, r.way, r.dtype): asdict(r) for r in rows}
    machine = f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} processors"
    path.write_text(json.dumps({"machine": machine, "torch": torch.__version__,
                                "rows": [r for _, r in sorted(all_rows.items())]}, indent=1) + "\n")


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("name", nargs="*", help="default: all")
    p.add_argument("--dtype", choices=LIMITS, default="f32")
    p.add_argument("--way", choices=WAYS, action="append", help="default: both")
    p.add_argument("--json", type=Path, metavar="FILE", help="where rows are kept")
    p.add_argument("--limit", type=int, default=600, metavar="S", help="seconds for one check")
    p.add_argument("--one", choices=WAYS, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.one:
        print(json.dumps(asdict(check(args.name[0], args.one, args.dtype))))
        return 0
    from torch_zoo import zoo

    fine = True
    for name in args.name or zoo():
        for way in args.way or WAYS:
            row = in_child(name, way, args.dtype, args.limit)
            fine &= not row.problem
            exact = f" (from f32 {row.exact:.1e}, eager {row.eager:.1e})" if row.eager else ""
            print(f"{name:22} {way:8} {row.dtype:5} {row.error:.1e}{exact} {row.seconds:6.1f} s  "
                  f"{row.problem or 'right'}", flush=True)
            if args.json:
                kept([row], args.json)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
