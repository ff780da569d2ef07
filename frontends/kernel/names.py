"""What statements of Python's assign, and whether they leave the loop or the function that they stand in."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable

__all__ = ["assigned_names", "leaves"]

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_PARTS = (ast.Subscript, ast.Attribute)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def assigned_names(body: Iterable[ast.AST], own: Container[str] = ()) -> list[str]:
    """The variables that the statements bind, each once, in order; of those of `own` also what changes the elements
    of, as in ``v[i] = x`` and ``v.a = x``."""
    found: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None
        elif isinstance(node, _PARTS) and isinstance(node.ctx, ast.Store) and _root(node) in own:
            found[_root(node)] = None
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update({(a.asname or a.name).split(".")[0]: None for a in node.names})
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found[node.name] = None
        if isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    for node in body:
        visit(node)
    return list(found)


def _root(node: ast.expr) -> str:
    """The variable of which an element of an element is."""
    while isinstance(node, _PARTS):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def leaves(body: Iterable[ast.AST], in_loop: bool = False) -> bool:
    """Whether a statement returns, or goes on with or ends a loop around it."""
    for node in body:
        if isinstance(node, ast.Return) or (not in_loop and isinstance(node, (ast.Break, ast.Continue))):
            return True
        if isinstance(node, _SCOPES):
            continue
        if leaves(ast.iter_child_nodes(node), in_loop or isinstance(node, (ast.For, ast.While))):
            return True
    return False
