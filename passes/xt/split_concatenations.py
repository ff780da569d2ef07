"""Products of a few rows read what is put together for them where its parts lie: a product of each part.

    %k = xt.concatenate(%past, %new)               %a = xt.dot_general(%q, %past), %b = xt.dot_general(%q, %new)
    %s = xt.dot_general(%q, %k) : 1x64, 2049x64 -> %s = xt.concatenate(%a, %b) : 1x2048, 1x1

    %v = xt.concatenate(%past, %new)               %a = xt.dot_general(%w[:, :2048], %past), likewise %b
    %y = xt.dot_general(%w, %v) : 1x2049, 2049x64 -> %y = xt.add(%a, %b)

Such products take the time in which their matrix is read once. Making it of a cache and what a step of decoding adds
reads and writes it besides. What is put together before a loop stays for the loop's products. Attention that a target
keeps whole has a loop for each part (form-kernels).
"""

from __future__ import annotations

from functools import reduce
from itertools import accumulate

from xcc._mlir import Module, Operation, Value, owner_op
from xcc.dialects import xt
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.xt.graph.op_graph import element_bytes, nominal_count
from xcc.passes.xt.graph.rewrite import dim_bounds, loop_behind, producer, rewrite
from xcc.symbolic import Dim

LESS = 4        # times as many bytes as the product's result has what is no longer put together


@register_pass
class SplitConcatenations(Pass):
    """Makes products of concatenations sums or concatenations of products.

    rows: as many rows of the other operand, at most, that read it.
    bytes: of a concatenation that is worth further kernels; sizes that are not known count as in other estimates.
    """

    rows: int = 16
    bytes: int = 1 << 20

    def run(self, module: Module, ctx: PassContext) -> None:
        bounds = dim_bounds(module)

        def split(op: Operation) -> Value | None:
            side = next((n for n in (1, 0) if self._pays(op, n, bounds)), None)
            return None if side is None else _split(op, side)

        rewrite(module, {"dot_general": split})

    def _pays(self, op: Operation, side: int, bounds: dict[str, tuple[int, int]]) -> bool:
        """Whether operand `side` is made for this product alone, and reading its parts saves more than it costs."""
        whole = op.operands[side]
        joined, others = producer(whole, "concatenate"), _free(op, 1 - side)
        if joined is None or len(list(whole.uses)) != 1 or xt.attrs_of(joined).axis in _batch(op, side) \
                or loop_behind(whole, op) is not None or not all(isinstance(d, int) for d in others) \
                or nominal_count(others, bounds) > self.rows:
            return False
        moved = nominal_count(xt.shape_of(whole), bounds) * element_bytes(whole)
        made = nominal_count(xt.shape_of(op.results[0]), bounds) * element_bytes(op.results[0])
        return moved >= max(self.bytes, LESS * made)


def _batch(op: Operation, side: int) -> tuple[int, ...]:
    a = xt.attrs_of(op)
    return tuple(a.rhs_batch if side else a.lhs_batch)


def _contract(op: Operation, side: int) -> tuple[int, ...]:
    a = xt.attrs_of(op)
    return tuple(a.rhs_contract if side else a.lhs_contract)


def _free_dims(op: Operation, side: int) -> list[int]:
    """The dims of an operand that the result has besides batches."""
    used = (*_batch(op, side), *_contract(op, side))
    return [d for d in range(len(xt.shape_of(op.operands[side]))) if d not in used]


def _free(op: Operation, side: int) -> tuple[Dim, ...]:
    return tuple(xt.shape_of(op.operands[side])[d] for d in _free_dims(op, side))


def _split(op: Operation, side: int) -> Value:
    """The result of `op` from products of the parts of its operand `side`."""
    a = xt.attrs_of(op)
    joined, other = owner_op(op.operands[side]), op.operands[1 - side]
    parts, axis = list(joined.operands), xt.attrs_of(joined).axis
    dims = {"lhs_batch": a.lhs_batch, "rhs_batch": a.rhs_batch, "lhs_contract": a.lhs_contract,
            "rhs_contract": a.rhs_contract, "precision": a.precision}

    def product(part: Value, with_: Value, dtype: str) -> Value:
        return xt.dot_general(*((with_, part) if side else (part, with_)), dtype=dtype, **dims)

    if axis not in _contract(op, side):
        place = len(_batch(op, side)) + (len(_free_dims(op, 0)) if side else 0) + _free_dims(op, side).index(axis)
        return xt.concatenate(*(product(p, other, a.dtype) for p in parts), axis=place)
    wide = "f32" if a.dtype in ("f16", "bf16") else a.dtype
    along = _contract(op, 1 - side)[_contract(op, side).index(axis)]
    ends: list[Dim] = list(accumulate((xt.shape_of(p)[axis] for p in parts), initial=0))
    made = [product(p, _cut(other, along, *ends[n:n + 2]), wide) for n, p in enumerate(parts)]
    total = reduce(xt.add, made)
    return total if wide == a.dtype else xt.convert(total, dtype=a.dtype)


def _cut(value: Value, dim: int, begin: Dim, end: Dim) -> Value:
    """`value` from `begin` to `end` along `dim`."""
    shape = xt.shape_of(value)
    starts: list[Dim] = [0] * len(shape)
    limits = list(shape)
    starts[dim], limits[dim] = begin, end
    return xt.slice(value, starts=starts, limits=limits, strides=(1,) * len(shape))
