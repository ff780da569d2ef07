"""What a graph takes for granted of sizes, and Dynamo has not been told."""

from __future__ import annotations

import torch
from torch.fx.node import Argument, map_arg

from xcc.frontends.torch.fx_facts import hint_of
from xcc.frontends.torch.oblivious import guarded
from xcc.frontends.torch.size_order import extreme_of_sizes

__all__ = ["guard_broadcasts", "guard_numbers"]

_WINDOW = ("stride", "padding", "dilation", "output_padding", "groups")
_NUMBERS = {"convolution": _WINDOW, "convolution_backward": _WINDOW, "dist": ("p",), "histc": ("min", "max"),
            "linalg_vector_norm": ("ord",), "multi_margin_loss": ("p", "margin"),
            "nll_loss_forward": ("ignore_index",), "nll_loss2d_forward": ("ignore_index",),
            "std": ("correction",), "std_mean": ("correction",), "var": ("correction",), "var_mean": ("correction",)}
"""By an op's name, its arguments that say what code it becomes, which torch takes of any size."""


def guard_broadcasts(module: torch.fx.GraphModule) -> None:
    """Has Dynamo trace anew for no elements where what an op broadcasts is the last of n, ``n - max(n - 1, 0)``.

    torch takes such a size to be 1, as it is of all tensors that have elements, without a guard; it is 0 of none. So it
    does where the other size is 1, and the result's is that number."""
    for node in module.graph.nodes:
        made = node.meta.get("val")
        if node.op != "call_function" or not isinstance(made, torch.Tensor):
            continue
        for operand in node.all_input_nodes:
            value = operand.meta.get("val")
            own = value.shape if isinstance(value, torch.Tensor) else ()
            count = min(len(own), made.dim())
            for size, result in zip(own[len(own) - count:], made.shape[made.dim() - count:], strict=True):
                if extreme_of_sizes(size) and hint_of(size) == 1 and (hint_of(result) != 1 or isinstance(result, int)):
                    guarded(size == 1)


def guard_numbers(module: torch.fx.GraphModule) -> None:
    """Puts numbers, with guards, in the place of sizes and ints that an op takes as constants, as of ``conv2d(x, w,
    padding=x.shape[2] % 4)``: another one is compiled anew; so are other channels of a depthwise convolution's filter.
    Those that only a run tells stay; the converter names them in an error."""
    for node in module.graph.nodes:
        op = node.target
        names = _NUMBERS.get(op._opname, ()) if isinstance(op, torch._ops.OpOverload) and op.namespace == "aten" else ()
        if not names:
            continue
        if "groups" in names:
            _guard_depth(node)
        places = [a.name in names for a in op._schema.arguments]
        node.args = tuple(_as_numbers(a) if fixed else a for a, fixed in zip(node.args, places, strict=False))
        node.kwargs = {name: _as_numbers(a) if name in names else a for name, a in node.kwargs.items()}


def _guard_depth(node: torch.fx.Node) -> None:
    """Has the channels of a filter be numbers where a group has one channel: how many groups there are is one, and of
    known channels all groups are one loop."""
    named = dict(zip((a.name for a in node.target._schema.arguments), node.args, strict=False)) | node.kwargs  # type: ignore[union-attr]
    weight = named["weight"]
    sizes = weight.meta["val"].shape[:2] if isinstance(weight, torch.fx.Node) else ()
    if named.get("groups", 1) != 1 and 1 in map(hint_of, sizes):
        for size in sizes:
            if hint_of(size) is not None:
                guarded(size == hint_of(size))


def _as_numbers(argument: Argument) -> Argument:
    return map_arg(argument, _as_number)


def _as_number(node: torch.fx.Node) -> Argument:
    number = node.meta.get("val")
    hint = number.node.hint if isinstance(number, torch.SymInt | torch.SymFloat) else None
    return hint if hint is not None and guarded(number == hint) else node
