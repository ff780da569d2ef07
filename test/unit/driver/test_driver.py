"""The driver from Python and the command line on a small model: results, edits of the pipeline, crashes, caching."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driver_passes import ExpToSqrt

import xcc
from xcc.options import CompileOptions
from xcc.passes.pipeline import Pipeline
from xcc.targets.base import get_target

N8 = 'tensor<?x8xf32, ["n", 8]>'
MODEL = f"""
func.func @main(%x: {N8} {{xt.name = "x"}}) -> ({N8} {{xt.name = "y"}}) {{
  %0 = "xt.exp"(%x) : ({N8}) -> {N8}
  %1 = "xt.add"(%0, %x) : ({N8}, {N8}) -> {N8}
  return %1 : {N8}
}}
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.mlir"
    path.write_text(MODEL)
    return path


def x() -> np.ndarray[Any, Any]:
    return np.linspace(0, 1, 24, dtype=np.float32).reshape(3, 8)


def test_compile_call_save_load(model: Path, tmp_path: Path) -> None:
    m = xcc.compile(model)
    np.testing.assert_allclose(m(x()), np.exp(x()) + x(), rtol=1e-5)
    assert [str(i) for i in m.inputs] == ["x: f32[n, 8]"]
    m.save(tmp_path / "m.xcm")
    again = xcc.load(tmp_path / "m.xcm")
    np.testing.assert_array_equal(again.run({"x": x()})["y"], m(x()))


def test_a_pipeline_edited_from_python(model: Path) -> None:
    pipeline = xcc.targets.get("cpu").pipeline()
    assert "tile" in pipeline.names()
    edited = pipeline.insert(ExpToSqrt(), after="xt-to-linalg")
    assert Pipeline.parse(str(edited)) == edited
    m = xcc.compile(model, pipeline=edited)
    np.testing.assert_allclose(m(x()), np.sqrt(x()) + x(), rtol=1e-5)
    assert "xt.exp" in pipeline_text(model, edited.upto("xt"))


@pytest.mark.parametrize("target", ["nvptx", "amdgcn"])
def test_a_pipeline_edited_from_python_for_gpus(model: Path, target: str) -> None:
    from xcc.interpreter.executor import make_executor

    edited = xcc.targets.get(target).pipeline().insert(ExpToSqrt(), after="xt-to-linalg")
    m = xcc.compile(model, target=target, pipeline=edited, keep_ir=True)
    m._executor = make_executor(m.artifact.program, m.artifact.members, m.artifact.weights, m.artifact.manifest)
    np.testing.assert_allclose(m(x()), np.sqrt(x()) + x(), rtol=1e-5)


@pytest.mark.parametrize("target", ["nvptx", "amdgcn"])
def test_every_dumped_stage_goes_on(model: Path, tmp_path: Path, target: str) -> None:
    """For CPUs, test/tools/xcc-stages.mlir compares results too."""
    from xcc.compiler import compile_model
    from xcc.options import CompileOptions

    folder = tmp_path / "stages"
    whole = compile_model(model, CompileOptions.make(target, dump_stages=str(folder))).artifact
    stages = sorted(folder.glob("*.mlir"))
    assert [s.stem[3:] for s in stages] == list(xcc.targets.get(target).pipeline().stage_names())
    for stage in stages:
        again = compile_model(stage, CompileOptions.make(target)).artifact
        assert whole is not None and again is not None and again.program == whole.program, stage.name


def pipeline_text(model: Path, pipeline: Pipeline) -> str:
    from xcc.compiler import compile_model
    from xcc.options import CompileOptions

    return compile_model(model, CompileOptions(), pipeline, stop=pipeline.stage_names()[-1]).text


def test_a_pass_in_a_script_file(model: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"""
import xcc
from dataclasses import dataclass
from typing import ClassVar
from xcc.passes.base import Pass, register_pass

@register_pass
@dataclass(frozen=True)
class Note(Pass):
    name: ClassVar[str] = "test-note-kernel"
    def run(self, module, ctx):
        ctx.verbose("saw a kernel")

if __name__ == "__main__":
    p = xcc.targets.get("cpu").pipeline().insert(Note(), before="tile")
    print(xcc.compile({str(model)!r}, pipeline=p).inputs[0])
""")
    done = run([sys.executable, str(script)])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "x: f32[n, 8]"
    unguarded = script.read_text().replace('if __name__ == "__main__":', "if True:")
    script.write_text(unguarded)
    assert "put the call under if __name__ == '__main__'" in run([sys.executable, str(script)]).stderr


@pytest.mark.parametrize(("verify", "found"), [("stage", "(or one beside it) leaves IR"), ("each", "leaves IR")])
def test_a_malformed_list_op_of_a_users_pass(model: Path, verify: str, found: str) -> None:
    pipeline = Pipeline.parse("xt: test-add-stray-op; kernels: form-kernels")
    with pytest.raises(xcc.UserError) as e:
        xcc.compile(model, pipeline=pipeline, verify=verify)
    assert f"pass 'test-add-stray-op' {found}" in str(e.value) and "driver_passes.py:" in str(e.value)
    assert "'xtv.stray' op is no op of the dialect" in str(e.value)


FAULTY = """
from dataclasses import dataclass
from xcc.passes.base import Pass, register_pass

@register_pass
@dataclass(frozen=True)
class Faulty(Pass):
    name = "faulty"

    def run(self, module, ctx):
        print("a word from the pass", file=__import__("sys").stderr)
        HERE
"""


