"""What is known about index values and memory accesses: divisors, symbolic values, alignment, coalescing."""

from __future__ import annotations

import math
from typing import Any

from xcc import symbolic
from xcc._mlir import ir
from xcc.diagnostics import CompilerBug
from xcc.passes.gpu.layout import Layout
from xcc.symbolic import Dim

DYNAMIC = -9223372036854775808
MAX_DIVISOR = 1 << 20


def owner(value: Any) -> Any:
    """The operation that defines `value`, or None for a block argument."""
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def constant(value: Any) -> int | None:
    """The value of an integer or index constant."""
    op = owner(value)
    if op is None or op.name != "arith.constant":
        return None
    attr = op.attributes["value"]
    return attr.value if isinstance(attr, ir.IntegerAttr) else None


def divisor(value: Any) -> int:
    """A power of two or multiple known to divide an index value; 1 when nothing is known."""
    fixed = constant(value)
    if fixed is not None:
        return abs(fixed) if fixed else MAX_DIVISOR
    op = owner(value)
    if op is None:
        return _induction_divisor(value)
    if op.name == "arith.muli":
        return min(divisor(op.operands[0]) * divisor(op.operands[1]), MAX_DIVISOR)
    if op.name in ("arith.addi", "arith.subi", "arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui",
                   "arith.remsi", "arith.remui"):
        return math.gcd(divisor(op.operands[0]), divisor(op.operands[1]))
    if op.name == "arith.select":
        return math.gcd(divisor(op.operands[1]), divisor(op.operands[2]))
    if op.name in ("arith.index_cast", "arith.extsi", "arith.extui"):
        return divisor(op.operands[0])
    if op.name == "affine.apply":
        return _affine_divisor(op)
    return 1


def _induction_divisor(value: Any) -> int:
    """For the induction variables of scf.for and scf.forall."""
    parent = value.owner.owner.operation
    number = ir.BlockArgument(value).arg_number
    if parent.name == "scf.for" and number == 0:
        return math.gcd(divisor(parent.operands[0]), divisor(parent.operands[2]))
    if parent.name == "scf.forall":
        lower, _, step = forall_bounds(parent)
        if number < len(step):
            return math.gcd(*(abs(b) if isinstance(b, int) and b else MAX_DIVISOR if isinstance(b, int) else divisor(b)
                              for b in (lower[number], step[number])))
    return 1


def _affine_divisor(op: Any) -> int:
    amap = op.attributes["map"].value

    def visit(e: Any) -> int:
        if isinstance(e, ir.AffineConstantExpr):
            return abs(e.value) or MAX_DIVISOR
        if isinstance(e, ir.AffineDimExpr):
            return divisor(op.operands[e.position])
        if isinstance(e, ir.AffineSymbolExpr):
            return divisor(op.operands[amap.n_dims + e.position])
        if isinstance(e, ir.AffineAddExpr):
            return math.gcd(visit(e.lhs), visit(e.rhs))
        if isinstance(e, ir.AffineMulExpr):
            return min(visit(e.lhs) * visit(e.rhs), MAX_DIVISOR)
        return 1

    return visit(amap.results[0])


