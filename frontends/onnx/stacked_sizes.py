"""Sizes of stacked values that each step of a loop counts for itself: a run compares them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from xcc import _mlir, symbolic
from xcc._mlir import ir
from xcc.dialects import xt
from xcc.dialects.xt.control import Never
from xcc.frontends.onnx.context import Context
from xcc.symbolic import Dim

__all__ = ["checked_scan", "undone"]

Values = Sequence[_mlir.Value]
Step = Callable[[Values, Values], tuple[Values, Values]]


def checked_scan(cx: Context, carried: Values, xs: Values, step: Step, **options: Any) -> Values:
    """xt.scan. Where a step counts sizes of what it stacks (Compress, NonZero), a run ends with an error when they are
    not those of the step before: the sizes are carried."""
    outside = frozenset(cx.graph.model.symbols)
    with undone(cx) as undo:
        out = xt.scan(carried, xs, step, **options)
        counted = len(_counted(out[len(carried):], outside))
        if counted == 0:
            return out
        undo()
    many = len(carried)

    def checked(state: Values, slices: Values) -> tuple[Values, Values]:
        after, ys = step(state[:many], slices)
        sizes = [xt.dim(value=d) for d in _counted(ys, outside)]
        return [*after, *(_same(cx, a, b) for a, b in zip(state[many:], sizes, strict=True))], ys

    out = xt.scan([*carried, *[xt.scalar(-1, "i64")] * counted], xs, checked, **options)
    return (*out[:many], *out[many + counted:])


@contextmanager
def undone(cx: Context) -> Iterator[Callable[[], None]]:
    """Gives what erases the ops that were made since; constants among them are made again."""
    block = ir.InsertionPoint.current.block
    before, made = len(list(block.operations)), dict(cx.graph.made)

    def undo() -> None:
        cx.graph.made = made
        for op in reversed(list(block.operations)[before:]):
            op.operation.erase()

    yield undo


def _counted(values: Values, outside: Container[str]) -> list[Dim]:
    """The sizes of `values` that symbols make which were not there `outside`."""
    sizes = dict.fromkeys(d for v in values for d in xt.shape_of(v))
    return [d for d in sizes if any(symbol not in outside for symbol in symbolic.symbols_of(d))]


def _same(cx: Context, before: _mlir.Value, now: _mlir.Value) -> _mlir.Value:
    """The size of this step, which is that of the one before; -1: there was none."""
    fits = xt.or_(xt.compare(before, xt.scalar(0, "i64"), direction="lt"), xt.compare(before, now, direction="eq"))
    why = cx.where("the steps stack values whose sizes differ")
    out: _mlir.Value = xt.if_(fits, lambda: [now], lambda: Never(why))[0]
    return out
