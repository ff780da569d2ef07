"""Buffers as a lowered program sees them: which memref, where a view of it starts, and how dims lie in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from xcc import symbolic
from xcc._mlir import Type, Value, arith_d, ir
from xcc.dialects.tile.program import Parameter, stride_name
from xcc.passes.shared.values import index
from xcc.symbolic import Dim

Size = Any      # an int or an index value


def in_rows(p: Parameter) -> bool:
    """Whether a strided buffer is rows, some elements apart: then a row's distance is its length in memory."""
    return p.strides is not None and len(p.strides) == 2 and p.strides[1] == 1


def _in_rows_of(n: Dim, multiple: int) -> Dim:
    """A size that is a multiple, as an expression that says so."""
    return n if isinstance(n, int) or multiple == 1 else multiple * symbolic.floordiv(n, multiple)


def known_dims(p: Parameter) -> list[Dim]:
    """The sizes of a buffer; that rows are multiples is part of them."""
    last = len(p.dims) - 1
    return [_in_rows_of(n, p.multiple) if d == last else n for d, n in enumerate(p.dims)]


def known_strides(p: Parameter) -> list[Dim]:
    """The strides of a strided buffer; those ahead of the last one are multiples."""
    out: list[Dim] = []
    for d, s in enumerate(p.strides or ()):
        name = symbolic.sym(stride_name(p, d))
        out.append(s if s is not None else _in_rows_of(name, p.multiple) if d + 1 < len(p.dims) else name)
    return out


def physical(p: Parameter) -> list[Dim]:
    """The sizes of the memref of `p`: of a buffer of any strides, all elements from its first to its last."""
    if p.strides is None:
        return known_dims(p)
    strides = known_strides(p)
    if in_rows(p):
        return [p.dims[0], strides[0]]
    last = symbolic.product([symbolic.dim_min(n, 1) for n in p.dims])
    reach: Dim = 1
    for n, s in zip(p.dims, strides, strict=True):
        reach = reach + (n - 1) * s
    return [last * reach]


def value_of(n: Size) -> Value:
    """An index value."""
    return index(n) if isinstance(n, int) else n


def add(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if 0 in [n for n in (a, b) if isinstance(n, int)]:
        return b if isinstance(a, int) else a
    return arith_d.addi(value_of(a), value_of(b))


def mul(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if isinstance(a, int) and a in (0, 1):
        return b if a else 0
    if isinstance(b, int) and b in (0, 1):
        return a if b else 0
    return arith_d.muli(value_of(a), value_of(b))


@dataclass(frozen=True)
class BufferView:
    """`memref` holds `dims` of the buffer that was given, or, where `flat`, all elements in one dim. Dim i of the view
    has `sizes[i]` elements, and is dim `order[i]` of the buffer, of which `starts` are left out. `strides` are the
    buffer's; of dim d that is the symbol `names[d]`, where it is one."""

    memref: Value
    flat: bool
    strides: tuple[Size, ...]
    starts: tuple[Size, ...]
    sizes: tuple[Size, ...]
    order: tuple[int, ...]
    names: tuple[Dim, ...]

    @staticmethod
    def of(p: Parameter, memref: Value, emit: Callable[[Dim], Size]) -> BufferView:
        sizes = tuple(map(emit, known_dims(p)))
        rank = len(sizes)
        if p.strides is None:
            strides: list[Size] = [1] * rank
            for d in reversed(range(rank - 1)):
                strides[d] = mul(strides[d + 1], sizes[d + 1])
        else:
            strides = list(map(emit, known_strides(p)))
        flat = p.strides is not None and not in_rows(p)
        return BufferView(memref, flat, tuple(strides), (0,) * rank, sizes, tuple(range(rank)), p.dims)

    def window(self, offsets: Sequence[Size], sizes: Sequence[Size], order: Sequence[int]) -> BufferView:
        """The view's view: see tile.view."""
        starts = list(self.starts)
        for i, o in enumerate(offsets):
            starts[self.order[i]] = add(starts[self.order[i]], o)
        return replace(self, starts=tuple(starts), sizes=tuple(sizes[d] for d in order),
                       order=tuple(self.order[d] for d in order), names=())

    @property
    def rank(self) -> int:
        return len(self.order)

    @property
    def element(self) -> Type:
        return ir.MemRefType(self.memref.type).element_type

    def places(self, offsets: Sequence[Size]) -> list[Value]:
        """Where in the memref's dims the element at `offsets` of the view lies."""
        out = list(self.starts)
        for i, o in enumerate(offsets):
            out[self.order[i]] = add(out[self.order[i]], o)
        return [value_of(n) for n in out]

    def stride(self, dim: int) -> Size:
        """Elements from one of the view's dim `dim` to the next."""
        return self.strides[self.order[dim]]

    def first(self) -> Size:
        """The element at which the view starts, counted from the buffer's first."""
        out: Size = 0
        for s, n in zip(self.strides, self.starts, strict=True):
            out = add(out, mul(s, n))
        return out

    def line(self) -> Value:
        """All elements of the memref in one dim."""
        kind = ir.MemRefType(self.memref.type)
        if kind.rank == 1:
            return self.memref
        known = list(kind.shape)
        dynamic = ir.ShapedType.get_dynamic_size()
        size = prod(known) if all(n >= 0 for n in known) else dynamic
        i64 = ir.IntegerType.get_signless(64)
        groups = ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in range(kind.rank)])])
        line = ir.MemRefType.get([size], kind.element_type)
        return ir.Operation.create("memref.collapse_shape", operands=[self.memref], results=[line],
                                   attributes={"reassociation": groups}).result
