"""What matchers of arithmetic on values ask: constants, products with constants, only users."""

from __future__ import annotations

from xcc._mlir import Operation, Value, ir, maker


def only_user(op: Operation, name: str) -> Operation | None:
    """The op called `name` that alone uses the one result of `op`, else None."""
    users = [u.owner.operation for u in op.results[0].uses]
    return users[0] if len(users) == 1 and users[0].name == name else None


def product(value: Value) -> tuple[Value, float] | None:
    """(x, c) of a product of x and a constant."""
    op = maker(value, "arith.mulf")
    if op is None:
        return None
    for x, c in (list(op.operands), list(op.operands)[::-1]):
        if (factor := splat_of(c)) is not None:
            return x, factor
    return None


def int_constant(value: Value) -> int | None:
    """The number that a scalar constant of integers is."""
    op = maker(value, "arith.constant")
    attr = None if op is None else op.attributes["value"]
    return int(attr.value) if isinstance(attr, ir.IntegerAttr) else None


def splat_of(value: Value) -> float | None:
    """The number that all elements of a constant are."""
    op = maker(value, "arith.constant")
    if op is None:
        return None
    attr = op.attributes["value"]
    if isinstance(attr, ir.DenseElementsAttr):
        return float(attr.get_splat_value().value) if attr.is_splat else None
    return float(attr.value)
