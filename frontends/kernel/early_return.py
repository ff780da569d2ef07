"""Returns in the middle of a function, and `continue` in a loop, become branches, whose condition may be known when the
kernel runs only."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

__all__ = ["settled", "stepped"]

RESULT = "__result"


def settled(body: list[ast.stmt]) -> list[ast.stmt]:
    """The same statements with one return, at their end::

        if c:                   if c:
            return a                result = a
        b                  ->   else:
        return d                    b
                                    result = d
                                return result

    As they were where a loop returns: such a loop is Python's own.
    """
    if not any(_returns(s) for s in body if not isinstance(s, ast.Return)):
        return body
    if any(isinstance(n, (ast.For, ast.While, ast.Try, ast.With)) and _returns(n) for s in body for n in ast.walk(s)):
        return body
    last = body[-1]
    result = ast.copy_location(ast.Name(RESULT, ast.Load()), last)
    return [*_without(body, last), ast.copy_location(ast.Return(result), last)]


def stepped(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a loop without `continue`::

        if c:                   if c:
            a                       a
            continue       ->   else:
        b                           b

    As it was where one stands in another statement than branches.
    """
    if not any(map(_continues, body)) or not all(map(_in_branches, body)):
        return body
    for i, s in enumerate(body):
        before, behind = list(body[:i]), body[i + 1:]
        if isinstance(s, ast.Continue):
            return before or [ast.copy_location(ast.Pass(), s)]
        if isinstance(s, ast.If) and _continues(s):
            then, orelse = stepped([*s.body, *copy.deepcopy(behind)]), stepped([*s.orelse, *behind])
            return [*before, ast.copy_location(ast.If(s.test, then, orelse), s)]
    return body


_SCOPES = (ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.For, ast.While)


def _continues(node: ast.AST) -> bool:
    """Whether it goes on with the loop around it."""
    return isinstance(node, ast.Continue) or (not isinstance(node, _SCOPES)
                                              and any(map(_continues, ast.iter_child_nodes(node))))


def _in_branches(node: ast.stmt) -> bool:
    """Whether each `continue` within stands in branches alone."""
    if isinstance(node, ast.If):
        return all(map(_in_branches, (*node.body, *node.orelse)))
    return isinstance(node, ast.Continue) or not _continues(node)


def _returns(node: ast.AST) -> bool:
    if isinstance(node, ast.Return):
        return True
    return not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)) and any(
        _returns(child) for child in ast.iter_child_nodes(node))


def _without(body: Sequence[ast.stmt], at: ast.AST) -> list[ast.stmt]:
    """`body`, assigning what it would return; None where it would not."""
    for i, s in enumerate(body):
        before, behind = list(body[:i]), body[i + 1:]
        if isinstance(s, ast.Return):
            return [*before, _assign(s.value, s)]
        if isinstance(s, ast.If) and _returns(s):
            then = _without([*s.body, *copy.deepcopy(behind)], s)
            orelse = _without([*s.orelse, *behind], s)
            return [*before, ast.copy_location(ast.If(s.test, then, orelse), s)]
    return [*body, _assign(None, at)]


def _assign(value: ast.expr | None, at: ast.AST) -> ast.stmt:
    target = ast.copy_location(ast.Name(RESULT, ast.Store()), at)
    return ast.copy_location(ast.Assign([target], value or ast.copy_location(ast.Constant(None), at)), at)
