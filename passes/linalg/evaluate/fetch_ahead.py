"""Prefetches of the next panel of a packed operand, spread over the tiles of rows that this panel serves.

A panel is read once for each tile of rows: at first from memory, then from the cache. While the tiles after the first
compute, memory would be idle: each step of tile r of R asks for its share of the next panel instead.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from xcc import symbolic
from xcc._mlir import Value
from xcc.passes.linalg.build.buffers import LINE_BYTES, prefetch
from xcc.passes.linalg.build.tile_values import Ix
from xcc.passes.linalg.kernel.domain import element_bytes
from xcc.passes.linalg.kernel.kernel import Access, Op, Tensor

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.tile_eval import Evaluator

SECOND_CACHE = 2       # memref.prefetch's locality hint: not the first level


def packed_input(op: Op) -> tuple[Tensor, Access] | None:
    """The argument that lies in panels: its first dim is indexed by a quotient."""
    return next(((t, access) for t, access in op.inputs if t.producer is None and panel_dim(access) == 0), None)


def panel_dim(access: Access) -> int | None:
    """The dim of a packed operand that counts its panels: the one that is indexed by a quotient."""
    return next((d for d, e in enumerate(access) if isinstance(e, symbolic.Expr) and any(
        atom[0] == "floordiv" for monomial, _ in e.terms for atom in monomial if len(atom) == 3)), None)


def fetch_ahead(ev: Evaluator, op: Op, env: dict[str, Ix], shares: int) -> None:
    """One of `shares` parts of the panel after the one that `op` reads at `env`; `ev.progress` is the tile of rows,
    from 0 on.

    Nothing is read: an address past the last panel is as good as any.
    """
    found, b, tile = packed_input(op), ev.b, ev.progress
    if found is None or tile is None or not all(isinstance(d, int) for d in found[0].dims):
        return
    t, access = found
    indices = [b.access(e, env) for e in access]
    if any(i.vec is not None for i in indices):
        return
    panel = symbolic.product(t.dims[1:])
    start = b.mul(b.scalar(indices[0]), b.dim(panel))
    step: Value = b.int(0)
    for d, i in enumerate(indices[1:], 1):
        step = b.add(step, b.mul(b.scalar(i), b.dim(symbolic.product(t.dims[d + 1:]))))
    part = panel        # elements of a panel that are read now, from `begin` on
    if ev.block is not None:
        width = symbolic.product(t.dims[2:])
        part, begin = ev.block.size * width, b.mul(ev.block.low, b.dim(width))
        start, step = b.add(start, begin), b.sub(step, begin)
    shift = b.int(shares.bit_length() - 1)
    share = b.pure("arith.shrui", b.index, [b.add(b.mul(tile, b.dim(part)), step), shift])
    address = b.add(b.add(start, b.dim(panel)), share)
    line = LINE_BYTES // element_bytes(t.element)
    read = prod(axis.size for i in indices[1:] for axis in i.axes)
    for n in range(max(1, read // shares // line)):
        prefetch(ev.memory.flat_argument(t), [b.add(address, b.int(n * line))], locality=SECOND_CACHE)
