"""What folders hold, and who imports whom: docs/architecture.md, "Rooms" and "Imports"."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from xcc.passes.registry import BUILTIN, ROOMS

ROOT = Path(__file__).resolve().parents[2]
TOP = ("dialects", "frontends", "interpreter", "passes", "runtime", "targets", "tile", "tools", "xcc")
LEVELS = ("gpu", "host", "linalg", "tile", "vector", "xt", "xt_to_linalg")
CONTRACT = {"xcc.targets", "xcc.targets.base", "xcc.targets.folders"}
"""What a target is, and the search for one by its name: no target."""

NEVER = (
    ("xcc.passes", "xcc.targets"),
    ("xcc.passes", "xcc.frontends"),
    ("xcc.passes.xt", "xcc.passes.gpu"),
    ("xcc.passes.xt", "xcc.passes.vector"),
    ("xcc.passes.xt_to_linalg", "xcc.passes.gpu"),
    ("xcc.passes.xt_to_linalg", "xcc.passes.vector"),
    ("xcc.passes.linalg", "xcc.passes.xt"),
    ("xcc.passes.linalg", "xcc.passes.vector"),
    ("xcc.passes.linalg", "xcc.passes.gpu"),
    ("xcc.passes.tile", "xcc.passes.gpu"),
    ("xcc.passes.tile", "xcc.passes.vector"),
    ("xcc.passes.vector", "xcc.passes.gpu"),
    ("xcc.passes.gpu", "xcc.passes.vector"),
    *(("xcc.passes.shared", f"xcc.passes.{level}") for level in LEVELS),
    ("xcc.dialects", "xcc.passes"),
    ("xcc.dialects", "xcc.frontends"),
    ("xcc.frontends.shared", "xcc.frontends.onnx"),
    ("xcc.frontends.shared", "xcc.frontends.torch"),
    ("xcc.frontends.shared", "onnx"),
    ("xcc.frontends.shared", "torch"),
    ("xcc.frontends.onnx", "xcc.frontends.torch"),
    ("xcc.frontends.torch", "xcc.frontends.onnx"),
    ("xcc.runtime", "xcc.passes"),
    ("xcc.runtime", "xcc.frontends"),
    ("xcc.cache", "xcc.process"),
    ("xcc.driver", "xcc.process"),
    ("xcc.driver", "xcc.tuning"),
    ("xcc.process", "xcc.tuning"),
)


def name_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts if parts[0] == "xcc" else ("xcc", *parts)).removesuffix(".__init__")


def imported(node: ast.AST) -> Iterator[str]:
    """Names of what is imported when the module runs, in functions too; of types alone it is not."""
    types_alone = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    parts = ("orelse",) if types_alone else ("body", "orelse", "handlers", "finalbody", "cases")
    children = [child for part in parts for child in getattr(node, part, ())]      # statements alone
    if isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    for child in children:
        yield from imported(child)


@cache
def imports() -> dict[str, set[str]]:
    """Module -> the modules that it imports."""
    files = {name_of(f): f for folder in TOP for f in (ROOT / folder).rglob("*.py")}

    def module(name: str) -> str:
        return name if name in files or not name.startswith("xcc.") else name.rpartition(".")[0]

    return {name: {module(i) for i in imported(ast.parse(file.read_text()))} for name, file in files.items()}


def within(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


@pytest.mark.parametrize("who, whom", NEVER, ids=lambda name: name.removeprefix("xcc."))
def test_arrows_that_there_are_not(who: str, whom: str) -> None:
    for package in (who, whom):
        assert package.split(".")[0] != "xcc" or any(within(m, package) for m in imports()), f"there is no {package}"
    found = [(m, i) for m, all_ in imports().items() if within(m, who) for i in all_ if within(i, whom)]
    assert [(m, i) for m, i in found if i not in CONTRACT] == []


@pytest.mark.parametrize("level", LEVELS)
def test_rooms_of_passes_import_one_way(level: str) -> None:
    package = f"xcc.passes.{level}"

    def room(module: str) -> str:
        """The folder that a module lies in; a room's own ``__init__`` is the room's."""
        rest = module.removeprefix(f"{package}.").split(".")
        return rest[0] if len(rest) > 1 or (ROOT / "passes" / level / rest[0]).is_dir() else "passes"

    arrows: dict[str, set[str]] = {}
    for module, all_ in imports().items():
        if within(module, package) and module != package:
            arrows.setdefault(room(module), set()).update(room(i) for i in all_ if within(i, package))
    order = TopologicalSorter({who: whom - {who} for who, whom in arrows.items()})
    order.prepare()         # an error, with the way, where rooms import each other
    assert [who for who, whom in arrows.items() if who != "passes" and "passes" in whom] == []


@pytest.mark.parametrize("level", LEVELS)
def test_passes_are_in_order_and_each_once(level: str) -> None:
    listed = ROOMS[level].split()
    assert listed == sorted(set(listed))


@pytest.mark.parametrize("level", LEVELS)
def test_only_passes_lie_beside_passes(level: str) -> None:
    files = {name_of(f) for f in (ROOT / "passes" / level).glob("*.py") if f.name != "__init__.py"}
    assert files == {module for module in BUILTIN.values() if module.rpartition(".")[0] == f"xcc.passes.{level}"}


def test_rooms_are_described() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    for level in LEVELS:
        for folder in (f for f in (ROOT / "passes" / level).iterdir() if (f / "__init__.py").is_file()):
            assert f"`{folder.name}`" in page, f"docs/architecture.md does not say what passes/{level}/{folder.name} is"
            assert (folder / "__init__.py").read_text().startswith('"""'), folder