def forall_bounds(op: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Lower bounds, upper bounds and steps of an scf.forall: ints where static, values where not."""
    operands = list(op.operands)
    out = []
    for name in ("staticLowerBound", "staticUpperBound", "staticStep"):
        row: list[Any] = []
        for n in ir.DenseI64ArrayAttr(op.attributes[name]):
            row.append(operands.pop(0) if n == DYNAMIC else n)
        out.append(row)
    return out[0], out[1], out[2]


_BINARY = {"arith.addi": lambda a, b: a + b, "arith.subi": lambda a, b: a - b, "arith.muli": lambda a, b: a * b,
           "arith.ceildivsi": symbolic.ceildiv, "arith.ceildivui": symbolic.ceildiv,
           "arith.floordivsi": symbolic.floordiv, "arith.divsi": symbolic.floordiv, "arith.divui": symbolic.floordiv,
           "arith.maxsi": symbolic.dim_max, "arith.minsi": symbolic.dim_min, "arith.maxui": symbolic.dim_max,
           "arith.minui": symbolic.dim_min, "arith.remsi": symbolic.mod, "arith.remui": symbolic.mod}


def symbolic_value(value: Any, symbols: dict[Any, Dim]) -> Dim:
    """An index value as an expression of the kernel's symbols; a CompilerBug when it depends on data."""
    if isinstance(value, int):
        return value
    if value in symbols:
        return symbols[value]
    fixed = constant(value)
    if fixed is not None:
        return fixed
    op = owner(value)
    if op is not None and op.name in _BINARY:
        result: Dim = _BINARY[op.name](symbolic_value(op.operands[0], symbols),
                                       symbolic_value(op.operands[1], symbols))
        return result
    if op is not None and op.name == "arith.index_cast":
        return symbolic_value(op.operands[0], symbols)
    what = op.name if op is not None else "a block argument"
    raise CompilerBug(f"the number of workgroups depends on {what}, which is no function of the kernel's symbols")


def element_bytes(element_type: Any) -> int:
    """Bytes of one element in memory; index counts as 8, i1 as 1."""
    if isinstance(element_type, ir.IndexType):
        return 8
    width: int = element_type.width
    return max(1, width // 8)


def map_dims(op: Any) -> list[int]:
    """For each vector dim of a transfer op the memory dim it walks, -1 where it broadcasts."""
    amap = op.attributes["permutation_map"].value
    return [e.position if isinstance(e, ir.AffineDimExpr) else -1 for e in amap.results]


class Access:
    """The memory side of a vector.transfer_read or transfer_write.

    Attributes:
        dims: for each vector dim the memory dim it walks, -1 for a broadcast.
        aligned: elements; every row start and index is a multiple of it.
    """

    def __init__(self, op: Any, max_bytes: int) -> None:
        write = op.operation.name == "vector.transfer_write"
        self.memref = op.operands[1] if write else op.operands[0]
        vector = ir.VectorType(op.operands[0].type if write else op.results[0].type)
        self.shape = tuple(vector.shape)
        self.bytes = element_bytes(vector.element_type)
        self.dims = map_dims(op)
        memory = ir.MemRefType(self.memref.type)
        self.sizes = list(memory.shape)
        first = 2 if write else 1
        self.indices = list(op.operands)[first:first + len(self.sizes)]
        self.aligned = self._alignment(max(1, max_bytes // self.bytes))

    def _alignment(self, limit: int) -> int:
        if not self.sizes:
            return 1
        known = math.gcd(limit, divisor(self.indices[-1]))
        stride = 1
        for d in reversed(range(1, len(self.sizes))):
            stride = stride * (self.sizes[d] if self.sizes[d] >= 0 else 1)
            index = divisor(self.indices[d - 1])
            walked = d - 1 in self.dims
            known = math.gcd(known, stride if walked else min(stride * index, MAX_DIVISOR))
        return known & -known

    @property
    def order(self) -> list[int]:
        """The vector dims by distance in memory, nearest first; broadcast dims come last."""
        return sorted(range(len(self.dims)), key=lambda i: -self.dims[i] if self.dims[i] >= 0 else 1)

    def _stride(self, memory_dim: int) -> int:
        stride = 1
        for s in self.sizes[memory_dim + 1:]:
            stride *= s if s >= 0 else 1 << 12
        return stride

    def run(self, layout: Layout) -> tuple[int, list[int]]:
        """The widest vector access of `layout` here: elements, and the register bits that span it."""
        last = len(self.sizes) - 1
        along = [i for i, d in enumerate(self.dims) if d == last]
        if not along:
            return 1, []
        dim = along[0]
        registers = [v[dim] if not any(c for d, c in enumerate(v) if d != dim) else 0
                     for v in layout.basis("register")]
        chosen: list[int] = []
        while (2 << len(chosen)) <= self.aligned:
            want = 1 << len(chosen)
            found = [i for i, c in enumerate(registers) if c == want]
            others = [v[dim] for n, vs in layout.bases for i, v in enumerate(vs)
                      if not (n == "register" and found and i == found[0])]
            if not found or any(c & want for c in others):
                break
            chosen.append(found[0])
        return 1 << len(chosen), chosen

    def efficiency(self, layout: Layout) -> float:
        """Bytes a warp asks for over the bytes of the 32-byte sectors it touches, for its first access."""
        width, _ = self.run(layout)
        wanted: set[int] = set()
        for lane in range(layout.size("lane")):
            position = layout.at(lane=lane)
            offset = sum(c * self._stride(d) for c, d in zip(position, self.dims, strict=True) if d >= 0)
            wanted.update(range(offset * self.bytes, (offset + width) * self.bytes))
        sectors = {b // 32 for b in wanted}
        return len(wanted) / (32 * len(sectors))
