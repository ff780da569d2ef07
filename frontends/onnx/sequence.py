"""Sequences and optional values: known element by element at import, so that no op is left of them.

A sequence's length and every position must be known at import; its elements are tensors like others. Loops that carry
a sequence are unrolled, but those that only append to one (:mod:`grown_lists`).
"""

from __future__ import annotations

import numpy as np

from xcc import _mlir, symbolic
from xcc.dialects import xt
from xcc.frontends.onnx.context import Absent, Context, Tensor, TensorList, Value
from xcc.frontends.onnx.element_types import from_onnx
from xcc.frontends.onnx.grown_lists import GrownList
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import slice_axis, squeeze, unsqueeze
from xcc.symbolic import Dim


def _elements(cx: Context, i: int = 0) -> tuple[Tensor, ...]:
    value = cx.inputs[i] if i < len(cx.inputs) else None
    if not isinstance(value, TensorList):
        cx.misfit(f"operand {i} is no sequence")
    return value.elements


def _position(cx: Context, i: int, length: int, default: int) -> int:
    """Operand `i` as a position below `length`, counted from the front."""
    at = int(cx.const_or(i, default))
    if not -length <= at < length:
        cx.misfit(f"position {at} is outside a sequence of {length}")
    return at % length


@onnx_op("SequenceEmpty", since=11)
def sequence_empty(cx: Context) -> TensorList:
    return TensorList((), from_onnx(cx.attr("dtype", 1)))


@onnx_op("SequenceConstruct", since=11)
def sequence_construct(cx: Context) -> TensorList:
    return TensorList(tuple(cx.tensor(i) for i in range(len(cx))), cx.dtype(0))


@onnx_op("SequenceInsert", since=11)
def sequence_insert(cx: Context) -> TensorList:
    """output = SequenceInsert(input, tensor, position?): at the end without a position."""
    old = _elements(cx)
    last = not cx.has(2) or int(cx.const_or(2, 0)) == len(old)
    at = len(old) if last else _position(cx, 2, len(old), 0)
    return TensorList((*old[:at], cx.tensor(1), *old[at:]), cx.dtype(1))


@onnx_op("SequenceErase", since=11)
def sequence_erase(cx: Context) -> TensorList:
    old = _elements(cx)
    at = _position(cx, 1, len(old), -1)
    return TensorList((*old[:at], *old[at + 1:]), cx.inputs[0].dtype)  # type: ignore[union-attr]


@onnx_op("SequenceAt", since=11)
def sequence_at(cx: Context) -> Tensor:
    elements = _elements(cx)
    return elements[_position(cx, 1, len(elements), 0)]


@onnx_op("SequenceLength", since=11)
def sequence_length(cx: Context) -> Tensor:
    given = cx.inputs[0]
    if isinstance(given, GrownList):
        return Tensor.of_dims(np.array(given.rows.shape[0], object), np.dtype(np.int64))
    return cx.known(np.array(len(_elements(cx)), np.int64))


@onnx_op("SplitToSequence", since=11)
def split_to_sequence(cx: Context) -> TensorList:
    """output = SplitToSequence(input, split?; axis, keepdims): parts of one size, of the sizes given, or of 1."""
    axis, size = cx.axis(), cx.shape(0)[cx.axis()]
    given = cx.const(1) if cx.has(1) else None
    if given is not None and given.ndim:
        sizes: list[Dim] = [int(n) for n in given]
    else:
        if not isinstance(size, int):
            cx.fail(f"the length of the sequence depends on {', '.join(symbolic.symbols_of(size))}: fix it")
        step = 1 if given is None else int(given)
        if step < 1:
            cx.misfit(f"parts of {step} elements")
        sizes = [min(step, size - at) for at in range(0, size, step)]
    if not isinstance(sum(sizes) - size, symbolic.Expr) and sum(sizes) != size:
        cx.misfit(f"parts of {', '.join(map(str, sizes))} are not the {size} elements of dim {axis}")
    parts, at = [], 0  # type: list[_mlir.Value], Dim
    for n in sizes:
        parts.append(slice_axis(cx[0], axis, at, at + n))
        at = at + n
    if given is None and not cx.attr("keepdims", 1):
        parts = [squeeze(p, [axis]) for p in parts]
    return TensorList(tuple(map(Tensor.of_value, parts)), cx.dtype(0))


@onnx_op("ConcatFromSequence", since=11)
def concat_from_sequence(cx: Context) -> _mlir.Value:
    """concat_result = ConcatFromSequence(input_sequence; axis, new_axis)."""
    given, new = cx.inputs[0], bool(cx.attr("new_axis", 0))
    if isinstance(given, GrownList):
        return given.concatenated(cx.normal_axis(cx.attr("axis"), len(given.rows.shape) - 1 + new), new)
    elements = _elements(cx)
    if not elements:
        cx.misfit("an empty sequence has no concatenation")
    values = [cx.graph.materialize(t) for t in elements]
    axis = cx.normal_axis(cx.attr("axis"), len(elements[0].shape) + new)
    return xt.concatenate(*[unsqueeze(v, [axis]) if new else v for v in values], axis=axis)


@onnx_op("SequenceMap", since=17)
def sequence_map(cx: Context) -> tuple[TensorList, ...]:
    """out_sequences... = SequenceMap(input_sequence, additional_inputs...; body), an element at a time."""
    rows = []
    for n in range(len(_elements(cx))):
        arguments = [t.elements[n] if isinstance(t, TensorList) else cx.tensor(i) for i, t in enumerate(cx.inputs)]
        rows.append(cx.graph.body(cx.attr("body"), arguments))
    count = len(cx.attr("body").output)
    columns = list(zip(*rows, strict=True)) or [()] * count
    return tuple(TensorList(c, c[0].dtype if c else np.dtype(np.float32)) for c in columns)


@onnx_op("Optional", since=15)
def optional(cx: Context) -> Value | None:
    """output = Optional(input?): holds what it is given, or nothing."""
    return cx.inputs[0] if cx.has(0) else Absent()


@onnx_op("OptionalGetElement", since=15)
def optional_get_element(cx: Context) -> Value:
    value = cx.inputs[0]
    if value is None or isinstance(value, Absent):
        cx.misfit("the optional value holds nothing")
    return value


@onnx_op("OptionalHasElement", since=15)
def optional_has_element(cx: Context) -> Tensor:
    """output = OptionalHasElement(input?): known at import, as inputs of the model are always given."""
    return cx.known(np.array(cx.has(0) and not isinstance(cx.inputs[0], Absent)))
