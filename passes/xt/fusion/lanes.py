"""Along which dim of an operand the vectors of an op's result go: neighbours in memory, a stride apart, or anywhere."""

from __future__ import annotations

from xcc.dialects import xt
from xcc.passes.xt.fusion.fusion_group import is_pointwise
from xcc.passes.xt.graph.op_graph import Node
from xcc.passes.xt.graph.split_dims import split_dims
from xcc.symbolic import Dim

UNIFORM, SCATTERED = -1, -2
"""In place of the dim that vectors go along: all lanes need the same element, or any elements, one by one."""


def last_dim(shape: tuple[Dim, ...]) -> int:
    """The dim that vectors lie along in a value that is stored."""
    return max((d for d, size in enumerate(shape) if size != 1), default=UNIFORM)


def sampled_dims(n: Node) -> list[int]:
    """The dims along which a grid_sample or a resize reads several elements."""
    shape = xt.shape_of(n.operands[0])
    return [d for d, size in enumerate(shape) if (d > 1 if n.name == "grid_sample" else n.shape[d] != size)]


def lanes_of(n: Node, k: int, d: int) -> int:
    """The dim of operand `k` of `n` along which dim `d` of its result goes, or UNIFORM or SCATTERED."""
    shape = xt.shape_of(n.operands[k])
    if n.kind not in ("pointwise", "unit_view", "movement", "window"):
        return last_dim(shape)
    if n.kind == "unit_view":
        kept = [e for e, size in enumerate(shape) if size != 1]
        place = sum(size != 1 for size in n.shape[:d])
        return kept[place] if place < len(kept) else UNIFORM
    if is_pointwise(n):
        e = d - (len(n.shape) - len(shape))
        return e if e >= 0 and shape[e] != 1 else UNIFORM
    if n.name == "transpose":
        return int(xt.attrs_of(n.op).perm[d])
    if n.name == "reshape":
        parts = split_dims(shape, n.shape) or []
        return next((e for e, mine in enumerate(parts) if mine and d == mine[-1]), SCATTERED)
    if n.name in ("gather", "gather_nd", "gather_elements"):
        return _picked(n, k, d)
    if n.name in ("grid_sample", "resize"):
        return (d - 1 if d != 1 else UNIFORM) if k else SCATTERED if d in sampled_dims(n) else d
    return d if k == 0 or n.name == "concatenate" else UNIFORM


def _picked(n: Node, k: int, d: int) -> int:
    """As `lanes_of`, of a gather: neighbours along the dims of its indices are any elements."""
    if n.name == "gather_elements":
        return d if k else SCATTERED
    batch, (end, row) = xt.attrs_of(n.op).batch_dims, picked_dims(n)
    first = xt.attrs_of(n.op).axis if n.name == "gather" else batch
    if d < first:
        return d if k == 0 or d < batch else UNIFORM
    if d < end:
        return d - first + batch if k else SCATTERED
    return UNIFORM if k else d - end + row


def picked_dims(n: Node) -> tuple[int, int]:
    """Behind the dims of a gather's indices: the first dim of its result, and the dim of its operand that it is."""
    a, rank = xt.attrs_of(n.op), len(xt.shape_of(n.operands[1]))
    if n.name == "gather":
        return a.axis + rank - a.batch_dims, a.axis + 1
    return rank - 1, len(xt.shape_of(n.operands[0])) - (len(n.shape) - (rank - 1))
