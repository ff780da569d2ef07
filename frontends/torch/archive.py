"""Reads a .pt2 file without running anything that is in it.

``torch.export.load`` trusts its file: it unpickles example inputs and objects, evaluates sizes as Python, puts names
into source code, and loads libraries. Here torch reads through :class:`Reader`, which hands out what has been looked at
only: the graph, where names are names and sizes are arithmetic, and tensors. Example inputs are left out.
"""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch.export.pt2_archive import PT2ArchiveReader
from torch.export.pt2_archive import constants as parts
from torch.export.pt2_archive._package import _load_exported_programs

from xcc.diagnostics import UserError
from xcc.frontends.torch.decomposed_quantization import NAMESPACE, declare_quantized_ops

__all__ = ["is_size", "load"]

NAME = re.compile(r"[\w.]*")
NAMED = ("name", "as_name")
FUNCTIONS = re.compile(r"[A-Z]\w*")       # of sizes: Max, FloorDiv, Mod, ...
SPELLED = (ast.Expression, ast.Name, ast.Load, ast.Constant, ast.Call, ast.keyword, ast.BinOp, ast.UnaryOp, ast.BoolOp,
           ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
OBJECTS = tuple(getattr(parts, name) for name in ("CUSTOM_OBJ_FILENAME_PREFIX", "OPAQUE_OBJ_FILENAME_PREFIX")
                if hasattr(parts, name))        # the second one from torch 2.13 on


def load(path: str) -> Any:
    """The one ``torch.export.ExportedProgram`` of the file; UserError for a file that needs more than data."""
    reader = Reader(path)
    programs = _load_exported_programs(reader, reader.get_file_names(), None)
    if len(programs) != 1:
        raise UserError(f"{path}: there are {len(programs)} exported programs ({', '.join(programs)}); xcc compiles "
                        "files with one: save each with torch.export.save")
    return next(iter(programs.values()))


class Reader(PT2ArchiveReader):
    """An archive's records, looked at before torch gets them."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path
        self.pickled: set[str] = set()      # tensors that are no plain bytes, as the records that describe them say

    def read_bytes(self, name: str) -> bytes:
        """The record `name`; raises UserError where to read it is to run what it says."""
        if name.startswith(parts.SAMPLE_INPUTS_DIR):
            return b""
        found = bytes(super().read_bytes(name))
        if name.startswith(parts.MODELS_DIR):
            self._check(name, json.loads(found))
        elif name.startswith((parts.WEIGHTS_DIR, parts.CONSTANTS_DIR)):
            if name.endswith(".json"):
                described = json.loads(found).get("config", {}).values()
                self.pickled |= {d["path_name"] for d in described if d.get("use_pickle", True)}
            elif name.endswith(".pt") or name.rpartition("/")[2] in self.pickled:
                self._check_pickle(name, found)
        return found

    def _check(self, name: str, value: Any) -> None:
        for key, text in _texts(value):
            if key == "expr_str" and not is_size(text):
                self._refuse(name, f"the size {text[:80]!r} is no arithmetic")
            if key == "target" and text.startswith(f"torch.ops.{NAMESPACE}."):
                declare_quantized_ops()
            if key in NAMED and not NAME.fullmatch(text):
                self._refuse(name, f"{text[:80]!r} is no name")
            if '"__enum__"' in text:
                self._refuse(name, "an argument is a Python object of a class of its own")

    def _check_pickle(self, name: str, found: bytes) -> None:
        if any(name.startswith(parts.CONSTANTS_DIR + prefix) for prefix in OBJECTS):
            self._refuse(name, "it is a Python object")
        try:
            torch.load(io.BytesIO(found), weights_only=True)
        except Exception as e:
            self._refuse(name, f"torch's loader of weights takes it for unsafe: {str(e).splitlines()[0][:120]}")

    def _refuse(self, name: str, why: str) -> None:
        raise UserError(f"{self.path}: {name}: {why}. Nothing of a model file is run: if you trust it, load it with "
                        "torch.export.load, and give xcc.compile the program")


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text in `value`, with the key that it stands under; keys, too, which are names."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for v in value:
            yield from _texts(v, key)
    elif isinstance(value, dict):
        for k, v in value.items():
            yield from _texts(v, k)


def is_size(text: str) -> bool:
    """Whether `text` is arithmetic of numbers, names (``Symbol('s0', integer=True)``, too) and functions of sizes."""
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except (SyntaxError, ValueError, RecursionError):
        return False
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    symbols = [n for n in calls if isinstance(n.func, ast.Name) and n.func.id == "Symbol" and len(n.args) == 1]
    names = {id(n.args[0]) for n in symbols}
    return all(isinstance(n, SPELLED) for n in nodes) and all(
        isinstance(n.func, ast.Name) and FUNCTIONS.fullmatch(n.func.id) for n in calls) and all(
        isinstance(n.value, int | float) or (id(n) in names and NAME.fullmatch(str(n.value)))
        for n in nodes if isinstance(n, ast.Constant))
