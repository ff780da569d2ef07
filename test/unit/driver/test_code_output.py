"""``--emit`` of machine code is one file of the format that it names; artifacts for several GPUs; PTX beside cubins."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from xcc.compiler import compile_model
from xcc.driver.versions import compile_versions
from xcc.options import CompileOptions
from xcc.targets.nvptx.ptxas import find_ptxas
from xcc.tools.xcc_cli import main

# Two kernels of one form with shared memory, and one without.
MODEL = """
func.func @main(%a: tensor<64x32xf16> {xt.name = "a"}, %b: tensor<32x64xf16> {xt.name = "b"})
    -> (tensor<64x64xf16> {xt.name = "y"}) {
  %0 = "xt.dot_general"(%a, %b) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], dtype = f16}
    : (tensor<64x32xf16>, tensor<32x64xf16>) -> tensor<64x64xf16>
  %1 = "xt.dot_general"(%0, %0) {lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [0], dtype = f16}
    : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
  %2 = "xt.softmax"(%1) {axis = 0 : i64} : (tensor<64x64xf16>) -> tensor<64x64xf16>
  return %2 : tensor<64x64xf16>
}
"""
needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="cubins need ptxas")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("code") / "m.mlir"
    path.write_text(MODEL)
    return path


def emitted(model: Path, kind: str, *options: str) -> bytes:
    out = model.with_suffix(f".{kind}")
    assert main([str(model), f"--emit={kind}", "-o", str(out), *options]) == 0
    return out.read_bytes()


def test_a_program_that_calls_main_is_not_forked(model: Path) -> None:
    """What goes on behind the call is the same process, with its threads."""
    process = os.getpid()
    emitted(model, "asm", "--chip=x86-64-v3")
    assert os.getpid() == process


def test_code_of_the_last_stage_is_that_of_the_first(model: Path, tmp_path: Path) -> None:
    """Of a dump behind which no pass runs, too."""
    text = emitted(model, "ptx", "--target=nvptx", "--chip=sm_80")
    dump = tmp_path / "last.mlir"
    assert main([str(model), "--emit=nvvm", "-o", str(dump), "--target=nvptx", "--chip=sm_80"]) == 0
    assert emitted(dump, "ptx", "--target=nvptx", "--chip=sm_80") == text


def test_ptx_is_one_module(model: Path, tmp_path: Path) -> None:
    text = emitted(model, "ptx", "--target=nvptx", "--chip=sm_80").decode()
    assert text.count(".version") == text.count(".target sm_80") == 1
    assert text.count(".entry") >= 3
    if find_ptxas():
        subprocess.run([find_ptxas() or "", "-arch=sm_80", str(model.with_suffix(".ptx")), "-o", str(tmp_path / "k")],
                       check=True)


@needs_ptxas
def test_a_cubin_of_all_kernels(model: Path) -> None:
    code = emitted(model, "cubin", "--target=nvptx", "--chip=sm_80")
    assert code[:4] == b"\x7fELF" and code.count(b".text.") >= 3


def test_amd_code(model: Path) -> None:
    chip = ("--target=amdgcn", "--chip=gfx942")
    listing = emitted(model, "asm", *chip).decode()
    assert listing.count(".amdhsa_kernel ") >= 3
    code = emitted(model, "hsaco", *chip)
    assert code[:4] == b"\x7fELF" and code.count(b".kd\0") >= 3


def test_cpu_code(model: Path) -> None:
    assert emitted(model, "asm", "--chip=x86-64-v3").decode().count(",@function") >= 3
    assert emitted(model, "obj", "--chip=x86-64-v3")[:4] == b"\x7fELF"


@pytest.mark.parametrize(("argv", "what"), [
    (("--emit=cubin",), "target cpu has no such stage or format"),
    (("--emit=ptx", "--target=amdgcn"), "formats asm, hsaco"),
    (("--emit=hsaco", "--target=amdgcn"), "--emit=hsaco needs -o FILE"),
    (("--emit=code",), "--emit=code needs -o FOLDER")])
def test_what_cannot_be_emitted(model: Path, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...],
                                what: str) -> None:
    assert main([str(model), *argv]) == 1
    assert what in capsys.readouterr().err


def members(model: Path, target: str, chip: str) -> set[str]:
    """Suffixes of the kernels, with the folders that they are in."""
    artifact = compile_versions(str(model), CompileOptions.make(target, chip=chip)).artifact
    assert artifact is not None
    return {f"{Path(name).parent}/*{Path(name).suffix}" for name in artifact.members}


def test_ptx_lies_beside_cubins(model: Path) -> None:
    both = {"kernels/*.ptx", *(["kernels/*.cubin"] if find_ptxas() else [])}
    assert members(model, "nvptx", "sm_80") == both
    assert members(model, "nvptx,code=ptx", "sm_80") == {"kernels/*.ptx"}


@needs_ptxas
def test_cubins_alone(model: Path) -> None:
    assert members(model, "nvptx,code=cubin", "sm_80") == {"kernels/*.cubin"}


def test_kernels_from_the_cache_have_both(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCC_CACHE_DIR", str(tmp_path))
    first, second = (compile_model(str(model), CompileOptions.make("nvptx", chip="sm_80")).kernels for _ in range(2))
    assert [(k.blob, k.portable) for k in first] == [(k.blob, k.portable) for k in second]


@pytest.mark.parametrize(("target", "chips", "suffix"), [
    ("nvptx,code=ptx", "sm_80,sm_90a", "ptx"), ("amdgcn", "gfx942,gfx1100", "hsaco")])
def test_several_chips(model: Path, target: str, chips: str, suffix: str) -> None:
    found = members(model, target, chips)
    assert f"kernels/*.{suffix}" in found and sum(name.startswith("versions/") for name in found) == 2
