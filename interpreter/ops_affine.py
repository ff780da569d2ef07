"""`affine` index arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from xcc._mlir import Operation, ir
from xcc.interpreter.machine import Machine
from xcc.interpreter.registry import Runner, op

if TYPE_CHECKING:
    from xcc.interpreter.kernel import Kernel

Array = np.ndarray[Any, Any]
Value = Callable[[tuple[Array, ...]], Array]

_BINARY: tuple[tuple[Any, Any], ...] = (
    (ir.AffineAddExpr, np.add), (ir.AffineMulExpr, np.multiply), (ir.AffineModExpr, np.remainder),
    (ir.AffineFloorDivExpr, np.floor_divide), (ir.AffineCeilDivExpr, lambda a, b: -(-a // b)))


def _compiled(expr: Any, dims: int) -> Value:
    """An affine expression as a function of the operands (dims, then symbols)."""
    if isinstance(expr, ir.AffineConstantExpr):
        value = np.full(1, expr.value, np.int64)
        return lambda operands: value
    if isinstance(expr, (ir.AffineDimExpr, ir.AffineSymbolExpr)):
        at = expr.position + (dims if isinstance(expr, ir.AffineSymbolExpr) else 0)
        return lambda operands: operands[at]
    function = next(f for kind, f in _BINARY if isinstance(expr, kind))
    left, right = _compiled(expr.lhs, dims), _compiled(expr.rhs, dims)
    return lambda operands: function(left(operands), right(operands))


@op("affine.apply", "affine.min", "affine.max")
def _affine(source: Operation, _: Kernel) -> Runner:
    amap = source.attributes["map"].value
    values = [_compiled(e, amap.n_dims) for e in amap.results]
    join = np.maximum if source.operation.name == "affine.max" else np.minimum

    def run(machine: Machine, *operands: Array) -> np.ndarray[Any, Any]:
        return reduce(join, [value(operands) for value in values])
    return run
