"""Masks of attention as torch's fused ops want them.

On GPUs torch takes scaled_dot_product_attention apart, into products in f32 and a softmax, where a mask's last dim is
stretched (``mask[:, :, :, None].expand(...)``): its kernels would read memory there. What Dynamo has traced gets a copy
of the mask, which is one more expression.
"""

from __future__ import annotations

import torch

__all__ = ["lay_out_masks"]


def lay_out_masks(module: torch.fx.GraphModule) -> None:
    """Puts ``contiguous()`` ahead of masks whose last dim is stretched, in the graph that a backend is given."""
    changed = False
    for node in list(module.graph.nodes):
        if node.op != "call_function" or node.target is not torch.nn.functional.scaled_dot_product_attention:
            continue
        mask = node.kwargs.get("attn_mask", node.args[3] if len(node.args) > 3 else None)
        value = mask.meta.get("example_value") if isinstance(mask, torch.fx.Node) else None
        if not isinstance(value, torch.Tensor) or not value.dim() or value.stride(-1) == 1 or value.requires_grad:
            continue
        with module.graph.inserting_before(node):
            copy = module.graph.call_method("contiguous", (mask,))
        copy.meta = dict(mask.meta) | {"example_value": value.contiguous()}
        node.replace_input_with(mask, copy)
        changed = True
    if changed:
        module.recompile()
