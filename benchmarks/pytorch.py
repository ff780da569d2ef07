"""xcc beside eager PyTorch and Inductor, on this machine's CPU or GPU: ``python benchmarks/pytorch.py --help``.

Each model runs in a process of its own with empty caches; the ways to run it take turns, with a pause between them, so
that a busy moment meets all of them. Medians; writes a JSON file and a page of tables.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from pytorch_pages import described, machine_name, page
from turns import READY, median_times


def main() -> int:
    parser = argparse.ArgumentParser(description="xcc beside eager PyTorch and Inductor on this CPU or GPU")
    parser.add_argument("--what", choices=("inference", "training", "functions", "calls", "all"), default="all")
    parser.add_argument("--models", help="comma-separated names of cases (default: all)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float32")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=15, help="turns of each way to run a model")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results"), help="folder of the results")
    parser.add_argument("--together", action="store_true",
                        help="compile all cases at once and time one after the other; no times to compile")
    parser.add_argument("--worker", nargs=2, metavar=("WHAT", "CASE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(_work(*args.worker, args)))
        return 0
    from pytorch_cases import CASES, FUNCTIONS, GPU_CASES, GPU_FUNCTIONS

    cases, functions = (CASES, FUNCTIONS) if args.device == "cpu" else (GPU_CASES, GPU_FUNCTIONS)
    chosen = args.models.split(",") if args.models else [c.name for c in cases]
    trained = [c.name for c in cases if c.trains and c.name in chosen]
    wanted = [*(("inference", n) for n in chosen), *(("training", n) for n in trained),
              *(("functions", c.name) for c in functions if not args.models),
              *(("calls", count) for count in ("1", "48", "192"))]
    args.output.mkdir(parents=True, exist_ok=True)      # now, not when a case has been measured
    path = args.output / f"torch-{machine_name(args)}.json"
    known = json.loads(path.read_text())["rows"] if path.exists() else []
    rows = {(r["what"], r["case"]): r for r in known}
    for row in _rows([w for w in wanted if args.what in ("all", w[0])], args):
        what, case = row["what"], row["case"]
        rows[what, case] = row
        times = ", ".join(f"{k} {v:.3f}" for k, v in row.get("ms", {}).items())
        print(f"{what} {case}: {row.get('error', times)}", flush=True)
        data = {"machine": described(args), "torch": next((r["torch"] for r in rows.values() if "torch" in r), ""),
                "rows": list(rows.values())}
        path.write_text(json.dumps(data, indent=1) + "\n")
        path.with_suffix(".md").write_text(page(data))
    return 0


def _rows(wanted: list[tuple[str, str]], args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """What processes measure, each with empty caches; nothing else runs while one of them measures."""
    if not args.together:
        for what, case in wanted:
            with _Measurement(what, case, args) as one:
                yield one.row()
        return
    with contextlib.ExitStack() as stack:
        all_of_them = [stack.enter_context(_Measurement(what, case, args)) for what, case in wanted]
        for one in all_of_them:
            one.wait_until_ready()
        for one in all_of_them:
            row = one.row()
            row.pop("compile_s", None)
            yield row


class _Measurement:
    """A case in a process of its own: it compiles, says READY, and measures when it is told to."""

    def __init__(self, what: str, case: str, args: argparse.Namespace) -> None:
        self.found = {"what": what, "case": case}
        self.caches, self.errors = tempfile.TemporaryDirectory(), tempfile.TemporaryFile("w+")
        env = os.environ | {"XCC_CACHE_DIR": f"{self.caches.name}/xcc", "XCC_THREADS": str(args.threads),
                            "TORCHINDUCTOR_CACHE_DIR": f"{self.caches.name}/inductor",
                            "OMP_NUM_THREADS": str(args.threads)}
        if args.together:
            env["TORCHINDUCTOR_COMPILE_THREADS"] = "2"
        command = [sys.executable, __file__, "--worker", what, case, "--threads", str(args.threads), "--rounds",
                   str(args.rounds), "--device", args.device, "--dtype", args.dtype]
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)

    def __enter__(self) -> _Measurement:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        self.errors.close()
        self.caches.cleanup()

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == READY:
                return

    def row(self) -> dict[str, Any]:
        out, _ = self.process.communicate("go\n")
        if self.process.returncode:
            self.errors.seek(0)
            return self.found | {"error": (self.errors.read().strip().splitlines() or ["no output"])[-1]}
        return self.found | json.loads(out.splitlines()[-1])


def _work(what: str, case: str, args: argparse.Namespace) -> dict[str, Any]:
    import torch

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    torch._dynamo.config.allow_rnn = True       # else Dynamo leaves an LSTM to Python in all of the ways
    if what == "calls":
        measured = _calls(case, args)
    else:
        module, inputs = _built(case, args)
        measured = {"inference": _inference, "training": _training, "functions": _functions}[what](module, inputs, args)
    return measured | {"torch": torch.__version__}


def _inference(module: Any, inputs: Any, args: argparse.Namespace) -> dict[str, Any]:
    import torch

    module.eval()
    with torch.no_grad():
        want = _first(module(*inputs))
        ways: dict[str, Callable[[], Any]] = {"eager": lambda: module(*inputs)}
        seconds, errors = {}, {}
        for way, options in (("inductor", {}), ("xcc", {}), ("inductor frozen", {}), ("xcc frozen", {"freeze": True})):
            if args.device == "cuda" and way == "inductor frozen":
                continue        # gains nothing there
            call, seconds[way] = _compiled(module, way, options, args)
            got = _first(call(*inputs))
            errors[way] = float((got - want).abs().max() / want.abs().max())
            ways[way] = lambda call=call: call(*inputs)     # type: ignore[misc]
        return {"ms": median_times(ways, args), "compile_s": {k: v[0] for k, v in seconds.items()}, "error_of": errors}


def _functions(module: Any, inputs: Any, args: argparse.Namespace) -> dict[str, Any]:
    """A function by ``xcc.torch.compile``, to which all sizes are free, beside Inductor with those of the call."""
    import torch

    import xcc.torch

    with torch.no_grad():
        want = module(*inputs)
        call, _ = _compiled(module, "inductor", {}, args)
        call(*inputs)
        free = xcc.torch.compile(module, strict=True)
        error = float((free(*inputs) - want).abs().max() / want.abs().max())
        ways = {"eager": lambda: module(*inputs), "inductor": lambda: call(*inputs), "xcc": lambda: free(*inputs)}
        return {"ms": median_times(ways, args), "error_of": {"xcc": error}}


def _training(module: Any, inputs: Any, args: argparse.Namespace) -> dict[str, Any]:
    import torch

    module.train()
    for m in module.modules():
        if isinstance(m, torch.nn.Dropout):
            m.p = 0.0       # other random numbers would give another loss
    ways: dict[str, Callable[[], Any]] = {"eager": lambda: _step(module, inputs)}
    losses, seconds = {"eager": float(_step(module, inputs))}, {}
    for way in ("inductor", "xcc"):
        call, seconds[way] = _compiled(module, way, {}, args)
        losses[way] = float(_step(call, inputs))
        ways[way] = lambda call=call: _step(call, inputs)      # type: ignore[misc]
    return {"ms": median_times(ways, args), "compile_s": {k: v[0] for k, v in seconds.items()},
            "error_of": {k: abs(v - losses["eager"]) / abs(losses["eager"]) for k, v in losses.items()}}


def _step(module: Any, inputs: Any) -> Any:
    """With gradients that were let go of, as a training loop does."""
    module.zero_grad(set_to_none=True)
    loss = _first(module(*inputs)).float().square().mean()
    loss.backward()
    return loss


def _calls(count: str, args: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of a call in each way, and of xcc's boxed call and of an exported model alone. On a GPU those of the
    host, of calls so few that its queue has room for what they start."""
    import torch
    from pytorch_cases import Parameters

    import xcc.torch

    module, x = Parameters(int(count)).eval().to(args.device), torch.randn(4, 8, device=args.device)
    n = 200 if args.device == "cpu" else 20
    with torch.no_grad():
        ways: dict[str, Callable[[], Any]] = {}
        for way in ("inductor", "xcc"):
            call, _ = _compiled(module, way, {}, args)
            call(x)
            ways[way] = lambda call=call: [call(x) for _ in range(n)]        # type: ignore[misc]
        boxed = _BOXED[-1]
        arguments = _arguments_of(boxed, lambda: call(x))
        ways["xcc, boxed call"] = lambda: [boxed(list(arguments)) for _ in range(n)]
        target = "cpu" if args.device == "cpu" else "nvptx"
        exported = xcc.torch.function(xcc.compile(torch.export.export(module, (x,)), target=target))
        exported(x)
        ways["xcc, exported"] = lambda: [exported(x) for _ in range(n)]
        return {"ms": {k: v / n for k, v in median_times(ways, args, host=True).items()}}


