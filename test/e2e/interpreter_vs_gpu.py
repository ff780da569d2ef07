"""The interpreter against an NVIDIA GPU: the same kernels on the same bytes, differences in units in the last place.

    python test/e2e/interpreter_vs_gpu.py build/interpreter.npz [--chip sm_90a]      interprets, stores (no GPU)
    python test/e2e/interpreter_vs_gpu.py build/interpreter.npz --check              launches, prints a table (a GPU)

The file holds, for each launch, the kernel's PTX, its arguments before it, and what the interpreter left in them after
it. Cases are the sample tile programs and small cases of the GPU benchmark and of other op families, through the whole
pipeline. Checking needs numpy and the CUDA driver alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
FLOATS = {"float16": (np.uint16, np.float16), "float32": (np.uint32, np.float32), "float64": (np.uint64, np.float64)}


@dataclass
class Recorded:
    """One launch. `arrays` holds a (dtype, changed) for each buffer; contents are in the file by number and index."""

    case: str
    entry: str
    ptx: int
    grid: list[int]
    block: list[int]
    shared_bytes: int
    symbols: list[int]
    arrays: list[tuple[str, bool]] = field(default_factory=list)


class Recorder:
    """Launches and kernels of the cases so far, and their storage."""

    def __init__(self) -> None:
        self.launches: list[Recorded] = []
        self.data: dict[str, Array] = {}

    def kernel(self, ptx: bytes) -> int:
        number = sum(name.startswith("ptx") for name in self.data)
        self.data[f"ptx{number}"] = np.frombuffer(ptx, np.uint8)
        return number

    def launch(self, launch: Recorded, before: list[Array], after: list[Array]) -> None:
        number = len(self.launches)
        for i, (a, b) in enumerate(zip(before, after, strict=True)):
            changed = a.tobytes() != b.tobytes()
            launch.arrays.append((str(b.dtype), changed))
            self.data[f"a{number}_{i}"] = a.reshape(-1).view(np.uint8)
            if changed:
                self.data[f"b{number}_{i}"] = b.reshape(-1).view(np.uint8)
        if not any(changed for _, changed in launch.arrays):
            raise SystemExit(f"{launch.case}: kernel {launch.entry} changed nothing")
        self.launches.append(launch)

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        index = json.dumps([asdict(x) for x in self.launches])
        np.savez_compressed(path, index=np.frombuffer(index.encode(), np.uint8), **self.data)  # type: ignore[arg-type]


def record_sample(recorder: Recorder, case: Any, chip: Any) -> None:
    """A tile program of gpu_kernels/."""
    from xcc import symbolic
    from xcc._mlir import ir
    from xcc.interpreter.kernel import run_kernel
    from xcc.interpreter.machine import Options
    from xcc.passes.base import PassContext
    from xcc.targets.gpu_module import kernel_launches
    from xcc.targets.nvptx.emit import ptx_of
    from xcc.targets.nvptx.pipeline import kernel_pipeline

    inputs, expected, dtype, symbols = case.make(np.random.default_rng(3))
    arrays = [*inputs, np.full(expected.shape, np.nan, dtype)]
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(case.text())
        kernel_pipeline().upto("gpu").run(module, PassContext(chip=chip))
        launches = kernel_launches(module)
        after = ir.Module.parse(str(module))
        kernel_pipeline().after("gpu").run(after, PassContext(chip=chip))
        ptx = recorder.kernel(ptx_of(after, chip).encode())
        for x in launches:
            grid = [symbolic.evaluate(d, symbols) for d in x.grid]
            before = [a.copy() for a in arrays]
            run_kernel(module, x.entry, (grid[0], 1, 1), x.block, arrays, list(symbols.values()),
                       Options(warp=chip.warp), x.shared_bytes)
            recorder.launch(Recorded(case.id, x.entry, ptx, grid, list(x.block), x.shared_bytes,
                                     list(symbols.values())), before, arrays)


def record_module(recorder: Recorder, case: Any, chip: Any) -> None:
    """An xt module through the whole pipeline: each launch of its host program."""
    import tempfile

    from gpu import module_text

    import xcc
    from xcc.interpreter import executor as interpreting
    from xcc.runtime.dtypes import numpy_dtype

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.mlir")
        path.write_text(module_text(case))
        model = xcc.compile(str(path), target="nvptx,code=ptx", chip=chip.name, keep_ir=True)
    a = model.artifact
    rng, dtype = np.random.default_rng(4), numpy_dtype(case.dtype)
    feeds = [(rng.standard_normal(shape) * case.scale).astype(dtype) for shape in case.shapes]
    code = {entry: f"kernels/{k['name']}.ptx" for k in a.manifest["kernels"] for entry in k["entries"]}
    numbers: dict[str, int] = {}

    def watch(entry: str, grid: Any, block: Any, arrays: Any, symbols: Any, shared: int, run: Any) -> None:
        before = [np.array(x) for x in arrays]
        run()
        file = code[entry]
        if file not in numbers:
            numbers[file] = recorder.kernel(bytes(a.members[file]))
        recorder.launch(Recorded(case.name, entry, numbers[file], list(grid), list(block), shared, list(symbols)),
                        before, [np.array(x) for x in arrays])

    executor = interpreting.make_executor(a.program, a.members, a.weights, a.manifest)
    executor.watch = watch
    executor.run(feeds, {})


def xt_cases() -> list[Any]:
    """Small cases of every family that the samples lack."""
    import gpu_cases as g

    def one(name: str, dtype: str, build: Any, *shapes: tuple[int, ...]) -> Any:
        return g.Case(name, shapes, dtype, build, None)

    return [
        g.chain(8, 100), g.layer_norm(4, 768), g.rms_norm(4, 768), g.softmax(3, 1000), g.softmax(1, 12345),
        g.matmul(128, 128, 64, "f16"), g.matmul(33, 77, 111, "f16", "N", "T"), g.matmul(64, 64, 64, "bf16", "T", "T"),
        g.matmul(64, 48, 40, "f32"), g.matmul(1, 256, 256, "f16", "N", "T"), g.epilogue(40, 70, 64, "gelu"),
        g.epilogue(64, 64, 64, "relu+residual"), g.attention(1, 2, 64, 64, True), g.attention(1, 2, 33, 64, False),
        g.attention(2, 2, 1, 64, False, 100), g.conv(1, 10, 16, 32, 3), g.transpose(45, 70),
        one("max of rows", "f32", lambda xt, x: xt.reduce(x, kind="max", axes=(1,), keepdims=False), (7, 333)),
        one("sum of columns", "f32", lambda xt, x: xt.reduce(x, kind="sum", axes=(0,), keepdims=False), (70, 50)),
        one("cumulative sum", "f32", lambda xt, x: xt.cumulative(x, axis=1, kind="sum"), (9, 65)),
        one("sort", "f32", lambda xt, x: xt.sort(x, axis=1)[0], (5, 77)),
        one("top_k", "f32", lambda xt, x: xt.top_k(x, k=9, axis=1)[0], (5, 77)),
        one("max pool", "f32", lambda xt, x: xt.reduce_window(x, kind="max", window=(1, 1, 3, 3),
                                                              strides=(1, 1, 2, 2)), (1, 8, 15, 15)),
        one("pad", "f32", lambda xt, x: xt.pad(x, low=(1, 2), high=(3, 4)), (9, 21)),
        one("tanh, erf, log", "f32", lambda xt, x: xt.add(xt.tanh(x), xt.add(xt.erf(x), xt.log(xt.abs(x)))), (999,)),
        one("sin, cos, pow", "f32", lambda xt, x: xt.add(xt.sin(x), xt.add(xt.cos(x), xt.pow(xt.abs(x), x))), (999,)),
    ]


def store(path: Path, chip_name: str) -> None:
    sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    import gpu_cases as g
    import gpu_smoke_cases

    from xcc.targets.nvptx.chip import chips

    recorder, chip = Recorder(), chips()[chip_name]
    samples = gpu_smoke_cases.CASES
    for case in samples:
        record_sample(recorder, case, chip)
    for case in xt_cases():
        assert isinstance(case, g.Case)
        try:
            record_module(recorder, case, chip)
        except Exception as e:
            raise SystemExit(f"{case.name}: {type(e).__name__}: {e}") from e
    recorder.save(path)
    print(f"{len(recorder.launches)} launches of {len(samples) + len(xt_cases())} cases, {path.stat().st_size} bytes")


# -- on the GPU ------------------------------------------------------------------------------------------------------


def ordered(a: Array, dtype: str) -> Array:
    """Floats as integers in the order of their values, one apart where they are neighbours."""
    bits = a.view(FLOATS[dtype][0] if dtype in FLOATS else np.uint16)
    width = bits.dtype.itemsize * 8
    wide = bits.astype(np.int64)
    sign = np.int64(1) << (width - 1) if width < 64 else np.iinfo(np.int64).min
    negative = (wide & sign) != 0
    return np.where(negative, -(wide & ~sign), wide)


def values(a: Array, dtype: str) -> Array:
    if dtype in FLOATS:
        return a.view(FLOATS[dtype][1]).astype(np.float64)
    return (a.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def difference(got: Array, want: Array, dtype: str) -> tuple[float, float, float]:
    """Largest difference in ulp, the same in ulp of the largest value, share of equal elements. NaN is far from all."""
    if not (dtype in FLOATS or dtype == "bfloat16"):
        a, b = got.view(dtype), want.view(dtype)
        return (0.0 if np.array_equal(a, b) else np.inf), 0.0, float((a == b).mean())
    a, b = values(got, dtype), values(want, dtype)
    both = np.isnan(a) & np.isnan(b)
    if (np.isnan(a) != np.isnan(b)).any():
        return np.inf, np.inf, float(((a == b) | both).mean())
    gap = np.abs(ordered(got, dtype) - ordered(want, dtype))[~both]
    finite = np.abs(b[np.isfinite(b)])
    digits = {"float16": 10, "float32": 23, "float64": 52}.get(dtype, 7)
    unit = 2.0 ** (np.floor(np.log2(finite.max())) - digits) if finite.size and finite.max() else 1.0
    with np.errstate(invalid="ignore"):
        largest = np.nanmax(np.where(a == b, 0.0, np.abs(a - b)), initial=0.0) / unit
    return float(gap.max(initial=0)), float(largest), float(((a == b) | both).mean())


def check(path: Path, bound: float) -> int:
    """Prints a line a launch; returns how many differ by more than `bound` ulp of the largest value."""
    from xcc.runtime.cuda_driver import CudaDriver

    driver, bad = CudaDriver(), 0
    with np.load(path) as data:
        launches = [Recorded(**x) for x in json.loads(data["index"].tobytes())]
        modules: dict[int, Any] = {}
        print("|case|kernel|type|elements|largest, ulp|ulp of the largest value|equal|\n" + "|---" * 7 + "|")
        for n, launch in enumerate(launches):
            if launch.ptx not in modules:
                modules[launch.ptx] = driver.load(data[f"ptx{launch.ptx}"].tobytes())
            before = [np.ascontiguousarray(data[f"a{n}_{i}"]) for i in range(len(launch.arrays))]
            pointers = [driver.alloc(a.nbytes) for a in before]
            for p, a in zip(pointers, before, strict=True):
                driver.upload(p, a)
            driver.launch(driver.function(modules[launch.ptx], launch.entry, launch.shared_bytes), launch.grid,
                          launch.block, launch.shared_bytes, pointers, launch.symbols)
            for i, (dtype, changed) in enumerate(launch.arrays):
                if not changed:
                    continue
                got, want = np.empty_like(before[i]), data[f"b{n}_{i}"]
                driver.download(got, pointers[i])
                ulp, largest, equal = difference(got, want, dtype)
                wrong = largest > bound or ulp == np.inf
                bad += wrong
                count = want.size // np.dtype(_stored(dtype)).itemsize
                print(f"|{launch.case}|{launch.entry}|{dtype}|{count}|{ulp:.0f}|{largest:.2g}|{equal:.1%}|"
                      f"{' DIFFERENT' if wrong else ''}", flush=True)
            for p in pointers:
                driver.free(p)
    return bad


def _stored(dtype: str) -> str:
    return "uint16" if dtype == "bfloat16" else dtype


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true", help="run on this machine's GPU what the file holds")
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--bound", type=float, default=16.0, help="of --check, in ulp of a result's largest value")
    args = parser.parse_args()
    if args.check:
        return 1 if check(args.file, args.bound) else 0
    store(args.file, args.chip)
    return 0


if __name__ == "__main__":
    sys.exit(main())
