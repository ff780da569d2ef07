"""Random ops that a backward repeats, as AOTAutograd writes them where a checkpoint computes its forward again.

    forward:   state, out = run_and_save_rng_state(aten.native_dropout.default, x, 0.5, True)
    backward:  out = run_with_rng_state(state, aten.native_dropout.default, x, 0.5, True)

For xcc the state is the seed and the number of the draw, as the first bytes of a tensor of torch's type and size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch.utils import _pytree

__all__ = ["STATE_BYTES", "Draw", "draw_of"]

STATE_BYTES = torch.get_rng_state().numel()


@dataclass(frozen=True)
class Draw:
    """A random op with its arguments; `state` is the node of the state that it repeats, None for one that is saved."""

    op: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    state: Any

    def value(self) -> Any:
        """What the trace would have for the op's results."""
        given = _pytree.tree_map_only(torch.fx.Node, lambda n: n.meta["val"], (list(self.args), dict(self.kwargs)))
        nodes = self.state.graph.nodes if self.state is not None else ()
        mode = detect_fake_mode([*_pytree.tree_leaves(given), *(n.meta.get("val") for n in nodes)])
        with mode or torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
            return self.op(*given[0], **given[1])


def draw_of(node: torch.fx.Node) -> Draw | None:
    """The op that `node` runs with a state of random numbers saved or set; None for another node."""
    if not isinstance(node.target, torch._ops.HigherOrderOperator):
        return None
    name = str(node.target)
    if name == "run_and_save_rng_state":
        return Draw(node.args[0], node.args[1:], node.kwargs, None)
    if name == "run_with_rng_state":
        return Draw(node.args[1], node.args[2:], node.kwargs, node.args[0])
    return None
