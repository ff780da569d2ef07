"""Loop. Its body becomes a region that uses values from outside directly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, TensorProto

from xcc import _mlir
from xcc._mlir import ir
from xcc.diagnostics import dim_option
from xcc.dialects import xt
from xcc.dialects.xt.control import Never
from xcc.frontends.onnx.context import Context, RuntimeShape, Tensor, Value, flatten
from xcc.frontends.onnx.control import as_flag
from xcc.frontends.onnx.grown_lists import grown_lists
from xcc.frontends.onnx.loop_counters import Counter, counter_of, refuse_counted
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.onnx.stacked_sizes import Values, checked_scan, undone
from xcc.frontends.shared.helpers import convert, full, unsqueeze
from xcc.symbolic import Dim, dim_max, dim_min

MOST_STEPS = 256
"""Of a loop that is unrolled."""
_ANY = 1 << 31
"""A trip count from here on is none: what a loop counts to is a size, and less."""


class TypeChanges(Exception):
    """A step gives a carried value another type."""


@onnx_op("Loop")
def loop(cx: Context) -> Sequence[_mlir.Value | Value]:
    """v_final..., scans... = Loop(M?, cond?, v_initial...; body)."""
    body = cx.attr("body")
    state = [cx.inputs[i] for i in range(2, len(cx))]
    if len(body.input) != 2 + len(state) or len(body.output) < 1 + len(state):
        cx.fail(f"the body takes {len(body.input)} and gives {len(body.output)} values for {len(state)} carried ones")
    if all(isinstance(v, Tensor) for v in state):
        return _of_tensors(cx, body, state)
    grown = None if _steps_known(cx, body) else grown_lists(cx, body)
    if grown is None:
        return _unrolled(cx, body, state, "it carries a sequence")
    return grown.outputs(_of_tensors(grown.cx, grown.body, list(grown.cx.inputs[2:])))


def _of_tensors(cx: Context, body: GraphProto, state: list[Value | None]) -> Sequence[_mlir.Value | Value]:
    carried = [cx[i] for i in range(2, len(cx))]
    try:
        return _tried(cx, body, carried, unrolls=True)
    except RuntimeShape as e:
        if cx.graph.model.values.among(e.inputs):
            raise
        if e.inputs or not _steps_known(cx, body):
            return _tried(cx, body, carried, unrolls=cx.graph.model.unrolls)
        why = "its step decides a shape"
    except TypeChanges as e:
        why = str(e)
    return _unrolled(cx, body, state, why)


def _tried(cx: Context, body: GraphProto, carried: Values, unrolls: bool) -> Values:
    """The loop as one; nothing is left of it where it fails. A step that may be unrolled instead counts no sizes."""
    model = cx.graph.model
    outer, model.unrolls = model.unrolls, unrolls
    with undone(cx) as undo:
        try:
            return _as_loop(cx, body, carried)
        except (RuntimeShape, TypeChanges):
            undo()
            raise
        finally:
            model.unrolls = outer


def _steps_known(cx: Context, body: GraphProto) -> bool:
    """Whether the loop can be unrolled, as far as can be told without doing so."""
    if any(cx.has(i) and cx.tensor(i).const is None for i in (0, 1)):
        return False
    counter = None if _goes_on(body) else counter_of(cx, body)
    return counter is None or isinstance(counter.steps, int)


def _as_loop(cx: Context, body: GraphProto, carried: Values) -> Values:
    stacked = len(body.output) - 1 - len(carried)
    limit = _trip_count(cx)
    start = cx.tensor(1).const if cx.has(1) else np.array(True)
    if limit is not None and start is not None and _goes_on(body):
        length = limit if bool(start.reshape(-1)[0]) else 0
        return _counted(cx, body, carried, length)
    if start is not None and start.reshape(-1)[0] and (counter := counter_of(cx, body)) is not None:
        if limit is None or isinstance(limit, int) and limit >= _ANY:
            limit = counter.steps
        return _counted(cx, body, carried, dim_min(limit, counter.steps), counter)
    if stacked == 0:
        return _conditional(cx, body, carried)
    return _collecting(cx, body, carried, limit)


def _unrolled(cx: Context, body: GraphProto, state: list[Any], why: str) -> Sequence[_mlir.Value | Value]:
    """The steps one after the other, each imported for itself: their number must be known. `why` that is needed."""
    for i in (0, 1):
        if cx.has(i) and cx.tensor(i).const is None:
            raise RuntimeShape(cx.where(f"the number of steps must be known, since {why}, but operand {i} "
                                        f"('{cx.node.input[i]}') is computed at run time{cx.fixing(i)}"),
                               cx.inputs_behind(i))
    most = int(cx.const(0).reshape(-1)[0]) if cx.has(0) else MOST_STEPS + 1
    goes_on = bool(cx.const(1).reshape(-1)[0]) if cx.has(1) else True
    rows: list[list[Value]] = []
    while goes_on and len(rows) < most:
        if len(rows) == MOST_STEPS:
            cx.fail(f"the loop may have {MOST_STEPS} steps at most, since {why}")
        told = [Tensor.of_array(np.full(s, v)) for s, v in zip(_leading(body), (len(rows), True), strict=True)]
        flag, *out = cx.graph.body(body, [*told, *state])
        if not _goes_on(body):
            known = flag.const if isinstance(flag, Tensor) else None
            if known is None:
                cx.fail(f"whether the loop goes on must be known, since {why}")
            goes_on = bool(known.reshape(-1)[0])
        state, row = out[:len(state)], out[len(state):]
        rows.append(row)
    if not rows and len(body.output) > 1 + len(state):
        cx.fail("the loop stacks values of no step")
    columns = [[cx.graph.materialize(t) for t in flatten(column)] for column in zip(*rows, strict=True)]
    return (*state, *(xt.concatenate(*[unsqueeze(v, [0]) for v in c], axis=0) for c in columns))


def _trip_count(cx: Context) -> Dim | None:
    """The trip count as a dim, None when only a run can tell it or there is none. Below 0 it means no step."""
    if not cx.has(0) or cx.tensor(0).data is None:
        return None
    count = cx.dims(0)[0]
    below = count < 0 if isinstance(count, int) else any(factor < 0 for _, factor in count.terms)
    return dim_max(0, count) if below else count


def _most_steps(cx: Context, carried: int) -> Dim:
    """How many steps of a loop that stacks values there may be, by the option for the stacked dim or as declared."""
    name = _count_name(cx)
    option, declared = cx.graph.model.limit(name), cx.declared(carried)
    if option is not None or declared:
        return option if option is not None else declared[0] if declared else 0
    advice = f"give the most steps that there may be: {dim_option(name, '0..100')} (dims={{{name!r}: (0, 100)}})"
    if not cx.has(0):
        cx.fail(f"the loop stacks values and has no trip count; {advice}")
    raise cx.runtime_shape(0, "is the number of values that the loop stacks", f"{advice}, or ")


def _count_name(cx: Context) -> str:
    name = f"{cx.node.output[-1]}_count"
    while name in cx.graph.model.symbols:
        name += "_count"
    return name


def _goes_on(body: GraphProto) -> bool:
    """Whether the body always yields the condition that it was given, or true."""
    name = body.output[0].name
    makers = {o: n for n in body.node for o in n.output}
    constants = {t.name: t for t in body.initializer}
    while name in makers and makers[name].op_type == "Identity":
        name = makers[name].input[0]
    if name == body.input[1].name:
        return True
    tensor = constants.get(name)
    if tensor is None and name in makers and makers[name].op_type == "Constant":
        tensor = next((a.t for a in makers[name].attribute if a.name == "value"), None)
    return tensor is not None and bool(_value_of(tensor))


def _value_of(tensor: TensorProto) -> float:
    from onnx import numpy_helper

    return numpy_helper.to_array(tensor).reshape(-1)[0]


def run_body(cx: Context, body: GraphProto, arguments: Sequence[_mlir.Value | Tensor]) -> list[_mlir.Value]:
    """Imports the body into the current block with `arguments` (xt values or Tensors)."""
    child = cx.graph.child(body, ir.InsertionPoint.current.block)
    for info, value in zip(body.input, arguments, strict=True):
        child.bind(info.name, value if isinstance(value, Tensor) else Tensor.of_value(value))
    return child.run()


def _leading(body: GraphProto) -> list[Sequence[int]]:
    """The shapes that the body declares for the number of a step and the condition: of a scalar or a vector of one."""
    return [(1,) if len(info.type.tensor_type.shape.dim) == 1 else () for info in body.input[:2]]


def _run_step(cx: Context, body: GraphProto, i: _mlir.Value, flag: _mlir.Value | None, state: Values) -> Values:
    """The body of step `i`; without a `flag` its condition is true."""
    number, condition = _leading(body)
    step = xt.reshape(i, shape=number) if number else i
    if flag is None:
        return run_body(cx, body, [step, Tensor.of_array(np.full(condition, True)), *state])
    return run_body(cx, body, [step, xt.reshape(flag, shape=condition) if condition else flag, *state])


def keeps_types(carried: Values, after: Values) -> Values:
    """`after`, which a step makes of `carried`; TypeChanges where one is of another type."""
    for value, new in zip(carried, after, strict=True):
        old, now = xt.TensorType.of(value), xt.TensorType.of(new)
        if not xt.agree(old, now):
            raise TypeChanges(f"a step makes a carried {old} a {now}")
    return after


def _counted(cx: Context, body: GraphProto, carried: Values, length: Dim, counter: Counter | None = None) -> Values:
    """A fixed number of steps: a scan over the step numbers."""
    ranges = cx.graph.model.ranges
    steps = xt.iota(shape=(length,), axis=0, dtype="i64")

    def step(state: Values, slices: Values) -> tuple[Values, Values]:
        ranges[slices[0]] = 0, length - 1
        if counter is not None:
            first = cx.dims(2 + counter.place)[0]
            ranges[state[counter.place]] = first, first + counter.step * (length - 1)
        out = _run_step(cx, body, slices[0], None, state)[1:]
        return keeps_types(state, out[:len(state)]), out[len(state):]

    return tuple(checked_scan(cx, carried, [steps], step, length=length))


def _given_limits(cx: Context) -> tuple[_mlir.Value, _mlir.Value]:
    """Whether there is a first step, and how many there are at most."""
    first = as_flag(cx[1]) if cx.has(1) else xt.scalar(True, "i1")
    most = convert(as_flag(cx[0]), "i64") if cx.has(0) else xt.scalar(np.iinfo(np.int64).max, "i64")
    return first, most


def _conditional(cx: Context, body: GraphProto, carried: Values) -> Values:
    first, most = _given_limits(cx)

    def goes_on(i: _mlir.Value, flag: _mlir.Value, *state: _mlir.Value) -> _mlir.Value:
        return xt.and_(xt.compare(i, most, direction="lt"), flag)

    def step(i: _mlir.Value, flag: _mlir.Value, *state: _mlir.Value) -> list[_mlir.Value]:
        flag, *rest = _run_step(cx, body, i, flag, state)
        return [xt.add(i, xt.scalar(1, "i64")), as_flag(flag), *keeps_types(state, rest)]

    return tuple(xt.while_([xt.scalar(0, "i64"), first, *carried], goes_on, step)[2:])


def _collecting(cx: Context, body: GraphProto, carried: Values, limit: Dim | None) -> Values:
    """Stacked values with a condition: written into buffers of all steps, of which the filled part is kept.

    Where the trip count `limit` is not known, a run that would take more steps than there may be ends with an error.
    """
    first, most = _given_limits(cx)
    bound = _most_steps(cx, len(carried)) if limit is None else limit
    outside, kinds = frozenset(cx.graph.model.symbols), _stacked_types(cx, body, carried)
    refuse_counted(cx, [d for t in kinds for d in t.shape], outside, "a step counts sizes of what is stacked")
    buffers = [full((bound, *t.shape), 0, t.dtype) for t in kinds]
    count = len(carried)

    def wanted(i: _mlir.Value, flag: _mlir.Value) -> _mlir.Value:
        return xt.and_(xt.compare(i, most, direction="lt"), flag)

    def goes_on(i: _mlir.Value, flag: _mlir.Value, *state: _mlir.Value) -> _mlir.Value:
        if limit is not None:
            return wanted(i, flag)
        return xt.and_(wanted(i, flag), xt.compare(i, xt.dim(value=bound), direction="lt"))

    def step(i: _mlir.Value, flag: _mlir.Value, *state: _mlir.Value) -> list[_mlir.Value]:
        out = _run_step(cx, body, i, flag, state[:count])
        rows = [_write(b, y, i) for b, y in zip(state[count:], out[1 + count:], strict=True)]
        kept = keeps_types(state[:count], out[1:1 + count])
        return [xt.add(i, xt.scalar(1, "i64")), as_flag(out[0]), *kept, *rows]

    done = xt.while_([xt.scalar(0, "i64"), first, *carried, *buffers], goes_on, step)
    steps, last = done[0], done[2:2 + count]
    if limit is None:
        steps, *last = xt.if_(wanted(*done[:2]), lambda: Never(cx.where(f"the loop has more than {bound} steps")),
                              lambda: [done[0], *done[2:2 + count]])
    filled = xt.compare(xt.iota(shape=(bound,), axis=0, dtype="i64"), steps, direction="lt")
    name = cx.graph.fresh_symbol(_count_name(cx))
    kept = [xt.compress(b, filled, symbol=name, axis=0, flat=False) for b in done[2 + count:]]
    return (*last, *kept)


def _write(buffer: _mlir.Value, y: _mlir.Value, i: _mlir.Value) -> _mlir.Value:
    zeros = [xt.scalar(0, "i64")] * len(xt.shape_of(y))
    return xt.dynamic_update_slice(buffer, unsqueeze(y, [0]), i, *zeros)


def _stacked_types(cx: Context, body: GraphProto, carried: Values) -> list[xt.TensorType]:
    """The types of the body's stacked values, from a trial import that is thrown away."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        region = ir.Operation.create("builtin.unrealized_conversion_cast", results=[v.type for v in carried])
        out = _run_step(cx, body, xt.scalar(0, "i64"), xt.scalar(True, "i1"), list(region.results))
        kinds = [xt.TensorType.of(v) for v in out[1 + len(carried):]]
    return kinds
