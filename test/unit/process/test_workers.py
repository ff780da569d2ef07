"""Worker processes and the cache: results, crashes, reproducers that replay, timeouts."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import xcc
from xcc.cache import cache
from xcc.diagnostics import CompilerBug, UserError
from xcc.options import CompileOptions
from xcc.process import kernels, worker
from xcc.process.worker import KernelJob, KernelResult
from xcc.symbolic import sym
from xcc.targets.base import Chip, KernelBinary, KernelLaunch, get_target

TEXT = "func.func @k() -> i32 {\n  %a = arith.constant 2 : i32\n  %b = arith.addi %a, %a : i32\n  return %b : i32\n}\n"
CHIP = Chip("some-chip", "x86_64", "generic")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_CACHE_DIR", str(tmp_path / "cache"))


def job(pipeline: str, name: str = "k") -> KernelJob:
    return KernelJob(name, TEXT, pipeline, CHIP, CompileOptions(jobs=2), keep=("vector",), emit=False)


def test_kernels_run_their_stages_in_parallel_and_in_order() -> None:
    jobs = [job("vector: mlir(canonicalize)", f"k{i}") for i in range(5)]
    progress: list[int] = []
    results = kernels.compile_all(jobs, lambda done, _: progress.append(done))
    assert all("arith.constant 4" in r.kept["vector"] for r in results)
    assert sorted(progress) == [0, 1, 2, 3, 4, 5]
    assert ("vector", "mlir(canonicalize)") in results[0].seconds


@pytest.mark.parametrize(("how", "what"), [("abort", "died of SIGABRT"), ("raise", "RuntimeError: this pass fails")])
def test_a_failing_pass_is_a_bug_with_a_reproducer_that_replays(how: str, what: str) -> None:
    with pytest.raises(CompilerBug, match=what) as caught:
        kernels.compile_all([job(f"vector: mlir(canonicalize), test-fail{{how={how}}}")])
    bug = caught.value
    assert Path(bug.reproducer).read_text() == TEXT
    words = shlex.split(bug.command)
    assert words[0] == "xcc-opt"
    assert words[1] == bug.reproducer
    without_chip = [w for w in words[2:] if not w.startswith(("--chip", "--target"))]
    again = subprocess.run([sys.executable, "-m", "xcc.tools.xcc_opt", words[1], *without_chip], capture_output=True,
                           text=True)
    assert again.returncode == (-6 if how == "abort" else 70)
    fixed = [w.replace(f", test-fail{{how={how}}}", "") for w in without_chip]
    good = subprocess.run([sys.executable, "-m", "xcc.tools.xcc_opt", words[1], *fixed], capture_output=True, text=True)
    assert good.returncode == 0
    assert "arith.constant 4" in good.stdout


@pytest.mark.parametrize("package", ["torch_mlir", "llvmlite"])
def test_a_broken_installation_is_named(tmp_path: Path, package: str) -> None:
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("raise ImportError('libgone.so: cannot open shared object file')")
    (tmp_path / "m.mlir").write_text("func.func @main() { return }")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    code = "import xcc; xcc.compile('m.mlir')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "CompilerBug: " in done.stderr.splitlines()[-1] and "ImportError: " in done.stderr.splitlines()[-1]
    done = subprocess.run([sys.executable, "-m", "xcc.tools.xcc_cli", "m.mlir"], cwd=tmp_path, env=environment,
                          capture_output=True, text=True)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.startswith("xcc: error: xcc is not installed whole: ")


def test_what_a_worker_prints_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = tmp_path / "talkative.py"
    plugin.write_text("import sys\nsys.stderr.write('hello from the plugin\\n')\n")
    kernels.shut_down()
    kernels.compile_all([replace(job("vector: mlir(cse)"), plugins=(str(plugin),))])
    assert "hello from the plugin\n" in capsys.readouterr().err


def test_workers_survive_other_kernels_failures() -> None:
    with pytest.raises(UserError, match="kernel 'k': this model is not for me"):
        kernels.compile_all([job("vector: test-fail{how=user}")])
    with pytest.raises(CompilerBug, match="'llvm' there should be no arith"):
        kernels.compile_all([job("llvm: mlir(cse)")])
    assert kernels.compile_all([job("vector: mlir(cse)")])[0].kept


FORKING = """
import os, sys
sys.path.insert(0, FOLDER)
import numpy as np
from test_workers import job
from xcc.process import kernels
from xcc.diagnostics import CompilerBug
from xcc.process.fork_guard import fork_guard, may_fork
assert not may_fork()
step = fork_guard()
a = np.ones((600, 600), np.float32)
a @ a       # with threads, on machines of several cores
assert may_fork()
step(lambda: CompilerBug("not this"))
sys.stderr.write("here ")
for _ in range(2):      # a chip each: the workers are there the second time
    results = kernels.compile_all([job("vector: mlir(canonicalize)", f"k{i}") for i in range(4)])
