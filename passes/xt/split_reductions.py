"""Long reductions over several dims are done in two steps, so that there is work for all cores.

    %y = xt.reduce(%x) {axes = [1, 2], kind = "sum"}       %p = xt.reduce(%x) {axes = [2], keepdims}
    : tensor<1x240x320x96xf32> -> tensor<1x96xf32>      -> %y = xt.reduce(%p) {axes = [1, 2], kind = "sum"}

The first step has a result for each row of the image, or for each image where its channels come first; the second has
little to read. Narrow floats are summed in f32 through both.
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.numeric import NARROW
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.op_graph import nominal_count
from xcc.passes.xt.graph.rewrite import rewrite


@register_pass
class SplitReductions(Pass):
    """Splits reductions over several dims with few results.

    elements: how many elements a result must have to be worth a second kernel; a 16th where sizes are unknown.
    results: how many results keep all cores at work without it.
    """

    elements: int = 4096
    results: int = 16384

    def run(self, module: Module, ctx: PassContext) -> None:
        rewrite(module, {"reduce": self._split})

    def _split(self, op: Operation) -> Value | None:
        a = xt.attrs_of(op)
        x = op.operands[0]
        shape = xt.shape_of(x)
        axes = [d for d in a.axes if shape[d] != 1]
        kept = [d for d in range(len(shape)) if d not in a.axes and shape[d] != 1]
        if len(axes) < 2 or not kept or axes[0] > kept[-1]:     # rows that lie together are read by whole blocks
            return None
        reduced = nominal_count(tuple(shape[d] for d in axes), {})
        results = nominal_count(tuple(shape[d] for d in kept), {})
        least = self.elements if all(isinstance(shape[d], int) for d in axes) else self.elements // 16
        if reduced < least or results > self.results:
            return None
        dtype = xt.TensorType.of(x).dtype
        wide = xt.convert(x, dtype="f32") if dtype in NARROW else x
        together = tuple(d for d in axes if d > kept[-1]) or (axes[-1],)
        part = xt.reduce(wide, kind=a.kind, axes=together, keepdims=True)
        y = xt.reduce(part, kind=a.kind, axes=a.axes, keepdims=a.keepdims)
        return xt.convert(y, dtype=dtype) if dtype in NARROW else y
