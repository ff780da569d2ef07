"""Products by blocks of a sum, a batch each, which are added up behind them: panels of all blocks of their columns."""

from __future__ import annotations

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.passes.xt.graph.rewrite import is_pointwise, is_stored, name_of
from xcc.passes.xt.products.groups import filled
from xcc.passes.xt.products.panels import panel_width, static_shape
from xcc.passes.xt.quant.decoded import Move, is_decoded, made_with, pad_end, permute, split


def block_panels(op: Operation, group: int, width: int) -> Value | None:
    """A product of groups with constants whose batches are added up, with these in panels of at most `width` columns.

    Before: ``dot_general(a, b) {lhs_batch = [0], rhs_batch = [0]}`` with a: [B, M, K] and b: [B, N, K] or [B, K, N]
    After:  ``packed_matmul(a, b') {batch = 1, panels_first = true}`` with b': [ceil(N / P), B, ceil(K / G), P, G]

    b may be decoded from narrower numbers, which are moved then.
    """
    if name_of(op) != "dot_general" or group == 1 or not _are_added_up(op):
        return None
    (x, w), a = op.operands, xt.attrs_of(op)
    shape, last = static_shape(w), len(xt.shape_of(x)) - 1
    if shape is None or len(shape) != 3 or tuple(a.lhs_batch) != (0,) or tuple(a.rhs_batch) != (0,) \
            or tuple(a.lhs_contract) != (last,) or not (is_stored(w) or is_decoded(w)):
        return None
    k = a.rhs_contract[0]
    columns, depth = shape[3 - k], shape[k]
    width = panel_width(columns, width, False)
    moves: tuple[Move, ...] = (
        permute(3, (3 - k, 0, k)), pad_end(3, 0, -columns % width), pad_end(3, 2, -depth % group),
        split(3, 0, width), split(4, 3, group), permute(5, (0, 2, 3, 1, 4)))
    panels: Value | None = w
    for move in moves:
        panels = None if panels is None else made_with(panels, move)
    if panels is None:
        return None
    return xt.packed_matmul(filled(x, -depth % group), panels, columns=(columns,), batch=1, panels_first=True,
                            dtype=a.dtype)


def _are_added_up(op: Operation) -> bool:
    """Whether all that reads the product, by elements, is a sum of its batches."""
    while True:
        users = [use.owner.operation for use in op.results[0].uses]
        if len(users) != 1:
            return False
        user, = users
        if name_of(user) == "reduce":
            a = xt.attrs_of(user)
            return a.kind == "sum" and tuple(a.axes) == (0,) and len(xt.shape_of(user.operands[0])) == 3
        if not is_pointwise(user) or len(xt.shape_of(user.results[0])) != 3:
            return False
        op = user
