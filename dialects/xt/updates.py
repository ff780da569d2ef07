"""Arguments of @main that its results replace, and those that the model holds between calls.

    func.func @main(%x: tensor<4xf32> {xt.name = "x"}, %c: tensor<8x4xf32> {xt.name = "cache", xt.state = "zeros"})
        -> (tensor<4xf32> {xt.name = "y"}, tensor<8x4xf32> {xt.name = "new", xt.updates = "cache"})
"""

from typing import Any

from xcc._mlir import Block, Operation, Value, ir
from xcc.diagnostics import UserError
from xcc.dialects.xt.reading import block_results
from xcc.dialects.xt.types import TensorType
from xcc.symbolic import is_static

UPDATES = "xt.updates"
"""Of a result: the name of the argument that has its value when a run is over."""

STATE = "xt.state"
"""Of an argument that the model holds: the name of the weight with its first value."""


def updated_arguments(function: Operation) -> list[int | None]:
    """For each result of `function` the number of the argument that it updates.

    UserError where there is no such argument, two results update one, or its type is another.
    """
    block = function.regions[0].blocks[0]
    names = [_text(a, "xt.name") for a in _attributes(function, "arg_attrs", len(block.arguments))]
    values = block_results(block)
    out: list[int | None] = []
    for result, (value, own) in enumerate(zip(values, _attributes(function, "res_attrs", len(values)), strict=True)):
        wanted = _text(own, UPDATES)
        if wanted is None:
            out.append(None)
            continue
        what = f"output '{_text(own, 'xt.name') or result}'"
        if wanted not in names:
            raise UserError(f"{what} updates '{wanted}', and there is no such input")
        number = names.index(wanted)
        if number in out:
            raise UserError(f"{what}: another output updates '{wanted}', too")
        have, want = TensorType.of(value), TensorType.of(block.arguments[number])
        if have != want:
            raise UserError(f"{what} is {have} and cannot update '{wanted}', which is {want}")
        out.append(number)
    return out


def initial_weights(function: Operation) -> dict[int, str]:
    """The arguments of `function` that the model holds, by number, each with the weight of its first value."""
    block = function.regions[0].blocks[0]
    out = {}
    for n, own in enumerate(_attributes(function, "arg_attrs", len(block.arguments))):
        weight = _text(own, STATE)
        if weight is None:
            continue
        if not is_static(TensorType.of(block.arguments[n]).shape):
            raise UserError(f"input '{_text(own, 'xt.name')}' is state, and its shape is not known when the model is "
                            "loaded")
        out[n] = weight
    return out


def carried_values(block: Block) -> list[tuple[Value, Value]]:
    """What a function or a loop makes of its arguments: (value, argument), where the value takes the argument's place
    when `block` is over."""
    op = block.owner.operation
    if op.name == "func.func":
        values, numbers = block_results(block), updated_arguments(op)
        return [(v, block.arguments[n]) for v, n in zip(values, numbers, strict=True) if n is not None]
    if op.name == "xtv.while" and block == op.regions[1].blocks[0]:
        return list(zip(block_results(block), block.arguments, strict=True))
    if op.name != "xtv.scan":
        return []
    return list(zip(block_results(block), block.arguments, strict=False))[:carried_count(op)]


def carried_count(scan: Operation) -> int:
    """How many values an xt.scan carries from step to step."""
    return int(scan.attributes["operandSegmentSizes"][0])


def _attributes(function: Operation, where: str, count: int) -> list[Any]:
    if where not in function.attributes:
        return [{}] * count
    return [ir.DictAttr(a) for a in ir.ArrayAttr(function.attributes[where])]


def _text(attributes: Any, name: str) -> str | None:
    return str(attributes[name].value) if name in attributes else None
