"""The pass ``xt-recognise``: composites that a model spells out as primitive ops become one op again.

Before::

    %s = xt.dot_general(%q, %k) ...      %m = xt.add(%s, %mask)      %p = xt.softmax(%m)
    %y = xt.dot_general(%p, %v) ...

After::

    %y = xt.attention(%q, %k, %v, %mask) {scale = ...}

Patterns look at dataflow alone, never at names. One that stops short says why (`--debug-patterns`).
"""

from __future__ import annotations

from xcc._mlir import Module
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.match import Pattern, apply
from xcc.passes.xt.graph.rewrite import erase_dead, name_of, walk_ops
from xcc.passes.xt.recognise import recognise_activation, recognise_norm
from xcc.passes.xt.recognise.recognise_attention import Attention, CausalMask, shared_heads


@register_pass
class XtRecognise(Pass):
    """Finds softmax, rms_norm, layer_norm, group_norm, gelu, sigmoid and attention in primitive ops."""

    def run(self, module: Module, ctx: PassContext) -> None:
        say = ctx.verbose if getattr(ctx.options, "debug_patterns", False) else None
        small: dict[str, list[Pattern]] = {}
        for table in (recognise_norm.PATTERNS, recognise_activation.PATTERNS):
            for name, patterns in table.items():
                small.setdefault(name, []).extend(patterns)
        masks: dict[str, list[Pattern]] = dict.fromkeys(
            ("attention", "attention_with_sums", "attention_query_gradient", "attention_key_gradients"),
            [CausalMask(ctx.weights)])
        large: dict[str, list[Pattern]] = {"dot_general": [Attention(ctx.weights)], "attention": [shared_heads]}
        for patterns_of in (small, masks, large):
            for op in walk_ops(module):
                apply(op, patterns_of.get(name_of(op), []), say)
            erase_dead(module)
