"""Function bodies: model-local functions and those that the operator schemas define."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, TypeProto, defs, helper

from xcc.dialects.xt.types import dtype_name
from xcc.frontends.onnx.context import Tensor, TensorList, Value
from xcc.frontends.onnx.element_types import ONNX_NAMES

_ONNX_TYPES = {name: number for number, name in ONNX_NAMES.items()}


def domain_of(node: NodeProto) -> str:
    return "" if node.domain == "ai.onnx" else str(node.domain)


class Functions:
    """The functions of one model, by (domain, name, overload)."""

    def __init__(self, model: ModelProto) -> None:
        self._local = {(f.domain, f.name, f.overload): f for f in model.functions}

    def local(self, node: NodeProto) -> FunctionProto | None:
        return self._local.get((node.domain, node.op_type, node.overload))

    def schema_body(self, node: NodeProto, opset: int, inputs: Sequence[Value | None]) -> FunctionProto | None:
        """The schema's own body for `node`, which has its defaults, and these operand types; None when it has none."""
        schema = schema_of(node, opset)
        if schema is None:
            return None
        if schema.has_context_dependent_function:
            return _contextual_body(schema, node, opset, inputs)
        if schema.has_function:
            versions = [v for v in schema.function_opset_versions if v <= opset]
            text = schema.get_function_with_opset_version(max(versions)) if versions else schema.function_body
            return text if isinstance(text, FunctionProto) else _parse(text)
        return None


def schema_of(node: NodeProto, opset: int) -> Any:
    """The operator's schema at `opset`, None for an op that the standard does not have."""
    try:
        return defs.get_schema(node.op_type, opset, domain_of(node))
    except defs.SchemaError:
        return None


def with_defaults(node: NodeProto, opset: int) -> NodeProto:
    """`node` with the schema's defaults for the attributes that it leaves out."""
    schema = schema_of(node, opset)
    given = {a.name for a in node.attribute}
    filled = NodeProto()
    filled.CopyFrom(node)
    filled.attribute.extend(a.default_value for name, a in (schema.attributes.items() if schema else ())
                            if name not in given and a.default_value.type != AttributeProto.UNDEFINED)
    return filled


def has_body(node: NodeProto, opset: int) -> bool:
    schema = schema_of(node, opset)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def _parse(data: bytes) -> FunctionProto:
    function = FunctionProto()
    function.ParseFromString(data)
    return function


def _contextual_body(schema: Any, node: NodeProto, opset: int,
                     inputs: Sequence[Value | None]) -> FunctionProto | None:
    types = [TypeProto().SerializeToString() if t is None else _type_proto(t).SerializeToString() for t in inputs]
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
    if not versions:
        versions = schema.context_dependent_function_opset_versions
    data = schema.get_context_dependent_function_with_opset_version(max(versions), node.SerializeToString(), types)
    return _parse(data) if data else None


def _type_proto(t: Value) -> TypeProto:
    if isinstance(t, TensorList):
        elements = [_type_proto(e) for e in t.elements[:1]]
        return helper.make_sequence_type_proto(
            elements[0] if elements else helper.make_tensor_type_proto(_ONNX_TYPES[dtype_name(t.dtype)], None))
    if not isinstance(t, Tensor):
        return TypeProto()
    return helper.make_tensor_type_proto(_ONNX_TYPES[dtype_name(t.dtype)],
                                         [d if isinstance(d, int) else str(d) for d in t.shape])


def instantiate(function: FunctionProto, node: NodeProto, prefix: str) -> list[NodeProto]:
    """The nodes of `function` for one call: values renamed apart with `prefix`, attributes filled in."""
    names: dict[str, str] = dict(zip(function.input, node.input, strict=False))
    names |= {formal: "" for formal in function.input[len(node.input):]}
    results = {formal: actual for formal, actual in zip(function.output, node.output, strict=False) if actual}
    given = {a.name: a for a in function.attribute_proto} | {a.name: a for a in node.attribute}

    def rename(name: str) -> str:
        if not name:
            return ""
        return names.get(name) if name in names else results.get(name, f"{prefix}{name}")  # type: ignore[return-value]

    out = []
    for inner in function.node:
        copy = NodeProto()
        copy.CopyFrom(inner)
        copy.name = f"{prefix}{inner.name or inner.op_type}"
        _rename_node(copy, rename)
        _fill_attributes(copy, given)
        out.append(copy)
    return out


def _rename_node(node: NodeProto, rename: Any) -> None:
    node.input[:] = [rename(i) for i in node.input]
    node.output[:] = [rename(o) for o in node.output]
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            own = {o for n in attribute.g.node for o in n.output} | {i.name for i in attribute.g.input}
            own |= {t.name for t in attribute.g.initializer}

            def inner_rename(name: str, own: set[str] = own) -> str:
                return name if name in own else str(rename(name))

            for inner in attribute.g.node:
                _rename_node(inner, inner_rename)
            for output in attribute.g.output:
                output.name = inner_rename(output.name)


def _fill_attributes(node: NodeProto, given: dict[str, AttributeProto]) -> None:
    """Replaces references to the function's attributes; a reference to one not given is dropped."""
    kept = []
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in given:
                continue
            value = AttributeProto()
            value.CopyFrom(given[attribute.ref_attr_name])
            value.name = attribute.name
            attribute = value
        elif attribute.type == AttributeProto.GRAPH:
            for inner in attribute.g.node:
                _fill_attributes(inner, given)
        kept.append(attribute)
    copies = []
    for attribute in kept:
        copy = AttributeProto()
        copy.CopyFrom(attribute)
        copies.append(copy)
    del node.attribute[:]
    node.attribute.extend(copies)


def opset_of(function: FunctionProto, opsets: dict[str, int]) -> dict[str, int]:
    """The opsets that a function's nodes are read with."""
    return opsets | {("" if o.domain == "ai.onnx" else o.domain): o.version for o in function.opset_import}


