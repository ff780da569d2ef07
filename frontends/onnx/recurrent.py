"""LSTM, GRU and RNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op

_DEFAULTS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}
_ALPHAS = {"affine": 1.0, "elu": 1.0, "hardsigmoid": 0.2, "leakyrelu": 0.01, "scaledtanh": 1.0, "thresholdedrelu": 1.0}
_BETAS = {"affine": 0.0, "hardsigmoid": 0.5, "scaledtanh": 1.0}


def _options(cx: Context) -> dict[str, Any]:
    direction = cx.attr("direction", "forward").lower()
    both = 2 if direction == "bidirectional" else 1
    default = _DEFAULTS[cx.op.removeprefix("DynamicQuantize")]
    names = tuple(n.lower() for n in cx.attr("activations", ())) or default * both
    names = names[:len(default) * both]
    return {"direction": direction, "activations": names,
            "alphas": _parameters(names, cx.attr("activation_alpha", ()), _ALPHAS),
            "betas": _parameters(names, cx.attr("activation_beta", ()), _BETAS), "clip": cx.attr("clip", 0.0)}


def _parameters(names: tuple[str, ...], given: Sequence[float], defaults: dict[str, float]) -> tuple[float, ...]:
    """One number for each function: those given go, in order, to the functions that take one."""
    left = list(given)
    if len(left) == len(names):
        return tuple(left)
    return tuple(left.pop(0) if n in defaults and left else defaults.get(n, 0.0) for n in names)


def _time_first(cx: Context, x: Value | None) -> Value | None:
    """`layout` 1 puts the batch first: X, and the states."""
    return xt.transpose(x, perm=(1, 0, 2)) if x is not None and cx.attr("layout", 0) else x


def _outputs(cx: Context, y: Value, *states: Value) -> tuple[Value, ...]:
    if not cx.attr("layout", 0):
        return (y, *states)
    return (xt.transpose(y, perm=(2, 0, 1, 3)), *(xt.transpose(s, perm=(1, 0, 2)) for s in states))


@onnx_op("LSTM")
def lstm(cx: Context) -> tuple[Value, ...]:
    """Y, Y_h, Y_c = LSTM(X, W, R, B?, sequence_lens?, initial_h?, initial_c?, P?)."""
    return lstm_of(cx, cx[1], cx[2])


def lstm_of(cx: Context, w: Value, r: Value) -> tuple[Value, ...]:
    """The LSTM with these matrices; X and what comes behind R are the node's operands."""
    values = [_time_first(cx, cx[0]), w, r, cx.optional(3), cx.optional(4), _time_first(cx, cx.optional(5)),
              _time_first(cx, cx.optional(6)), cx.optional(7)]
    return _outputs(cx, *xt.lstm(*values, input_forget=bool(cx.attr("input_forget", 0)), **_options(cx)))


@onnx_op("GRU")
def gru(cx: Context) -> tuple[Value, ...]:
    """Y, Y_h = GRU(X, W, R, B?, sequence_lens?, initial_h?)."""
    values = [_time_first(cx, cx[0]), cx[1], cx[2], cx.optional(3), cx.optional(4), _time_first(cx, cx.optional(5))]
    return _outputs(cx, *xt.gru(*values, linear_before_reset=cx.attr("linear_before_reset", 0), **_options(cx)))


@onnx_op("RNN")
def rnn(cx: Context) -> tuple[Value, ...]:
    """Y, Y_h = RNN(X, W, R, B?, sequence_lens?, initial_h?)."""
    values = [_time_first(cx, cx[0]), cx[1], cx[2], cx.optional(3), cx.optional(4), _time_first(cx, cx.optional(5))]
    return _outputs(cx, *xt.rnn(*values, **_options(cx)))
