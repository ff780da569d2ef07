"""Functions of tensors compiled for the sizes of their calls: what is known of no size makes slow products and sums.

A model's parameters say the sizes that its kernels are made for. A function of tensors, ``lambda a, b: a @ b``, has
none: each of its first calls with other sizes is compiled for these, and when there have been many, only what was alike
in all of them stays known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch._ops import OpOverload

from xcc.frontends.torch.call import key_of, sizes_of, symbols_of
from xcc.frontends.torch.frozen import Compiled
from xcc.frontends.torch.graph import TorchGraph
from xcc.frontends.torch.tensor_call import REMEMBERED, Sizes

__all__ = ["SizedCalls", "gains_by_sizes"]


class SizedCalls:
    """A boxed call that is compiled for each of the first `most` sizes of its arguments, then for all that change."""

    def __init__(self, graph: TorchGraph, most: int, make: Callable[[Mapping[str, int]], Compiled | None],
                 otherwise: Compiled) -> None:
        """`make` compiles `graph` with some symbols fixed, none at last; where it cannot, and gives None for no symbol,
        `otherwise` is called."""
        self._sizes = sizes_of(graph)
        self._most, self._make, self._otherwise = most, make, otherwise
        self._calls: dict[Sizes, Compiled] = {}
        self._whole: list[Sizes] = []                               # each compiled for by itself
        self._alike: list[tuple[dict[str, int], Compiled]] = []     # what is known of the sizes of others
        self._boxed_call = True     # see BoxedCall

    def __call__(self, arguments: list[torch.Tensor]) -> list[torch.Tensor]:
        key = key_of(self._sizes, arguments)
        call = self._calls.get(key)
        if call is None:
            if len(self._calls) >= REMEMBERED:
                self._calls = {k: self._calls[k] for k in self._whole}
            call = self._calls[key] = self._of(key)
        return call(arguments)

    def _of(self, key: Sizes) -> Compiled:
        symbols = symbols_of(self._sizes, key)
        if len(self._whole) < self._most and 0 not in key:
            self._whole.append(key)
            made = self._make(symbols)
            if made is not None:
                return made
        for known, call in self._alike:
            if known.items() <= symbols.items():
                return call
        others = [*(symbols_of(self._sizes, k) for k in self._whole), *(known for known, _ in self._alike)]
        known = dict(set(symbols.items()).intersection(*(o.items() for o in others)))
        made = self._make(known) if 0 < len(known) < len(symbols) else None
        if made is None:
            known, made = {}, self._make({})
        call = self._otherwise if made is None else made
        self._alike.append((known, call))
        return call


def gains_by_sizes(module: torch.fx.GraphModule) -> bool:
    """Whether an op of the graph reads several elements for one, a product, a sum, a sort, or repeats some: a row for
    all rows. Others, whose tensors have one shape, take as long with sizes that are not known."""
    ops = [n for n in module.graph.nodes if n.op == "call_function" and isinstance(n.target, OpOverload)]
    shapes = {tuple(map(str, v.shape)) for n in (*ops, *module.graph.find_nodes(op="placeholder"))
              if isinstance(v := n.meta.get("val"), torch.Tensor) and v.ndim}
    return len(shapes) > 1 or any(not n.target.is_view and torch.Tag.pointwise not in n.target.tags for n in ops)
