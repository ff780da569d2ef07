"""pyproject.toml names every package folder and data file: what it misses works in a checkout and not in a wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from xcc.cache import cache

ROOT = Path(__file__).resolve().parents[2]
MODEL = """
func.func @main(%x: tensor<8xf32> {xt.name = "x"}) -> (tensor<8xf32> {xt.name = "y"}) {
  %0 = "xt.exp"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
TOP = ("xcc", "dialects", "passes", "frontends", "targets", "runtime", "interpreter", "tile", "tools")


def _config() -> dict[str, Any]:
    setup: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    return setup


def _tracked(pattern: str) -> set[Path]:
    """Files of the repository; of the folder itself where there is no git."""
    done = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", pattern], cwd=ROOT,
                          capture_output=True, text=True)
    names = done.stdout.split() if done.returncode == 0 else [str(p.relative_to(ROOT)) for p in ROOT.rglob(pattern)]
    return {Path(n) for n in names if Path(n).parts[0] in TOP and (ROOT / n).is_file()}


def test_packages_are_the_folders_that_exist() -> None:
    setup = _config()
    folders = {str(p.parent) for p in _tracked("*.py") if p.parent.parent != Path("targets")}
    named = {"xcc": "xcc"} | setup["package-dir"]
    assert {named[p] for p in setup["packages"]} == folders
    assert set(setup["packages"]) == set(named)
    for package, folder in named.items():
        assert package == "xcc" or package == "xcc." + folder.removeprefix("xcc/").replace("/", ".")


def test_every_folder_is_a_package() -> None:
    for folder in {p.parent for p in _tracked("*.py")}:
        assert (ROOT / folder / "__init__.py").is_file(), f"{folder} has no __init__.py"


def test_data_files_are_in_the_wheel() -> None:
    patterns = _config()["package-data"]
    endings = {pattern.lstrip("*") for pattern in patterns["*"]}
    assert set(patterns["xcc.targets"]) == {f"*/*{ending}" for ending in (*endings, ".py")}
    data = {p for p in _tracked("*") if p.suffix not in (".py", ".pyc", ".md")}
    assert sorted(str(p) for p in data if p.suffix not in endings) == []


def test_the_wheel_holds_every_file() -> None:
    """The wheel that `make` built, where it did."""
    wheels = list((ROOT / "build" / "dist").glob("xcc-*.whl"))
    if not wheels or wheels[0].stat().st_mtime < max((ROOT / p).stat().st_mtime for p in _tracked("*")):
        pytest.skip("no wheel of the present sources: make wheel")
    files = {p for p in _tracked("*") if p.suffix != ".md"}
    wanted = {"/".join(p.parts if p.parts[0] == "xcc" else ("xcc", *p.parts)) for p in files}
    held = {n for n in zipfile.ZipFile(wheels[0]).namelist() if ".dist-info/" not in n}
    assert held == wanted


def test_an_installed_xcc_works_away_from_the_checkout(tmp_path: Path) -> None:
    """Console scripts, from a folder where no source lies, in a process that ignores this one's paths."""
    folder = str(Path(sys.executable).parent)
    scripts = {tool: shutil.which(tool, path=folder) for tool in ("xcc", "xcc-run", "xcc-opt")}
    if None in scripts.values():
        pytest.skip("xcc is not installed here")

    def run(tool: str, *argv: str) -> str:
        done = subprocess.run([str(scripts[tool]), *argv], cwd=tmp_path, capture_output=True, text=True, timeout=300,
                              env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "m.mlir").write_text(MODEL)
    run("xcc", "m.mlir", "--no-cache", "-o", "m.xcm")
    run("xcc", "m.mlir", "--target=amdgcn", "-o", "amd.xcm")
    assert "y" in run("xcc-run", "m.xcm", "--random")
    assert "xt-to-linalg" in run("xcc-opt", "--list-passes")


def test_the_version_is_of_all_that_is_packaged_and_of_nothing_else() -> None:
    """Else what was compiled by other code is taken from the cache, or every test that is written empties it."""
    endings = {pattern for pattern in _config()["package-data"]["*"]} | {"*.py"}
    assert set(cache.SOURCES) == endings
    packaged = {str(p) for pattern in endings for p in _tracked(pattern)}

    def name_of(path: Path) -> str:
        tails = ("/".join(path.parts[i:]) for i in range(len(path.parts)))
        return next((tail for tail in tails if tail in packaged), str(path))

    assert sorted(map(name_of, cache._sources())) == sorted(packaged)
