"""Functional collectives: what the ranks of a process group do together, along the mesh axes of the group.

``wait_tensor`` is the identity: a collective of a compiled graph is done when what follows it runs.
"""

from __future__ import annotations

from collections.abc import Callable

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.types import is_float
from xcc.frontends.shared.helpers import element, scalar
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten
from xcc.runtime.mesh import Mesh
from xcc.symbolic import floordiv, mod

_COMBINE = {"sum": "add", "avg": "add", "product": "mul", "min": "min", "max": "max"}
_PLAIN, _AUTOGRAD = "_c10d_functional", "_c10d_functional_autograd"


def _group(cx: Context) -> tuple[tuple[str, ...], int]:
    """The mesh axes of the node's process group, and how many ranks it has; no axes where that is one."""
    graph, name = cx.graph.graph, cx["group_name"]
    axes = dict(graph.groups).get(name)
    if axes is None:
        cx.fail(f"the graph has no process group '{name}'")
    return axes, Mesh.parse(graph.mesh).group_size(axes)


def _combine(cx: Context) -> str:
    given = str(cx["reduce_op"]).lower()
    if given not in _COMBINE:
        cx.fail(f"ranks combine by {', '.join(_COMBINE)}, not by '{given}'")
    return _COMBINE[given]


def _reduced(cx: Context, x: Value, together: Callable[[tuple[str, ...], int, str], Value]) -> Value:
    """What `together` makes of the ranks' `x`, of their axes, their number and how they combine."""
    axes, ranks = _group(cx)
    combine = _combine(cx)
    if not axes:
        return x
    total = together(axes, ranks, combine)
    if str(cx["reduce_op"]).lower() != "avg":
        return total
    if not is_float(element(total)):
        cx.fail(f"the mean of ranks' {element(total)} is not supported: reduce by sum, and divide")
    return xt.div(total, scalar(ranks, total))


def _all_reduced(cx: Context, x: Value) -> Value:
    return _reduced(cx, x, lambda axes, _ranks, combine: xt.all_reduce(x, axes=axes, combine=combine))


def _scattered(cx: Context, x: Value) -> Value:
    return _reduced(cx, x, lambda axes, ranks, combine: xt.reduce_scatter(
        _divisible(x, ranks), axes=axes, dim=0, ranks=ranks, combine=combine))


def _gathered(cx: Context, x: Value) -> Value:
    axes, ranks = _group(cx)
    return xt.all_gather(x, axes=axes, dim=0, ranks=ranks) if axes else x


def _divisible(x: Value, ranks: int) -> Value:
    """`x` with a first dim that is known to have a part for each rank. Traces guard that it has; a run in which it has
    not is refused."""
    size, *rest = xt.shape_of(x)
    if isinstance(size, int) or mod(size, ranks) == 0:
        return x
    return xt.reshape(x, shape=(floordiv(size, ranks) * ranks, *rest))


def _of_each(cx: Context, f: Callable[[Context, Value], Value]) -> Value | list[Value]:
    """`f` of the node's tensor, or a list of `f` of each of the tensors of a coalesced one."""
    return f(cx, cx.tensor("input")) if cx.get("inputs") is None else [f(cx, x) for x in cx.tensors("inputs")]


@aten("all_reduce.default", namespace=_PLAIN)
@aten("all_reduce_coalesced.default", namespace=_PLAIN)
def all_reduce(cx: Context) -> Value | list[Value]:
    return _of_each(cx, _all_reduced)


@aten("all_gather_into_tensor.default", namespace=_PLAIN)
@aten("all_gather_into_tensor.default", namespace=_AUTOGRAD)
@aten("all_gather_into_tensor_coalesced.default", namespace=_PLAIN)
def all_gather_into_tensor(cx: Context) -> Value | list[Value]:
    return _of_each(cx, _gathered)


@aten("reduce_scatter_tensor.default", namespace=_PLAIN)
@aten("reduce_scatter_tensor.default", namespace=_AUTOGRAD)
@aten("reduce_scatter_tensor_coalesced.default", namespace=_PLAIN)
def reduce_scatter_tensor(cx: Context) -> Value | list[Value]:
    return _of_each(cx, _scattered)


@aten("all_to_all_single.default", namespace=_PLAIN)
@aten("all_to_all_single.default", namespace=_AUTOGRAD)
def all_to_all_single(cx: Context) -> Value:
    """Parts of equal sizes: those of the ranks are known to be no others only where they are the same on all."""
    sent, got = cx["input_split_sizes"], cx["output_split_sizes"]
    if len({*sent, *got}) > 1:
        cx.fail(f"parts of {[str(d) for d in sent]} and {[str(d) for d in got]} are not of one size")
    axes, ranks = _group(cx)
    x = cx.tensor("input")
    if not axes:
        return x
    moved = xt.all_to_all(_divisible(x, ranks), axes=axes, split=0, concat=0, ranks=ranks)
    return xt.reshape(moved, shape=xt.shape_of(x))


@aten("broadcast.default", namespace=_PLAIN)
def broadcast(cx: Context) -> Value:
    """`src` is a place in the group."""
    axes, _ = _group(cx)
    return xt.collective_broadcast(cx.tensor("input"), axes=axes, root=cx["src"]) if axes else cx.tensor("input")


@aten("wait_tensor.default", namespace=_PLAIN)
def wait_tensor(cx: Context) -> Value:
    return cx.tensor("tensor")
