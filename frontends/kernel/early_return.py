"""Returns in the middle of a function, `continue` and `break` become branches, whose condition may be known when the
kernel runs only. A loop that may be left has a flag, which says whether it is."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

__all__ = ["RESULT", "breaks", "flagged", "settled", "stepped"]

RESULT, RETURNED = "__result", "__returned"


def settled(body: list[ast.stmt]) -> list[ast.stmt]:
    """The same statements with one return, at their end::

        if c:                   if c:
            return a                result = a
        b                  ->   else:
        return d                    b
                                    result = d
                                return result

    A return in a loop leaves it; what stands behind the loop is the other branch of whether it did::

        for i in r:             returned = False
            if c:               for i in r:
                return a            if c:
        b                  ->           result = a; returned = True; break
                                if returned: pass
                                else: b

    As they were where a return stands in a loop with an else, or in another statement than branches and loops.
    """
    if not any(_returns(s) for s in body if not isinstance(s, ast.Return)) or not all(map(_settles, body)):
        return body
    last = body[-1]
    result = ast.copy_location(ast.Name(RESULT, ast.Load()), last)
    return [*_without(body, last), ast.copy_location(ast.Return(result), last)]


def stepped(body: list[ast.stmt], flag: str) -> list[ast.stmt]:
    """The body of a loop without `continue`, and without `break`, which sets `flag`::

        if c:                   if c:
            a                       a
            break                   flag = True
        b                  ->   else:
                                    b

    As it was where one stands in another statement than branches.
    """
    if not any(map(_steps, body)) or not all(map(_in_branches, body)):
        return body
    for i, s in enumerate(body):
        before, behind = list(body[:i]), body[i + 1:]
        if isinstance(s, ast.Break):
            return [*before, flagged(flag, True, s)]
        if isinstance(s, ast.Continue):
            return before or [ast.copy_location(ast.Pass(), s)]
        if isinstance(s, ast.If) and _steps(s):
            then = stepped([*s.body, *copy.deepcopy(behind)], flag)
            return [*before, ast.copy_location(ast.If(s.test, then, stepped([*s.orelse, *behind], flag)), s)]
    return body


def flagged(flag: str, value: bool, at: ast.AST) -> ast.stmt:
    """``flag = value``, standing where `at` does."""
    return _assign(flag, ast.copy_location(ast.Constant(value), at), at)


_SCOPES = (ast.FunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.While)


def breaks(body: Sequence[ast.AST]) -> bool:
    """Whether one of the statements ends the loop around them."""
    return any(_has(node, ast.Break, (*_SCOPES, *_LOOPS)) for node in body)


def _has(node: ast.AST, kind: type[ast.stmt] | tuple[type[ast.stmt], ...], but: tuple[type[ast.AST], ...]) -> bool:
    """Whether a statement of `kind` stands within, outside of `but`."""
    return isinstance(node, kind) or (not isinstance(node, but)
                                      and any(_has(n, kind, but) for n in ast.iter_child_nodes(node)))


def _steps(node: ast.AST) -> bool:
    """Whether it goes on with the loop around it, or ends it."""
    return _has(node, (ast.Continue, ast.Break), (*_SCOPES, *_LOOPS))


def _returns(node: ast.AST) -> bool:
    return _has(node, ast.Return, _SCOPES)


def _in_branches(node: ast.stmt) -> bool:
    """Whether each `continue` and `break` within stands in branches alone."""
    if isinstance(node, ast.If):
        return all(map(_in_branches, (*node.body, *node.orelse)))
    return isinstance(node, (ast.Continue, ast.Break)) or not _steps(node)


def _settles(node: ast.stmt) -> bool:
    """Whether each return within stands in branches, and loops without an else, alone."""
    if isinstance(node, ast.If) or (isinstance(node, _LOOPS) and not node.orelse):
        return all(map(_settles, (*node.body, *node.orelse)))
    return isinstance(node, ast.Return) or not _returns(node)


def _without(body: Sequence[ast.stmt], at: ast.AST) -> list[ast.stmt]:
    """`body`, assigning what it would return; None where it would not."""
    for i, s in enumerate(body):
        before, behind = list(body[:i]), body[i + 1:]
        if isinstance(s, ast.Return):
            return [*before, _assign(RESULT, s.value, s)]
        if isinstance(s, ast.If) and _returns(s):
            then = _without([*s.body, *copy.deepcopy(behind)], s)
            orelse = _without([*s.orelse, *behind], s)
            return [*before, ast.copy_location(ast.If(s.test, then, orelse), s)]
        if isinstance(s, _LOOPS) and _returns(s):
            rest = [] if _is_endless(s) else [_if_returned(ast.Pass(), _without(behind, at), s)]
            s.body = _breaking(s.body)
            return [*before, flagged(RETURNED, False, s), s, *rest]
    return [*body, _assign(RESULT, None, at)]


def _is_endless(loop: ast.For | ast.While) -> bool:
    """Whether nothing but a return ends it."""
    return isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and bool(loop.test.value) \
        and not breaks(loop.body)


def _breaking(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The body of a loop: what would return leaves the loop, and those around it."""
    made: list[ast.stmt] = []
    for s in body:
        if isinstance(s, ast.Return):
            return [*made, _assign(RESULT, s.value, s), flagged(RETURNED, True, s), ast.copy_location(ast.Break(), s)]
        made.append(s)
        if isinstance(s, (ast.If, *_LOOPS)) and _returns(s):
            s.body, s.orelse = _breaking(s.body), _breaking(s.orelse)
            if isinstance(s, _LOOPS):
                made.append(_if_returned(ast.Break(), [], s))
    return made


def _if_returned(then: ast.stmt, orelse: list[ast.stmt], at: ast.AST) -> ast.stmt:
    test = ast.copy_location(ast.Name(RETURNED, ast.Load()), at)
    return ast.copy_location(ast.If(test, [ast.copy_location(then, at)], orelse), at)


def _assign(name: str, value: ast.expr | None, at: ast.AST) -> ast.stmt:
    target = ast.copy_location(ast.Name(name, ast.Store()), at)
    return ast.copy_location(ast.Assign([target], value or ast.copy_location(ast.Constant(None), at)), at)
