"""The steps of CONTRIBUTING.md for a new chip and a new target, followed literally."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

import xcc
from xcc.cache.cache import PARTS
from xcc.targets import folders

STEPS = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text()
MODEL = """
func.func @main(%x: tensor<?x24xf32, ["n", 24]> {xt.name = "x"}, %w: tensor<24x40xf32> {xt.name = "w"})
    -> (tensor<?x40xf32, ["n", 40]> {xt.name = "y"}) {
  %0 = "xt.dot_general"(%x, %w) {dtype = f32, lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [0]}
      : (tensor<?x24xf32, ["n", 24]>, tensor<24x40xf32>) -> tensor<?x40xf32, ["n", 40]>
  %1 = "xt.softmax"(%0) {axis = 1} : (tensor<?x40xf32, ["n", 40]>) -> tensor<?x40xf32, ["n", 40]>
  return %1 : tensor<?x40xf32, ["n", 40]>
}
"""
RUN = """
import sys, numpy as np, xcc
x, w = (np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in ((7, 24), (24, 40)))
np.save(sys.argv[2], xcc.load(sys.argv[1])(x, w))
"""


def fenced() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", STEPS, re.MULTILINE | re.DOTALL)


def python(*argv: str, **environment: str) -> str:
    """What a Python that has these variables set prints, on both its outputs."""
    done = subprocess.run([sys.executable, *argv], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("adding") / "m.mlir"
    path.write_text(MODEL)
    return path


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder with the target of the steps."""
    root = tmp_path_factory.mktemp("targets")
    for text in fenced():
        if found := re.match(r"# (\S+/\S+\.py)\n", text):
            path = root / found[1]
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            (path.parent / "__init__.py").touch()
    return str(root)


def test_a_target_is_one_folder(targets: str, model: Path, tmp_path: Path) -> None:
    tool = ("-m", "xcc.tools.xcc_cli", str(model), "--target=scalar")
    ir = python(*tool, "--emit=scalar", XCC_TARGETS=targets)
    assert "memref.load" in ir and "vector<" not in ir
    code = python(*tool, "--emit=asm", XCC_TARGETS=targets)
    assert "mulss" in code and "mulps" not in code and "ymm" not in code
    assert "\nscalar:\n" in python(*tool, "--print-pipeline", XCC_TARGETS=targets)
    python(*tool, "-o", str(tmp_path / "m.xcm"), XCC_TARGETS=targets)
    if platform.machine() != "x86_64":
        pytest.skip("its code is for x86-64")
    python("-c", RUN, str(tmp_path / "m.xcm"), str(tmp_path / "y.npy"), XCC_TARGETS=targets)
    x, w = (np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in ((7, 24), (24, 40)))
    wanted = np.exp(x @ w - (x @ w).max(axis=1, keepdims=True))
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), wanted / wanted.sum(axis=1, keepdims=True), rtol=1e-5)


def test_what_says_which_targets_there_are(targets: str) -> None:
    script = "import xcc.targets; print(*xcc.targets.names(), xcc.targets.get('scalar').chips())"
    assert python("-c", script, XCC_TARGETS=targets) == f"{' '.join([*folders.target_names(), 'scalar'])} ('x86-64',)\n"
    for argv, said in ((("--help",), "scalar (default: cpu)"), (("--target=scalar", "--chip=list"), "x86-64 ")):
        assert said in " ".join(python("-m", "xcc.tools.xcc_cli", *argv, XCC_TARGETS=targets).split())
    script = "from xcc.options import CompileOptions; CompileOptions.make('plain')"
    with pytest.raises(AssertionError, match="there is no target 'plain'; .*did you mean scalar?"):
        python("-c", script, XCC_TARGETS=targets)


def test_a_model_of_a_target_that_is_not_there(targets: str, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.xcm"
    python("-m", "xcc.tools.xcc_cli", str(model), "--target=scalar", "-o", str(path), XCC_TARGETS=targets)
    loaded = xcc.load(path)
    assert loaded.target == "scalar"
    with pytest.raises(xcc.UserError, match="is for target 'scalar', which this xcc cannot run"):
        loaded(np.zeros((1, 24), np.float32), np.zeros((24, 40), np.float32))


def test_a_chip_is_one_line(model: Path, tmp_path: Path) -> None:
    line = next(text for text in fenced() if text.startswith("    CpuChip("))
    parts = {part: next(p for root in xcc.__path__ if (p := Path(root, part)).is_dir()) for part in PARTS}
    package, cpu = tmp_path / "xcc", parts["targets"] / "cpu"
    linked(package, [*Path(xcc.__file__).parent.glob("*.py"), *parts.values()], "targets")
    linked(package / "targets", parts["targets"].iterdir(), "cpu")
    linked(package / "targets" / "cpu", cpu.iterdir(), "chip.py")
    table, end, rest = (cpu / "chip.py").read_text().partition("\n)}\n")
    (package / "targets" / "cpu" / "chip.py").write_text(f"{table}\n{line.rstrip()}{end}{rest}")
    paths = os.pathsep.join([str(tmp_path), *(p for p in sys.path if p)])
    assert "znver6 " in python("-P", "-m", "xcc.tools.xcc_cli", "--chip=list", PYTHONPATH=paths)
    code = python("-P", "-m", "xcc.tools.xcc_cli", str(model), "--chip=znver6", "--emit=asm", PYTHONPATH=paths)
    assert "zmm" in code and "for cpu znver6" in code


def linked(folder: Path, files: Iterable[Path], but: str) -> None:
    """Makes `folder`, with links to all `files` `but` one."""
    folder.mkdir()
    for file in files:
        if file.name != but:
            (folder / file.name).symlink_to(file.resolve())
