"""Runs one stage: its passes, then the verifier, then the legality check. Used for the module and for each kernel."""

from __future__ import annotations

import contextlib
import inspect
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from xcc.context import describe
from xcc.diagnostics import CompilerBug, UserError, XccError
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext
from xcc.passes.legality import check_legal
from xcc.passes.pipeline import Stage
from xcc.targets.base import get_target

if TYPE_CHECKING:
    from xcc._mlir import Module

__all__ = ["Clock", "of_a_user", "run_stage"]

LIST_OPS_IN = ("", "xt", "kernels", "memory")
"""The stages with ``xtv`` ops, which MLIR's own verifier does not know; in xcc-opt a stage may have no name."""

RECURSION = 6000
"""Frames: a kernel has at most 256 ops."""


class Clock:
    """Seconds spent by (stage, pass), summed over kernels; `at` is told where work is, as it goes."""

    def __init__(self, at: Callable[[str, str], None] = lambda _stage, _pass: None) -> None:
        self.seconds: dict[tuple[str, str], float] = {}
        self.at = at

    def add(self, stage: str, what: str, seconds: float) -> None:
        self.seconds[stage, what] = self.seconds.get((stage, what), 0.0) + seconds

    def timed(self, stage: str, what: str, work: Callable[[], Any]) -> Any:
        self.at(stage, what)
        begin = time.perf_counter()
        try:
            return work()
        finally:
            self.add(stage, what, time.perf_counter() - begin)


def run_stage(stage: Stage, module: Module, ctx: PassContext, clock: Clock, verify: str = "stage",
              after: Callable[[Pass], None] = lambda _pass: None) -> None:
    """Runs `stage` on `module` in place, `after` behind each pass. Anything but an XccError becomes a CompilerBug that
    names the pass."""
    verify_each = verify in ("each", stage.name)
    with module.context, _deep_recursion():
        for p in stage.passes:
            _attempt(stage, p, lambda p=p: p.run(module, ctx), clock)  # type: ignore[misc]
            if verify_each:
                _attempt(stage, p, lambda: _verify(stage, module), clock, "leaves IR that does not verify")
            after(p)
        if stage.passes and not verify_each:
            suspect = next(filter(of_a_user, reversed(stage.passes)), stage.passes[-1])
            _attempt(stage, suspect, lambda: _verify(stage, module), clock, "(or one beside it) leaves IR that does "
                     "not verify; --verify=each finds the pass")
        check_legal(module, stage.name, get_target(ctx.options.target).legal if ctx.options is not None else {})


@contextlib.contextmanager
def _deep_recursion() -> Iterator[None]:
    """Room for walks from a kernel's results to its operands, some calls an op, where all its ops are one chain."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _verify(stage: Stage, module: Module) -> None:
    module.operation.verify()
    problem = xt.list_problem(module) if stage.name in LIST_OPS_IN else None
    if problem is not None:
        raise _Malformed(problem)


class _Malformed(Exception):
    """A wrong ``xtv`` op."""


def of_a_user(p: Pass) -> bool:
    """Whether the pass comes from a plugin or a program that uses xcc."""
    return not type(p).__module__.startswith("xcc.")


def _where(error: Exception, p: Pass) -> str:
    """The place in the pass's own file that `error` comes from; where its class is when that is none."""
    file = inspect.getsourcefile(type(p)) or ""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return f" ({file}:{lines[-1] if lines else inspect.getsourcelines(type(p))[1]})" if file else ""


def _attempt(stage: Stage, p: Pass, work: Callable[[], Any], clock: Clock, problem: str = "failed") -> None:
    what = str(p) if problem == "failed" else "verify"
    try:
        clock.timed(stage.name, what, work)
    except XccError:
        raise
    except Exception as e:
        if of_a_user(p):
            raise UserError(f"pass '{p}' {problem}: {type(e).__name__}: {describe(e)}{_where(e, p)}") from e
        details = "".join(traceback.format_exception(e))
        raise CompilerBug(f"stage '{stage.name}', pass '{p}' {problem}: {type(e).__name__}: {describe(e)}",
                          details=details) from e
