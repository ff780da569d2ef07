"""Loops that count themselves: ``while i < n: ...; i += 2`` has a trip count as ``for`` has one.

A step yields as condition that a carried integer is less than a size from outside, and adds a constant to the integer.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, NodeProto

from xcc import _mlir, symbolic
from xcc._mlir import ir
from xcc.bounds import interval
from xcc.diagnostics import UserError
from xcc.frontends.onnx.context import Absent, Context, RuntimeShape, Tensor, Value
from xcc.frontends.onnx.node_order import names_read, operands_first
from xcc.symbolic import Dim

__all__ = ["Counter", "counter_of", "refuse_counted"]

_COMPARES = {"Less": (0, 0), "LessOrEqual": (0, 1), "Greater": (1, 0), "GreaterOrEqual": (1, 1)}
"""Which operand is the counter, and what more than the other it may be."""


@dataclass(frozen=True)
class Counter:
    """The carried value `place`, to which each of `steps` steps of a loop adds `step`."""

    place: int
    step: int
    steps: Dim


def counter_of(cx: Context, body: GraphProto) -> Counter | None:
    """What ends the Loop `cx`, whose condition is true at first; None where nothing that it counts does."""
    makers = {o: n for n in body.node for o in n.output}
    compare = _made_by(makers, body.output[0].name)
    if compare is None or compare.op_type not in _COMPARES:
        return None
    first, more = _COMPARES[compare.op_type]
    places = [n for n in range(2, len(cx)) if body.output[n - 1].name == compare.input[first]]
    if not places or compare.input[1 - first] in {*makers, *(i.name for i in body.input)}:
        return None
    bound, start = cx.graph.find(compare.input[1 - first]), cx.tensor(places[0])
    step = _step(cx, body, places[0])
    if not isinstance(bound, Tensor) or bound.data is None or start.data is None or not step or start.data.size != 1:
        return None
    distance = bound.data.reshape(-1)[0] + more - start.data.reshape(-1)[0]
    steps = symbolic.ceildiv(distance, step)
    some = interval(cx.graph.model.known, steps)[0] >= 1
    return Counter(places[0] - 2, step, steps if some else symbolic.dim_max(1, steps))


def _made_by(makers: dict[str, NodeProto], name: str) -> NodeProto | None:
    node = makers.get(name)
    while node is not None and node.op_type == "Identity":
        node = makers.get(node.input[0])
    return node


def _step(cx: Context, body: GraphProto, place: int) -> int:
    """What a step adds to the carried integer of operand `place`, by a trial import; 0 where it is no such constant."""
    carried, model = cx.tensor(place), cx.graph.model
    if not np.issubdtype(carried.dtype, np.integer) or carried.data is None or carried.data.size != 1:
        return 0
    made = [cx.graph.materialize(v) if isinstance(v, Tensor) else None for v in _given(cx)]
    name, part = model.fresh_symbol(f"{body.input[place].name}_step"), _part(body, place)
    counter, module = symbolic.sym(name), ir.Module.create()
    known = Tensor.of_dims(np.array(counter, object).reshape(carried.shape), carried.dtype)
    try:
        with ir.InsertionPoint(module.body):
            child = cx.graph.child(part, module.body)
            for i, (info, value, like) in enumerate(zip(part.input, _given(cx), made, strict=True)):
                child.bind(info.name, known if i == place else value if like is None else _unknown(like))
            after = child.run_tensors()[0]
    except UserError:
        return 0        # the import that follows reports it
    finally:
        del model.symbols[name]
        model.counted.remove(name)
    if not isinstance(after, Tensor) or after.data is None:
        return 0
    added = after.data.reshape(-1)[0] - counter
    return added if isinstance(added, int) and added > 0 else 0


def _given(cx: Context) -> list[Value]:
    """What is of the kinds of the body's arguments."""
    return [Tensor.of_array(np.array(0)), Tensor.of_array(np.array(True)), *(v or Absent() for v in cx.inputs[2:])]


def _unknown(like: _mlir.Value) -> Tensor:
    """A tensor of the type of `like` of which only a run can tell the elements."""
    return Tensor.of_value(ir.Operation.create("builtin.unrealized_conversion_cast", results=[like.type]).results[0])


def _part(body: GraphProto, place: int) -> GraphProto:
    """What of `body` makes the next value of operand `place`."""
    part, needed = GraphProto(), {body.output[place - 1].name}
    for node in reversed(operands_first(body.node)):
        if needed & set(node.output):
            needed |= set(names_read(node))
            part.node.insert(0, node)
    part.input.extend(body.input)
    part.output.append(body.output[place - 1])
    part.initializer.extend(t for t in body.initializer if t.name in needed)
    return part


def refuse_counted(cx: Context, sizes: Iterable[Dim], outside: Container[str], why: str) -> None:
    """Fails where a step of the loop counts one of `sizes`, by a symbol that is not `outside`: steps would have to be
    known, and unrolled."""
    if any(symbol not in outside for size in sizes for symbol in symbolic.symbols_of(size)):
        given = [i for i in (0, 1) if cx.has(i)]
        inputs = dict.fromkeys(name for i in given for name in cx.inputs_behind(i))
        raise RuntimeShape(cx.where(why + next((hint for i in given if (hint := cx.fixing(i))), "")), tuple(inputs))
