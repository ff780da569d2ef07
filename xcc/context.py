"""Makes MLIR contexts that know the dialects of xcc."""

from __future__ import annotations

import threading
import traceback
from pathlib import Path

from xcc._mlir import Context, Module, ir
from xcc.diagnostics import UserError

NO_ATTRIBUTE = "non-existent attribute"
SHARED_BY = 64
"""Modules that share a context: making one takes as long as a small kernel, and one never gives memory back."""


class _Shared(threading.local):
    """This thread's context and how many modules it was given to: two threads may not build in one."""

    context: Context | None = None
    modules = 0


_shared = _Shared()


def new_context() -> Context:
    """An ir.Context with every op of xt loaded. Enter it (``with ctx:``) before building IR."""
    from xcc.dialects import xt

    return xt.context()


def shared_context() -> Context:
    """The context of this thread's next module, as new_context's: several share one, whose weights are outside."""
    if _shared.context is None or _shared.modules >= SHARED_BY:
        _shared.context, _shared.modules = new_context(), 0
    _shared.modules += 1
    return _shared.context


def parse_module(text: str, context: Context, source: str = "<input>") -> Module:
    """The module in `text`; UserError with file, line and column when it does not parse or verify."""
    with context:
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as e:
            raise UserError(f"{source}: {describe(e)}") from None
        if "xtv." in text:
            _verify_lists(module, source)
        if "tile." in text:
            _verify_tiles(module, source)
    return module


def _verify_lists(module: Module, source: str) -> None:
    """Checks the ops that MLIR's verifier does not know."""
    from xcc.dialects.xt import list_problem

    problem = list_problem(module)
    if problem is not None:
        raise UserError(f"{source}: {problem}")


def _verify_tiles(module: Module, source: str) -> None:
    """Checks tile programs, which MLIR does not know either."""
    from xcc.dialects import tile

    tile.verify(module, source)


def describe(error: BaseException) -> str:
    """An error in one line: an MLIRError's first diagnostic, ``line:column: what`` (where known); where an op lacks an
    attribute, what reads it."""
    if isinstance(error, KeyError) and NO_ATTRIBUTE in str(error):      # MLIR names neither the op nor the attribute
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"an op lacks the attribute that {Path(last.filename).name}:{last.lineno} reads: {last.line}"
    for d in getattr(error, "error_diagnostics", ()):
        where = str(d.location).removeprefix("loc(").removesuffix(")")
        where = where.replace('"-":', "").replace("unknown", "")
        return f"{where}: {d.message}" if where else str(d.message)
    return " ".join(str(error).split())
