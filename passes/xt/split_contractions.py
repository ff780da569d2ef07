"""Split-K: products and convolutions with few results and a long sum are cut along it, for all cores to have work.

    %y = xt.dot_general(%a, %b)          %p = xt.dot_general(%a as 49x8x256, %b as 8x256x512) with the 8 as batch dim
    : 49x2048, 2048x512 -> 49x512     -> %y = xt.reduce(%p) {axes = [0], kind = "sum"} : 8x49x512 -> 49x512

What follows the product (bias, activation) is fused with the second step. Into how many parts a product is cut is in
the tuning database (``product f16 1x49x512 r 2048 ~nn``), else it follows from the tiles and the cores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xcc._mlir import Module, Operation, Value
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.schedule.tuning import Database, database
from xcc.passes.xt.graph.rewrite import at, is_stored, name_of, replace, walk_ops
from xcc.passes.xt.products.rounded import by_fma
from xcc.symbolic import Dim

TILE = 64
FEW_COLUMNS = 32    # of a tile of the chip's least `streamed_rows`
MOST = 16           # parts of a sum, or as many as have LONG terms each
LONG = 1024
SHORTEST = 128      # terms of a part's sum
NEIGHBOURS = 32     # of them that lie together
ENOUGH = 256        # terms of a part's sum where cores have several workgroups
KERNEL = 1.1        # times the least, where there is no second kernel
ABOUT = 1.05        # times the least, where there is one
RESIDENT = 8        # workgroups of FMAs of a core at once, whose latencies hide each other
ADDED = 25          # terms that are multiplied in the time that the sum of the parts takes for each


@register_pass
class SplitContractions(Pass):
    """Cuts the sums of matrix products that have too few tiles for the chip's cores.

    terms: how long a sum must be to be worth a second kernel.
    parts: how many parts a product is cut into where it can be, whatever the database says; 0: not given.
    """

    terms: int = 512
    parts: int = 0

    def run(self, module: Module, ctx: PassContext) -> None:
        entries = Database() if ctx.options is None else database(ctx.options.target, ctx.options.tuning)
        for op in list(walk_ops(module)):
            if name_of(op) == "dot_general":
                self._product(op, ctx, entries)
            elif name_of(op) == "convolution":
                self._convolution(op, ctx.chip.cores)

    def _parts(self, free: list[int], batch: int, terms: int, divided: int, cores: int, few: bool = False) -> int:
        """Into how many parts to cut a sum of `terms`, of which `divided` lie along the dim that is cut; 1: none.

        few: tiles copy what they read so far ahead that half of the cores have memory at work.
        """
        tiles = -(-free[0] // TILE) * -(-free[1] // (FEW_COLUMNS if few else TILE)) * batch
        if min(free) < 2 or terms < self.terms or tiles > cores // 2:
            return 1
        most = 1
        while most * tiles <= (cores // 2 if few else cores) and terms >= 2 * most * (
                LONG if 2 * most > MOST else SHORTEST):
            most *= 2
        parts = max(p for p in range(1, most + 1) if divided % p == 0 and divided // p % NEIGHBOURS == 0 or p == 1)
        return parts if 2 * parts >= most or batch > 1 else 1       # else stream-K, whose parts need not be equal

    def _convolution(self, op: Operation, cores: int) -> None:
        """The parts of the channels are groups, each with all outputs. The copy of a filter is made at compile time."""
        a = xt.attrs_of(op)
        x, w = op.operands
        kind, result = xt.TensorType.of(w), xt.TensorType.of(op.results[0])
        if a.groups != 1 or not xt.is_float(a.dtype) or not _are_sizes((*kind.shape, *result.shape)):
            return
        if a.filter != "HWIO" or not is_stored(w):
            return
        *window, inner, outputs = _sizes(kind.shape)
        parts = self._parts([math.prod(_sizes(result.shape[:-1])), outputs], 1,
                            math.prod(window) * inner, inner, cores)
        if parts == 1:
            return
        n = len(window)
        with at(op):
            wide = "f64" if a.dtype == "f64" else "f32"
            f = xt.transpose(_cut(w, n, parts), perm=(*range(n), n + 1, n, n + 2))
            f = xt.reshape(f, shape=(*window, inner // parts, parts * outputs))
            rest = {k: v for k, v in vars(a).items() if k not in ("groups", "dtype")}
            p = xt.convolution(x, f, groups=parts, dtype=wide, **rest)
            p = xt.reshape(p, shape=(*result.shape[:-1], parts, outputs))
            total = xt.reduce(p, kind="sum", axes=(n + 1,), keepdims=False)
            replace(op, [total if a.dtype == wide else xt.convert(total, dtype=a.dtype)])

    def _product(self, op: Operation, ctx: PassContext, entries: Database) -> None:
        p = product_of(op)
        if p is None:
            return
        parts = self.parts or entries.number(ctx.chip.name, p.key, "parts")
        if not parts and by_fma(op, ctx):
            parts = _of_fmas(p, ctx.chip.cores) if p.k >= self.terms else 1
        elif not parts:
            few = p.m <= min(ctx.chip.streamed_rows, default=0) and xt.width(p.dtype) <= 16
            parts = self._parts([p.m, p.n], p.batch, p.k, p.k, ctx.chip.cores, few and ctx.chip.has_async_copies)
        if not p.takes(parts):
            return
        a = xt.attrs_of(op)
        x, y = op.operands
        with at(op):
            lhs = _cut(x, a.lhs_contract[0], parts)
            rhs = _cut(y, a.rhs_contract[0], parts)
            wide = "f64" if a.dtype == "f64" else "f32"
            made = xt.dot_general(
                lhs, rhs, lhs_batch=(a.lhs_contract[0], *_moved(a.lhs_batch, a.lhs_contract[0])),
                rhs_batch=(a.rhs_contract[0], *_moved(a.rhs_batch, a.rhs_contract[0])),
                lhs_contract=(a.lhs_contract[0] + 1,), rhs_contract=(a.rhs_contract[0] + 1,), dtype=wide,
                precision=a.precision)
            total = xt.reduce(made, kind="sum", axes=(0,), keepdims=False)
            replace(op, [total if a.dtype == wide else xt.convert(total, dtype=a.dtype)])


@dataclass(frozen=True)
class Product:
    """A matrix product of static sizes; `order` says of both operands whether the summed dim is their last (n, t)."""

    dtype: str
    batch: int
    m: int
    n: int
    k: int
    order: str

    @property
    def key(self) -> str:
        """Its signature in the tuning database."""
        return f"product {self.dtype} {self.batch}x{self.m}x{self.n} r {self.k} ~{self.order}"

    def takes(self, parts: int) -> bool:
        """Whether its sum can be cut into `parts`."""
        return min(self.m, self.n) > 1 and parts > 1 and self.k % (parts * NEIGHBOURS) == 0 \
            and (parts <= MOST or self.k >= parts * LONG)

    def choices(self) -> tuple[int, ...]:
        """The numbers of parts that are worth a try."""
        return tuple(p for p in (2 << n for n in range(9)) if self.takes(p))


def _of_fmas(p: Product, cores: int) -> int:
    """Into how many parts the sum of a product by FMAs is cut: the tiles of the parts, several to a core, are to be a
    multiple of the cores, or many, and hide each other's latencies. The fewest that take about the least time."""
    tiles = -(-p.m // TILE) * -(-p.n // TILE) * p.batch

    def time(parts: int) -> float:
        waves = -(-parts * tiles // cores)
        added = parts * ADDED / p.k * tiles / cores if parts > 1 else 0.0
        return waves / parts * (1 + 1 / min(waves, RESIDENT)) + added

    times = {n: time(n) for n in range(1, MOST + 1) if n == 1 or p.takes(n)
             and p.k >= n * (SHORTEST if n * tiles <= 2 * cores else ENOUGH)}
    least = min(times.values())
    return next(n for n, t in times.items() if t <= least * (KERNEL if n == 1 else ABOUT))


def product_of(op: Operation) -> Product | None:
    """The dot_general `op` as a product; None where a size is not known, or nothing in it is a float."""
    a = xt.attrs_of(op)
    types = [xt.TensorType.of(v) for v in op.operands]
    if len(a.lhs_contract) != 1 or not all(isinstance(d, int) for t in types for d in t.shape) \
            or not all(xt.is_float(t.dtype) for t in types):
        return None
    m, n = (math.prod(n for d, n in enumerate(_sizes(t.shape)) if d not in (*out, *summed)) for t, out, summed in
            zip(types, (a.lhs_batch, a.rhs_batch), (a.lhs_contract, a.rhs_contract), strict=True))
    sizes = _sizes(types[0].shape)
    last = [summed[0] == len(t.shape) - 1 for t, summed in zip(types, (a.lhs_contract, a.rhs_contract), strict=True)]
    return Product(types[0].dtype, math.prod(sizes[d] for d in a.lhs_batch), m, n, sizes[a.lhs_contract[0]],
                   ("n" if last[0] else "t") + ("t" if last[1] else "n"))


def _sizes(shape: tuple[Dim, ...]) -> list[int]:
    """The dims of a static shape."""
    return [d for d in shape if isinstance(d, int)]


def _are_sizes(dims: tuple[Dim, ...]) -> bool:
    return all(isinstance(d, int) for d in dims)


def _cut(value: Value, dim: int, parts: int) -> Value:
    """`value` with `dim` as two: the part and the place in it."""
    shape = xt.shape_of(value)
    return xt.reshape(value, shape=(*shape[:dim], parts, shape[dim] // parts, *shape[dim + 1:]))


def _moved(dims: tuple[int, ...], cut: int) -> tuple[int, ...]:
    """The numbers of `dims` once dim `cut` is two."""
    return tuple(d + (d > cut) for d in dims)
