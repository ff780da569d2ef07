"""What the patterns on dataflow share: reading values, and saying why a pattern did not apply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcc import symbolic
from xcc._mlir import Operation, Value
from xcc.dialects.xt.op import attrs_of, grouped_operands, op_class
from xcc.dialects.xt.types import TensorType
from xcc.passes.xt.graph.rewrite import at, name_of, producer, replace
from xcc.symbolic import Dim
from xcc.weights import WeightStore

MOST_ELEMENTS = 1 << 22     # larger constants are not looked into
MOST_FACTORS = 16


@dataclass(frozen=True)
class NoMatch:
    """Why a pattern stopped at an op; shown by --debug-patterns."""

    op: str
    why: str

    def __bool__(self) -> bool:
        return False


def no_match(op: Operation, why: str) -> NoMatch:
    return NoMatch(f"{op.name} at {op.location}", why)


Pattern = Callable[[Operation], Value | Sequence[Value] | NoMatch | None]
"""What may take the place of an op's result, or of its results, or why nothing does."""


def apply(op: Operation, patterns: Sequence[Pattern], say: Callable[[str], None] | None) -> None:
    """Replaces `op` by the value that the first of `patterns` to match gives; `say` is told why others do not."""
    for pattern in patterns:
        with at(op):
            found = pattern(op)
        if isinstance(found, NoMatch):
            if say is not None:
                say(f"no match: {found.op}: {found.why}")
        elif found is not None:
            replace(op, found if isinstance(found, Sequence) else [found])
            return


def dims_of(value: Value) -> tuple[Dim, ...]:
    return TensorType.of(value).shape


def dtype_of(value: Value) -> str:
    return TensorType.of(value).dtype


def number(value: Value) -> float | None:
    """The number that all elements of a constant have, seen through broadcasts; else None."""
    op = producer(value)
    while op is not None and name_of(op) in ("broadcast", "reshape"):
        op = producer(op.operands[0])
    if op is None or name_of(op) != "constant" or not op.attributes["value"].is_splat:
        return None
    return float(attrs_of(op).value.reshape(-1)[0])


def only_user(value: Value) -> bool:
    """Whether one op uses `value`."""
    return len({use.owner for use in value.uses}) == 1


def single(value: Value, *names: str) -> Operation | None:
    """The op of one of `names` that makes `value` for one user alone, else None."""
    op = producer(value)
    return op if op is not None and name_of(op) in names and only_user(value) else None


def through(value: Value, *names: str) -> Value:
    """`value` with ops of `names` on the way to it taken off."""
    op = producer(value)
    while op is not None and name_of(op) in names:
        value = op.operands[0]
        op = producer(value)
    return value


def scaled(value: Value) -> tuple[Value, float] | None:
    """(x, c) where value = x * c or x / (1/c) for a scalar c and x of the same shape; else None."""
    op = producer(value)
    if op is None or name_of(op) not in ("mul", "div"):
        return None
    a, b = op.operands
    pairs = ((a, b), (b, a)) if name_of(op) == "mul" else ((a, b),)
    for x, c in pairs:
        n = number(c)
        if n is not None and dims_of(x) == dims_of(value) and (n != 0 or name_of(op) == "mul"):
            return (x, n) if name_of(op) == "mul" else (x, 1 / n)
    return None


def factors(value: Value) -> tuple[float, list[Value]]:
    """A product as its constant and its other factors: 0.5 * x * y gives (0.5, [x, y]). A cube counts three times.

    One of more factors than any pattern has (squares of squares have 2^n) is left as it is.
    """
    constant, stack, first = 1.0, [value], True
    rest: list[Value] = []
    while stack:
        if len(rest) + len(stack) > MOST_FACTORS:
            return 1.0, [value]
        v = stack.pop()
        n = number(v)
        op = producer(v)
        if n is not None:
            constant *= n
        elif op is not None and name_of(op) == "mul" and (first or only_user(v)):
            stack += list(op.operands)
        elif op is not None and name_of(op) == "pow" and number(op.operands[1]) in (2.0, 3.0):
            stack += [op.operands[0]] * int(number(op.operands[1]) or 0)
        elif op is not None and name_of(op) == "div" and (number(op.operands[1]) or 0.0) != 0.0:
            constant /= number(op.operands[1]) or 1.0
            stack.append(op.operands[0])
        else:
            rest.append(v)
        first = False
    return constant, rest


def array_of(value: Value, weights: WeightStore | None) -> np.ndarray[Any, Any] | None:
    """The elements of a value that depends on constants alone, as a numpy array; else None."""
    memo: dict[Value, np.ndarray[Any, Any] | None] = {}

    def visit(v: Value, depth: int) -> np.ndarray[Any, Any] | None:
        if v not in memo:
            memo[v] = _element_array(v, weights, lambda x: visit(x, depth + 1)) if depth < 40 else None
        return memo[v]

    return visit(value, 0)


def _element_array(value: Value, weights: WeightStore | None, visit: Callable[[Any], Any]) -> np.ndarray[Any,
                   Any] | None:
    op, kind = producer(value), TensorType.of(value)
    if op is None or not kind.static or symbolic.evaluate(symbolic.product(kind.shape), {}) > MOST_ELEMENTS:
        return None
    name, cls, a = name_of(op), op_class(op), attrs_of(op)
    if name == "constant":
        return a.value
    if name == "weight":
        return weights[a.name] if weights is not None and a.name in weights else None
    if cls is None or cls.access not in ("pointwise", "movement", "view") or len(op.results) != 1 or "random" in name:
        return None
    inputs: list[Any] = []
    for group in grouped_operands(op):
        values = [visit(v) for v in (group if isinstance(group, tuple) else () if group is None else (group,))]
        if any(v is None for v in values):
            return None
        inputs.append(tuple(values) if isinstance(group, tuple) else values[0] if values else None)
    return np.asarray(cls.evaluate(a, *inputs))


def count_of(value: Value) -> Dim | None:
    """A scalar as a number of elements: a constant, or a dim converted to float; else None."""
    n = number(value)
    if n is not None:
        return int(n) if n == int(n) else None
    op = producer(through(value, "convert", "reshape", "broadcast"), "dim")
    return attrs_of(op).value[0] if op is not None else None


def mean_of(value: Value) -> tuple[Value, tuple[int, ...]] | None:
    """(x, axes) where value is the mean of x over `axes`, which stay as dims of 1; else None."""
    op = producer(value)
    if op is None or name_of(op) not in ("mul", "div"):
        return None
    for n in (0, 1) if name_of(op) == "mul" else (0,):
        total, divisor = producer(op.operands[n], "reduce"), op.operands[1 - n]
        if total is None or attrs_of(total).kind != "sum" or not attrs_of(total).keepdims:
            continue
        x, axes = total.operands[0], positive(attrs_of(total).axes, total.operands[0])
        if _is_count(divisor, symbolic.product(dims_of(x)[d] for d in axes), name_of(op) == "mul"):
            return x, axes
    return None


def _is_count(divisor: Value, count: Dim, inverse: bool) -> bool:
    if inverse:
        n = number(divisor)
        if n is not None:
            return isinstance(count, int) and count > 0 and abs(n * count - 1) < 1e-6
        op = producer(divisor, "reciprocal")
        return op is not None and count_of(op.operands[0]) == count
    return count_of(divisor) == count


def positive(axes: Sequence[int], x: Value) -> tuple[int, ...]:
    return tuple(sorted(d % len(dims_of(x)) for d in axes))