_BOXED: list[Any] = []


def _arguments_of(boxed: Any, call: Callable[[], Any]) -> list[Any]:
    """What `boxed` is given in a `call`."""
    given: list[Any] = []
    own = type(boxed).__call__

    def recorded(this: Any, arguments: list[Any]) -> Any:
        given[:] = arguments
        return own(this, arguments)

    with mock.patch.object(type(boxed), "__call__", recorded):
        call()
    return given


def _compiled(module: Any, way: str, options: dict[str, Any], args: argparse.Namespace) -> tuple[Any, list[float]]:
    """The module compiled by Inductor or xcc, and seconds of that behind AOTAutograd, added up as it happens."""
    import torch

    seconds = [0.0]
    torch._dynamo.reset()
    if way.startswith("inductor"):
        import torch._inductor.compile_fx as inductor

        own = inductor.compile_fx_inner

        def timed_inner(*given: Any, **rest: Any) -> Any:
            begin = time.perf_counter()
            try:
                return own(*given, **rest)
            finally:
                seconds[0] += time.perf_counter() - begin

        def backend(graph: Any, inputs: Any) -> Any:
            graphs = {"triton.cudagraphs": args.device == "cuda"}
            with torch._inductor.config.patch({"freezing": way.endswith("frozen"), **graphs}):
                return inductor.compile_fx(graph, inputs, inner_compile=timed_inner)

        return torch.compile(module, backend=backend), seconds
    from xcc.frontends.torch import backend as xcc_backend

    inner = xcc_backend.compile_graph

    def timed(*given: Any, **rest: Any) -> Any:
        begin = time.perf_counter()
        try:
            made = inner(*given, **rest)
        finally:
            seconds[0] += time.perf_counter() - begin
        _BOXED.append(made)
        return made

    xcc_backend.compile_graph = timed
    return torch.compile(module, backend=xcc_backend.backend, options={"strict": True, **options}), seconds


def _built(name: str, args: argparse.Namespace) -> tuple[Any, Any]:
    import torch
    from pytorch_cases import CASES, FUNCTIONS, GPU_CASES, GPU_FUNCTIONS

    cases = [*CASES, *FUNCTIONS] if args.device == "cpu" else [*GPU_CASES, *GPU_FUNCTIONS]
    module, inputs = next(c for c in cases if c.name == name).build()
    dtype = getattr(torch, args.dtype)
    return module.to(args.device, dtype), tuple(t.to(args.device, dtype if t.is_floating_point() else None)
                                                for t in inputs)


def _first(result: Any) -> Any:
    import torch

    return result if isinstance(result, torch.Tensor) else result[0]


if __name__ == "__main__":
    sys.exit(main())
