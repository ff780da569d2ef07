"""Gradients of recurrent layers.

All gates are computed again in two products over all steps, since the outputs are known; a loop against the layer's
direction then has one small product a step, and gives the gradients before the gates, of which those of the weights are
products over all steps again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import convert, element, scalar, slice_axis, split, unsqueeze
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.registry import aten

Values = tuple[Value, ...]
Step = Callable[[Values, Values], tuple[list[Value], list[Value]]]
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@dataclass(frozen=True)
class Layer:
    """What the layer was given, and all its outputs y [seq, batch, hidden]."""

    kind: str
    x: Value
    weights: tuple[Value, ...]
    states: tuple[Value, ...]
    y: Value
    reverse: bool

    def before(self, values: Value, first: Value) -> Value:
        """Of each step what `values` were after the step before it; `first` at the beginning."""
        steps = xt.shape_of(values)[0]
        if self.reverse:
            return slice_axis(xt.concatenate(values, unsqueeze(first, [0]), axis=0), 0, 1, steps + 1)
        return slice_axis(xt.concatenate(unsqueeze(first, [0]), values, axis=0), 0, 0, steps)

    def gates(self, hidden: Value) -> tuple[list[Value], list[Value]]:
        """Before the activations, of each gate [seq, batch, hidden]: the input's part, the last output's part."""
        biases = self.weights[2:] or (None, None)
        return tuple(self._gates(v, w, b)     # type: ignore[return-value]
                     for v, w, b in zip((self.x, hidden), self.weights[:2], biases, strict=True))

    def _gates(self, values: Value, weight: Value, bias: Value | None) -> list[Value]:
        out = xt.dot_general(values, weight, lhs_contract=(2,), rhs_contract=(1,))
        out = out if bias is None else xt.add(out, bias)
        return split(out, 2, [xt.shape_of(self.y)[2]] * GATES[self.kind])

    def back(self, carried: Sequence[Value], xs: Sequence[Value], step: Step) -> Values:
        """A loop from the layer's last step to its first."""
        turned = [int(not self.reverse)]
        outs = 2 if self.kind == "gru" else 1
        return tuple(xt.scan(list(carried), list(xs), step, reverse=turned * len(xs), out_reverse=turned * outs))

    def through(self, grad: Value) -> Value:
        """The gradient of the output before, from that of its part of the gates."""
        return xt.dot_general(grad, self.weights[1], lhs_contract=(1,), rhs_contract=(0,))


def _rest(x: Value) -> Value:
    return xt.sub(scalar(1, x), x)


def _slope(sigmoid: Value) -> Value:
    return xt.mul(sigmoid, _rest(sigmoid))


def _lstm(of: Layer, grads: Values, hidden: Value) -> tuple[Value, Value, list[Value]]:
    i, f, g, o = (xt.add(a, b) for a, b in zip(*of.gates(hidden), strict=True))
    i, f, g, o = xt.sigmoid(i), xt.sigmoid(f), xt.tanh(g), xt.sigmoid(o)

    def forward(carried: Values, now: Values) -> tuple[list[Value], list[Value]]:
        cell = xt.add(xt.mul(carried[0], now[0]), now[1])
        return [cell], [cell]

    turned = [int(of.reverse)]
    _, cells = xt.scan([of.states[1]], [f, xt.mul(i, g)], forward, reverse=turned * 2, out_reverse=turned)
    wide = xt.tanh(cells)
    inner = xt.concatenate(xt.mul(g, _slope(i)), xt.mul(of.before(cells, of.states[1]), _slope(f)),
                           xt.mul(i, _rest(xt.mul(g, g))), axis=2)
    outer, kept = xt.mul(wide, _slope(o)), xt.mul(o, _rest(xt.mul(wide, wide)))

    def step(carried: Values, now: Values) -> tuple[list[Value], list[Value]]:
        grad_y, factors, own, share, forget = now
        dh = xt.add(carried[0], grad_y)
        dc = xt.add(carried[1], xt.mul(dh, share))
        grad = xt.concatenate(xt.mul(xt.concatenate(dc, dc, dc, axis=1), factors), xt.mul(dh, own), axis=1)
        return [of.through(grad), xt.mul(dc, forget)], [grad]

    dh, dc, grad = of.back(grads[1:], [grads[0], inner, outer, kept, f], step)
    return grad, grad, [dh, dc]


def _gru(of: Layer, grads: Values, hidden: Value) -> tuple[Value, Value, list[Value]]:
    (ri, zi, ni), (rh, zh, nh) = of.gates(hidden)
    r, z = xt.sigmoid(xt.add(ri, rh)), xt.sigmoid(xt.add(zi, zh))
    n = xt.tanh(xt.add(ni, xt.mul(r, nh)))
    new = xt.mul(_rest(z), _rest(xt.mul(n, n)))
    factors = [new, xt.mul(nh, _slope(r)), xt.mul(xt.sub(hidden, n), _slope(z)), r, z]

    def step(carried: Values, now: Values) -> tuple[list[Value], list[Value]]:
        grad_y, new, reset, update, r, z = now
        dh = xt.add(carried[0], grad_y)
        dn = xt.mul(dh, new)
        grad = xt.concatenate(xt.mul(dn, reset), xt.mul(dh, update), xt.mul(dn, r), axis=1)
        return [xt.add(xt.mul(dh, z), of.through(grad))], [grad, dn]

    dh, of_hidden, dn = of.back(grads[1:], [grads[0], *factors], step)
    shared = slice_axis(of_hidden, 2, 0, 2 * xt.shape_of(of.y)[2])
    return xt.concatenate(shared, dn, axis=2), of_hidden, [dh]


def _rnn(of: Layer, grads: Values, hidden: Value) -> tuple[Value, Value, list[Value]]:
    slope = _rest(xt.mul(of.y, of.y)) if of.kind == "rnn_tanh" \
        else convert(xt.compare(of.y, scalar(0, of.y), direction="gt"), element(of.y))

    def step(carried: Values, now: Values) -> tuple[list[Value], list[Value]]:
        grad = xt.mul(xt.add(carried[0], now[0]), now[1])
        return [of.through(grad)], [grad]

    dh, grad = of.back(grads[1:], [grads[0], slope], step)
    return grad, grad, [dh]


RULES = {"lstm": _lstm, "gru": _gru, "rnn_tanh": _rnn, "rnn_relu": _rnn}


@aten("recurrent_backward.default", namespace="xcc")
def recurrent_backward(cx: Context) -> list[Value]:
    """The gradients of x, of each weight and of each state."""
    grads, weights, states = (tuple(cx.tensors(name)) for name in ("grads", "weights", "states"))
    of = Layer(cx["kind"], cx.tensor("x"), weights, states, cx.tensor("y"), bool(cx["reverse"]))
    hidden = of.before(of.y, states[0])
    of_input, of_hidden, last = RULES[of.kind](of, grads, hidden)
    sides = (of_input, of.x), (of_hidden, hidden)
    products = [xt.dot_general(grad, v, lhs_contract=(0, 1), rhs_contract=(0, 1)) for grad, v in sides]
    biases = [xt.reduce(grad, kind="sum", axes=(0, 1)) for grad, _ in sides] if len(weights) == 4 else []
    dx = xt.dot_general(of_input, weights[0], lhs_contract=(2,), rhs_contract=(0,))
    return [dx, *products, *biases, *last]
