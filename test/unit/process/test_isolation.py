"""xcc.compile survives what kills the compiler."""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import xcc
from xcc.passes.pipeline import Pipeline
from xcc.process import isolation

N8 = 'tensor<?x8xf32, ["n", 8]>'
MODEL = f"""
func.func @main(%x: {N8} {{xt.name = "x"}}) -> ({N8} {{xt.name = "y"}}) {{
  %0 = "xt.add"(%x, %x) : ({N8}, {N8}) -> {N8}
  return %0 : {N8}
}}
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XCC_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "m.mlir"
    path.write_text(MODEL)
    return path


@pytest.mark.parametrize(("pipeline", "what"), [
    ("xt: test-fail; kernels: form-kernels", "the compiler died in stage 'xt' (SIGABRT)"),
    ("kernels: form-kernels, test-fail", "the compiler died in stage 'kernels' (SIGABRT)"),
    ("xt: test-fail{how=raise}", "stage 'xt', pass 'test-fail{how=raise}' failed: RuntimeError"),
    ("kernels: form-kernels; linalg: test-fail", "pass 'test-fail': the compiler process died of SIGABRT"),
])
def test_a_crash_is_an_exception_with_a_reproducer(model: Path, tmp_path: Path, pipeline: str, what: str) -> None:
    with pytest.raises(xcc.CompilerBug) as e:
        xcc.compile(model, pipeline=Pipeline.parse(pipeline))
    assert what in e.value.message
    assert Path(e.value.reproducer).is_file()
    assert Path(e.value.reproducer).is_relative_to(tmp_path / "cache" / "bugs")
    assert shlex.split(e.value.command)[:2] == ["xcc-opt", e.value.reproducer]
    assert xcc.compile(model)(np.ones((2, 8), np.float32)).sum() == 32       # and on we go
    assert not list((tmp_path / "cache" / "models").glob("*.tmp"))


def test_a_crash_of_the_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text("import os\nimport xcc.compiler\nxcc.compiler.load_source = lambda *_: os.abort()\n")
    monkeypatch.setattr(isolation, "can_isolate", lambda *_: (str(plugin),))
    monkeypatch.setattr("xcc.facade.can_isolate", lambda *_: (str(plugin),))
    (tmp_path / "m.mlir").write_text(MODEL)
    with pytest.raises(xcc.CompilerBug, match=r"died while importing the model \(SIGABRT\)"):
        xcc.compile(tmp_path / "m.mlir")


def test_errors_of_the_user_keep_their_kind(tmp_path: Path) -> None:
    (tmp_path / "bad.mlir").write_text("func.func @main(")
    with pytest.raises(xcc.UserError, match="bad.mlir: "):
        xcc.compile(tmp_path / "bad.mlir")
    with pytest.raises(xcc.UserError, match="no such file"):
        xcc.compile(tmp_path / "absent.onnx")


def test_relative_paths_and_a_proto(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnx import TensorProto, helper

    monkeypatch.chdir(model.parent)
    assert xcc.compile("m.mlir")(np.ones((1, 8), np.float32)).sum() == 16
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
    proto = helper.make_model(helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [x], [y]))
    assert xcc.compile(proto)(np.ones(3, np.float32)).tolist() == [-1.0] * 3


def test_from_several_threads(model: Path) -> None:
    found = []
    threads = [threading.Thread(target=lambda: found.append(xcc.compile(model)(np.ones((1, 8), np.float32)).sum()))
               for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [16.0] * 3


def test_from_several_threads_in_this_process(model: Path) -> None:
    """In a process of its own: the first thread and the others load the dialect at the same time."""
    code = f"""
import sys; sys.path[:] = {sys.path!r}
import numpy as np, threading, xcc
begin, found = threading.Barrier(6), []
def work():
    begin.wait()
    found.append(xcc.compile({str(model)!r}, isolate=False, cache=False)(np.ones((1, 8), np.float32)).sum())
threads = [threading.Thread(target=work) for _ in range(6)]
for t in threads: t.start()
for t in threads: t.join()
print(*map(float, found))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["16.0"] * 6, done.stderr


def test_mlir_stays_out_of_the_callers_process(model: Path) -> None:
    code = (f"import sys; sys.path[:] = {sys.path!r}\nimport xcc\nxcc.compile({str(model)!r})\n"
            "print([m for m in ('torch_mlir', 'mlir', 'llvmlite', 'onnx') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_who_compiles_says_which_ops_have_converters() -> None:
    pytest.importorskip("torch")
    from xcc.frontends.torch import registry

    assert isolation.converted_ops(".pt2") == set(registry.table())
    with pytest.raises(xcc.CompilerBug, match="KeyError"):
        isolation.converted_ops(".none")
