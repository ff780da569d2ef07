"""Which xt ops a converter builds, read from its source: for the tables of ops in the documents."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from types import ModuleType
from typing import Any

from xcc.dialects.xt.op import BUILDERS

__all__ = ["ops_of"]


def ops_of(converter: Any) -> set[str]:
    """The builders that a converter calls: itself, through functions of the frontends, or by a name that it was made
    with."""
    return {op for op in _calls(converter, frozenset()) if op in BUILDERS}


def _calls(function: Any, seen: frozenset[Any]) -> set[str]:
    function = inspect.unwrap(function)
    if function in seen or not inspect.isfunction(function):
        return set()
    out = {value.rstrip("_") for value in inspect.getclosurevars(function).nonlocals.values() if isinstance(value, str)}
    for kind, name in _names(function):
        if kind == "xt":
            out.add(name.rstrip("_"))
            continue
        target = function.__globals__.get(name)
        if inspect.isfunction(target) and target.__module__.startswith("xcc.frontends."):
            out |= _calls(target, seen | {function})
    return out


@cache
def _names(function: Any) -> frozenset[tuple[str, str]]:
    """("xt", builder) and ("call", function) names in the function's source."""
    found: set[tuple[str, str]] = set()
    for node in ast.walk(_tree(inspect.getmodule(function), function.__name__)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "xt":
            found.add(("xt", node.attr))
        elif isinstance(node, ast.Name):
            found.add(("call", node.id))
    return frozenset(found)


def _tree(module: ModuleType | None, name: str) -> ast.AST:
    for node in ast.walk(_module(module)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    return ast.Module([], [])


@cache
def _module(module: ModuleType | None) -> ast.AST:
    return ast.parse(inspect.getsource(module)) if module else ast.Module([], [])
