"""Softmax, rms norm, layer norm and group norm, as exporters spell them out."""

from __future__ import annotations

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.op import attrs_of, grouped_operands
from xcc.passes.xt.graph.match import NoMatch, Pattern, dims_of, dtype_of, mean_of, no_match, number, positive, single
from xcc.passes.xt.graph.rewrite import name_of, producer, same_type


def softmax(op: Operation) -> Value | NoMatch | None:
    """div(e, reduce_sum(e)), e = exp(sub(x, reduce_max(x))) over one axis -> softmax(x)."""
    e, total = op.operands
    if name_of(op) == "mul":
        inverse = producer(total, "reciprocal")
        if inverse is None:
            return None
        total = inverse.operands[0]
    power, sum_ = producer(e, "exp"), producer(total, "reduce")
    if power is None or sum_ is None or attrs_of(sum_).kind != "sum" or sum_.operands[0] != e:
        return None
    shifted = producer(power.operands[0], "sub")
    if shifted is None:
        return no_match(op, "the exponent does not subtract a maximum")
    x, top = shifted.operands[0], producer(shifted.operands[1], "reduce")
    if top is None or attrs_of(top).kind != "max" or top.operands[0] != x:
        return no_match(op, "what the exponent subtracts is not the maximum of the same value")
    axes = [positive(attrs_of(r).axes, x) for r in (sum_, top)]
    if axes[0] != axes[1] or len(axes[0]) != 1 or not (attrs_of(sum_).keepdims and attrs_of(top).keepdims):
        return no_match(op, "maximum and sum are not over the same one axis, kept as a dim of 1")
    return xt.softmax(x, axis=axes[0][0])


def rms_norm(op: Operation) -> Value | NoMatch | None:
    """x * rsqrt(mean(x*x) + eps), also as a division by the root -> rms_norm(x); over a centred x, layer_norm."""
    found = _root(op)
    if found is None:
        return None
    x, inside = found
    shifted = producer(inside, "add")
    if shifted is None:
        return no_match(op, "nothing is added to the mean square")
    for square, eps in (tuple(shifted.operands), tuple(shifted.operands)[::-1]):
        e, mean = number(eps), mean_of(square)
        if e is not None and mean is not None:
            break
    else:
        return no_match(op, "the root is not of a mean plus a constant")
    if not _is_square(mean[0], x):
        return no_match(op, "the mean is not of the square of what is normalised")
    if not same_type(x, op.results[0]):
        return no_match(op, "the result has another shape than the operand")
    centred = producer(x, "sub")
    around = mean_of(centred.operands[1]) if centred is not None else None
    if centred is not None and around is not None and around[0] == centred.operands[0] and around[1] == mean[1]:
        return xt.layer_norm(centred.operands[0], axes=mean[1], eps=e)
    return xt.rms_norm(x, axes=mean[1], eps=e)


def _root(op: Operation) -> tuple[Value, Value] | None:
    """(x, v) where op = x / sqrt(v)."""
    a, b = op.operands
    if name_of(op) == "div":
        root = producer(b, "sqrt")
        return (a, root.operands[0]) if root is not None else None
    for x, r in ((a, b), (b, a)):
        inverse = producer(r)
        if inverse is None:
            continue
        if name_of(inverse) == "rsqrt":
            return x, inverse.operands[0]
        if name_of(inverse) == "pow" and number(inverse.operands[1]) == -0.5:
            return x, inverse.operands[0]
        root = producer(inverse.operands[0], "sqrt") if name_of(inverse) == "reciprocal" else None
        if name_of(inverse) == "div" and number(inverse.operands[0]) == 1:
            root = producer(inverse.operands[1], "sqrt")
        if root is not None:
            return x, root.operands[0]
    return None


def _is_square(value: Value, x: Value) -> bool:
    op = producer(value)
    if op is None or name_of(op) not in ("mul", "pow") or op.operands[0] != x:
        return False
    return bool(op.operands[1] == x) if name_of(op) == "mul" else number(op.operands[1]) == 2


def affine(op: Operation) -> Value | None | NoMatch:
    """mul(norm(x), scale) -> norm(x, scale); add(layer_norm(x, scale), bias) -> layer_norm(x, scale, bias)."""
    for y, extra in (tuple(op.operands), tuple(op.operands)[::-1]):
        norm = single(y, "rms_norm", "layer_norm")
        if norm is None:
            continue
        a = attrs_of(norm)
        x, *given = grouped_operands(norm)
        present = [g is not None for g in given]
        if name_of(op) == "mul" and any(present) or name_of(op) == "add" and (len(given) < 2 or present[1]):
            return None
        dims, rank = dims_of(extra), len(dims_of(x))
        wide = (1,) * (rank - len(dims)) + tuple(dims)
        if len(dims) > rank or dtype_of(extra) != dtype_of(x) or not same_type(x, op.results[0]) \
                or any(n != 1 for d, n in enumerate(wide) if d not in a.axes):
            return no_match(op, "what is applied to the norm varies along other dims than the normalised ones")
        operands = [extra, *given[1:]] if name_of(op) == "mul" else [given[0], extra]
        build = xt.rms_norm if name_of(norm) == "rms_norm" else xt.layer_norm
        return build(x, *operands, axes=a.axes, eps=a.eps)
    return None


def narrow(op: Operation) -> Value | NoMatch | None:
    """convert(norm(convert(x, f32)), t) -> norm(x) for x of the narrower type t: the op computes in f32 anyway."""
    norm = single(op.operands[0], "rms_norm", "layer_norm", "softmax")
    inner = producer(norm.operands[0], "convert") if norm is not None else None
    if norm is None or inner is None:
        return None
    x = inner.operands[0]
    if dtype_of(x) != dtype_of(op.results[0]) or dtype_of(x) not in ("f16", "bf16"):
        return None
    if any(g is not None for g in grouped_operands(norm)[1:]):
        return no_match(op, "the norm has a scale in f32")
    a = attrs_of(norm)
    if name_of(norm) == "softmax":
        return xt.softmax(x, axis=a.axis)
    build = xt.rms_norm if name_of(norm) == "rms_norm" else xt.layer_norm
    return build(x, axes=a.axes, eps=a.eps)


def group_norm(op: Operation) -> Value | NoMatch | None:
    """reshape(group_norm(reshape(x) as [N, groups, rest])), each group a channel -> group_norm(x)."""
    norm = producer(op.operands[0], "group_norm")
    view = producer(norm.operands[0], "reshape") if norm is not None else None
    if norm is None or view is None:
        return None
    x, groups = view.operands[0], attrs_of(norm).groups
    dims, grouped = dims_of(x), dims_of(view.results[0])
    channels = dims[1] if len(dims) > 2 else None
    if not same_type(x, op.results[0]):
        return no_match(op, "the result has another shape than what is normalised")
    if len(grouped) != 3 or grouped[:2] != (dims[0], groups) or not isinstance(channels, int) or channels % groups:
        return no_match(op, "what is normalised are not the channels of each group")

    def spread(t: Value | None) -> Value | None:
        """One of a group for each of its channels."""
        return None if t is None else xt.reshape(xt.broadcast(
            xt.reshape(t, shape=(groups, 1)), shape=(groups, channels // groups)), shape=(channels,))

    _, scale, bias = grouped_operands(norm)
    return xt.group_norm(x, spread(scale), spread(bias), groups=groups, eps=attrs_of(norm).eps)


PATTERNS: dict[str, list[Pattern]] = {"div": [softmax, rms_norm], "mul": [softmax, rms_norm, affine], "add": [affine],
                                      "convert": [narrow], "reshape": [group_norm]}
