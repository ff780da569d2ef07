"""What ranks do together along an inner dim, as the same along the first one: parts lie one behind the other in memory.

The transposes around fuse with what makes the operand and what reads the result.
"""

from __future__ import annotations

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.dialects.xt.reading import Attrs
from xcc.passes.xt.decompose import decomposes
from xcc.passes.xt.decompose.build import shape
from xcc.symbolic import Dim, floordiv


@decomposes("all_gather")
def all_gather(a: Attrs, x: Value) -> Value | None:
    """Along dim 0, then the ranks' dim beside `dim`."""
    if a.dim == 0:
        return None
    own = shape(x)
    got = xt.all_gather(_leading(x, a.dim), axes=a.axes, dim=0, ranks=a.ranks)
    return _joined(got, own, a.ranks, a.dim)


@decomposes("reduce_scatter")
def reduce_scatter(a: Attrs, x: Value) -> Value | None:
    """The parts along `dim` in front, then along dim 0."""
    if a.dim == 0:
        return None
    parts, own = _parts(x, a.ranks, a.dim)
    got = xt.reduce_scatter(parts, axes=a.axes, dim=0, ranks=a.ranks, combine=a.combine)
    return xt.reshape(got, shape=own)


@decomposes("all_to_all")
def all_to_all(a: Attrs, x: Value) -> Value | None:
    """The parts along `split` in front, what came from the ranks beside `concat`."""
    if a.split == a.concat == 0:
        return None
    parts, own = _parts(x, a.ranks, a.split)
    got = xt.all_to_all(parts, axes=a.axes, split=0, concat=0, ranks=a.ranks)
    return _joined(got, own, a.ranks, a.concat)


def _leading(x: Value, dim: int) -> Value:
    """x with at least one dim, without the dims of 1 in front of `dim`."""
    dims = shape(x)
    return xt.reshape(x, shape=dims[dim:]) if all(n == 1 for n in dims[:dim]) else x


def _parts(x: Value, ranks: int, dim: int) -> tuple[Value, tuple[Dim, ...]]:
    """x as its parts along `dim`, one behind the other along dim 0, and the shape of one."""
    dims = shape(x)
    own = (*dims[:dim], floordiv(dims[dim], ranks), *dims[dim + 1:])
    cut = xt.reshape(x, shape=(*dims[:dim], ranks, *own[dim:]))
    front = xt.transpose(cut, perm=(dim, *range(dim), *range(dim + 1, len(dims) + 1)))
    return xt.reshape(front, shape=(ranks * own[0], *own[1:])), own


def _joined(got: Value, own: tuple[Dim, ...], ranks: int, dim: int) -> Value:
    """`got`, the ranks' arrays of shape `own` one behind the other, as one array along `dim`."""
    whole = (*own[:dim], ranks * own[dim], *own[dim + 1:])
    if all(n == 1 for n in own[:dim]):
        return xt.reshape(got, shape=whole)
    apart = xt.reshape(got, shape=(ranks, *own))
    beside = xt.transpose(apart, perm=(*range(1, dim + 1), 0, *range(dim + 1, len(own) + 1)))
    return xt.reshape(beside, shape=whole)
