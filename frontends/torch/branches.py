"""``torch.cond`` in traces in which a size may be 0."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import sympy
import torch
from torch.fx.experimental import _config as sizes
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy.functions import Max

__all__ = ["merge_branches_of_nothing"]


def merge_branches_of_nothing() -> None:
    """From now on, in such traces, the results of two branches become one: torch asks that strides be products of
    sizes, and writes them ``max(1, n)`` where n may be 0, which it does not recognise."""
    module: Any = import_module("torch._higher_order_ops.cond")     # of that name the package has the function
    module._merge_output = _merging(module._merge_output)


def _merging(function: Any) -> Any:
    def merge(a: Any, b: Any, mode: Any) -> Any:
        alike = sizes.backed_size_oblivious
        if not alike or not all(isinstance(t, torch.Tensor) for t in (a, b)):
            return function(a, b, mode)
        with mode:
            plain = [_with_products(t, mode.shape_env) for t in (a, b)]
        return function(*plain, mode)

    return merge


def _with_products(tensor: Any, env: ShapeEnv) -> Any:
    """A tensor like this one, its strides without ``max(1, n)``."""
    strides = [env.create_symintnode(s.node.expr.replace(_is_at_least_one, _other), hint=s.node.hint)
               if isinstance(s, torch.SymInt) else s for s in tensor.stride()]
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)


def _is_at_least_one(expr: sympy.Expr) -> bool:
    return isinstance(expr, Max) and len(expr.args) == 2 and sympy.S.One in expr.args


def _other(expr: sympy.Expr) -> Any:
    return next(a for a in expr.args if a != 1)
