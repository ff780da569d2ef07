"""How elements are combined, by the names that vector ops and the tile dialect have for it."""

from __future__ import annotations

import math
from typing import Any

from xcc._mlir import Attribute, Type, Value, arith_d, ir, math_d
from xcc.passes.shared.values import splat_constant

_KINDS = {
    "add": ("addf", "addi"), "mul": ("mulf", "muli"), "minimumf": ("minimumf", ""), "maximumf": ("maximumf", ""),
    "minnumf": ("minnumf", ""), "maxnumf": ("maxnumf", ""), "minsi": ("", "minsi"), "maxsi": ("", "maxsi"),
    "minui": ("", "minui"), "maxui": ("", "maxui"), "and": ("", "andi"), "or": ("", "ori"), "xor": ("", "xori"),
}
_OF_TILES = {"add": "add", "sum": "add", "prod": "mul", "umax": "maxui", "umin": "minui"}
_FLOAT = {"add": "addf", "max": "maximumf", "min": "minimumf", "exchange": "assign"}
_INTEGER = {"add": "addi", "max": "maxs", "min": "mins", "umax": "maxu", "umin": "minu", "and": "andi", "or": "ori",
            "xor": "xori", "exchange": "assign"}


def combining(kind: str, element: Type) -> Any:
    """The builder of the arith op of a combining kind, printed as in ``#vector.kind<add>``."""
    names = _KINDS[kind.split("<")[1].split(">")[0]]
    return getattr(arith_d, names[0 if isinstance(element, ir.FloatType) else 1])


def combiner(kind: str, element: Type) -> Any:
    """The builder of the arith op of a kind of the tile dialect, of a reduction or of an update."""
    tail = "" if kind in ("and", "or", "xor", *_OF_TILES) else \
        ("f" if kind.endswith("num") else "imumf") if isinstance(element, ir.FloatType) else "si"
    return combining(f"<{_OF_TILES.get(kind, kind + tail)}>", element)


def log_add_exp(a: Value, b: Value) -> Value:
    """log(exp(a) + exp(b)) from the larger one; -inf with -inf stays."""
    high, low = arith_d.maximumf(a, b), arith_d.minimumf(a, b)
    out = arith_d.addf(high, math_d.log1p(math_d.exp(arith_d.subf(low, high))))
    twice = arith_d.addf(a, splat_constant(a.type, math.log(2)))
    return arith_d.select(arith_d.cmpf(arith_d.CmpFPredicate.OEQ, a, b), twice, out)


def rmw_kind(kind: str, element: Type) -> Attribute:
    """The attribute of memref.atomic_rmw for a kind of tile.atomic."""
    name = (_FLOAT if isinstance(element, ir.FloatType) else _INTEGER)[kind]
    number = arith_d.AtomicRMWKind[name].value
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
