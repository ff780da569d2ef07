"""One line for PyTorch users: ``xcc.torch.compile(model)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["compile", "function"]


def compile(model: Callable[..., Any], **options: Any) -> Any:
    """``torch.compile(model, backend="xcc")`` with one compilation for all sizes of its inputs, 0 and 1 too.

    A function without parameters, whose sizes nothing says, is traced once and compiled for the sizes of its first
    calls, then once for all (``versions``).

    Args:
        model: a function of tensors, or a ``torch.nn.Module`` (whose parameters stay where they are).
        options: those of the backend: strict, freeze, precision, chip, threads, cache, versions
            (:class:`xcc.frontends.torch.backend.BackendOptions`).

    Returns what torch.compile does: a function or module with the model's arguments. Raises UserError for an unknown
    option.
    """
    from xcc.frontends.torch.backend import BackendOptions, backend
    from xcc.frontends.torch.oblivious import compile_all_sizes

    BackendOptions.make(options)
    return compile_all_sizes(model, backend, options)


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
