"""Launches of compiled kernels: arguments of other libraries, sizes that change, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from host_driver import HostDriver

import xcc
from xcc.dialects.tile.program import symbols_of
from xcc.frontends.kernel.arguments import Array
from xcc.frontends.kernel.launching import HostCode, Launch
from xcc.tools import xcc_cli, xcc_run


@xcc.kernel(types={"x": "f32[n]", "y": "f32[n]", "a": "float", "k": "int"},
            grid=lambda a: (xcc.cdiv(a["x"].shape[0], a["BLOCK"]),))
def scale(x, y, a, k, BLOCK: xcc.constexpr = 16):
    at = xcc.program_id(0) * BLOCK
    y.store(at, x.tile(at, BLOCK, other=0) * a + k)


def test_sizes_and_numbers_compile_nothing_anew() -> None:
    scale._forms.clear()
    for n, a, k in ((5, 2.0, 3), (100, 0.5, -1), (1, 1e-3, 2**40), (0, 1.0, 1), (17, -2.5, 0)):
        x, y = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
        scale(x, y, a, k)
        np.testing.assert_allclose(y, x * np.float32(a) + np.float32(k), rtol=1e-6)
        scale[(0,)](x, y * 0, a, k)
    with pytest.raises(xcc.UserError, match="more than 64 bits"):
        scale(x, y, 1.0, 2**64)
    assert len(scale.specialisations) == 1


def test_arrays_of_torch() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32):
        x = torch.arange(12).to(dtype).reshape(3, 4)
        y = torch.zeros(4, 3, dtype=dtype)

        @xcc.kernel
        def transposed(x, y):
            y.store((0, 0), (x.tile((0, 0), (4, 4), other=0).T + 1)[:, :])

        transposed[1](x, y)
        assert torch.equal(y, x.T + 1)
        transposed[1](x.T, y.T)
        assert torch.equal(y, x.T + 1)
    weight = torch.nn.Parameter(torch.ones(4))
    y = np.zeros(4, np.float32)
    scale(weight, y, 2.0, 1)
    assert y.tolist() == [3.0] * 4


class Other:
    """An array that has nothing but DLPack."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **_named: Any) -> Any:
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_arrays_of_anything() -> None:
    y = np.zeros(4, np.float32)
    for step in (1, 2):
        scale(Other(np.ones(4 * step, np.float32)[::step]), Other(y), 2.0, step)
        assert y.tolist() == [2.0 + step] * 4


def test_memory_that_is_not_to_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.ones(4, np.float32), np.ones(4, np.float32)
    scale(x, y, 1.0, 1)
    y.flags.writeable = False
    scale(y, x, 1.0, 1)
    for mode in ("", "check", "eager"):
        monkeypatch.setenv("XCC_KERNEL", mode)
        with pytest.raises(xcc.UserError, match="'y'.* (read-only array|not to be written to): give a copy"):
            scale(x, y, 1.0, 1)
    assert x.tolist() == [3.0] * 4


def test_one_array_in_two_places() -> None:
    x = np.arange(40, dtype=np.float32)
    scale(x, x, 2.0, 1)
    assert x.tolist() == [2.0 * i + 1 for i in range(40)]


def test_stages_and_specialisations() -> None:
    stages = scale.stages()
    assert list(stages)[0] == "program" and "tile.load" in stages["program"] and "llvm.func" in stages["llvm"]
    assert "// -- tile ---" in str(stages)
    gpu = scale.stages("nvptx", "sm_90a")
    assert "gpu.func" in gpu["gpu"]


def test_what_the_strategy_is_not_to_choose() -> None:
    def k(x):
        x.store(0, x.tile(0, 64) * 2)

    made = xcc.kernel(types={"x": "f32[64]"}, grid=lambda a: 1, config={"threads": 64})(k).stages("nvptx", "sm_80")
    assert "array<i32: 64, 1, 1>" in made["gpu"]
    listed = "threads, stages, warpgroup, persistent, instances, private or resident"
    with pytest.raises(xcc.UserError, match=f"there is no 'warps' to choose: give {listed}"):
        xcc.kernel(config={"warps": 4})(k)


