"""Packs the constant right-hand sides of matrix products and convolutions into panels of columns.

A panel holds the columns of one register tile next to each other, row after row: the innermost loop of a product reads
it in order, without a page or a cache set for each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.rewrite import at, erase_dead, name_of, producer, replace, walk_ops
from xcc.weights import WeightStore

__all__ = ["PackWeights"]


@register_pass
@dataclass(frozen=True)
class PackWeights(Pass):
    """Rearranges weights that a dot_general or an NHWC convolution multiplies with, in the weight store.

    Before: ``dot_general(x, w) {rhs_contract = [0]}`` with w: [K, N], or ``convolution(x, w) {filter = "HWIO"}``
    After:  ``packed_matmul(x, w') {columns = N}`` with w': [ceil(N / P), K, P], zeros past column N,
            ``convolution(x, w') {filter = "OHWIo"}`` with w': [O / P, h, w, I, P], where P divides O

    width: P; 0 is two native vectors of f32 of the chip.
    """

    name: ClassVar[str] = "pack-weights"
    width: int = 0

    def run(self, module: Any, ctx: PassContext) -> None:
        store = ctx.weights if ctx.weights is not None else WeightStore()     # a text alone has names, no data
        width = self.width or (2 * ctx.chip.vector_bytes // 4 if ctx.chip is not None else 32)
        packed: dict[tuple[str, str], Any] = {}

        def weight(op: Any, kind: str, shape: tuple[int, ...], change: Callable[[Any], Any]) -> Any:
            """The weight operand of `op` rearranged; one entry for all who want it so."""
            source = op.operands[1]
            name = xt.attrs_of(producer(source, "weight")).name
            if (name, kind) not in packed:
                packed[name, kind] = store.add(f"{name}.{kind}", lambda: change(store[name]))
            return xt.weight(packed[name, kind], shape, xt.TensorType.of(source).dtype)

        with module.context:
            for op in walk_ops(module):
                if name_of(op) not in ("dot_general", "convolution") or producer(op.operands[1], "weight") is None:
                    continue
                with at(op):
                    make = _dot if name_of(op) == "dot_general" else _convolution
                    new = make(op, width, weight)
                if new is not None:
                    replace(op, [new])
            erase_dead(module)


def static_shape(value: Any) -> tuple[int, ...] | None:
    """None when a dim is symbolic."""
    dims = tuple(d for d in xt.shape_of(value) if isinstance(d, int))
    return dims if len(dims) == len(xt.shape_of(value)) else None


def _dot(op: Any, width: int, weight: Callable[..., Any]) -> Any:
    a, shape = xt.attrs_of(op), static_shape(op.operands[1])
    last = len(xt.shape_of(op.operands[0])) - 1
    if shape is None or len(shape) != 2 or a.rhs_batch or tuple(a.lhs_contract) != (last,):
        return None
    transposed = a.rhs_contract[0] == 1
    depth, columns = (shape[1], shape[0]) if transposed else shape
    if columns <= width and not transposed:     # one panel as it is
        return None
    width = min(width, -(-2 * columns // width) * width // 2)     # whole native vectors
    panels = -(-columns // width)
    w = weight(op, f"panels{width}{'t' if transposed else ''}", (panels, depth, width),
               lambda w: pack_columns(w.T if transposed else w, width))
    return xt.packed_matmul(op.operands[0], w, columns=columns, dtype=a.dtype)


def _convolution(op: Any, width: int, weight: Callable[..., Any]) -> Any:
    a, shape = xt.attrs_of(op), static_shape(op.operands[1])
    if a.layout != "NHWC" or a.filter != "HWIO" or a.groups != 1 or shape is None:
        return None
    *kernel, inputs, outputs = shape
    width = next((p for p in (width, width // 2) if outputs % p == 0), 0)
    if not width or outputs <= width:
        return None
    depth = int(np.prod(kernel)) * inputs
    w = weight(op, f"panels{width}", (outputs // width, *kernel, inputs, width),
               lambda w: pack_columns(w.reshape(depth, outputs), width).reshape(-1, *kernel, inputs, width))
    rest = {k: v for k, v in vars(a).items() if k != "filter"}
    return xt.convolution(op.operands[0], w, filter="OHWIo", **rest)


def pack_columns(w: np.ndarray[Any, Any], width: int) -> np.ndarray[Any, Any]:
    """[K, N] as panels [ceil(N / width), K, width], zeros past column N."""
    depth, columns = w.shape
    panels = -(-columns // width)
    if columns % width:
        padded = np.zeros((depth, panels * width), w.dtype)
        padded[:, :columns] = w
        w = padded
    return np.ascontiguousarray(np.moveaxis(w.reshape(depth, panels, width), 1, 0))
