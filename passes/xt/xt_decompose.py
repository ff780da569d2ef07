"""The pass ``xt-decompose``."""

from __future__ import annotations

from math import prod
from typing import Any

from xcc._mlir import Module, Operation
from xcc.dialects.xt.base import shape_of
from xcc.dialects.xt.op import attrs_of, grouped_operands
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.decompose import load
from xcc.passes.xt.decompose.attention import fused_attention, fused_with_sums, simpler_attention
from xcc.passes.xt.decompose.attention_gradient import fused_key_gradients, fused_query_gradient
from xcc.passes.xt.decompose.build import dtype
from xcc.passes.xt.graph.rewrite import at, erase_dead, name_of, replace, walk_ops
from xcc.targets.base import Chip

FEW_QUERIES = 8
WIDEST = 256        # features that a tile of attention holds
CHAINED = 0.21      # of the peak rate that gradients reach as two kernels of chained products (H100: 0.21 to 0.41)
REACHED = 0.3       # that products reach whose scores are in memory
CHAINED_PRODUCTS, PRODUCTS = 7, 5
CHAINED_KERNELS = 2
SCORE_BYTES = 12    # that products move of each score: weights written and read twice, its gradient, too
TILE = (64, 32)     # rows and columns of a tile, to which others are padded
LONG = 4096         # what is not known
FUSED = {"attention": fused_attention, "attention_key_gradients": fused_key_gradients,
         "attention_query_gradient": fused_query_gradient, "attention_with_sums": fused_with_sums}


@register_pass
class XtDecompose(Pass):
    """Replaces composite ops by primitive ones, but not those listed in `keep`, which the target schedules itself.

    A composite made by a decomposition (attention makes softmax) is decomposed in its turn.

    keep: composites to leave alone.
    fused: take the forms that one kernel evaluates as a whole, for composites that are alone in their kernels.
    """

    keep: tuple[str, ...] = ()
    fused: bool = False

    def run(self, module: Module, ctx: PassContext) -> None:
        patterns = load() | (FUSED if self.fused else {})
        while sum([self._apply(op, patterns, ctx) for op in walk_ops(module) if name_of(op) in patterns]):
            pass
        erase_dead(module)

    def _apply(self, op: Operation, patterns: dict[str, Any], ctx: PassContext) -> bool:
        name = name_of(op)
        pattern = patterns[name]
        if name in self.keep and worth_keeping(op, ctx.chip):
            if name != "attention":
                return False
            pattern = simpler_attention
        with at(op):
            out = pattern(attrs_of(op), *grouped_operands(op))
        if out is None:
            return False
        replace(op, out if isinstance(out, (tuple, list)) else [out])
        return True


def worth_keeping(op: Operation, chip: Chip | None) -> bool:
    """Attention of a few queries has no tile of rows to share its keys: it is kept where matrix instructions take the
    products, else its parts read the keys faster.

    Nor is there a tile where the features of a head are too many, or their number is not known. Gradients are kept
    where that is estimated to take less time.
    """
    if name_of(op) not in FUSED:
        return True
    if name_of(op).endswith(("_gradient", "_gradients")):
        return gradients_pay(op, chip)
    features = [shape_of(op.operands[n])[-1] for n in (0, 2)]
    if not all(isinstance(n, int) and n <= WIDEST for n in features):
        return False
    queries = shape_of(op.operands[0])[2]
    if not isinstance(queries, int) or queries >= FEW_QUERIES:
        return True
    return chip is not None and bool(chip.matrix) and dtype(op.operands[1]) in ("f16", "bf16")


def gradients_pay(op: Operation, chip: Chip | None) -> bool:
    """Whether attention's gradients as kernels that compute the scores again take less time than products that read
    them from memory; where sizes are not known, they are taken to be long.

    CHAINED says how much of a chip's peak rate the former reach.
    """
    _, q, k, v = (shape_of(x) for x in op.operands[:4])
    kind, features = dtype(op.operands[1]), q[3]
    rate = dict(chip.flops).get(kind, 0.0) if chip is not None else 0.0
    if chip is None or not rate or kind not in ("f16", "bf16") or not chip.matrix or features != v[3] \
            or not isinstance(features, int) or features > chip.chained_features:
        return False
    batch, heads, *line = (n if isinstance(n, int) else LONG for n in (*q[:3], k[2]))
    seen = 0.5 if attrs_of(op).causal and line[0] > 4 * TILE[0] else 1.0
    padded = prod(-(-n // side) * side for n, side in zip(line, TILE, strict=True)) * seen * batch * heads
    chained = padded * 2 * features * CHAINED_PRODUCTS / (CHAINED * rate) + CHAINED_KERNELS * chip.launch_seconds
    score = SCORE_BYTES / chip.bandwidth + 2 * features * PRODUCTS / (REACHED * rate)
    return chained < batch * heads * prod(line) * score + PRODUCTS * chip.launch_seconds