def test_tiles_that_a_chip_has_no_room_for() -> None:
    """Nobody chooses others in the place of the user."""
    def k(x):
        total = xcc.zeros((1, 64), xcc.f64)
        for at in range(0, x.shape[1], 16):
            total = xcc.dot(x.tile((0, at), (1, 16), other=0), x.tile((at, 0), (16, 64), other=0), total)
        x.store((0, 0), total)

    declared = xcc.kernel(types={"x": "f64[n, n]"}, grid=lambda a: 1)(k)
    with pytest.raises(xcc.UserError, match="the kernel needs .* shared memory, the chip has 4096: take smaller tiles"):
        declared.compile("amdgcn", "gfx942,shared_bytes=4096")


def test_the_demo() -> None:
    """What demo/softmax.py prints: no difference from numpy, stages, sizes of GPU code, and the race."""
    demo = Path(__file__).resolve().parents[2] / "demo" / "softmax.py"
    done = subprocess.run([sys.executable, str(demo)], capture_output=True, text=True, check=True)
    for words in ("largest difference from numpy", "tile.load", "compiled for sm_90a", "compiled for gfx942",
                  "softmax.py:34:5: instance 1 writes what instance 0 writes in this line, in 'y'"):
        assert words in done.stdout


KERNELS = '''
import xcc

@xcc.kernel(types={"x": "f32[m, n]", "y": "f32[m, n]", "a": "float"}, grid=lambda a: (a["x"].shape[0],))
def scaled(x, y, a, BLOCK: xcc.constexpr = 64):
    row = xcc.program_id(0)
    for at in range(0, x.shape[1], BLOCK):
        y.store((row, at), x.tile((row, at), (1, BLOCK), other=0) * a)

@xcc.kernel
def bare(x):
    x.store(0, 1.0)

@xcc.kernel(types={"x": "f32[m]"}, grid=lambda a: 1)
def wrong(x):
    x.store(0, xcc.zeros(3))
'''


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "k.py"
    path.write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    return path


def test_ahead_of_time(file: Path) -> None:
    assert xcc_cli.main([f"{file}::scaled", "--fix", "BLOCK=32"]) == 0
    model = xcc.load("scaled.xcm")
    x, y = np.random.rand(5, 77).astype(np.float32), np.zeros((5, 77), np.float32)
    out = model.run({"x": x, "y": y, "a": np.array([2.0])})
    assert list(out) == ["y"] and out["y"] is y
    np.testing.assert_array_equal(y, x * np.float32(2))
    with pytest.raises(xcc.UserError, match="must be n"):
        model.run({"x": x, "y": y[:, :4].copy(), "a": np.array([2.0])})


