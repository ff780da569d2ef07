"""Recurrent layers as one op each in traces.

torch traces ``torch.lstm``, ``gru`` and ``rnn`` step by step: every length of the input is a graph of its own, with
thousands of nodes, and what it keeps of an LSTM for training only oneDNN reads. Within :func:`whole_layers` a layer and
direction is ``xcc.recurrent``, its gradient ``xcc.recurrent_backward``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch

__all__ = ["LIBRARY", "Within", "traced_whole", "whole_layers"]

Tensors = list[torch.Tensor]
KINDS = ("lstm", "gru", "rnn_tanh", "rnn_relu")

LIBRARY: Any = torch.library.Library("xcc", "FRAGMENT")     # type: ignore[no-untyped-call]
LIBRARY.define("recurrent(str kind, Tensor x, Tensor[] weights, Tensor[] states, bool reverse) -> Tensor[]")
LIBRARY.define("recurrent_backward(str kind, Tensor[] grads, Tensor x, Tensor[] weights, Tensor[] states, Tensor y, "
               "bool reverse) -> Tensor[]")


def recurrent(kind: str, x: torch.Tensor, weights: Tensors, states: Tensors, reverse: bool) -> Tensors:
    """One direction of a layer over x [seq, batch, input]: all outputs [seq, batch, hidden], the last states [batch,
    hidden]; weights are w_ih, w_hh, and b_ih, b_hh where there are biases."""
    given = [s.unsqueeze(0) for s in states]
    turned = x.flip(0) if reverse else x
    y, *last = getattr(torch._VF, kind)(turned, given if kind == "lstm" else given[0], weights, len(weights) == 4, 1,
                                        0.0, False, False, False)
    return [y.flip(0) if reverse else y.clone(), *(s.squeeze(0).clone() for s in last)]


def recurrent_backward(kind: str, grads: Tensors, x: torch.Tensor, weights: Tensors, states: Tensors, y: torch.Tensor,
                       reverse: bool) -> Tensors:
    """The gradients of x, of each weight and of each state, from those of all that the layer gives."""
    with torch.enable_grad():
        leaves = [t.detach().requires_grad_() for t in (x, *weights, *states)]
        count = 1 + len(weights)
        made = recurrent(kind, leaves[0], leaves[1:count], leaves[count:], reverse)
    return list(torch.autograd.grad(made, leaves, grads))


def _shapes(kind: str, x: torch.Tensor, weights: Tensors, states: Tensors, reverse: bool) -> Tensors:
    hidden = weights[1].shape[1]
    return [x.new_empty((x.shape[0], x.shape[1], hidden)), *(x.new_empty((x.shape[1], hidden)) for _ in states)]


def _gradient_shapes(kind: str, grads: Tensors, x: torch.Tensor, weights: Tensors, states: Tensors, y: torch.Tensor,
                     reverse: bool) -> Tensors:
    return [t.new_empty(t.shape) for t in (x, *weights, *states)]


for _op, _own, _fake in (("recurrent", recurrent, _shapes), ("recurrent_backward", recurrent_backward,
                                                             _gradient_shapes)):
    LIBRARY.impl(_op, _own, "CompositeExplicitAutograd")
    LIBRARY.impl(_op, _fake, "Meta")


class _Layer(torch.autograd.Function):
    """``xcc.recurrent`` with its gradient."""

    @staticmethod
    def forward(ctx: Any, kind: str, reverse: bool, count: int, x: torch.Tensor, *others: Any) -> Any:
        weights, states = list(others[:count]), list(others[count:])
        made = torch.ops.xcc.recurrent(kind, x, weights, states, reverse)
        ctx.form = kind, reverse, count
        ctx.save_for_backward(x, *others, made[0])
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        kind, reverse, count = ctx.form
        x, *others, y = ctx.saved_tensors
        found = torch.ops.xcc.recurrent_backward(kind, list(grads), x, others[:count], others[count:], y, reverse)
        return None, None, None, *found


_applied: Any = _Layer.apply


def _stack(kind: str, x: torch.Tensor, states: Sequence[Tensors], params: Tensors, biases: bool, layers: int,
           dropout: float, train: bool, both: bool, batch_first: bool) -> Any:
    """All layers: the last one's outputs, and the last states of all."""
    each, dirs = 4 if biases else 2, 2 if both else 1
    last: list[Tensors] = [[] for _ in states]
    x = x.transpose(0, 1) if batch_first else x
    for n in range(layers):
        if n and train and dropout:
            x = torch.dropout(x, dropout, True)
        outs = []
        for at in range(n * dirs, (n + 1) * dirs):
            y, *new = _applied(kind, at % dirs == 1, each, x, *params[at * each:(at + 1) * each],
                                   *(s[at] for s in states))
            outs.append(y)
            for pile, state in zip(last, new, strict=True):
                pile.append(state)
        x = torch.cat(outs, -1) if both else outs[0]
    return x.transpose(0, 1) if batch_first else x, *(torch.stack(pile) for pile in last)


class Within(threading.local):
    """A context that any number of callers share; `depth` is how often this thread is in it."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: Any) -> None:
        self.depth -= 1


_WHOLE = Within()


def whole_layers() -> Any:
    """In this context traces have recurrent layers whole."""
    _install()
    return _WHOLE


def traced_whole() -> bool:
    """Whether this thread is in such a context."""
    return _WHOLE.depth > 0


@cache
def _install() -> None:
    """Puts a rule in front of torch's own, which keeps what this one does not take."""
    for kind in KINDS:
        op = getattr(torch.ops.aten, kind).input
        for key in (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd):
            op.py_kernels[key] = _ruled(kind, op.py_kernels[key])
        op._dispatch_cache.clear()


def _ruled(kind: str, own: Callable[..., Any]) -> Callable[..., Any]:
    def rule(x: torch.Tensor, states: Any, params: Any, biases: bool, *rest: Any) -> Any:
        given = list(states) if kind == "lstm" else [states]
        projected = len(given) > 1 and given[0].shape[2] != given[1].shape[2]
        if not traced_whole() or projected:
            return own(x, states, params, biases, *rest)
        return _stack(kind, x, given, list(params), biases, *rest)

    return rule
