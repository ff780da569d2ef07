"""Scans cut and stack along the first dim: other axes become transposes around the loop.

    %y = "xtv.scan"(%h, %x) {axes = [1], out_axes = [2], ...}
becomes
    %t = "xt.transpose"(%x); %s = "xtv.scan"(%h, %t) {axes = [0], out_axes = [0], ...}; %y = "xt.transpose"(%s)

A slice along the first dim is contiguous, so the host program passes it to kernels as a view.
"""

from __future__ import annotations

from xcc._mlir import Operation, ir
from xcc.dialects import xt


def scan_along_first_dim(op: Operation) -> None:
    """Rewrites the operands, results and axes of the xtv.scan `op`."""
    a = xt.attrs_of(op)
    if not any((*a.axes, *a.out_axes)):
        return
    state, xs = xt.grouped_operands(op)
    for i, (x, axis) in enumerate(zip(xs, a.axes, strict=True)):
        if axis:
            with ir.InsertionPoint(op), op.location:
                op.operands[len(state) + i] = xt.transpose(x, perm=_to_front(xt.TensorType.of(x).rank, axis))
    stacked = list(op.results)[len(state):]
    kinds = [v.type for v in list(op.results)[:len(state)]]
    for v, axis in zip(stacked, a.out_axes, strict=True):
        t = xt.TensorType.of(v)
        kinds.append(t.with_shape([t.shape[d] for d in _to_front(t.rank, axis)]).mlir())
    attributes = {name: op.attributes[name] for name in op.attributes}
    fields = xt.OPS["scan"].attribute_fields
    attributes["axes"] = fields["axes"].encode((0,) * len(a.axes))
    attributes["out_axes"] = fields["out_axes"].encode((0,) * len(a.out_axes))
    new = ir.Operation.create(op.name, results=kinds, operands=list(op.operands), attributes=attributes, regions=1,
                              loc=op.location, ip=ir.InsertionPoint(op))
    op.regions[0].blocks[0].append_to(new.regions[0])
    for i, old in enumerate(op.results):
        axis = a.out_axes[i - len(state)] if i >= len(state) else 0
        with ir.InsertionPoint(op), op.location:
            rank = xt.TensorType.of(old).rank
            back = xt.transpose(new.results[i], perm=_from_front(rank, axis)) if axis else new.results[i]
        old.replace_all_uses_with(back)
    op.erase()


def _to_front(rank: int, axis: int) -> tuple[int, ...]:
    return (axis, *(d for d in range(rank) if d != axis))


def _from_front(rank: int, axis: int) -> tuple[int, ...]:
    """The inverse of `_to_front`."""
    front = _to_front(rank, axis)
    return tuple(front.index(d) for d in range(rank))
