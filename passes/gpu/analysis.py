"""What is known about index values and memory accesses: divisors, symbolic values, alignment, coalescing."""

from __future__ import annotations

import math
from collections.abc import Callable
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


def step_of(value: Any, block: Any, fits: Callable[[Any], bool]) -> list[Any] | None:
    """The operations of a loop's `block` that `value` needs, in order; None where one does not fit, or needs a value
    that the loop carries."""
    needed: set[Any] = set()
    todo = [value]
    while todo:
        v = todo.pop()
        op = owner(v)
        if op is None:
            if v.owner == block and ir.BlockArgument(v).arg_number:
                return None
            continue
        if op.block != block or op in needed:
            continue
        if not fits(op):
            return None
        needed.add(op)
        todo += list(op.operands)
    return [op.operation for op in block.operations if op.operation in needed]


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


def register_run(layout: Layout, limit: int, dim: int = -1) -> tuple[int, list[int]]:
    """The longest aligned run of neighbours along `dim` in one thread: elements (`limit` at most) and register bits."""
    dim %= len(layout.shape)
    registers = [v[dim] if not any(c for d, c in enumerate(v) if d != dim) else 0 for v in layout.basis("register")]
    chosen: list[int] = []
    while (2 << len(chosen)) <= limit:
        want = 1 << len(chosen)
        found = [i for i, c in enumerate(registers) if c == want]
        others = [v[dim] for n, vs in layout.bases for i, v in enumerate(vs)
                  if not (n == "register" and found and i == found[0])]
        if not found or any(c & want for c in others):
            break
        chosen.append(found[0])
    return 1 << len(chosen), chosen


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
        return register_run(layout, self.aligned, along[0]) if along else (1, [])

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


def _splat(value: Any) -> int | None:
    op = owner(value)
    if op is None or op.name != "arith.constant":
        return None
    attr = op.attributes["value"]
    if isinstance(attr, ir.IntegerAttr):
        return int(attr.value)
    if not isinstance(attr, ir.DenseElementsAttr) or not attr.is_splat:
        return None
    fixed = ir.DenseElementsAttr(attr).get_splat_value()
    return int(fixed.value) if isinstance(fixed, ir.IntegerAttr) else None


def _last(value: Any) -> int:
    """The size of a vector's last dim; 1 for a scalar."""
    if not isinstance(value.type, ir.VectorType) or not ir.VectorType(value.type).rank:
        return 1
    return int(ir.VectorType(value.type).shape[-1])


def step_along(value: Any, width: int) -> tuple[int, int] | None:
    """How an index vector moves within each aligned run of `width` elements along its last dim.

    (step, divisor): neighbours differ by `step`, and the first element of each run is a multiple of `divisor`.
    None when nothing is known.
    """
    if _last(value) == 1:
        return 0, divisor(value) if not isinstance(value.type, ir.VectorType) else _lanes_divisor(value)
    fixed = _splat(value)
    if fixed is not None:
        return 0, abs(fixed) or MAX_DIVISOR
    op = owner(value)
    if op is None:
        return None
    if op.name == "vector.step":
        return 1, width
    if op.name in ("vector.broadcast", "vector.shape_cast"):
        source = op.operands[0]
        if _last(source) == _last(value):
            return step_along(source, width)
        if op.name == "vector.broadcast" and _last(source) == 1:
            return 0, step_along(source, width)[1]  # type: ignore[index]
        return None
    if op.name == "vector.transfer_read":       # the same element for all, where the last dim is none of memory's
        return (0, 1) if isinstance(op.attributes["permutation_map"].value.results[-1], ir.AffineConstantExpr) else None
    if not op.operands or not op.name.startswith(("arith.", "math.", "vector.gather")):
        return None
    sides = [step_along(v, width) for v in op.operands]
    if any(x is None for x in sides):
        return None
    known = [x for x in sides if x is not None]
    if op.name in ("arith.addi", "arith.subi"):
        sign = 1 if op.name == "arith.addi" else -1
        return known[0][0] + sign * known[1][0], math.gcd(known[0][1], known[1][1])
    if op.name in ("arith.remui", "arith.remsi", "arith.divui", "arith.divsi") and known[0][0] == 1:
        by = _splat(op.operands[1])     # a run starts at a multiple of the width: it does not cross a multiple of `by`
        if by is None or by % width or known[0][1] % width:
            return None
        return (1, width) if "rem" in op.name else (0, 1)
    if op.name == "arith.muli":
        (a, p), (b, q) = known
        if a and b:
            return None
        factor = _splat(op.operands[1] if a else op.operands[0])
        if (a or b) and factor is None:
            return None
        return (a or b) * (factor or 0), min(p * q, MAX_DIVISOR)
    if any(x[0] for x in known):
        return None
    if op.name in ("arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui"):
        return 0, math.gcd(known[0][1], known[1][1])
    if op.name == "arith.select":
        return 0, math.gcd(known[1][1], known[2][1])
    return (0, known[0][1]) if op.name == "arith.index_cast" else (0, 1)


