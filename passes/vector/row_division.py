"""One division a row in place of one an element.

    %r = vector.broadcast %sum : vector<4x1xf32> to vector<4x256xf32>      %i = arith.divf 1, %sum : vector<4x1xf32>
    %y = arith.divf %x, %r : vector<4x256xf32>                          -> %r = vector.broadcast %i
                                                                           %y = arith.mulf %x, %r
A division takes as long as ten products, on a GPU ten instructions. The product is at most one unit in the last place
off, which is why a quotient that is rounded to an integer (a quantised value) stays a division.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value, arith_d, ir, maker, vector_d
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.walk import ops_where

VIEWS = ("vector.broadcast", "vector.shape_cast")
ROUNDINGS = ("math.roundeven", "math.round", "math.floor", "math.ceil", "math.trunc", "arith.fptosi", "arith.fptoui",
             "arith.bitcast")
NEAR = 4            # ops that may stand between a quotient and the op that rounds it


@register_pass
class RowDivision(Pass):
    """Multiplies by the reciprocal where a divisor is shared by a whole row."""

    def run(self, module: Module, ctx: PassContext) -> None:
        found = ops_where(module, lambda o: o.name == "arith.divf" and isinstance(o.results[0].type, ir.VectorType))
        for op in found:
            chain = _views_of(op.operands[1])
            shared = chain and _size(chain[-1].operands[0]) < _size(op.operands[1])
            if shared and not _is_rounded(op.results[0], NEAR):
                with op.location, ir.InsertionPoint(op):
                    op.results[0].replace_all_uses_with(arith_d.mulf(op.operands[0], _reciprocal(chain)))
                op.erase()


def _is_rounded(value: Value, steps: int) -> bool:
    """Whether an op that rounds reads the value, at most `steps` ops behind it."""
    users = [use.owner for use in value.uses]
    return any(u.name in ROUNDINGS or bool(u.results) and steps > 0 and _is_rounded(u.results[0], steps - 1)
               for u in users)


def _views_of(value: Value) -> list[Operation]:
    """The broadcasts and reshapes that make `value`, the last first."""
    chain = []
    op = maker(value)
    while op is not None and op.name in VIEWS:
        chain.append(op)
        op = maker(op.operands[0])
    return chain


def _size(value: Value) -> int:
    count = 1
    for s in ir.VectorType(value.type).shape if isinstance(value.type, ir.VectorType) else ():
        count *= s
    return count


def _reciprocal(chain: list[Operation]) -> Value:
    """The views of `chain` of one over what they read."""
    source = chain[-1].operands[0]
    kind = source.type
    element = ir.VectorType(kind).element_type if isinstance(kind, ir.VectorType) else kind
    one = ir.FloatAttr.get(element, 1.0)
    if isinstance(kind, ir.VectorType):
        one = ir.DenseElementsAttr.get_splat(kind, one)
    value = arith_d.divf(arith_d.constant(kind, one), source)
    for op in reversed(chain):
        make = vector_d.broadcast if op.name == "vector.broadcast" else vector_d.shape_cast
        value = make(op.results[0].type, value)
    return value