@pytest.mark.parametrize("stage", ["xt", "linalg"])
def test_a_users_pass_that_raises(model: Path, tmp_path: Path, stage: str) -> None:
    """It is no bug of the compiler: one line with the place in the user's file."""
    plugin = tmp_path / "mine.py"
    plugin.write_text(FAULTY.replace("HERE", "return 1 // 0"))
    text = str(get_target("cpu").pipeline(CompileOptions()).insert("mlir(cse)", stage=stage))
    text = text.replace(f"{stage}: ", f"{stage}: faulty, ", 1)
    done = cli(str(model), f"--plugin={plugin}", f"--pipeline={text}", "-o", str(tmp_path / "m.xcm"))
    assert done.returncode == 1
    assert f"pass 'faulty' failed: ZeroDivisionError: integer division or modulo by zero ({plugin}:12)" in done.stderr


def test_a_users_pass_is_heard_each_time(model: Path, tmp_path: Path) -> None:
    """Kernels that went through a user's pass are not taken from the cache."""
    plugin = tmp_path / "mine.py"
    plugin.write_text(FAULTY.replace("HERE", "pass"))
    text = str(get_target("cpu").pipeline(CompileOptions())).replace("linalg: ", "linalg: faulty, ", 1)
    for _ in range(2):
        done = cli(str(model), f"--plugin={plugin}", f"--pipeline={text}", "-o", str(tmp_path / "m.xcm"))
        assert done.returncode == 0 and "a word from the pass" in done.stderr


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


def cli(*argv: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "xcc.tools.xcc_cli", *argv])


@pytest.mark.parametrize(("pipeline", "what"), [
    ("xt: test-fail; kernels: form-kernels", "the compiler died in stage 'xt' (SIGABRT)"),
    ("xt: test-fail{how=raise}", "stage 'xt', pass 'test-fail{how=raise}' failed: RuntimeError"),
    ("kernels: form-kernels; linalg: test-fail", "pass 'test-fail': the compiler process died of SIGABRT"),
    ("kernels: form-kernels; linalg: mlir(cse)", "after stage 'linalg' there should be no xt."),
])
def test_compiler_bugs_exit_with_70_and_replay(model: Path, tmp_path: Path, pipeline: str, what: str) -> None:
    done = cli(str(model), "-o", str(tmp_path / "m.xcm"), f"--pipeline={pipeline}")
    assert done.returncode == 70, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    assert what in lines[0]
    assert lines[0].startswith("xcc: compiler bug: ")
    reproducer = lines[1].removeprefix("reproducer: ")
    assert Path(reproducer).is_file()
    assert not (tmp_path / "m.xcm").exists()
    words = shlex.split(lines[2].removeprefix("replay with: "))
    assert words[:2] == ["xcc-opt", reproducer]
    assert run([sys.executable, "-m", "xcc.tools.xcc_opt", *words[1:]]).returncode in (70, -6)


def test_a_failed_import_says_how_to_replay_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnx import TensorProto, helper, save

    from xcc.frontends.onnx.importer import ModelImporter

    def fail(_self: ModelImporter) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(ModelImporter, "run", fail)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
    path = tmp_path / "m.onnx"
    save(helper.make_model(helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [x], [y])), path)
    with pytest.raises(xcc.CompilerBug, match="ZeroDivisionError") as e:
        xcc.compile(path, dims={"n": 2}, fix={"x": [1, 2]}, isolate=False)
    monkeypatch.undo()
    words = shlex.split(e.value.command)
    assert words[:2] == ["xcc", str(path)]
    done = cli(*words[1:-1], "-")
    assert done.returncode == 0, done.stderr
    assert "func.func @main() -> (tensor<2xf32>" in done.stdout


def test_the_second_compilation_comes_from_the_cache(model: Path, tmp_path: Path) -> None:
    from xcc.compiler import Observer, compile_model
    from xcc.options import CompileOptions

    first, second, third = Observer(), Observer(), Observer()
    a = compile_model(model, CompileOptions(), observer=first).artifact
    b = compile_model(model, CompileOptions(), observer=second).artifact
    compile_model(model, CompileOptions(cache=False), observer=third)
    assert ("vector", "tile") in first.clock.seconds
    assert ("vector", "tile") not in second.clock.seconds
    assert ("vector", "tile") in third.clock.seconds
    assert a is not None
    assert b is not None
    assert a.save(tmp_path / "a") == b.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_timing_and_code(model: Path, tmp_path: Path) -> None:
    done = cli(str(model), "--emit=code", "-o", str(tmp_path / "code"), "--timing")
    assert done.returncode == 0, done.stderr
    assert "xt-to-linalg" in done.stderr
    assert "wall time" in done.stderr
    assert all(p.suffix == ".o" and p.read_bytes()[:4] == b"\x7fELF" for p in (tmp_path / "code").iterdir())
    assert "\r" not in done.stderr          # progress is for terminals


def test_a_kernel_of_one_long_chain(tmp_path: Path) -> None:
    kind = 'tensor<?xf32, ["n"]>'
    ops = "\n".join(f'  %{i + 1} = "xt.sqrt"(%{i}) : ({kind}) -> {kind}' for i in range(256))
    (tmp_path / "m.mlir").write_text(f'func.func @main(%0: {kind} {{xt.name = "x"}}) -> ({kind} {{xt.name = "y"}}) {{\n'
                                     f"{ops}\n  return %256 : {kind}\n}}\n")
    model = xcc.compile(tmp_path / "m.mlir")
    assert len(model.artifact.manifest["kernels"]) == 1
    np.testing.assert_array_equal(model(np.array([0, 1, 5], np.float32)), np.array([0, 1, 1], np.float32))
