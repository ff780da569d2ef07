"""``--bisect`` and ``--verify=numbers`` find what makes a number wrong: a kernel, a pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driver_passes import ExpToSqrt, NegateProduct

import xcc
from xcc.options import CompileOptions
from xcc.targets.base import get_target
from xcc.tools.xcc_run import main

N8 = 'tensor<?x8xf32, ["n", 8]>'
# Three kernels; the second has the exponential.
MODEL = f"""
func.func @main(%x: {N8} {{xt.name = "x"}}, %w: tensor<8x8xf32> {{xt.name = "w"}}) -> ({N8} {{xt.name = "y"}}) {{
  %0 = "xt.dot_general"(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], dtype = f32}}
    : ({N8}, tensor<8x8xf32>) -> {N8} loc("first")
  %1 = "xt.softmax"(%0) {{axis = 0 : i64}} : ({N8}) -> {N8} loc("the softmax")
  %2 = "xt.dot_general"(%1, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], dtype = f32}}
    : ({N8}, tensor<8x8xf32>) -> {N8} loc("last")
  return %2 : {N8}
}}
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XCC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "m.mlir").write_text(MODEL)
    xcc.compile(tmp_path / "m.mlir").save(tmp_path / "right.xcm")
    return tmp_path / "m.mlir"


def wrong(model: Path, target: str, **options: Any) -> Path:
    """The model with square roots in the place of exponentials, from stage linalg on."""
    pipeline = get_target(target).pipeline(CompileOptions.make(target, **options)).insert(ExpToSqrt(), stage="linalg")
    path = model.with_name("wrong.xcm")
    xcc.compile(model, target=target, pipeline=pipeline, keep_ir=True, **options).save(path)
    return path


def bisected(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main([*argv, "--random", "--dim=n=5", "--compare=right.xcm", "--bisect=found"]) == 1
    return capsys.readouterr().out


@pytest.mark.parametrize(("target", "flags"), [("cpu", ()), ("nvptx", ("--interpret",))])
def test_the_first_wrong_kernel(model: Path, capsys: pytest.CaptureFixture[str], target: str,
                                flags: tuple[str, ...]) -> None:
    """It is named with its ops and nodes, and what it needs to run alone is left behind."""
    path = wrong(model, target, **({"chip": "sm_80"} if target == "nvptx" else {}))
    out = bisected(capsys, str(path), *flags)
    assert "is the first that differs" in out and "the softmax" in out and " exp " in out
    assert out.count("wanted") >= 5
    command = next(line for line in out.splitlines() if line.strip().startswith("xcc-run ")).split()[1:]
    assert main(command) == 0           # compiled again, by passes that are right
    opt = next(line for line in out.splitlines() if line.strip().startswith("xcc-opt ")).split()[1:]
    from xcc.tools import xcc_opt

    assert xcc_opt.main([*opt, "-o", "kernel.mlir"]) == 0
    assert "linalg.generic" in Path("kernel.mlir").read_text()


def test_no_kernel_is_wrong(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The difference was made before: then the passes are to be looked at."""
    pipeline = get_target("cpu").pipeline(CompileOptions()).insert(NegateProduct(), stage="xt")
    xcc.compile(model, pipeline=pipeline, keep_ir=True).save("wrong.xcm")
    out = bisected(capsys, "wrong.xcm")
    assert "wrong.xcm: each kernel gives what its ops mean" in out and "--verify=numbers" in out


def test_what_cannot_be_bisected(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["right.xcm", "--random", "--dim=n=5", "--bisect"]) == 1
    assert "--bisect needs --compare" in capsys.readouterr().err
    np.savez("other.npz", y=np.zeros((5, 8), np.float32))
    assert main(["right.xcm", "--random", "--dim=n=5", "--compare=other.npz", "--bisect"]) == 1
    assert "compile it with xcc --keep-ir" in capsys.readouterr().err


def test_the_pass_that_changes_a_number(model: Path) -> None:
    pipeline = get_target("cpu").pipeline(CompileOptions())
    xcc.compile(model, pipeline=pipeline, verify="numbers")
    with pytest.raises(xcc.UserError, match="'test-negate-product' changed the numbers of output y: largest"):
        xcc.compile(model, pipeline=pipeline.insert(NegateProduct(), stage="xt"), verify="numbers")


def test_sizes_that_a_model_takes(model: Path) -> None:
    """Others are tried where the first do not fit; a dim that is fixed keeps its size."""
    head = 'module attributes {xt.dims = {n = [9, 9]}, xt.equal = [["mod(n, 3)", 0]]} {'
    model.write_text(f"{head}\n{model.read_text()}\n}}\n")
    xcc.compile(model, verify="numbers")
