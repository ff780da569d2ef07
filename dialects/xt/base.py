"""The dialect object of xt, its tensor types with symbolic dimensions, and the base of its ops.

A tensor with a symbolic dimension carries every dimension in its encoding:
``tensor<?x3x?xf32, ["batch", 3, "floordiv(w + 1, 2)"]>``. A static tensor has no encoding.

Dialect files must not use ``from __future__ import annotations``: ``ext`` reads raw annotations.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from xcc import symbolic
from xcc._mlir import Attribute, ext, ir
from xcc.symbolic import Dim

DYNAMIC = -9223372036854775808
KNOWN_TYPES = 4096
"""Types whose meaning is kept: a model's ops have few, and passes ask for them again and again."""


class Xt(ext.Dialect, name="xt"):  # type: ignore[call-arg, misc]
    """High-level tensor operations."""


def tensor_type(shape: Sequence[Dim], element_type: Any) -> Any:
    """The tensor type of `shape` (ints and Exprs); the encoding is there only when a dim is symbolic."""
    if symbolic.is_static(shape):
        return ir.RankedTensorType.get(list(shape), element_type)
    i64 = ir.IntegerType.get_signless(64)
    encoding = ir.ArrayAttr.get(
        [ir.IntegerAttr.get(i64, d) if isinstance(d, int) else ir.StringAttr.get(str(d)) for d in shape])
    sizes = [d if isinstance(d, int) else DYNAMIC for d in shape]
    return ir.RankedTensorType.get(sizes, element_type, encoding)


def shape_of(value_or_type: Any) -> tuple[Dim, ...]:
    """The dims of a tensor value or type, each an int or an Expr."""
    return _shape(value_or_type if isinstance(value_or_type, ir.Type) else value_or_type.type)


@lru_cache(KNOWN_TYPES)
def _shape(kind: Any) -> tuple[Dim, ...]:
    t = ir.RankedTensorType(kind)
    if t.encoding is None:
        return tuple(t.shape)
    return dims_from_attr(t.encoding)


def dims_from_attr(attr: Attribute) -> tuple[Dim, ...]:
    """Reads an array of i64 and text dims."""
    return tuple(a.value if isinstance(a, ir.IntegerAttr) else symbolic.parse(a.value) for a in ir.ArrayAttr(attr))


def dims_attr(dims: Sequence[Dim]) -> Any:
    """An array attribute of dims: i64 where static, text where symbolic."""
    i64 = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get(
        [ir.IntegerAttr.get(i64, d) if isinstance(d, int) else ir.StringAttr.get(str(d)) for d in dims])


def element_type_of(value_or_type: Any) -> Any:
    t = value_or_type if isinstance(value_or_type, ir.Type) else value_or_type.type
    return ir.RankedTensorType(t).element_type
