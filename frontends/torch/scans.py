"""Associative scans as loops over slices.

torch's ``associative_scan(..., combine_mode="generic")``, the scans of state space models, cuts its operands in two as
often as it can: some ten slices and copies a time, and each length makes a graph of its own. A loop reads each element
once, and its length is a value of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import cast

import torch
from torch import Tensor
from torch._dynamo.symbolic_convert import InstructionTranslatorBase as Frame
from torch._dynamo.variables import UserFunctionVariable
from torch._dynamo.variables.base import VariableTracker
from torch._higher_order_ops.associative_scan import generic_associative_scan
from torch._higher_order_ops.scan import scan
from torch.fx.experimental import _config as sizes

Called = Callable[[UserFunctionVariable, Frame, list[VariableTracker], dict[str, VariableTracker]], VariableTracker]

__all__ = ["by_loops"]


def by_loops(function: Called) -> Called:
    """``UserFunctionVariable.call_function``."""

    def call_function(own: UserFunctionVariable, tx: Frame, args: list[VariableTracker],
                      kwargs: dict[str, VariableTracker]) -> VariableTracker:
        if own.fn is generic_associative_scan and sizes.backed_size_oblivious:
            own = UserFunctionVariable(cast(FunctionType, _scanned))
        return function(own, tx, args, kwargs)

    return call_function


def _scanned(combine: Callable[..., Sequence[Tensor]], leaves: Sequence[Tensor], dim: int = 0,
             additional_inputs: Sequence[Tensor] = ()) -> list[Tensor]:
    """What `combine` makes of the elements of each leaf [n, ...] up to each place; it takes and gives batches."""
    firsts = torch.arange(leaves[0].shape[dim], device=leaves[0].device) == 0

    def step(before: Sequence[Tensor], given: tuple[Tensor, Sequence[Tensor]]) -> tuple[list[Tensor], list[Tensor]]:
        is_first, now = given
        both = combine(*[x.unsqueeze(0) for x in before], *[x.unsqueeze(0) for x in now], *additional_inputs)
        made = [torch.where(is_first, x, y.squeeze(0)) for x, y in zip(now, both, strict=True)]
        return made, [x.clone() for x in made]

    _, stacked = scan(step, [x.select(dim, 0).clone() for x in leaves], (firsts, list(leaves)), dim=dim)
    return [x.movedim(0, dim) for x in stacked]