assert all("arith.constant 4" in r.kept["vector"] for r in results)
assert all(type(w._process).__name__ == "Forked" for w in kernels._IDLE)
try:
    kernels.compile_all([job("vector: test-fail{how=abort}")])
except CompilerBug as e:
    assert "died of SIGABRT" in e.message
print(*(w._process.pid for w in kernels._IDLE), flush=True)
step(lambda: CompilerBug("it died"))
os.kill(os.getpid(), 9)
"""


def test_workers_of_a_compilation_are_forks_that_end_with_it() -> None:
    code = FORKING.replace("FOLDER", repr(str(Path(__file__).parent)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "it died (SIGKILL)" in done.stderr and done.stdout.split(), done.stderr
    assert "not this" not in done.stderr and done.stderr.count("here") == 1     # though two processes went that way
    deadline = time.monotonic() + 60
    for pid in map(int, done.stdout.split()):
        while _runs(pid):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_hanging_pass_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels.compile_all([job("vector: mlir(cse)")])            # the worker is up
    monkeypatch.setattr(kernels, "TIMEOUT", 0.5)
    with pytest.raises(CompilerBug, match="pass 'test-fail{how=hang}': took over"):
        kernels.compile_all([job("vector: test-fail{how=hang}")])


def test_unregistered_or_invalid_ir_is_reported() -> None:
    bad = KernelJob("k", "func.func @k(", "vector: mlir(cse)", CHIP, CompileOptions(), emit=False)
    with pytest.raises(UserError, match="kernel 'k': .*1:13: expected non-function type"):
        kernels.compile_all([bad])


def binary(n: int = 0) -> KernelBinary:
    return KernelBinary(f"k{n}", "ptx", b"\n\x00code" * 100, (KernelLaunch("k", (sym("d0"), 2), (128, 1, 1), 4096),),
                        (sym("d0") * 4,), (("registers", 40), ("name", "x")), "module {}")


def test_cache_round_trip_and_damage() -> None:
    assert cache.load("ab12") is None
    cache.store("ab12", binary())
    assert cache.load("ab12") == binary()
    path = cache.folder() / "kernels" / "ab" / "12"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    assert cache.load("ab12") is None
    path.write_bytes(b"{}")
    assert cache.load("ab12") is None


def test_cache_is_bounded_and_drops_the_oldest() -> None:
    import os

    for i in range(6):
        cache.store(f"aa{i}", binary(i))
        os.utime(cache.folder() / "kernels" / "aa" / str(i), (1000 + i, 1000 + i))
    size = (cache.folder() / "kernels" / "aa" / "0").stat().st_size
    cache.trim(3 * size)
    assert [i for i in range(6) if cache.load(f"aa{i}")] == [3, 4, 5]


def test_the_cache_is_walked_when_it_is_counted_full(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store("aa0", binary(0))
    size = (cache.folder() / "kernels" / "aa" / "0").stat().st_size
    monkeypatch.setenv("XCC_CACHE_BYTES", str(8 * size))
    cache.keep_limit()      # of an earlier version: nothing is counted
    with monkeypatch.context() as patch:
        patch.setattr(cache, "trim", lambda _most: pytest.fail("walked"))
        for i in range(1, 8):
            cache.store(f"aa{i}", binary(i))
            cache.keep_limit()
    for full in (b"", b"damaged"):
        cache.store("aa8", binary(8))
        if full:
            (cache.folder() / "bytes").write_bytes(full)
        cache.keep_limit()
        assert len([i for i in range(9) if cache.load(f"aa{i}")]) == 7
    assert (cache.folder() / "bytes").read_bytes() == (7 * size).to_bytes(8, "little")


def test_trimming_leaves_what_another_process_writes() -> None:
    import os

    written, left = (cache.folder() / "models" / name for name in ("1.2.3.tmp", "4.5.6.tmp"))
    for path in (written, left):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 1000)
    os.utime(left, (1000, 1000))        # by a process that crashed
    cache.trim(0)
    assert written.exists() and not left.exists()


def test_keys_tell_everything_apart() -> None:
    base = job("vector: mlir(cse)")
    keys = {cache.key_of(j) for j in (
        base, job("vector: mlir(canonicalize)"), job("vector: mlir(cse)", "other"),
        KernelJob("k", TEXT + " ", base.pipeline, CHIP, base.options),
        KernelJob("k", TEXT, base.pipeline, Chip("other", "x86_64", "generic"), base.options),
        KernelJob("k", TEXT, base.pipeline, CHIP, CompileOptions(precision="f16")))}
    assert len(keys) == 6
    assert cache.key_of(base) == cache.key_of(job("vector: mlir(cse)"))


def test_an_unwritable_cache_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_CACHE_DIR", "/proc/nowhere")
    cache.store("ab12", binary())
    assert cache.load("ab12") is None
    with pytest.raises(CompilerBug) as caught:
        kernels.compile_all([job("vector: test-fail")])
    assert Path(caught.value.reproducer).read_text() == TEXT


@pytest.mark.parametrize(("spills", "tried", "best"), [
    ({512: 0}, [512], 512), ({512: 5, 224: 0}, [512, 224], 224),
    ({512: 5, 224: 9, 192: 1, 160: 3, 112: 2}, [512, 224, 192, 160, 112], 192),
])
def test_what_spills_is_compiled_for_fewer_registers(monkeypatch: pytest.MonkeyPatch, spills: dict[int, int],
                                                     tried: list[int], best: int) -> None:
    seen: list[int] = []

    def attempt(job: KernelJob, at: object, codes: object) -> KernelResult:
        n = job.chip.vector_registers
        seen.append(n)
        return KernelResult(KernelBinary("k", "hsaco", b"%d" % n, (), report=(("spills", spills[n]),)),
                            seconds={("emit", "emit"): 1.0})

    monkeypatch.setattr(worker, "_attempt", attempt)
    chip = Chip("gfx942", "amdgcn", "gfx942", vector_registers=512)
    result = worker.compile_kernel(KernelJob("k", "", "", chip, CompileOptions(target="amdgcn")))
    assert seen == tried
    assert result.binary is not None and result.binary.blob == b"%d" % best
    assert result.seconds == {("emit", "emit"): float(len(tried))}


def test_what_spills_makes_code_of_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pass looks at the registers: what the attempts come to is the same, of which one has code made."""
    emitted: list[int] = []

    def emit(_module: object, chip: Chip, _options: object) -> KernelBinary:
        emitted.append(chip.vector_registers)
        return KernelBinary("k", "hsaco", b"", (), report=(("spills", 3),))

    target = replace(get_target("amdgcn"), emit_kernel=emit)
    monkeypatch.setattr("xcc.targets.base.get_target", lambda _name: target)
    chip = Chip("gfx942", "amdgcn", "gfx942", vector_registers=512)
    result = worker.compile_kernel(KernelJob("k", TEXT, "vector: mlir(cse)", chip, CompileOptions(target="amdgcn")))
    assert emitted == [512] and result.binary is not None and result.binary.name == "k"


