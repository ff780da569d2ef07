"""Which composite ops stay whole, because xt has them whole, and which torch decomposes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import torch
from torch import Tensor

from xcc.frontends.torch.decomposed_quantization import quantized_decompositions
from xcc.frontends.torch.fake_quantized import FAKE_QUANTIZATION
from xcc.frontends.torch.foreach import foreach_decompositions
from xcc.frontends.torch.transformer_layers import transformer_decompositions

__all__ = ["KEPT", "aot_decompositions", "decompositions", "new_zeros_with_same_feature_meta"]

KEPT = (
    "linear.default", "matmul.default", "bmm.default", "mm.default", "addmm.default", "baddbmm.default",
    "mv.default", "dot.default", "einsum.default",
    "scaled_dot_product_attention.default", "_scaled_dot_product_flash_attention_for_cpu.default",
    "conv1d.default", "conv1d.padding", "conv2d.default", "conv2d.padding", "conv3d.default", "conv3d.padding",
    "conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input", "convolution.default",
    "layer_norm.default", "group_norm.default", "rms_norm.default", "_fused_rms_norm.default",
    "native_layer_norm.default", "native_group_norm.default",
    "lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input",
    "lstm_cell.default", "gru_cell.default", "rnn_tanh_cell.default", "rnn_relu_cell.default",
    "softmax.int", "log_softmax.int", "_softmax.default", "_log_softmax.default", "_safe_softmax.default",
    "gelu.default", "silu.default", "elu.default", "celu.default", "selu.default", "leaky_relu.default",
    "hardtanh.default", "hardsigmoid.default", "hardswish.default", "mish.default", "softplus.default", "glu.default",
    "threshold.default", "softshrink.default", "hardshrink.default", "log_sigmoid_forward.default",
    "_prelu_kernel.default", "pad.default", "roll.default", "topk.default", "sort.default", "sort.stable",
    *(f"{kind}_pad{n}d.default" for kind in ("reflection", "replication") for n in (1, 2, 3)),
    "nll_loss_forward.default", "nll_loss2d_forward.default", "mse_loss.default", "smooth_l1_loss.default",
    "huber_loss.default", "binary_cross_entropy.default", "binary_cross_entropy_with_logits.default",
    "im2col.default", "col2im.default", "pixel_shuffle.default", "pixel_unshuffle.default",
    "linspace.default", "linspace.Tensor_Tensor", "linspace.Tensor_Scalar", "linspace.Scalar_Tensor",
    "affine_grid_generator.default", "grid_sampler_2d.default", "grid_sampler_3d.default",
    "_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default", "adaptive_max_pool2d.default",
    "adaptive_max_pool3d.default", "avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default",
    "max_pool2d_with_indices.default", "max_pool3d_with_indices.default",
    *(f"{op}.{form}" for form in ("default", "vec")
      for op in ("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
                 "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "upsample_linear1d", "upsample_bilinear2d",
                 "upsample_trilinear3d", "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")),
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
    table[torch.ops.aten.instance_norm.default] = _instance_norm
    table.update(_own_decompositions() | _beyond_core() | quantized_decompositions())
    return table


def _instance_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor | None, variance: Tensor | None,
                   own: bool, *rest: Any) -> Any:
    """Group norm with a group a channel, where there are no running statistics to be written."""
    if not own or mean is not None:
        own_kernel = torch._C.DispatchKey.CompositeImplicitAutograd
        return torch.ops.aten.instance_norm.default._op_dk(own_kernel, x, weight, bias, mean, variance, own, *rest)
    return torch.group_norm(x, x.shape[1], weight, bias, rest[1])


def _own_decompositions() -> dict[object, object]:
    return foreach_decompositions() | transformer_decompositions() | FAKE_QUANTIZATION | _by_places()


def _by_places() -> dict[object, object]:
    """Ops of places in a tensor, of ones that xt has."""
    aten = torch.ops.aten
    return {aten.put.default: _put, aten.masked_scatter_backward.default: _masked_scatter_backward,
            aten.repeat_interleave.Tensor: _repeated_places}


def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    return x.reshape(-1).index_put([index.reshape(-1)], source.reshape(-1), accumulate).view(x.shape)


def _masked_scatter_backward(grad: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    """The gradients where `mask`, one behind the other in zeros of `sizes`."""
    chosen = mask.expand(grad.shape).reshape(-1)
    count = prod(sizes)
    places = torch.where(chosen, chosen.cumsum(0) - 1, count)
    return grad.new_zeros(count + 1).scatter(0, places, grad.reshape(-1))[:count].view(sizes)


def _repeated_places(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
    """0 `repeats[0]` times, 1 `repeats[1]` times, ...; where nobody says how many, only a run can."""
    if output_size is None:
        return NotImplemented
    places = torch.arange(output_size, dtype=repeats.dtype, device=repeats.device)
    return torch.searchsorted(repeats.cumsum(0), places, right=True).to(repeats.dtype)


def _weight_norm_backward(grad: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Of v / norms * g, where `norms` are those of what lies along dim `dim` of v: v's gradient, and g's."""
    norms = norms.to(g.dtype).view(g.shape)
    along = (grad * v).sum([d for d in range(v.dim()) if d != dim % v.dim()], keepdim=True)
    return g / norms * (grad - v * (along / (norms * norms))), along / norms


def new_zeros_with_same_feature_meta(x: Tensor, other: Tensor, *, self_num_batch_dims: int = 0) -> Tensor:
    """Zeros for a tangent: as many as `x` has batches of the shape of `other`."""
    return x.new_zeros((*x.shape[:self_num_batch_dims], *other.shape))


def aot_decompositions() -> dict[Any, Any]:
    """The table for AOTAutograd: core ATen's without what is kept, and those of other namespaces that are there by now.

    Behind the dispatcher composite ops are gone already: linear came apart into transpose and product.
    """
    return _aten_decompositions() | quantized_decompositions()


@cache
def _aten_decompositions() -> dict[Any, Any]:
    """To make it takes as long as to trace a small graph."""
    from torch._decomp import core_aten_decompositions

    table: dict[Any, Any] = dict(core_aten_decompositions()) | _own_decompositions() | _beyond_core()
    kept = {f"aten.{name}" for name in KEPT}
    return {op: rule for op, rule in table.items() if str(op) not in kept}


@cache
def _beyond_core() -> dict[object, object]:
    """Ops that torch does not take apart into core ATen: gradients mostly, which programs may hold, too."""
    from torch._decomp import get_decompositions

    aten = torch.ops.aten
    found = get_decompositions([
        aten.batch_norm_backward, aten.rrelu_with_noise_backward, aten.tril_indices, aten.triu_indices, aten.lcm,
        aten.narrow_copy, aten.unbind_copy])
    return dict(found.items()) | {
        aten._weight_norm_interface_backward.default: _weight_norm_backward,
        aten._new_zeros_with_same_feature_meta.default: new_zeros_with_same_feature_meta}
