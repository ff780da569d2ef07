"""What torch asks of sizes to choose its own kernels, and how their results lie, in traces for all sizes."""

from __future__ import annotations

from typing import Any

from torch.fx.experimental import _config as sizes

from xcc.frontends.torch.size_answers import is_stride

__all__ = ["guarding_strides", "of_kernels"]


def of_kernels(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:        # 2.11 names all arguments
        modes = (getattr(a, "fake_mode", None) for a in (*args, *kwargs.values()))
        mode = next((m for m in modes if m is not None), None)
        if not sizes.backed_size_oblivious or mode is None or mode.shape_env is None:
            return function(*args, **kwargs)
        with mode.shape_env.suppress_guards():
            return function(*args, **kwargs)

    return call


def guarding_strides(function: Any) -> Any:
    """Of a tensor whose strides are symbols torch cannot tell whether it has channels last, or no gaps, and says no:
    then those of the call that is traced decide how results lie, with guards, as they do in eager."""

    def lies_so(shape: Any, strides: Any) -> Any:
        if not sizes.backed_size_oblivious or not any(map(_of_a_stride, strides)):
            return function(shape, strides)
        with sizes.patch(backed_size_oblivious=False):      # type: ignore[attr-defined]
            return function(shape, strides)

    return lies_so


def _of_a_stride(number: Any) -> bool:
    """Whether a symbol that is a stride tells the number; others are sizes, and ints of a run."""
    node = getattr(number, "node", None)
    return node is not None and any(is_stride(node.shape_env, s) for s in node.expr.free_symbols)
