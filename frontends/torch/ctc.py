"""The loss of Connectionist Temporal Classification as one op in traces.

torch's own keeps as many states as the longest target has, a size that only its values tell, and Dynamo ends a graph
there. ``xcc.ctc_loss`` has as many as there is room for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._guards import detect_fake_mode
from torch.autograd.function import FunctionCtx

from xcc.frontends.torch.layers import LIBRARY

__all__ = ["declare_ctc_loss"]

_LENGTHS = "Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths"
LIBRARY.define(f"ctc_loss({_LENGTHS}, int blank) -> (Tensor, Tensor)")
LIBRARY.define(f"ctc_loss_backward(Tensor grad, {_LENGTHS}, Tensor loss, Tensor states, int blank, "
                "bool zero_infinity) -> Tensor")


def _loss(x: Tensor, targets: Tensor, steps: Tensor, lengths: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """Of log-probabilities [seq, batch, classes], targets [batch, most] and the lengths of both [batch]: the losses
    [batch], and for the gradient the logarithms of the states' probabilities [seq, batch, 2 * most + 1]."""
    loss, states = torch.ops.aten._ctc_loss.Tensor(x, targets, steps, lengths, blank)
    missing = 2 * targets.shape[1] + 1 - states.shape[2]
    return loss, torch.nn.functional.pad(states, (0, missing), value=-torch.inf).transpose(0, 1).contiguous()


def _gradient(grad: Tensor, x: Tensor, targets: Tensor, steps: Tensor, lengths: Tensor, loss: Tensor, states: Tensor,
              blank: int, zero_infinity: bool) -> Tensor:
    """The gradient of the log-probabilities, as torch has it: that of the numbers that they are the log-softmax of."""
    found: Tensor = torch.ops.aten._ctc_loss_backward.Tensor(
        grad, x, targets, steps, lengths, loss, states.transpose(0, 1).contiguous(), blank, zero_infinity)
    return found


def _shapes(x: Tensor, targets: Tensor, steps: Tensor, lengths: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape[1]), x.new_empty((x.shape[0], x.shape[1], 2 * targets.shape[1] + 1))


def _gradient_shape(grad: Tensor, x: Tensor, *rest: object) -> Tensor:
    return x.new_empty(x.shape)


for _op, _own, _fake in (("ctc_loss", _loss, _shapes), ("ctc_loss_backward", _gradient, _gradient_shape)):
    LIBRARY.impl(_op, _own, "CompositeExplicitAutograd")
    LIBRARY.impl(_op, _fake, "Meta")


class _Saved(FunctionCtx):
    form: tuple[int, bool]
    saved_tensors: tuple[Tensor, ...]


class _Ctc(torch.autograd.Function):
    """``xcc.ctc_loss`` with its gradient."""

    @staticmethod
    def forward(ctx: _Saved, x: Tensor, targets: Tensor, steps: Tensor, lengths: Tensor, blank: int,
                zero_infinity: bool) -> Tensor:
        loss: Tensor
        loss, states = torch.ops.xcc.ctc_loss(x, targets, steps, lengths, blank)
        ctx.form = blank, zero_infinity
        ctx.save_for_backward(x, targets, steps, lengths, loss, states)
        return loss

    @staticmethod
    def backward(ctx: _Saved, grad: Tensor) -> tuple[Tensor | None, ...]:
        return torch.ops.xcc.ctc_loss_backward(grad, *ctx.saved_tensors, *ctx.form), None, None, None, None, None


_applied: Callable[..., Tensor] = _Ctc.apply


@cache
def declare_ctc_loss() -> None:
    """From now on traces have the loss as one op, but of targets without gaps whose lengths are a tensor."""
    for op in (torch.ops.aten.ctc_loss.Tensor, torch.ops.aten.ctc_loss.IntList):
        for key in (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd):
            if key not in op.py_kernels:
                op.py_impl(key)(partial(_ctc_loss, op))


def _ctc_loss(op: torch._ops.OpOverload[..., Tensor], log_probs: Tensor, targets: Tensor,
              input_lengths: Tensor | Sequence[int], target_lengths: Tensor | Sequence[int], blank: int = 0,
              reduction: int = 1, zero_infinity: bool = False) -> Tensor:
    packed = targets.dim() == 1 and log_probs.dim() == 3
    if detect_fake_mode() is None or packed and isinstance(target_lengths, Tensor):
        own: Tensor = op._op_dk(DispatchKey.CompositeImplicitAutograd, log_probs, targets, input_lengths,
                                target_lengths, blank, reduction, zero_infinity)
        return own
    batched = log_probs.dim() == 3
    x = log_probs if batched else log_probs.unsqueeze(1)
    if targets.dim() == 1:
        targets = targets.unsqueeze(0) if isinstance(target_lengths, Tensor) or not batched else \
            _padded(targets, target_lengths)
    steps, lengths = (torch.as_tensor(n, device=x.device).reshape(-1) for n in (input_lengths, target_lengths))
    loss = _applied(x, targets.to(x.device), steps, lengths, blank, zero_infinity)
    loss = torch.where(loss == torch.inf, 0, loss) if zero_infinity else loss
    if reduction == 1:
        return (loss / lengths.clamp(min=1)).mean()
    return loss.sum() if reduction == 2 else loss if batched else loss.squeeze(0)


def _padded(targets: Tensor, lengths: Sequence[int]) -> Tensor:
    """Targets that lie one behind the other as rows of the longest one's length."""
    most = max(lengths, default=0)
    last = max(sum(lengths) - 1, 0)
    places = [[min(sum(lengths[:n]) + at, last) for at in range(most)] for n in range(len(lengths))]
    return targets[torch.tensor(places, dtype=torch.int64, device=targets.device).reshape(-1)].reshape(-1, most)
