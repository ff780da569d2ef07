"""A node's attributes as Python values, checked against the operator's schema."""

from __future__ import annotations

from typing import Any

from onnx import AttributeProto, NodeProto, TensorProto, helper

from xcc.diagnostics import UserError
from xcc.frontends.onnx.functions import schema_of
from xcc.frontends.onnx.reader import Source

__all__ = ["attributes_of"]


def attributes_of(node: NodeProto, opset: int, source: Source) -> dict[str, Any]:
    """The node's attributes over the schema's defaults; tensors as arrays, strings as str.

    UserError for one that must be there and is not, and for one of another type than the schema's.
    """
    out: dict[str, Any] = {}
    schema = schema_of(node, opset)
    given = {a.name: a for a in node.attribute}
    for name, declared in schema.attributes.items() if schema is not None else ():
        if declared.required and name not in given:
            raise UserError(f"needs the attribute '{name}'")
        if name in given and given[name].type != int(declared.type):
            kinds = [AttributeProto.AttributeType.Name(t).lower() for t in (given[name].type, declared.type)]
            raise UserError(f"its attribute '{name}' is of type {kinds[0]}, not {kinds[1]}")
        if declared.default_value.type != AttributeProto.UNDEFINED:
            out[name] = _value(declared.default_value, source)
    return out | {a.name: _value(a, source) for a in node.attribute}


def _value(attribute: AttributeProto, source: Source) -> Any:
    if attribute.type == AttributeProto.TENSOR:
        return attribute.t if attribute.t.data_type == TensorProto.STRING else source.array(attribute.t)
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if attribute.type == AttributeProto.STRINGS:
        return [v.decode("utf-8", "replace") for v in value]
    return list(value) if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS) else value
