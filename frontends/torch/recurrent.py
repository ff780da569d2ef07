"""LSTM, GRU and RNN: layers, directions, batch first, cells.

A layer is an xt op with both directions; torch's gates are put into the order that xt has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xcc import symbolic
from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.shared.helpers import full, slice_axis, split
from xcc.frontends.torch.context import Context
from xcc.frontends.torch.random import dropped, survivors
from xcc.frontends.torch.registry import aten

_ORDERS = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}
"""The gates of xt as places among torch's: i f g o -> i o f g, r z n -> z r n."""


@dataclass(frozen=True)
class Layer:
    """The weights of one layer as xt's op takes them: [dirs, gates * hidden, ...]."""

    w: Value
    r: Value
    b: Value | None


def _reordered(x: Value, order: Sequence[int]) -> Value:
    """The parts of dim 0 in another order."""
    if len(order) == 1:
        return x
    parts = split(x, 0, [symbolic.floordiv(xt.shape_of(x)[0], len(order))] * len(order))
    return xt.concatenate(*(parts[i] for i in order), axis=0)


def _stacked(values: Sequence[Value]) -> Value:
    """Values of one shape along a new first dim."""
    parts = [xt.reshape(v, shape=(1, *xt.shape_of(v))) for v in values]
    return parts[0] if len(parts) == 1 else xt.concatenate(*parts, axis=0)


def _layers(cx: Context, kind: str) -> list[Layer]:
    """From the flat list w_ih, w_hh, b_ih, b_hh of each direction of each layer."""
    params = cx.tensors("params")
    each, dirs, order = 4 if cx["has_biases"] else 2, 2 if cx["bidirectional"] else 1, _ORDERS[kind]
    if len(params) != each * dirs * int(cx["num_layers"]):
        cx.fail("a recurrent layer with a projection (proj_size) is not supported: apply a linear layer instead")
    out = []
    for at in range(0, len(params), each * dirs):
        groups = [[_reordered(p, order) for p in params[d:d + each]] for d in range(at, at + each * dirs, each)]
        biases = [xt.concatenate(g[2], g[3], axis=0) for g in groups] if each == 4 else []
        out.append(Layer(_stacked([g[0] for g in groups]), _stacked([g[1] for g in groups]),
                         _stacked(biases) if biases else None))
    return out


def _run(kind: str, layer: Layer, x: Value, states: Sequence[Value], direction: str) -> tuple[Value, ...]:
    if kind == "lstm":
        out: tuple[Value, ...] = xt.lstm(x, layer.w, layer.r, layer.b, None, *states, direction=direction)
        return out
    if kind == "gru":
        out = xt.gru(x, layer.w, layer.r, layer.b, None, *states, direction=direction, linear_before_reset=1)
        return out
    activation = kind.removeprefix("rnn_")
    out = xt.rnn(x, layer.w, layer.r, layer.b, None, *states, direction=direction,
                 activations=(activation,) * (2 if direction == "bidirectional" else 1))
    return out


def _stack(cx: Context, x: Value, states: Sequence[Value]) -> tuple[Value, ...]:
    """All layers over x [seq, batch, input]: the last one's outputs [seq, batch, dirs * hidden], all last states.

    In training each layer but the first reads what dropout leaves.
    """
    p = float(cx.get("dropout", 0.0)) if cx["train"] else 0.0
    kind = cx.node.op.split(".")[1]
    dirs = 2 if cx["bidirectional"] else 1
    last: list[list[Value]] = [[] for _ in states]
    for n, layer in enumerate(_layers(cx, kind)):
        x = dropped(x, survivors(cx.random_words(), tuple(xt.shape_of(x)), p), p) if n and p else x
        own = [slice_axis(s, 0, n * dirs, (n + 1) * dirs) for s in states]
        every, *new = _run(kind, layer, x, own, "bidirectional" if dirs == 2 else "forward")
        seq, _, batch, hidden = xt.shape_of(every)
        x = xt.reshape(xt.transpose(every, perm=(0, 2, 1, 3)), shape=(seq, batch, dirs * hidden))
        for pile, state in zip(last, new, strict=True):
            pile.append(state)
    return x, *(p[0] if len(p) == 1 else xt.concatenate(*p, axis=0) for p in last)


def _states(cx: Context) -> list[Value]:
    """h, and c of an LSTM: [layers * dirs, batch, hidden]."""
    return cx.tensors("hx") if isinstance(cx["hx"], tuple) else [cx.tensor("hx")]


@aten("lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input")
def recurrent(cx: Context) -> tuple[Value, ...]:
    """output, h_n, and c_n of an LSTM."""
    x = cx.tensor("input")
    if not cx["batch_first"]:
        return _stack(cx, x, _states(cx))
    out, *last = _stack(cx, xt.transpose(x, perm=(1, 0, 2)), _states(cx))
    return xt.transpose(out, perm=(1, 0, 2)), *last


@aten("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")
def cell(cx: Context) -> list[Value] | Value:
    """One step of one layer: h', and c' of an LSTM."""
    kind = cx.node.op.split(".")[1].removesuffix("_cell")
    order = _ORDERS[kind]
    x = cx.tensor("input")
    w, r = (_stacked([_reordered(cx.tensor(n), order)]) for n in ("w_ih", "w_hh"))
    bias = None
    if cx.get("b_ih") is not None or cx.get("b_hh") is not None:
        given = [_reordered(cx.tensor(n), order) if cx.get(n) is not None else None for n in ("b_ih", "b_hh")]
        some = next(g for g in given if g is not None)
        bias = _stacked([xt.concatenate(*(full(xt.shape_of(some), 0, cx.dtype("input")) if g is None else g
                                          for g in given), axis=0)])
    out = _run(kind, Layer(w, r, bias), _stacked([x]), [_stacked([s]) for s in _states(cx)], "forward")
    made = [xt.reshape(v, shape=xt.shape_of(v)[1:]) for v in out[1:]]
    return made if len(made) > 1 else made[0]


@aten("recurrent.default", namespace="xcc")
def one_direction(cx: Context) -> list[Value]:
    """One direction of one layer (see :mod:`xcc.frontends.torch.layers`): output, h_n, and c_n of an LSTM."""
    kind = cx["kind"]
    weights = [_reordered(w, _ORDERS[kind]) for w in cx.tensors("weights")]
    bias = _stacked([xt.concatenate(*weights[2:], axis=0)]) if len(weights) == 4 else None
    layer = Layer(_stacked(weights[:1]), _stacked(weights[1:2]), bias)
    made = _run(kind, layer, cx.tensor("x"), [_stacked([s]) for s in cx.tensors("states")],
                "reverse" if cx["reverse"] else "forward")
    return [xt.reshape(v, shape=cx.out(n).shape) for n, v in enumerate(made)]
