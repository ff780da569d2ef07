"""Finds every op of a model that cannot be imported, before anything is built: they are reported in one message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import AttributeProto, NodeProto

from xcc.diagnostics import UserError
from xcc.frontends.onnx.functions import Functions, domain_of, has_body, opset_of, schema_of
from xcc.frontends.onnx.reader import MIN_OPSET, Source
from xcc.frontends.onnx.registry import lookup

REASONS: dict[str, str] = {
    **dict.fromkeys(("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit",
                     "ai.onnx.ml.CategoryMapper"), "works on strings, which xt has no type for"),
    **dict.fromkeys((f"ai.onnx.ml.{op}" for op in ("CastMap", "DictVectorizer")),
                    "works on dictionaries, which xt has no type for"),
    "ai.onnx.ml.ZipMap": "gives dictionaries, which xt has no type for; scikit-learn's exporter leaves it out with "
                         "options={'zipmap': False}",
    "ImageDecoder": "decodes compressed image files",
}
DOMAINS = {"com.microsoft.nchwc": "in the layout that onnxruntime chose for one machine; let it save the model at its "
                                  "level ORT_ENABLE_EXTENDED"}
"""Why none of a domain's ops is imported."""
_SHOWN = 3
_OLDER = {"Add", "AveragePool", "BatchNormalization", "Div", "Gemm", "Mul", "Pow", "PRelu", "Sub"}
"""Ops whose converters know the rules before opset 7."""


def check_supported(source: Source, opsets: dict[str, int], functions: Functions) -> None:
    """Raises one UserError that lists all unsupported ops with their first nodes."""
    missing: dict[tuple[str, str, int], list[str]] = {}
    for key, name in _unsupported(source.model.graph.node, opsets, functions, set()):
        missing.setdefault(key, []).append(name)
    if not missing:
        return
    parts = []
    for (domain, op, opset), nodes in sorted(missing.items()):
        more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
        label = f"{domain}.{op}" if domain else op
        why = REASONS.get(label) or DOMAINS.get(domain)
        reason = f", {why}" if why else ""
        parts.append(f"{label} (opset {opset}{reason}; {', '.join(nodes[:_SHOWN])}{more})")
    raise UserError(f"{source.name}: {len(missing)} unsupported op{'s' * (len(missing) > 1)}: {'; '.join(parts)}")


def _unsupported(nodes: Iterable[NodeProto], opsets: dict[str, int], functions: Functions,
                 open_: set[str]) -> Iterator[tuple[tuple[str, str, int], str]]:
    for index, node in enumerate(nodes):
        domain = domain_of(node)
        opset = opsets.get(domain, 1 if domain else 0)
        name = f"'{node.name or f'{node.op_type}#{index}'}'"
        function = functions.local(node)
        if function is not None:
            key = f"{function.domain}:{function.name}:{function.overload}"
            if key in open_:
                raise UserError(f"function '{function.name}' calls itself (node {name})")
            yield from _unsupported(function.node, opset_of(function, opsets), functions, open_ | {key})
        elif domain == "" and opset < MIN_OPSET and node.op_type not in _OLDER and not _same_until_minimum(node, opset):
            yield (domain, str(node.op_type), opset), name
        elif lookup(domain, node.op_type, opset) is None and not has_body(node, opset):
            yield (domain, str(node.op_type), opset), name
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _unsupported(attribute.g.node, opsets, functions, open_)


def _same_until_minimum(node: NodeProto, opset: int) -> bool:
    """Whether the op of a model older than MIN_OPSET means the same at MIN_OPSET."""
    old, new = schema_of(node, opset), schema_of(node, MIN_OPSET)
    return old is not None and new is not None and old.since_version == new.since_version
