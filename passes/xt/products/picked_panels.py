"""Products with matrices that are picked by index, as of a token's expert: all of them in panels, and panels picked."""

from __future__ import annotations

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.passes.xt.graph.rewrite import is_stored, name_of, producer
from xcc.passes.xt.products.panels import FILLED, panel_width, static_shape
from xcc.passes.xt.quant.decoded import is_decoded, made_with, pad_end, permute, split


def picked_panels(op: Operation, width: int) -> Value | None:
    """A product of f32 whose right matrices are picked among constants, with these in panels of `width` columns.

    Before: ``dot_general(x, gather(w, i)) {lhs_batch = [0], rhs_batch = [0]}`` with w: [E, K, N] or [E, N, K], i: [B]
    After:  ``packed_matmul(x, gather(w', i)) {batch = 1, columns = [N]}`` with w': [E, ceil(N / P), K, P]

    w may be decoded from narrower numbers, which are moved then. As they lie, neighbours along N are read one by one.
    """
    found = producer(op.operands[1], "gather") if name_of(op) == "dot_general" else None
    a, last = xt.attrs_of(op), len(xt.shape_of(op.operands[0])) - 1
    if found is None or xt.attrs_of(found).axis or len(xt.shape_of(found.operands[1])) != 1:
        return None
    w, index = found.operands
    shape = static_shape(w)
    if shape is None or len(shape) != 3 or tuple(a.lhs_batch) != (0,) or tuple(a.rhs_batch) != (0,) \
            or tuple(a.lhs_contract) != (last,) or xt.TensorType.of(w).dtype != "f32" \
            or not (is_stored(w) or is_decoded(w)):
        return None
    k = a.rhs_contract[0]
    columns = shape[3 - k]
    width = panel_width(columns, width)
    if (-columns % width) * FILLED > columns:
        return None
    moved: Value | None = w
    for move in (permute(3, (0, k, 3 - k)), pad_end(3, 2, -columns % width), split(3, 2, width),
                 permute(4, (0, 2, 1, 3))):
        moved = None if moved is None else made_with(moved, move)
    if moved is None:
        return None
    return xt.packed_matmul(op.operands[0], xt.gather(moved, index, axis=0), columns=(columns,), batch=1, dtype=a.dtype)
