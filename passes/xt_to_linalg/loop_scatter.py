"""Loop kernels that write at computed positions: scatter_elements, scatter_nd. The last of equal positions wins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xcc import symbolic
from xcc.passes.xt_to_linalg.elementwise import binary
from xcc.passes.xt_to_linalg.loops import LoopKernel
from xcc.passes.xt_to_linalg.registry import converts_to_loops
from xcc.symbolic import Dim

_OPS = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}


def _copy(k: LoopKernel) -> None:
    x, out = k.inputs[0], k.outputs[0]
    outer = x.dims[:-1]

    def row(c: list[Any]) -> None:
        k.nest(x.dims, lambda at: out.store(x.load(at), at), c[:len(outer)])

    k.rows(outer, row)


def _combine(k: LoopKernel) -> Callable[[Any, list[Any]], None]:
    out, reduction = k.outputs[0], k.op.attr("reduction", "none")

    def write(value: Any, coords: list[Any]) -> None:
        if reduction != "none":
            value = binary(_OPS[reduction], out.load(coords), value, out.dtype)
        out.store(value, coords)

    return write


@converts_to_loops("scatter_elements")
def scatter_elements(k: LoopKernel) -> None:
    """Rows along the axis are independent; within one, updates are applied in order."""
    x, indices, updates = k.inputs
    axis, write = k.op.attr("axis"), _combine(k)
    others = [d for i, d in enumerate(updates.dims) if i != axis]
    _copy(k)

    def row(c: list[Any]) -> None:
        rest = c[:len(others)]

        def step(i: Any) -> None:
            coords = [*rest[:axis], i, *rest[axis:]]
            at = k.wrapped(indices.load(coords), indices.dtype, x.dims[axis])
            write(updates.load(coords), [*rest[:axis], at, *rest[axis:]])

        k.loop(updates.dims[axis], step)

    k.rows(others, row)


@converts_to_loops("scatter_nd")
def scatter_nd(k: LoopKernel) -> None:
    """Elements of a slice are independent; index vectors are applied in order."""
    x, indices, updates = k.inputs
    depth, outer, write = symbolic.evaluate(indices.dims[-1], {}), indices.dims[:-1], _combine(k)
    inner: list[Dim] = list(x.dims[depth:])
    _copy(k)

    def element(c: list[Any]) -> None:
        rest = c[:len(inner)]

        def step(vector: list[Any]) -> None:
            at = [k.wrapped(indices.load([*vector, k.dim(d)]), indices.dtype, x.dims[d]) for d in range(depth)]
            write(updates.load([*vector, *rest]), [*at, *rest])

        k.nest(outer, step)

    k.rows(inner, element)