def _lanes_divisor(value: Any) -> int:
    """A divisor of all elements of a vector whose last dim has one element."""
    op = owner(value)
    if op is not None and op.name in ("vector.shape_cast", "vector.broadcast"):
        source = op.operands[0]
        return divisor(source) if not isinstance(source.type, ir.VectorType) else elements_divisor(source)
    return 1


def elements_divisor(value: Any) -> int:
    """A divisor of every element of an index vector."""
    fixed = _splat(value)
    if fixed is not None:
        return abs(fixed) or MAX_DIVISOR
    op = owner(value)
    if op is None:
        return 1
    if not isinstance(value.type, ir.VectorType):
        return divisor(value)
    if op.name in ("vector.shape_cast", "vector.broadcast"):
        return elements_divisor(op.operands[0])
    if op.name == "arith.muli":
        return min(elements_divisor(op.operands[0]) * elements_divisor(op.operands[1]), MAX_DIVISOR)
    if op.name in ("arith.addi", "arith.subi", "arith.minsi", "arith.maxsi"):
        return math.gcd(elements_divisor(op.operands[0]), elements_divisor(op.operands[1]))
    if op.name == "arith.select":
        return math.gcd(elements_divisor(op.operands[1]), elements_divisor(op.operands[2]))
    return 1


def same_along(mask: Any, width: int) -> bool:
    """Whether every aligned run of `width` elements along the mask's last dim is all on or all off."""
    op = owner(mask)
    if _last(mask) == 1:
        return True
    if op is None:
        return False
    if op.name == "vector.create_mask":
        return divisor(op.operands[len(op.operands) - 1]) % width == 0
    if op.name == "vector.constant_mask":
        return bool(list(op.attributes["mask_dim_sizes"])[-1] % width == 0)
    if op.name == "arith.constant":
        return bool(ir.DenseElementsAttr(op.attributes["value"]).is_splat)
    if op.name in ("vector.broadcast", "vector.shape_cast"):
        source = op.operands[0]
        return _last(source) == 1 and op.name == "vector.broadcast" or \
            _last(source) == _last(mask) and same_along(source, width)
    if op.name == "arith.cmpi":
        sides = [step_along(v, width) for v in op.operands]
        return all(s is not None and s[0] == 0 for s in sides)
    return op.name in ("arith.andi", "arith.ori", "arith.xori") and all(same_along(v, width) for v in op.operands)


def gather_run(op: Any, max_bytes: int) -> int:
    """How many neighbours along the last dim one access of a vector.gather may read: they lie together, aligned."""
    operands = list(op.operands)
    base, index = operands[:-3], operands[-3]
    size = element_bytes(ir.VectorType(op.results[0].type).element_type)
    width = max(1, max_bytes // size)
    while width > 1:
        found = step_along(index, width) if _last(index) % width == 0 else None
        if found is not None and found[0] == 1 and found[1] % width == 0 and divisor(base[-1]) % width == 0:
            return width
        width //= 2
    return 1
