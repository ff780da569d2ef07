"""Control flow of a function's source becomes calls, so that running the function once traces all of it.

::

    for k in range(0, n, 8):            def body(k, acc):
        acc = step(acc, k)                  acc = callee(step)(acc, k)
                                  ->        return k, acc
                                        k, acc = for_(callee(range)(0, n, 8), body, (k, acc), ("k", "acc"), 1)

Likewise ``while``, ``if``, ``assert``, ``and``, ``or``, ``not``, ``a if c else b`` and chained comparisons. What the
calls do is in :mod:`xcc.frontends.kernel.control`. ``continue``, ``break`` and ``return`` become branches and flags
(:mod:`xcc.frontends.kernel.early_return`); loops and branches with one of them in a ``with`` or ``try`` stay Python's
own. Lines and columns stay those of the source.
"""

from __future__ import annotations

import ast
import copy
import linecache
from collections.abc import Callable, Iterable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any, cast

from xcc.diagnostics import UserError
from xcc.frontends.kernel.early_return import RESULT, breaks, flagged, settled, stepped
from xcc.frontends.kernel.names import assigned_names, leaves

__all__ = ["transformed"]

RUNTIME = "__xcc"
_DONE: dict[CodeType, CodeType] = {}
_PARSED: dict[str, tuple[list[str], ast.Module]] = {}


def transformed(function: FunctionType, runtime: Any) -> FunctionType:
    """`function` with its control flow as calls of `runtime`'s functions; UserError where its source cannot be read."""
    code = function.__code__
    if code not in _DONE:
        _DONE[code] = _compiled(function)
    new = _DONE[code]
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[RUNTIME] = CellType(runtime)
    made = FunctionType(new, function.__globals__, function.__name__, function.__defaults__,
                        tuple(cells[name] for name in new.co_freevars))
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _compiled(function: FunctionType) -> CodeType:
    node = copy.deepcopy(_definition(function))
    node.decorator_list = []
    node = _Transformer(function.__code__.co_filename).function(node)
    node.name = f"{RUNTIME}_own"        # so that its own name is found where the function finds it
    names = ", ".join([*function.__code__.co_freevars, RUNTIME])
    module = ast.parse(f"def __factory({names}):\n  pass")
    outer = module.body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.body = [node]
    factory = compile(ast.fix_missing_locations(module), function.__code__.co_filename, "exec").co_consts
    inner = next(c for c in factory if isinstance(c, CodeType)).co_consts
    made = next(c for c in inner if isinstance(c, CodeType) and c.co_name == node.name)
    return _renamed(made, made.co_qualname, function.__code__.co_qualname).replace(co_name=function.__code__.co_name)


def _renamed(code: CodeType, own: str, name: str) -> CodeType:
    """The code and that of functions in it, called `name` where they are called `own`: errors of Python say so."""
    parts = tuple(_renamed(c, own, name) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_consts=parts, co_qualname=name + code.co_qualname.removeprefix(own))


def _definition(function: FunctionType) -> ast.FunctionDef:
    """The function's definition in its file."""
    file, line = function.__code__.co_filename, function.__code__.co_firstlineno
    lines = linecache.getlines(file, function.__globals__)
    known = _PARSED.get(file)
    if known is None or known[0] != lines:
        try:
            known = _PARSED[file] = (lines, ast.parse("".join(lines)))
        except SyntaxError:
            known = (lines, ast.Module([], []))
    for node in ast.walk(known[1]):
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__ \
                and min([node.lineno, *(d.lineno for d in node.decorator_list)]) == line:
            return node
    raise UserError(f"{file}:{line}:1: the source of {function.__name__} cannot be read, which compiling it needs: "
                    "write it into a file")


def _call(name: str, arguments: Iterable[ast.expr], at: ast.AST) -> ast.Call:
    """``__xcc.name(arguments)``, standing where `at` does."""
    runtime = ast.copy_location(ast.Name(RUNTIME, ast.Load()), at)
    function = ast.copy_location(ast.Attribute(runtime, name, ast.Load()), at)
    return ast.copy_location(ast.Call(function, list(arguments), []), at)


def _placed(node: Any, at: ast.AST) -> Any:
    """A node made here, standing where `at` does."""
    for n in ast.walk(node):
        ast.copy_location(n, at)
    return node


def _tuple(names: Sequence[str], context: ast.expr_context) -> ast.expr:
    return ast.Tuple([ast.Name(n, context) for n in names], context)


def _function(name: str, parameters: Sequence[str], body: list[ast.stmt], at: ast.AST) -> ast.stmt:
    """``def name(parameters): body; return (parameters)``"""
    made = _placed(ast.parse(f"def {name}({', '.join(parameters)}):\n  return ({''.join(p + ',' for p in parameters)})")
                   .body[0], at)
    made.body = [*body, *made.body]
    return cast(ast.stmt, made)


def _lambda(value: ast.expr) -> ast.expr:
    made = _placed(ast.parse("lambda: 0", mode="eval").body, value)
    made.body = value
    return cast(ast.expr, made)


