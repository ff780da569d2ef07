"""One line for PyTorch users: ``xcc.torch.compile(model)``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = ["compile", "function"]


def compile(model: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """``torch.compile(model, backend="xcc")`` with one compilation for all sizes of its inputs, 0 and 1 too.

    Args:
        model: a function of tensors, or a ``torch.nn.Module`` (whose parameters stay where they are).
        options: those of the backend: strict, freeze, precision, chip, threads, cache
            (:class:`xcc.frontends.torch.backend.BackendOptions`).

    Returns a function with the model's arguments. Raises UserError for an unknown option.
    """
    import torch
    from torch.fx.experimental import _config as sizes

    from xcc.frontends.torch import compat
    from xcc.frontends.torch.backend import BackendOptions, backend
    from xcc.frontends.torch.layers import whole_layers

    BackendOptions.make(options)
    compat.without_guards_of_kernels()
    compiled = torch.compile(model, backend=backend, dynamic=True, options=options)
    if isinstance(model, torch.nn.Module) and any(isinstance(m, torch.nn.RNNBase) for m in model.modules()):
        compiled = torch._dynamo.config.patch(allow_rnn=True)(compiled)     # layers that Dynamo leaves to Python else
    whole = whole_layers()
    tracing = sizes.patch(backed_size_oblivious=True)       # type: ignore[attr-defined]

    @wraps(model if hasattr(model, "__name__") else model.forward)      # type: ignore[attr-defined]
    def call(*args: Any, **kwargs: Any) -> Any:
        with tracing, whole:
            return compiled(*args, **kwargs)

    return call


def function(model: Any) -> Callable[..., Any]:
    """A compiled model for CPUs (:class:`xcc.Model`) as a function of torch tensors, without Dynamo.

        f = xcc.torch.function(xcc.compile(torch.export.export(model, (x,))))
        y = f(x)

    It takes the model's inputs in order or by name, and returns new tensors, one bare, several as a tuple; inputs that
    the model updates are written in place. Raises UserError for a model of another target, and when an argument does
    not fit.
    """
    from xcc.frontends.torch.function import TensorFunction

    return TensorFunction(model)
