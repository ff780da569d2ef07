"""LSTM, GRU and RNN."""

from __future__ import annotations

from typing import Any

from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.registry import onnx_op

_DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


def _options(cx: Context) -> dict[str, Any]:
    direction = cx.attr("direction", "forward").lower()
    both = 2 if direction == "bidirectional" else 1
    names = cx.attr("activations") or list(_DEFAULTS[cx.op]) * both
    activations = [n.lower() for n in names]
    return {"direction": direction, "activations": tuple(activations),
            "activation_alpha": tuple(cx.attr("activation_alpha", ())),
            "activation_beta": tuple(cx.attr("activation_beta", ())), "clip": cx.attr("clip", 0.0) or 0.0}


def _time_first(cx: Context, x: Any) -> Any:
    """`layout` 1 puts the batch first: X, and the states."""
    return xt.transpose(x, perm=(1, 0, 2)) if x is not None and cx.attr("layout", 0) else x


def _outputs(cx: Context, y: Any, *states: Any) -> Any:
    if not cx.attr("layout", 0):
        return (y, *states)
    return (xt.transpose(y, perm=(2, 0, 1, 3)), *(xt.transpose(s, perm=(1, 0, 2)) for s in states))


@onnx_op("LSTM")
def lstm(cx: Context) -> Any:
    """Y, Y_h, Y_c = LSTM(X, W, R, B?, sequence_lens?, initial_h?, initial_c?, P?)."""
    values = [_time_first(cx, cx[0]), cx[1], cx[2], cx.optional(3), cx.optional(4), _time_first(cx, cx.optional(5)),
              _time_first(cx, cx.optional(6)), cx.optional(7)]
    return _outputs(cx, *xt.lstm(*values, input_forget=bool(cx.attr("input_forget", 0)), **_options(cx)))


@onnx_op("GRU")
def gru(cx: Context) -> Any:
    """Y, Y_h = GRU(X, W, R, B?, sequence_lens?, initial_h?)."""
    values = [_time_first(cx, cx[0]), cx[1], cx[2], cx.optional(3), cx.optional(4), _time_first(cx, cx.optional(5))]
    return _outputs(cx, *xt.gru(*values, linear_before_reset=bool(cx.attr("linear_before_reset", 0)), **_options(cx)))


@onnx_op("RNN")
def rnn(cx: Context) -> Any:
    """Y, Y_h = RNN(X, W, R, B?, sequence_lens?, initial_h?)."""
    values = [_time_first(cx, cx[0]), cx[1], cx[2], cx.optional(3), cx.optional(4), _time_first(cx, cx.optional(5))]
    return _outputs(cx, *xt.rnn(*values, **_options(cx)))
