"""What ops give for tensors without data, where torch's own rule takes no symbolic sizes."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch._subclasses import fake_impls

__all__ = ["declare_fake_ops"]


@cache
def declare_fake_ops() -> None:
    """From now on ``_upsample_bicubic2d_aa_backward`` is traced at any size, as its bilinear sibling is."""
    op = torch.ops.aten._upsample_bicubic2d_aa_backward.default
    if op not in fake_impls.op_implementations_dict:
        fake_impls.register_op_impl(op)(_as_input)


def _as_input(mode: Any, op: Any, grad: Any, output_size: Any, input_size: Any, *rest: Any, **named: Any) -> Any:
    with mode:
        return grad.new_empty(input_size)
