"""Products of matrices that are counted by several dims, which PyTorch merges into one for the product."""

from __future__ import annotations

from collections.abc import Callable

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.op import attrs_of
from xcc.passes.xt.graph.match import NoMatch, dims_of, no_match, single, through
from xcc.passes.xt.graph.rewrite import producer


def whole_batches(op: Operation) -> Value | NoMatch | None:
    """reshape(dot_general(reshape(a), b)) -> dot_general(a, reshape(b)), where the reshapes merge leading dims of a and
    take those of the product apart again."""
    product = single(op.operands[0], "dot_general")
    if product is None:
        return None
    a, merged = attrs_of(product), producer(product.operands[0], "reshape")
    batch = dims_of(op.results[0])[:-2]
    if merged is None or len(batch) < 2 or (a.lhs_batch, a.rhs_batch) != ((0,), (0,)):
        return no_match(op, "its product is of no operand whose batches are merged")
    for apart, one in ((merged.operands[0], product.operands[0]), (op.results[0], product.results[0])):
        if len(dims_of(one)) != 3 or dims_of(apart) != (*batch, *dims_of(one)[1:]):
            return no_match(op, "it does not take apart what the operand of its product has merged")
    other = through(product.operands[1], "reshape")
    shape = (*batch, *dims_of(product.operands[1])[1:])
    more = len(batch) - 1
    return xt.dot_general(merged.operands[0], other if dims_of(other) == shape else xt.reshape(other, shape=shape),
                          lhs_batch=tuple(range(more + 1)), rhs_batch=tuple(range(more + 1)),
                          lhs_contract=tuple(d + more for d in a.lhs_contract),
                          rhs_contract=tuple(d + more for d in a.rhs_contract), dtype=a.dtype)


PATTERNS: dict[str, list[Callable[[Operation], Value | NoMatch | None]]] = {"reshape": [whole_batches]}
