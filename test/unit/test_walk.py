"""docs/walk.md is true: its commands run, and what it quotes of their output and files is there, in that order."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest

from xcc.tools import xcc_cli, xcc_opt, xcc_run

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "walk.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
TOOLS = {"xcc": xcc_cli.main, "xcc-opt": xcc_opt.main, "xcc-run": xcc_run.main}


def plain(text: str) -> str:
    """Without the names of values and registers, which the page chooses, and with single spaces."""
    return " ".join(re.sub(r"%\w+", "%", text).split())


def missing(quoted: list[str], text: str) -> str:
    """The first of the pieces of `quoted` lines (between dots) that is not in `text`, each behind the one before."""
    place, text = 0, plain(text)
    for line in quoted:
        for piece in map(plain, line.split("...")):
            found = text.find(piece, place)
            if found < 0:
                return f"{piece!r} of the line {line!r}"
            place = found + len(piece)
    return ""


def run(command: str) -> None:
    name, *argv = shlex.split(command)
    if name == "python":
        runpy.run_path(argv[0])
    else:
        assert TOOLS[name](argv) == 0, command


def quotes(block: str) -> list[tuple[str, list[str]]]:
    """Each command (``$ ...``) and file (``// ...``) of a block, with the lines that are shown of it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith(("$ ", "// ")):
            found.append((line, []))
        else:
            found[-1][1].append(line)
    return found


def test_commands_and_excerpts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                               capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    Path("make.py").write_text(next(block for kind, block in BLOCKS if kind == "python"))
    files = set()
    for source, lines in (q for kind, block in BLOCKS if kind != "python" for q in quotes(block)):
        mark, what = source.split(maxsplit=1)
        if mark == "$":
            run(what)
            said = capfd.readouterr()
            text = said.out + said.err
        else:
            text = Path(what).read_text()
            files.add(what)
        lost = missing(lines, text)
        assert not lost, f"docs/walk.md: '{what}' is without {lost}, or has it elsewhere"
    cpu, gpu = ("00-xt", "02-linalg", "04-vector", "05-cpu"), ("00-xt", "01-kernels", "04-vector", "06-gpu")
    assert files >= {"m.s", "m.ptx", *(f"cpu/{s}.mlir" for s in cpu), *(f"gpu/{s}.mlir" for s in gpu)}


def test_files_and_names() -> None:
    rows = [line.split("|")[3:5] for line in PAGE.splitlines() if re.match(r"\| (\(all\)|import|`\w+`) \|", line)]
    files = {f for left, _ in rows for f in re.findall(r"`(\S+\.py)`", left)}
    assert len(files) == 8
    text = "".join((ROOT / f).read_text() for f in files)
    names = {n for _, right in rows for n in re.findall(r"`(\w+)`", right)} - {"xt"}
    assert len(names) == 8
    for name in names:
        assert re.search(rf"^(def|class) {name}\b", text, re.MULTILINE), name
    for path in re.findall(r"`((?:\w+/)+\w+\.py)", PAGE):
        assert (ROOT / path).is_file(), path
    for title in re.findall(r"^## \d\. `(\S+)`", PAGE, re.MULTILINE):
        assert title in files, title
