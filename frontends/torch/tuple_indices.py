"""Numbers of a call, and those that sizes decide, in indices of several dims: ``x[:, i]``, ``x[:, x.shape[1] // 2]``.

torch reads them as numbers there, which would compile anew for each; ``torch.select`` takes them as they are.

    x[a:b, i, ..., j] = y    ->    x.select(-1, j).select(1, i)[a:b, ...] = y
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch
from torch._dynamo.symbolic_convert import InstructionTranslatorBase as Frame
from torch._dynamo.variables import BuiltinVariable, ConstantVariable, TensorVariable, TupleVariable
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.tensor import SymNodeVariable
from torch.fx.experimental import _config as sizes

__all__ = ["by_selects", "set_by_selects"]

Inserted = Callable[[BuiltinVariable, Frame, list[VariableTracker], dict[str, VariableTracker]], VariableTracker | None]
Setter = Callable[[TensorVariable, Frame, VariableTracker, VariableTracker], VariableTracker]


def by_selects(function: Inserted) -> Inserted:
    """``BuiltinVariable._handle_insert_op_in_graph``, for ``operator.getitem``."""

    def inserted(own: BuiltinVariable, tx: Frame, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
                 ) -> VariableTracker | None:
        picked = _picked(args[0], tx, args[1]) if own.fn is operator.getitem and len(args) == 2 else None
        return function(own, tx, args if picked is None else [*picked], kwargs)

    return inserted


def set_by_selects(function: Setter) -> Setter:
    """``TensorVariable.method___setitem__``: a view of the tensor is written."""

    def setitem(own: TensorVariable, tx: Frame, key: VariableTracker, value: VariableTracker) -> VariableTracker:
        version = getattr(own, "_get_fake_version", None)       # not in torch 2.11
        picked = None if version is None else _picked(own, tx, key)
        if version is None or picked is None:
            return function(own, tx, key, value)
        before = version()
        function(picked[0], tx, picked[1], value)
        own._sync_if_inplace_mutation(tx, before, value.is_tensor())
        return ConstantVariable.create(None)

    return setitem


def _picked(x: VariableTracker, tx: Frame, key: VariableTracker) -> tuple[TensorVariable, VariableTracker] | None:
    """The tensor at the numbers of `key` that a run tells, and the rest of `key`; None where there are none."""
    if not sizes.backed_size_oblivious or type(x) is not TensorVariable or not isinstance(key, TupleVariable):
        return None
    items = [item.realize() for item in key.items]
    numbers = [n for n, item in enumerate(items)
               if isinstance(item, SymNodeVariable) and isinstance(item.sym_num, torch.SymInt)]
    if not numbers:
        return None
    widths = [_width(item) for item in items]
    ellipsis = next((n for n, item in enumerate(items) if _is(item, Ellipsis)), len(items))
    picked = x
    for n in reversed(numbers):
        dim = sum(widths[:n]) if n < ellipsis else -sum(widths[n:])
        found = picked.call_method(tx, "select", [ConstantVariable.create(dim), items[n]], {})
        assert isinstance(found, TensorVariable)
        picked, widths[n] = found, 0
    rest = [item for n, item in enumerate(items) if n not in numbers]
    return picked, TupleVariable(rest or [ConstantVariable.create(Ellipsis)])


def _width(item: VariableTracker) -> int:
    """How many dims of the tensor the index is of."""
    if isinstance(item, TensorVariable):
        return (item.ndim or 0) if item.dtype in (torch.bool, torch.uint8) else 1
    return 0 if any(_is(item, value) for value in (None, True, False, Ellipsis)) else 1


def _is(item: VariableTracker, value: object) -> bool:
    return bool(item.is_python_constant()) and item.as_python_constant() is value
