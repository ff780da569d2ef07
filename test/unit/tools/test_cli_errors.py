"""The tools' promises about bad input: one line on standard error, status 1, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xcc.tools import xcc_bench, xcc_cli, xcc_opt, xcc_run

TOOLS = {"xcc": xcc_cli, "xcc-opt": xcc_opt, "xcc-run": xcc_run, "xcc-bench": xcc_bench}


def fails(capsys: pytest.CaptureFixture[str], tool: str, *argv: str) -> str:
    """The error line of a run that must end with status 1."""
    try:
        status = TOOLS[tool].main(list(argv))
    except SystemExit as e:
        status = e.code
    err = capsys.readouterr().err
    assert status == 1, err
    assert "Traceback" not in err
    assert err.startswith(f"{tool}: error: ")
    assert len(err.splitlines()) == 1, err
    return err


@pytest.mark.parametrize("tool", TOOLS)
def test_unknown_flags(capsys: pytest.CaptureFixture[str], tool: str) -> None:
    assert "unrecognized arguments: --nonsense" in fails(capsys, tool, "x", "--nonsense")


@pytest.mark.parametrize("tool", TOOLS)
def test_help(capsys: pytest.CaptureFixture[str], tool: str) -> None:
    with pytest.raises(SystemExit) as e:
        TOOLS[tool].main(["--help"])
    assert e.value.code == 0
    assert "usage: " + tool in capsys.readouterr().out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("argv", [("xcc", "m.mlir", "--emit=xt"), ("xcc", "m.mlir", "--emit=xt", "-o", "/dev/full"),
                                  ("xcc", "--chip=list"), ("xcc-opt", "m.mlir", "-o", "/dev/full")])
def test_a_full_disk(tmp_path: Path, argv: tuple[str, ...]) -> None:
    (tmp_path / "m.mlir").write_text("func.func @main() { return }\n")
    with open("/dev/full", "w") as full:
        done = run_tool(tmp_path, *argv, stdout=full)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "No space left on device" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_an_error_behind_output_that_nobody_gets(tmp_path: Path) -> None:
    """What was printed before cannot be written either: the error is one line all the same."""
    code = "import sys; from xcc.diagnostics import UserError; from xcc.tools.common import guarded\n" \
           "def body(argv):\n    print('x'); raise UserError('reason')\n" \
           "sys.exit(guarded('tool', body, []))"
    for stdout in ("/dev/full", None):
        words = [sys.executable, "-c", code]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "PYTHONUNBUFFERED": ""}
        reader, writer = os.pipe()
        os.close(reader)
        with open(stdout, "w") if stdout else open(writer, "w") as out:
            done = subprocess.run(words, env=environment, text=True, stdout=out, stderr=subprocess.PIPE)
        assert (done.returncode, done.stderr) == (1, "tool: error: reason\n")


def test_standard_input_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_bytes(b"\xff\xfe\0")
    done = run_tool(tmp_path, "xcc-opt", shell="<m.mlir")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "standard input: no MLIR text" in done.stderr


@pytest.mark.parametrize(("argv", "what"), [
    (("--seconds=nan",), "--seconds nan: give a number of seconds"), (("--seconds=inf",), "give a number of seconds"),
    (("--seconds=-1",), "give a number of seconds"), (("--dim=q=3",), "--dim q: the model has no such dim; it has n"),
    (("--dim=n=2", "--against=other.onnx"), "other.onnx has no output 'y'; it has z"),
    (("--dim=n=2", "--against=more.onnx"), "onnxruntime cannot run more.onnx: Required inputs (['w']) are missing"),
])
def test_xcc_bench(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                   argv: tuple[str, ...], what: str) -> None:
    helper = pytest.importorskip("onnx.helper")
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)

    def value(name: str) -> Any:
        return helper.make_tensor_value_info(name, 1, ["n", 3])

    for name, inputs, output in (("m", "x", "y"), ("other", "x", "z"), ("more", "xw", "y")):
        node = helper.make_node("Relu" if inputs == "x" else "Add", list(inputs), [output])
        graph = helper.make_graph([node], "g", list(map(value, inputs)), [value(output)])
        (tmp_path / f"{name}.onnx").write_bytes(helper.make_model(
            graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    assert what in fails(capsys, "xcc-bench", "m.onnx", "--seconds=0", *argv)


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_files(tmp_path: Path, closed: str) -> None:
    (tmp_path / "m.mlir").write_text("func.func @main() { return }\n")
    run_tool(tmp_path, "xcc", "m.mlir", "--emit=xt", "-o", "out.mlir", shell=closed).check_returncode()
    assert (tmp_path / "out.mlir").read_text().startswith("module")


def run_tool(folder: Path, tool: str, *argv: str, stdout: Any = None, shell: str = "") -> Any:
    """The tool in a process of its own; `shell` says what is done with its standard files."""
    words = [sys.executable, "-m", f"xcc.tools.{TOOLS[tool].__name__.rpartition('.')[2]}", *argv]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.run(["sh", "-c", f'"$@" {shell}', "sh", *words], cwd=folder, env=environment, text=True,
                          stdout=stdout, stderr=subprocess.PIPE)


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; from xcc.tools.xcc_cli import main; main(['--help'])"
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    for heavy in ("torch_mlir", "numpy", "onnx", "torch", "llvmlite"):
        assert f" {heavy}\n" not in done.stderr


@pytest.mark.parametrize(("argv", "what"), [
    ((), "no model given"),
    (("absent.onnx",), "absent.onnx: no such file"),
    (("m.txt",), "m.txt: xcc compiles .onnx, .pt2 and .mlir files"),
    ((".",), "is a folder"),
    (("m.txt", "--target=tpu"), "there is no target 'tpu'"),
    (("m.txt", "--target=cuda"), "did you mean nvptx?"),
    (("m.txt", "--target=rocm"), "did you mean amdgcn?"),
    (("m.txt", "--target=gpu"), "did you mean amdgcn (AMD GPUs) or nvptx (NVIDIA GPUs)?"),
    (("m.txt", "--chip=h100"), "did you mean --target=nvptx --chip=sm_90a?"),
    (("m.txt", "--chip=sm_90"), "did you mean --target=nvptx --chip=sm_90a?"),
    (("m.txt", "--chip=MI300X", "--target=amdgcn"), "did you mean --chip=gfx942?"),
    (("m.txt", "--chip=none"), "has no chip 'none'; chips are"),
    (("m.txt", "--dim=n"), "write NAME=SIZE or NAME=LOW..HIGH"),
    (("m.txt", "--tune=-1"), "give a number of seconds"),
    (("m.txt", "--tune", "--tuning=absent/t.txt"), "absent/t.txt: cannot be written: No such file"),
    (("m.txt", "-o", "absent/m.xcm"), "absent/m.xcm: cannot be written: No such file"),
    (("m.txt", "-o", "m.txt/m.xcm"), "m.txt/m.xcm: cannot be written: Not a directory"),
    (("m.txt", "-o", "."), ".: cannot be written: Is a directory"),
    (("m.txt", "-o", "./m.txt"), "./m.txt: is the model itself, which the output would replace"),
    (("bad.mlir", "--emit=xt", "-o", "bad.mlir"), "bad.mlir: is the model itself, which the output would replace"),
    (("m.txt", "--target=cpu,fast"), "target 'cpu' has no option 'fast=1'; it has none"),
    (("m.txt", "--dim=n=99999999999999999999"), "bounds must be low <= high < 2^63"),
    (("m.txt", "--dim=n=9..1"), "bounds must be low <= high"),
    (("m.txt", "--fix=sr"), "write NAME=VALUE"),
    (("m.txt", "--fix=sr=fast"), "the value must be a number or nested lists"),
    (("bad.mlir", "--fix=sr=1"), "inputs are fixed when a model is imported"),
    (("m.txt", "--precision=f3"), "invalid choice: 'f3'"),
    (("m.txt", "--emit=nothing"), "no such stage or format; stages are"),
    (("m.txt", "--pipeline=no-such-pass"), "there is no pass 'no-such-pass'"),
    (("m.txt", "--pipeline=xt: xt-fold xt-fold"), "'xt-fold xt-fold': a comma goes between passes"),
    (("m.txt", "--pipeline=@absent"), "--pipeline @absent: No such file"),
    (("m.txt", "--plugin=absent.py"), "absent.py: not a Python file"),
    (("m.txt", "--plugin=m.txt"), "m.txt: not a Python file"),
    (("bad.mlir",), "bad.mlir: 1:"),
])
def test_xcc(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
             argv: tuple[str, ...], what: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.txt").write_text("x")
    (tmp_path / "bad.mlir").write_text("func.func @main(")
    assert what in fails(capsys, "xcc", *argv)


@pytest.mark.parametrize("argv", [("--emit=gpu",), ("-o", "m.xcm")])
def test_weights_without_values(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                argv: tuple[str, ...]) -> None:
    """The first weight whose numbers are wanted is named, with its place."""
    from xcc.weight_files import write_weights
    from xcc.weights import WeightStore

    monkeypatch.chdir(tmp_path)
    text = """func.func @main(%x: tensor<4x300xf32>) -> tensor<4x300xf32>
        attributes {arg_attrs = [{xt.name = "x"}], res_attrs = [{xt.name = "y"}]} {
      %v = "xt.weight"() {name = "v"} : () -> tensor<300xf32>
      %w = "xt.weight"() {name = "w"} : () -> tensor<300xf32>
      %e = "xt.exp"(%w) : (tensor<300xf32>) -> tensor<300xf32>
      %m = "xt.mul"(%v, %e) : (tensor<300xf32>, tensor<300xf32>) -> tensor<300xf32>
      %y = "xt.add"(%x, %m) : (tensor<4x300xf32>, tensor<300xf32>) -> tensor<4x300xf32>
      return %y : tensor<4x300xf32>
    }"""
    (tmp_path / "m.mlir").write_text(text)
    shown = fails(capsys, "xcc", "m.mlir", "--target=nvptx", "--chip=sm_90a", *argv)
    assert "m.mlir:4:" in shown and "the weight 'w' has no value: m.safetensors is not there" in shown
    store = WeightStore()
    store.add("w", np.zeros(300, np.float32))
    write_weights(tmp_path / "m.safetensors", store)
    shown = fails(capsys, "xcc", "m.mlir", "--target=nvptx", "--chip=sm_90a", *argv)
    assert "m.mlir:3:" in shown and "the weight 'v' has no value: m.safetensors lacks it" in shown


@pytest.mark.parametrize(("argv", "what"), [
    (("absent.xcm",), "absent.xcm: cannot be read: No such file"),
    (("m.txt",), "m.txt: not a compiled model"),
])
def test_xcc_run_artifacts(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                           argv: tuple[str, ...], what: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.txt").write_text("x" * 50)
    assert what in fails(capsys, "xcc-run", *argv)


@pytest.mark.parametrize(("argv", "what"), [
    ((), "missing input 'x'"),
    (("--input", "x"), "write NAME=FILE.npy"),
    (("--input", "x=absent.npy"), "absent.npy: cannot be read: No such file"),
    (("--input", "x=m.txt"), "m.txt: no .npy or .npz file of plain arrays"),
    (("--input", "x=object.npy"), "object.npy: no .npy or .npz file of plain arrays"),
    (("--input", "x=f64.npy"), "input 'x': element type is f64, the model takes x: f32[n, 3]"),
    (("--input", "x=wide.npy"), "input 'x': shape is [2, 4]: dim 1 is 4, the model takes 3"),
    (("--input", "q=wide.npy"), "the model has no input 'q'"),
    (("--inputs", "wide.npy"), "--inputs takes an .npz file"),
    (("--random", "--dim", "b=2"), "the model has no such dim; it has n"),
    (("--random",), "give the size of 'n' with --dim n=SIZE"),
    (("--random", "--dim", "n=-2"), "a size cannot be negative, as in [-2, 3]"),
    (("--random", "--dim", "n=9999999999999"), "Unable to allocate"),
    (("--random", "--dim", "n=2", "--repeat", "-4"), "give a number of runs"),
    (("--random", "-1", "--dim", "n=2"), "--random -1: a seed is not negative"),
    (("--random", "--dim", "n=2", "--compare", "y.npz", "--rtol", "nan"), "--rtol nan: a tolerance is a finite number"),
    (("--random", "--dim", "n=2", "--compare", "y.npz", "--atol", "-1"), "--atol -1.0: a tolerance is a finite number"),
    (("--inputs", "objects.npz"), "objects.npz: no .npy or .npz file of plain arrays"),
    (("--inputs", "cut.npz"), "cut.npz: no .npy or .npz file of plain arrays"),
    (("--inputs", "flipped.npz"), "flipped.npz: no .npy or .npz file of plain arrays"),
    (("--input", "x=empty.npz"), "empty.npz: has no array 'x'; it has none"),
    (("--input", "x=two.npz"), "two.npz: has no array 'x'; it has a, b"),
    (("--random", "--dim", "n=2", "--interpret"), "--interpret is for models compiled for GPUs"),
    (("--random", "--dim", "n=2", "--device", "1"), "device is for models on GPUs, this one is for 'cpu'"),
    (("--random", "--dim", "n=2"), "the artifact has no kernels/cpu.json, which a model for cpu needs"),
])
def test_xcc_run_inputs(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                        argv: tuple[str, ...], what: str) -> None:
    from xcc import symbolic
    from xcc.runtime.artifact import FORMAT_VERSION, Artifact
    from xcc.runtime.program import Buffer, Copy, Program

    monkeypatch.chdir(tmp_path)
    shape = (symbolic.sym("n"), 3)
    program = Program((Buffer("input", shape, "f32", "x"), Buffer("output", shape, "f32", "y")), (Copy(0, 1),),
                      (0,), (1,), ("n",))
    Artifact({"format": FORMAT_VERSION, "target": "cpu", "chip": "c"}, program, {}).save("m.xcm")
    (tmp_path / "m.txt").write_text("x" * 50)
    np.save("f64.npy", np.zeros((2, 3)))
    np.save("wide.npy", np.zeros((2, 4), np.float32))
    np.save("object.npy", np.array([object()]), allow_pickle=True)
    np.savez("objects.npz", x=np.array([object()]))
    np.savez("empty.npz")
    np.savez("two.npz", a=np.zeros(1), b=np.zeros(1))
    whole = (tmp_path / "two.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[:len(whole) // 2])
    (tmp_path / "flipped.npz").write_bytes(whole[:100] + bytes(b ^ 1 for b in whole[100:160]) + whole[160:])
    assert what in fails(capsys, "xcc-run", "m.xcm", *argv)