def test_what_is_planned_alike_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the stage that decides about registers nothing is run again for the same IR."""
    code = KernelBinary("k", "hsaco", b"", (), report=(("spills", 3),))
    target = replace(get_target("amdgcn"), emit_kernel=lambda *_: code)
    monkeypatch.setattr("xcc.targets.base.get_target", lambda _name: target)
    chip = Chip("gfx942", "amdgcn", "gfx942", vector_registers=512)
    seen: list[str] = []
    job = KernelJob("k", TEXT, "plan: mlir(cse); gpu: mlir(canonicalize)", chip, CompileOptions(target="amdgcn"))
    worker.compile_kernel(job, lambda stage, _pass: seen.append(stage))
    assert seen.count("gpu") and seen.count("plan") == (1 + len(target.fewer_registers)) * seen.count("gpu")


@pytest.mark.parametrize("chip", ["gfx942", "gfx1100"])
def test_nothing_asks_for_registers_behind_the_plan(chip: str) -> None:
    """A product, whose operands are fetched ahead as far as registers go."""
    def k(a, b, c):     # type: ignore[no-untyped-def]
        acc = xcc.zeros((64, 64), xcc.f32)
        for at in range(0, a.shape[1], 32):
            acc = xcc.dot(a.tile((0, at), (64, 32), other=0), b.tile((at, 0), (32, 64), other=0), acc)
        c.store((0, 0), acc)

    made = xcc.kernel(types={"a": "f16[m, k]", "b": "f16[k, n]", "c": "f16[m, n]"}, grid=lambda a: 1)(k)
    target, plan = get_target("amdgcn"), made.stages("amdgcn", chip)["plan"]
    assert target.tile_stages is not None
    options = CompileOptions.make("amdgcn", chip=chip)
    stages = target.tile_stages(options).stages
    at = [s.name for s in stages].index(target.planned_stage)
    rest = "; ".join(str(s) for s in stages[at + 1:])
    chips = [replace(target.chips()[chip], vector_registers=n) for n in (512, 1)]
    found = [worker.compile_kernel(KernelJob("k", plan, rest, c, options, keep=("rocdl",), emit=False)).kept["rocdl"]
             for c in chips]
    assert found[0] == found[1] and "llvm.func" in found[0]