class _Transformer(ast.NodeTransformer):
    """Rewrites one function, and those inside it."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._count = 0
        self._own: set[str] = set()         # the variables of the function

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """The function's new definition. What it assigns anywhere is bound from the start, so that branches and loops
        can be given it."""
        node.body = settled(node.body)
        own = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        names = [n for n in assigned_names(node.body) if n not in own]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        outer, self._own = self._own, {*own, *names}
        body = self._block(node.body)
        self._own = outer
        kinds = {RESULT: "Unreturned"}
        unset = [_placed(ast.parse(f"{n} = {RUNTIME}.{kinds.get(n, 'Undefined')}({n!r})").body[0], node) for n in names]
        node.body = [*unset, *body]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self.function(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.body = self.visit(node.body)
        return node

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        raise UserError(f"{self._file}:{node.lineno}:{node.col_offset + 1}: kernels change no variables outside of "
                        "them")

    visit_Nonlocal = visit_Global

    def visit_If(self, node: ast.If) -> Any:
        test = self.visit(node.test)
        if leaves([node]):
            node.test = _call("plain", [test], node.test)
            node.body, node.orelse = self._block(node.body), self._block(node.orelse)
            return node
        names = assigned_names([*node.body, *node.orelse], self._own)
        then, orelse = self._name("then"), self._name("else")
        parts = [_function(then, names, self._block(node.body), node.test),
                 _function(orelse, names, self._block(node.orelse), node.test)]
        return [*parts, self._assigned(names, "if_", node.test, [test, *map(_load, (then, orelse))])]

    def visit_For(self, node: ast.For) -> Any:
        iterable = self.visit(node.iter)
        flag = self._without_jumps(node)
        if leaves(node.body):
            node.iter = _call("plain_loop", [iterable], node.iter)
            node.body, node.orelse = self._block(node.body), self._block(node.orelse)
            return node
        targets = assigned_names([_placed(ast.Assign([node.target], ast.Constant(None)), node)])
        names = [*targets, *(n for n in assigned_names(node.body, self._own) if n not in targets)]
        item, body = self._name("item"), self._name("body")
        take = _placed(ast.Assign([node.target], ast.Name(item, ast.Load())), node.target)
        function = _function(body, names, [take, *self._block(node.body)], node.iter)
        assert isinstance(function, ast.FunctionDef)
        function.args.args.insert(0, _placed(ast.arg(item), node.iter))
        return self._left(node, flag, [function, self._assigned(names, "for_", node.iter, [iterable, _load(body)],
                                                                [ast.Constant(len(targets)), ast.Constant(flag)])])

    def visit_While(self, node: ast.While) -> Any:
        flag = self._without_jumps(node)
        if leaves(node.body):
            node.test = _call("plain", [self.visit(node.test)], node.test)
            node.body, node.orelse = self._block(node.body), self._block(node.orelse)
            return node
        names = assigned_names(node.body, self._own)
        test, body = self._name("test"), self._name("body")
        asks = _function(test, names, [], node.test)
        assert isinstance(asks, ast.FunctionDef)
        asks.body = [ast.copy_location(ast.Return(self.visit(node.test)), node.test)]
        function = _function(body, names, self._block(node.body), node.test)
        return self._left(node, flag, [asks, function, self._assigned(
            names, "while_", node.test, [_load(test), _load(body)], [ast.Constant(flag)])])

    def _without_jumps(self, node: ast.For | ast.While) -> str:
        """Makes branches of what goes on with the loop or ends it; the name of the flag that says that it is ended,
        empty where nothing ends it."""
        flag = self._name("left") if breaks(node.body) else ""
        node.body = stepped(node.body, flag)
        return flag

    def _left(self, node: ast.For | ast.While, flag: str, loop: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of a loop, with its flag and its else."""
        if not flag:
            return [*loop, *self._block(node.orelse)]
        orelse = _placed(ast.If(_load(flag), [ast.Pass()], []), node)
        orelse.orelse = node.orelse
        return [flagged(flag, False, node), *loop, *(self._block([orelse]) if node.orelse else [])]

    def visit_Assert(self, node: ast.Assert) -> Any:
        arguments = [self.visit(node.test), *([_lambda(self.visit(node.msg))] if node.msg else [])]
        return ast.copy_location(ast.Expr(_call("assert_", arguments, node.test)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return _call(name, [_lambda(self.visit(v)) for v in node.values], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        node.operand = self.visit(node.operand)
        return _call("not_", [node.operand], node) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        sides = [_lambda(self.visit(side)) for side in (node.body, node.orelse)]
        return _call("choose", [self.visit(node.test), *sides], node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1:
            return self.generic_visit(node)
        sides = [node.left, *node.comparators]
        parts = [ast.copy_location(ast.Compare(a, [o], [b]), node)
                 for a, o, b in zip(sides, node.ops, sides[1:], strict=False)]
        return self.visit_BoolOp(ast.copy_location(ast.BoolOp(ast.And(), copy.deepcopy(parts)), node))  # type: ignore

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.func = _call("callee", [node.func], node.func)
        return node

    def _block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            found += new if isinstance(new, list) else [new]
        return found

    def _name(self, what: str) -> str:
        self._count += 1
        return f"__{what}_{self._count}"

    def _assigned(self, names: Sequence[str], call: str, at: ast.expr, first: list[Any], last: Sequence[Any] = (),
                  ) -> ast.stmt:
        """``names = __xcc.call(first..., (names), ("names"), last...)``"""
        texts = ast.Tuple([ast.Constant(n) for n in names], ast.Load())
        made = _call(call, first, at)
        made.args += [_placed(n, at) for n in (_tuple(names, ast.Load()), texts, *last)]
        for n in first:
            if not hasattr(n, "lineno"):
                _placed(n, at)
        if not names:
            return ast.copy_location(ast.Expr(made), at)
        return ast.copy_location(ast.Assign([_placed(_tuple(names, ast.Store()), at)], made), at)


def _load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


Transform = Callable[[FunctionType], FunctionType]
