"""Sequences that a loop of unknown length grows, a tensor a step: one tensor of all of them, the values that it stacks.

    list = SequenceEmpty()                              rows = Loop(n, cond): a step gives y
    list = Loop(n, cond, list):                   ->    z = Reshape(rows), or a transpose of it
        y = ...; list = SequenceInsert(list, y)
    z = ConcatFromSequence(list)

``outs.append(y)`` in a scripted loop, and ``torch.cat(outs)`` behind it, are exported so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnx import GraphProto, NodeProto

from xcc import _mlir, symbolic
from xcc.diagnostics import UserError
from xcc.dialects import xt
from xcc.frontends.onnx.context import Absent, Context, Shape, Tensor, TensorList, Value
from xcc.frontends.onnx.loop_counters import refuse_counted
from xcc.frontends.onnx.node_order import names_read

__all__ = ["Grown", "GrownList", "grown_lists"]


class GrownList(TensorList):
    """A sequence whose length only a run can tell: `rows` has its elements along dim 0."""

    def __init__(self, rows: Tensor, name: str = "") -> None:
        self.rows, self.dtype, self.name = rows, rows.dtype, name

    @property
    def elements(self) -> tuple[Tensor, ...]:  # type: ignore[override]
        raise UserError(f"the sequence '{self.name}' has as many elements as a loop has steps, which only a run can "
                        "tell: it can be concatenated and its length be asked for, not more")

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return (self.rows,)

    def holding(self, tensors: tuple[Tensor, ...]) -> GrownList:
        return GrownList(tensors[0], self.name)

    def concatenated(self, axis: int, new: bool) -> _mlir.Value:
        """The elements one behind the other along `axis` of theirs, or along a new one."""
        rows, shape = self.rows.value, self.rows.shape
        assert rows is not None
        perm = [*range(1, axis + 1), 0, *range(axis + 1, len(shape))]
        moved = xt.transpose(rows, perm=tuple(perm)) if axis else rows
        if new:
            return moved
        dims = [shape[p] for p in perm]
        return xt.reshape(moved, shape=(*dims[:axis], symbolic.product(dims[axis:axis + 2]), *dims[axis + 2:]))


@dataclass(frozen=True)
class Grown:
    """A Loop that stacks what it appended to the lists that were carried at the places `lists`."""

    cx: Context
    body: GraphProto
    lists: tuple[int, ...]
    symbols: frozenset[str]     # those that there are outside

    def outputs(self, results: Sequence[_mlir.Value | Value]) -> list[_mlir.Value | Value]:
        """What the Loop as written gives, of the results of this one."""
        out, grown = list(results[:-len(self.lists)]), results[-len(self.lists):]
        for place, rows in zip(self.lists, grown, strict=True):
            assert not isinstance(rows, TensorList | Absent)
            stacked = rows if isinstance(rows, Tensor) else Tensor.of_value(rows)
            self._check(stacked.shape[1:])
            out.insert(place, GrownList(stacked))
        return out

    def _check(self, sizes: Shape) -> None:
        """Fails where elements may differ: `sizes` are theirs, and a step counts one."""
        why = "a step appends a tensor to a sequence whose size only it can tell, and others may differ"
        refuse_counted(self.cx, sizes, self.symbols, why)


def grown_lists(cx: Context, body: GraphProto) -> Grown | None:
    """The Loop `cx` without the sequences that it carries; None where it does more with one than to append to it."""
    lists = tuple(i - 2 for i in range(2, len(cx)) if isinstance(cx.inputs[i], TensorList))
    new, node = GraphProto(), NodeProto()
    new.CopyFrom(body)
    node.CopyFrom(cx.node)
    for place in reversed(lists):
        given = cx.inputs[2 + place]
        insert = _appends(body, body.input[2 + place].name, body.output[1 + place].name)
        if insert is None or isinstance(given, GrownList) or not isinstance(given, TensorList) or given.elements:
            return None
        new.node.remove(insert)
        del new.input[2 + place], new.output[1 + place], node.input[2 + place], node.output[place]
    for place in lists:
        insert = _appends(body, body.input[2 + place].name, body.output[1 + place].name)
        assert insert is not None
        new.output.add().name = insert.input[1]
        node.output.append(cx.node.output[place])
    inputs = tuple(v for i, v in enumerate(cx.inputs) if i - 2 not in lists)
    return Grown(replace(cx, node=node, inputs=inputs), new, lists, frozenset(cx.graph.model.symbols))


def _appends(body: GraphProto, before: str, after: str) -> NodeProto | None:
    """The SequenceInsert that makes `after` of `before` and a tensor at its end, where nothing else reads either."""
    insert = next((n for n in body.node if after in n.output), None)
    if insert is None or insert.op_type != "SequenceInsert" or insert.input[0] != before or len(insert.input) > 2:
        return None
    read = [name for node in body.node for name in names_read(node)]
    return insert if read.count(before) == 1 and after not in read else None
