"""Which composite ops stay whole, because xt has them whole, and which torch decomposes."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["KEPT", "aot_decompositions", "decompositions"]

KEPT = (
    "linear.default", "matmul.default", "bmm.default", "mm.default", "addmm.default", "baddbmm.default",
    "einsum.default", "scaled_dot_product_attention.default",
    "conv1d.default", "conv1d.padding", "conv2d.default", "conv2d.padding", "conv3d.default", "conv3d.padding",
    "conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input", "convolution.default",
    "layer_norm.default", "group_norm.default", "instance_norm.default", "rms_norm.default",
    "native_layer_norm.default", "native_group_norm.default",
    "lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input",
    "gelu.default", "silu.default", "softmax.int", "log_softmax.int", "_softmax.default", "_log_softmax.default",
    "pad.default", "topk.default", "sort.default", "sort.stable",
    "upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec",
    "upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec", "upsample_bicubic2d.vec",
)
"""Ops of namespace aten that the importer takes whole. The fewer nodes, the faster the trace and the better the
kernels: a schedule of its own needs no pattern that finds the op again."""


def decompositions() -> Any:
    """The table for ``ExportedProgram.run_decompositions``: torch's own without what is kept."""
    table: Any = torch.export.default_decompositions()
    for name in KEPT:
        packet, overload = name.split(".")
        op = getattr(getattr(torch.ops.aten, packet, None), overload, None)
        if op is not None:
            table.pop(op, None)
    return table


def aot_decompositions() -> dict[Any, Any]:
    """The table for AOTAutograd: core ATen's without what is kept.

    Behind the dispatcher composite ops are gone already: linear came apart into transpose and product.
    """
    from torch._decomp import core_aten_decompositions

    table: dict[Any, Any] = dict(core_aten_decompositions())
    kept = {f"aten.{name}" for name in KEPT}
    return {op: rule for op, rule in table.items() if str(op) not in kept}
