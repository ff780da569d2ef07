"""If. Its branches become regions that use values from outside directly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from onnx import GraphProto

from xcc import _mlir, symbolic
from xcc._mlir import ir
from xcc.diagnostics import Misfit, UserError, dim_option
from xcc.dialects import xt
from xcc.dialects.xt.control import Never
from xcc.frontends.onnx.context import Context, RanksDiffer, Tensor, Value, flatten, regroup
from xcc.frontends.onnx.registry import onnx_op

if TYPE_CHECKING:
    from xcc.frontends.onnx.graph import GraphImporter


@onnx_op("If")
def if_(cx: Context) -> tuple[Value, ...]:
    """outputs = If(cond; then_branch, else_branch). A condition known at import leaves only its branch."""
    then, orelse = cx.attr("then_branch"), cx.attr("else_branch")
    known = cx.tensor(0).const
    if known is not None:
        branch = then if bool(known.reshape(-1)[0]) else orelse
        return tuple(cx.graph.child(branch).run_tensors())
    return tuple(conditional(cx, lambda: _branch(cx, then), lambda: _branch(cx, orelse)))


Branch = Callable[[], tuple["GraphImporter", list[Value]]]


def _branch(cx: Context, graph: GraphProto) -> tuple[GraphImporter, list[Value]]:
    """Imports `graph` into the current block; returns its importer and its outputs."""
    child = cx.graph.child(graph, ir.InsertionPoint.current.block)
    return child, child.run_tensors()


def conditional(cx: Context, then: Branch, orelse: Branch) -> list[Value]:
    """xt.if of two imports. A branch whose sizes do not fit ends the run with an error; RanksDiffer for other ranks."""
    made: list[list[Value]] = []

    def branch(name: str, make: Branch) -> Callable[[], list[_mlir.Value] | Never]:
        def run() -> list[_mlir.Value] | Never:
            block = ir.InsertionPoint.current.block
            try:
                importer, values = make()
            except Misfit as e:
                for op in reversed(list(block.operations)):
                    op.operation.erase()
                return Never(cx.where(f"its {name}_branch{_chosen_by(cx)} does not fit: {e.message}")[:2000])
            made.append(values)
            return [importer.materialize(t) for t in flatten(values)]

        return run

    try:
        results = xt.if_(as_flag(cx[0]), branch("then", then), branch("else", orelse),
                         fresh=lambda: symbolic.sym(cx.graph.fresh_symbol(cx.node.output[0])))
    except UserError as e:
        ranks = [[len(t.shape) for t in flatten(values)] for values in made]
        if len(ranks) != 2 or ranks[0] == ranks[1] or len(ranks[0]) != len(ranks[1]):
            raise
        raise RanksDiffer(cx.where(f"{e.message}{_chosen_by(cx)}, and values must have one rank"), cx.node) from None
    return regroup(made[0], map(Tensor.of_value, results))


def _chosen_by(cx: Context) -> str:
    """What picks the branch that runs, for messages."""
    inputs, names = cx.graph.model.inputs_behind(cx[0]), cx.graph.model.sizes_behind(cx[0])
    if inputs:
        return f" (input '{inputs[0]}' says which branch runs; --fix {inputs[0]}=... leaves one)"
    listed = ", ".join(names)
    return f" (the sizes {listed} say which branch runs; {dim_option(names[0], '...')} leaves one)" if names else ""


def as_flag(x: _mlir.Value) -> _mlir.Value:
    """A condition, which may come as a tensor of one element, as a scalar."""
    return xt.reshape(x, shape=()) if xt.shape_of(x) else x
