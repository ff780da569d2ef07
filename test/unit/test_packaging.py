"""pyproject.toml names every package folder and data file: what it misses works in a checkout and not in a wheel."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TOP = ("xcc", "dialects", "passes", "frontends", "targets", "runtime", "interpreter", "tools")


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
    folders = {str(p.parent) for p in _tracked("*.py")}
    named = {"xcc": "xcc"} | setup["package-dir"]
    assert {named[p] for p in setup["packages"]} == folders
    assert set(setup["packages"]) == set(named)
    for package, folder in named.items():
        assert package == "xcc" or package == "xcc." + folder.replace("/", ".")


def test_every_folder_is_a_package() -> None:
    for folder in {p.parent for p in _tracked("*.py")}:
        assert (ROOT / folder / "__init__.py").is_file(), f"{folder} has no __init__.py"


def test_data_files_are_in_the_wheel() -> None:
    endings = {pattern.lstrip("*") for pattern in _config()["package-data"]["*"]}
    data = {p for p in _tracked("*") if p.suffix not in (".py", ".pyc", ".md")}
    assert sorted(str(p) for p in data if p.suffix not in endings) == []