@pytest.mark.parametrize("target, chip", (("nvptx", "sm_90a"), ("amdgcn", "gfx942")))
def test_ahead_of_time_for_gpus(target: str, chip: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The artifact's code gives in the interpreter what the CPU's gives."""
    options = [f"{file}::scaled", f"--target={target}", f"--chip={chip}"]
    assert xcc_cli.main([*options, "--keep-ir", "-o", "k.xcm"]) == 0
    assert xcc_cli.main([f"{file}::scaled", "-o", "c.xcm"]) == 0
    random = ["--random", "--dim", "m=3", "--dim", "n=70"]
    assert xcc_run.main(["c.xcm", *random, "-o", "want.npz"]) == 0
    assert xcc_run.main(["k.xcm", "--interpret", *random, "--compare", "want.npz"]) == 0
    capsys.readouterr()
    assert xcc_cli.main([*options, "--emit=tile"]) == 0
    assert "vector.transfer_read" in capsys.readouterr().out
    assert xcc_cli.main([*options, "--dump-stages=stages", "-o", "k.xcm"]) == 0
    assert len(list(Path("stages").glob("*.mlir"))) >= 3


class OnGpu:
    """A tensor of 32-bit floats at an address of a GPU."""

    dtype = torch.float32

    def __init__(self, address: int, size: int = 100, step: int = 1, device: int = 0) -> None:
        self.address, self.shape, self.step, self.device = address, (size,), step, device

    def __dlpack__(self) -> None: ...

    def data_ptr(self) -> int:
        return self.address

    def is_contiguous(self) -> bool:
        return self.step == 1

    def stride(self) -> tuple[int]:
        return self.step,

    def get_device(self) -> int:
        return self.device


def test_launches_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the driver is given: addresses, and sizes, strides, bits of numbers and the grid. What comes a third time is
    repeated without the executor, wherever arrays lie."""
    from xcc.frontends.kernel.artifact import artifact_of, written
    from xcc.frontends.kernel.compiling import compiled
    from xcc.frontends.kernel.launching import DeviceCode
    from xcc.options import CompileOptions
    from xcc.runtime.gpu_executor import GpuExecutor

    monkeypatch.delenv("XCC_POISON", raising=False)     # with it nothing is repeated
    form = scale._form([Array("f32", (100,), (1,)), Array("f32", (100,), (2,)), 2.0, 3, 16], (7,))
    made = compiled(form.program, CompileOptions.make("nvptx", chip="sm_80"))
    artifact = artifact_of(made)
    seen: list[Any] = []
    driver = HostDriver({made.binary.launches[0].entry: lambda p, s: seen.append((list(p), list(s)))})
    code = DeviceCode(["x", "y", "a", "k"], made.symbols, written(form.program),
                      GpuExecutor(driver, artifact.program, [made.binary.blob], {}), [0])
    stream = [7]
    monkeypatch.setattr("xcc.frontends.torch.compat.current_stream", lambda _number: abs(stream[0]))
    monkeypatch.setattr("xcc.frontends.torch.compat.free_stream", lambda _number: stream[0])
    monkeypatch.setattr("xcc.frontends.torch.compat.captures", lambda device: stream[0] < 0)
    monkeypatch.setattr("xcc.frontends.torch.compat.stream_state", lambda: {
        "current_device": lambda: 0, "raw_stream": lambda _number: abs(stream[0]),
        "is_capturing": lambda: stream[0] < 0})
    names = [s.name for s in made.symbols]
    calls = Counter[str]()
    monkeypatch.setattr(GpuExecutor, "run_on", lambda *args, f=GpuExecutor.run_on, **named: (
        calls.update(["run_on"]), f(*args, **named))[1])

    def launch(x: OnGpu, y: OnGpu, a: float = 2.0, k: int = 3) -> None:
        """As Kernel does it, with one launch for all of these sizes."""
        values = [x, y, a, k, 16]
        launches = held.setdefault((x.shape, y.shape), Launch(form, code, values, [
            Array("f32", t.shape, t.stride()) for t in (x, y)] + values[2:], (7,)))
        before, direct = len(seen), launches.repeat((7,), values)
        if not direct:
            launches((7,), values)
        calls.update(["direct"] if direct else [])
        assert len(seen) == before + 1 and seen[-1][0] == [x.address, y.address]
        bits = np.float64(a).view(np.int64)
        assert [n for s, n in zip(names, seen[-1][1], strict=True) if s in "ak"] == [bits, k]

    held: dict[Any, Launch] = {}
    for n, size in enumerate((100, 60, 100, 60, 100, 60)):
        launch(OnGpu(16 * n, size), OnGpu(64, step=2))
    assert calls == {"run_on": 4, "direct": 2}
    launch(OnGpu(16), OnGpu(64, step=2), 0.5)           # another number, twice: then that one is repeated
    launch(OnGpu(16), OnGpu(64, step=2), 0.5)
    launch(OnGpu(32), OnGpu(64, step=2), 0.5)
    assert calls == {"run_on": 6, "direct": 3}
    for stream[0] in (8, -8, 8):        # another stream, captured into a graph
        launch(OnGpu(16), OnGpu(64, step=2), 0.5)
    assert calls == {"run_on": 8, "direct": 4}
    repeat = held[(100,), (100,)].repeat
    x, y = OnGpu(16), OnGpu(64, step=2)
    for grid, values in (((8,), [x, y, 0.5, 3, 16]), ((7,), [x, OnGpu(64), 0.5, 3, 16]), ((7,), [x, y, 0.5, 3, 32]),
                         ((7,), [OnGpu(16, 99), y, 0.5, 3, 16]), ((7,), [x, y, 1, 3, 16]),
                         ((7,), [x, y, 0.5, True, 16]), ((7,), [OnGpu(16, device=1), y, 0.5, 3, 16]),
                         (7, [x, y, 0.5, 3, 16])):
        assert not repeat(grid, values)
    assert not seen[-1][0][0] % 16 and repeat((7,), [x, y, 0.5, 3, 16])
    with pytest.raises(xcc.UserError, match="no multiple of 16 bytes"):
        launch(OnGpu(4097), y)
    rooms: list[int] = []
    monkeypatch.setattr("xcc.frontends.torch.compat.room_on_gpu",
                        lambda size, _number: rooms.append(size) or torch.empty(size, dtype=torch.uint8))
    code.run([0, 16], [0 if n == "x_0" else 100 for n in names])
    assert rooms and rooms[0] > 0 and seen[-1][0][0] != 0       # an array without elements lies there


@pytest.mark.parametrize("arguments, words", (
    (["k.py::none"], "there is no kernel 'none': it has scaled, bare or wrong"), (["no.py::x"], "no.py: no such file"),
    (["k.py::bare"], "nothing says what 'x' is"), (["k.py::scaled", "--dim", "m=3"], "--dim is for models"),
    (["k.py::scaled", "--fix", "C=3"], "has no parameter 'C'"), (["bad.py::x"], "bad.py: ZeroDivisionError"),
    (["k.py::wrong"], "k.py:16:16: the shape [3]: 3 is no power of two"),
    (["k.py::wrong"], "    x.store(0, xcc.zeros(3))\n               ^~~")))
def test_errors_of_the_command_line(arguments: list[str], words: str, file: Path,
                                    capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.py").write_text("1 / 0")
    assert xcc_cli.main(arguments) == 1
    assert words in capsys.readouterr().err


def test_declarations() -> None:
    def k(x, y):
        y.store(0, x.tile(0, 1))

    for types, grid, words in (({"x": "f32[n]"}, None, "nothing says what 'y' is"),
                               ({"x": "f32[n]", "y": "g32"}, None, "'y' is declared as 'g32'"),
                               ({"x": "f32[]", "y": "f32[n]"}, None, "'x' is declared as 'f32"),
                               ({"x": "f32[n]", "y": "f32[n + 1]"}, None, "neither a number nor a name"),
                               ({"x": "f32[n]", "y": "f32[n]"}, None, "nothing says what its grid is"),
                               ({"x": "f32[n]", "y": "f32[n]"}, lambda a: a["z"], "no array and no constant"),
                               ({"z": "f32[n]"}, None, "has no parameter 'z'")):
        with pytest.raises(xcc.UserError, match=words.replace("+", r"\+")):
            xcc.kernel(types=types, grid=grid)(k).compile()


def test_a_compiled_kernel_is_found_again(tmp_path: Path) -> None:
    """The second process compiles nothing: no compiler process starts."""
    script = tmp_path / "k.py"
    script.write_text(KERNELS + "\nimport numpy, sys\nfrom xcc.process import kernels\nstarted = []\n"
                      "old = kernels._take_worker\nkernels._take_worker = lambda: started.append(1) or old()\n"
                      "y = numpy.zeros((2, 5), 'f4')\nscaled(y + 1, y, 2.0)\nassert y.sum() == 20\n"
                      "print(len(started))\n")
    environment = {**os.environ, "XCC_CACHE_DIR": str(tmp_path / "cache")}
    counts = [subprocess.run([sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, text=True,
                             check=True).stdout.strip() for _ in range(2)]
    assert counts == ["1", "0"]


@pytest.mark.parametrize("rows, columns", [(3, 4), (4, 3), (3, 3)])
def test_dims_of_a_grid_beside_those_that_arrays_have(rows: int, columns: int) -> None:
    """On a GPU a dim of the grid that is an array's size is given once; the others keep their own."""
    @xcc.kernel
    def k(x, y):
        at = xcc.program_id(0), xcc.program_id(1) * 16
        y.store(at, x.tile(at, (1, 16)))

    shape = rows, 16 * columns
    given = [Array("f32", shape, (shape[1], 1), (2, 0))] * 2
    form = k._form(given, (rows, columns))
    program = form.program
    symbols = symbols_of(program.parameters, program.grid)
    code = HostCode([p.name for p in program.parameters], symbols, set(), lambda *_: None)
    launch = Launch(form, code, [np.zeros(shape, np.float32)] * 2, given, (rows, columns))
    values = dict(zip((s.name for s in symbols), launch._symbols, strict=True))
    assert [values[str(n)] for n in program.grid] == [rows, columns]


def test_divisions_by_zero() -> None:
    """They give some number, and end nothing."""
    def k(x, d, q, r):
        t, n = x.tile(0, 16), d.tile(0, 16)
        q.store(0, t // n + xcc.program_id(0) // (x.shape[0] - 16))
        r.store(0, t % n + xcc.program_id(0) % (x.shape[0] - 16))

    for dtype in (np.int32, np.uint32):
        x, d = np.arange(16).astype(dtype), (np.arange(16) % 4).astype(dtype)
        q, r = np.zeros_like(x), np.zeros_like(x)
        xcc.kernel(k)[1](x, d, q, r)
        some = d > 0
        np.testing.assert_array_equal(q[some], x[some] // d[some])
        np.testing.assert_array_equal(r[some], x[some] % d[some])
