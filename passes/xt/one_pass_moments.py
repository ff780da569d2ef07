"""Mean and squared distances from it by one pass over columns, with the accuracy of two.

    %m = mean of %x over rows                    %s = a row in the middle of each part of %x
    %q = sum of (%x - %m)^2 over rows     ->     %a, %b = sums of %x - %s and of its square over the part's rows
                                                 %m, %q = those of all parts, from each part's mean and squares

Columns do not stay in registers, so that the second sum would read them again. Of a part of n rows the mean is
s + a / n, and the squared distances from that are b - a^2 / n (shifted data); parts are combined by the formula of
Chan, Golub and LeVeque, their means shifted in turn. What is lost is bounded, wherever the mean lies, as the distance
of s, one of the rows, is a part of the sum: b is at most n times as much more. At worst, s being far from all others,
the error is that of a sum of n terms, one after the other; `ROWS` bounds n where there are enough parts for all cores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.cut_reductions import columns_of, parts_of, reshaped
from xcc.passes.xt.decompose.build import const, take, total
from xcc.passes.xt.decompose.build import mean as mean_over
from xcc.passes.xt.graph.match import dims_of, dtype_of, mean_of, positive
from xcc.passes.xt.graph.rewrite import rewrite

ROWS = 4096     # of a part: more parts than the cores take at once end unevenly (an H100: 118 us where 84 do)
LEAST = 256     # rows that are worth a second kernel, elements of a part that lie together
PART, ROW = 4096, 16384     # the most of those, and of a row that registers hold whole
MANY = 1 << 20  # elements


@register_pass
class OnePassMoments(Pass):
    """Computes the mean of columns and the sum of squared distances from it in one loop."""

    def run(self, module: Module, ctx: PassContext) -> None:
        cores = ctx.chip.cores
        rewrite(module, {name: lambda op: _mean(op, cores) for name in ("mul", "div")})


def _mean(op: Operation, cores: int) -> Value | None:
    """The mean that `op` gives, where squared distances from it are summed, which what it gives replaces as well."""
    mean = op.results[0]
    found = mean_of(mean)
    if found is None or dtype_of(mean) != "f32":
        return None
    x, axes = found
    sums = _squares(x, mean, axes)
    moments = (_of_columns(x, axes, cores) or _of_rows(x, axes)) if sums else None
    if moments is None:
        return None
    for s in sums:
        s.results[0].replace_all_uses_with(xt.reshape(moments[1], shape=dims_of(s.results[0])))
    return xt.reshape(moments[0], shape=dims_of(mean))


def _of_columns(x: Value, axes: Sequence[int], cores: int) -> tuple[Value, Value] | None:
    """Means and sums of squared distances over `axes`, behind which lie others, in parts."""
    columns = columns_of(x, axes)
    if columns is None or columns[2] == 1 or columns[1] < LEAST:
        return None
    lead, n, tail = columns
    least = max(parts_of(columns, cores), -(-n // ROWS))
    parts = next((p for p in range(least, 2 * least) if n % p == 0), 0)
    if not parts:
        return None
    means, squares = _shifted(reshaped(x, (lead, parts, n // parts, tail)), None, (2,))
    return _shifted(means, squares, (1,), n // parts) if parts > 1 else (means, squares)


def _of_rows(x: Value, axes: Sequence[int]) -> tuple[Value, Value] | None:
    """Those over `axes` that end with the last ones: of parts that registers hold, by two passes over these."""
    sizes = [d for d in dims_of(x) if isinstance(d, int)]
    kept = max((d for d in range(len(sizes)) if d not in axes and sizes[d] != 1), default=-1) + 1
    row, others = math.prod(sizes[kept:]), tuple(d for d in axes if d < kept and sizes[d] != 1)
    if len(sizes) != len(dims_of(x)) or math.prod(sizes) < MANY or not others and row <= ROW:
        return None
    part = next((n for n in range(min(row, PART), LEAST - 1, -1) if row % n == 0), 0)
    if not part:
        return None
    y = reshaped(x, (*sizes[:kept], row // part, part))
    means = mean_over(y, (kept + 1,))
    difference = xt.sub(y, means)
    return _shifted(means, total(xt.mul(difference, difference), (kept + 1,)), (*others, kept), part)


def _shifted(x: Value, squares: Value | None, axes: Sequence[int], weight: int = 1) -> tuple[Value, Value]:
    """The means of `x` over `axes`, and the sums of squared distances from them, both with dims of 1 there.

    Where `x` has the means of parts of `weight` elements, `squares` has their sums of squared distances.
    """
    n, near = 1, x
    for axis in axes:
        size = dims_of(x)[axis]
        assert isinstance(size, int)
        n, near = n * size, take(near, axis, size // 2, size // 2 + 1)
    difference = xt.sub(x, near)
    distance = xt.mul(difference, difference)
    if squares is not None:
        distance = xt.add(squares, xt.mul(distance, const(weight, x)))
    a, b = total(difference, axes), total(distance, axes)
    rest = xt.sub(b, xt.mul(xt.mul(a, a), const(weight / n, x)))
    return xt.add(near, xt.mul(a, const(1 / n, x))), xt.maximum(rest, const(0, x))


def _squares(x: Value, mean: Value, axes: Sequence[int]) -> list[Operation]:
    """The sums over `axes` of (x - mean)^2."""
    means = [mean, *(r.results[0] for r in _users(mean, "reshape") if _ends_alike(r.results[0], mean))]
    return [total for m in means for d in _users(m, "sub") if list(d.operands) == [x, m]
            for p in _users(d.results[0], "mul") if list(p.operands) == [d.results[0]] * 2
            for total in _users(p.results[0], "reduce")
            if xt.attrs_of(total).kind == "sum" and positive(xt.attrs_of(total).axes, x) == axes]


def _users(value: Value, name: str) -> list[Operation]:
    return [op for op in dict.fromkeys(u.owner.operation for u in value.uses) if op.name == f"xt.{name}"]


def _ends_alike(a: Value, b: Value) -> bool:
    """Whether the shapes are equal but for leading dims of 1: they are broadcast alike."""
    one, other = (list(dims_of(v)) for v in (a, b))
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    return longer == [1] * (len(longer) - len(shorter)) + shorter
