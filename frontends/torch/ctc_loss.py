"""Connectionist Temporal Classification (Graves et al., 2006): a loop over the steps, in logarithms, and one back.

The states are the labels of a target with the blank before, between and behind them. What a state has of the one that
it came from is a share of at most 1: the loop back carries probabilities, and sums of products alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, full, scalar, slice_axis, unsqueeze
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten
from xcc.symbolic import Dim


def _infinite(x: Value, value: float) -> Value:
    return xt.compare(x, scalar(value, x), direction="eq")


def _before(x: Value, count: int, value: float) -> Value:
    """Along the last dim, what is `count` places before; `value` where nothing is."""
    rank, axis = len(xt.shape_of(x)), len(xt.shape_of(x)) - 1
    wide = xt.pad(x, low=(*[0] * axis, count), high=(0,) * rank, value=value)
    return slice_axis(wide, axis, 0, xt.shape_of(x)[axis])


def _after(x: Value, count: int) -> Value:
    """Along dim 1, what is `count` places behind; 0 where nothing is."""
    size = xt.shape_of(x)[1]
    return slice_axis(xt.pad(x, low=(0, 0), high=(0, count), value=0), 1, count, size + count)


def _log_sum(values: list[Value]) -> Value:
    """log(exp(a) + exp(b) + ...), also of -inf alone."""
    most = values[0]
    for v in values[1:]:
        most = xt.maximum(most, v)
    most = xt.select(_infinite(most, -inf), scalar(0, most), most)
    out = xt.exp(xt.sub(values[0], most))
    for v in values[1:]:
        out = xt.add(out, xt.exp(xt.sub(v, most)))
    return xt.add(xt.log(out), most)


@dataclass(frozen=True)
class _States:
    """`labels` [seq, batch, states]: the class of each; `skips` [batch, states]: where the blank before may be left
    out; `ends`: the two states of a whole target; `live` [seq, batch, 1]: steps that count; `emitted` like `labels`."""

    labels: Value
    skips: Value
    ends: Value
    live: Value
    emitted: Value

    @property
    def first(self) -> Value:
        """Before all steps: in the blank ahead of the target."""
        _, batch, count = xt.shape_of(self.labels)
        at = xt.iota(shape=(batch, count), axis=1, dtype="i64")
        begun = scalar(0, self.emitted)
        return xt.select(xt.compare(at, scalar(0, at), direction="eq"), begun, scalar(-inf, begun))


def _states(cx: Context) -> _States:
    x, targets = cx.tensor("log_probs"), convert(cx.tensor("targets"), "i64")
    steps, lengths = (unsqueeze(convert(cx.tensor(n), "i64"), [1]) for n in ("input_lengths", "target_lengths"))
    (seq, batch, _), size, blank = xt.shape_of(x), xt.shape_of(targets)[1], int(cx["blank"])
    at = xt.iota(shape=(batch, size), axis=1, dtype="i64")
    own = xt.select(xt.compare(at, lengths, direction="lt"), targets, scalar(blank, at))
    pairs = xt.concatenate(full((batch, size, 1), blank, "i64"), unsqueeze(own, [2]), axis=2)
    labels = xt.concatenate(xt.reshape(pairs, shape=(batch, size * 2)), full((batch, 1), blank, "i64"), axis=1)
    count: Dim = size * 2 + 1
    place = xt.iota(shape=(batch, count), axis=1, dtype="i64")
    last = xt.mul(lengths, scalar(2, lengths))
    ends = xt.or_(xt.compare(place, last, direction="eq"),
                  xt.compare(place, xt.sub(last, scalar(1, last)), direction="eq"))
    wide = xt.broadcast(labels, shape=(seq, batch, count))
    time = xt.iota(shape=(seq, batch, 1), axis=0, dtype="i64")
    return _States(wide, xt.compare(labels, _before(labels, 2, blank), direction="ne"), ends,
                   xt.compare(time, steps, direction="lt"), xt.gather_elements(x, wide, axis=2))


@aten("ctc_loss.default", namespace="xcc")
def ctc_loss(cx: Context) -> tuple[Value, Value]:
    """-log of the probability of all alignments [batch], and those of the states [seq, batch, 2 * most + 1]; a state
    follows itself, the one before, and where `skips` the one before that."""
    of = _states(cx)
    none = scalar(-inf, of.emitted)

    def step(carried: tuple[Value, ...], now: tuple[Value, ...]) -> tuple[list[Value], list[Value]]:
        state, (emitted, live) = carried[0], now
        skipped = xt.select(of.skips, _before(state, 2, -inf), none)
        new = xt.add(emitted, _log_sum([state, _before(state, 1, -inf), skipped]))
        new = xt.select(live, new, state)
        return [new], [new]

    last, states = xt.scan([of.first], [of.emitted, of.live], step)
    whole = xt.select(of.ends, last, none)
    most = xt.reduce(whole, kind="max", axes=(1,), keepdims=True)
    most = xt.select(_infinite(most, -inf), scalar(0, most), most)
    total = xt.reduce(xt.exp(xt.sub(whole, most)), kind="sum", axes=(1,), keepdims=True)
    return xt.neg(xt.reshape(xt.add(xt.log(total), most), shape=cx.out().shape)), states


@aten("ctc_loss_backward.default", namespace="xcc")
def ctc_loss_backward(cx: Context) -> Value:
    """exp(log_probs) less the probability that an alignment of the target has the class at the step."""
    of, x = _states(cx), cx.tensor("log_probs")
    loss, grad = (unsqueeze(cx.tensor(n), [1]) for n in ("loss", "grad"))
    states = cx.tensor("states")
    seq, nothing = xt.shape_of(states)[0], scalar(0, x)
    ahead = slice_axis(xt.concatenate(unsqueeze(of.first, [0]), states, axis=0), 0, 0, seq)
    sums = xt.select(_infinite(states, -inf), scalar(inf, x), xt.sub(states, of.emitted))
    last = slice_axis(states, 0, seq - 1, seq)
    last = xt.reshape(last, shape=xt.shape_of(last)[1:])
    begun = xt.select(of.ends, xt.exp(xt.add(last, loss)), nothing)

    def step(carried: tuple[Value, ...], now: tuple[Value, ...]) -> tuple[list[Value], list[Value]]:
        held, (before, total, live) = carried[0], now
        stayed, came, skipped = (xt.mul(held, xt.exp(xt.sub(_before(before, k, -inf) if k else before, total)))
                                 for k in range(3))
        new = xt.add(xt.add(stayed, _after(came, 1)), _after(xt.select(of.skips, skipped, nothing), 2))
        return [xt.select(live, new, held)], [held]

    _, held = xt.scan([begun], [ahead, sums, of.live], step, reverse=[1, 1, 1], out_reverse=[1])
    classes = xt.scatter_elements(full(xt.shape_of(x), 0, cx.dtype("log_probs")), of.labels, held, axis=2,
                                  reduction="add")
    out = xt.mul(xt.sub(xt.exp(x), classes), grad)
    out = xt.select(_infinite(loss, inf), nothing if cx["zero_infinity"] else scalar(float("nan"), x), out)
    return xt.select(of.live, out, nothing)
