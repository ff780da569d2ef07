"""Index arithmetic of GPU kernels in 32 bits where every buffer is small enough for it.

    %a = arith.muli %i, %c256 : index           %j = arith.index_cast %i : index to i32
    %b = arith.addi %a, %t : index          ->  %a = arith.muli %j, %c256 : i32     %b = arith.addi %a, %s : i32
    memref.load %m[%b]                          memref.load %m[arith.index_cast %b : i32 to index]

A GPU adds and compares 64 bits in several instructions and two registers. What counts on in 32 bits comes from
constants, ids of threads and loops, never from data: an index that was read may be anything before it is clamped.
Kernels with a buffer of more than 2^30 elements or of symbolic size keep 64 bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from xcc._mlir import Attribute, Block, Module, Operation, Type, Value, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.walk import ops_where

__all__ = ["NarrowIndices"]

MOST_ELEMENTS = 1 << 30
ARITHMETIC = frozenset(f"arith.{name}" for name in (
    "addi subi muli divui divsi remui remsi floordivsi minsi maxsi minui maxui andi ori xori shli shrui shrsi cmpi "
    "select constant").split()) | {"vector.broadcast", "vector.shuffle", "vector.extract", "vector.from_elements",
                                   "vector.step"}
SOURCES = ("gpu.thread_id", "gpu.block_id", "gpu.lane_id")


@register_pass
@dataclass(frozen=True)
class NarrowIndices(Pass):
    """Rewrites index arithmetic of small kernels in i32."""

    name: ClassVar[str] = "narrow-indices"

    def run(self, module: Module, ctx: PassContext) -> None:
        functions = ops_where(module, lambda op: op.name == "gpu.func")
        with module.context, ir.Location.unknown():
            for f in functions:
                if all(_is_small(a.type) for a in f.regions[0].blocks[0].arguments):
                    _Narrower().block(f.regions[0].blocks[0])


def _is_small(kind: Type) -> bool:
    if not isinstance(kind, ir.MemRefType):
        return False        # a symbol
    return kind.has_static_shape and math.prod(kind.shape) <= MOST_ELEMENTS


def _narrow_type(kind: Type) -> Type:
    i32 = ir.IntegerType.get_signless(32)
    return ir.VectorType.get(kind.shape, i32) if isinstance(kind, ir.VectorType) else i32


def _is_index(kind: Type) -> bool:
    return isinstance(kind.element_type if isinstance(kind, ir.VectorType) else kind, ir.IndexType)


class _Narrower:
    """Values that fit into 32 bits, with their narrow twins."""

    def __init__(self) -> None:
        self.twin: dict[Value, Value] = {}

    def block(self, block: Block) -> None:
        for op in list(block.operations):
            self._visit(op.operation)

    def _visit(self, op: Operation) -> None:
        if op.name in SOURCES:
            with ir.InsertionPoint.after(op), op.location:
                self.twin[op.results[0]] = _cast(op.results[0], _narrow_type(op.results[0].type))
        elif op.name in ARITHMETIC:
            self._arithmetic(op)
            return
        for region in op.regions:
            for inner in region.blocks:
                if op.name == "scf.for":
                    self._induction(op, inner)
                self.block(inner)

    def _induction(self, loop: Operation, block: Block) -> None:
        iv = block.arguments[0]
        if _is_index(iv.type) and all(v in self.twin for v in list(loop.operands)[:3]):
            with ir.InsertionPoint.at_block_begin(block), loop.location:
                self.twin[iv] = _cast(iv, _narrow_type(iv.type))

    def _arithmetic(self, op: Operation) -> None:
        operands, results = list(op.operands), list(op.results)
        wide = [v for v in operands if _is_index(v.type)]
        if not wide and not (op.name in ("arith.constant", "vector.step") and _is_index(results[0].type)):
            return
        if any(v not in self.twin for v in wide):
            return
        attributes = {n: op.attributes[n] for n in op.attributes}
        if op.name == "arith.constant":
            value = _narrow_constant(attributes["value"])
            if value is None:
                return
            attributes = {"value": value}
        kinds = [_narrow_type(r.type) if _is_index(r.type) else r.type for r in results]
        with ir.InsertionPoint.after(op), op.location:
            new = ir.Operation.create(op.name, results=kinds, operands=[self.twin.get(v, v) for v in operands],
                                      attributes=attributes)
        for old, made in zip(results, new.results, strict=True):
            if made.type == old.type:
                old.replace_all_uses_with(made)
                continue
            with ir.InsertionPoint.after(new), op.location:
                back = _cast(made, old.type)
            old.replace_all_uses_with(back)
            self.twin[back] = made
        op.erase()


def _cast(value: Value, kind: Type) -> Value:
    return ir.Operation.create("arith.index_cast", results=[kind], operands=[value]).results[0]


def _narrow_constant(value: Value) -> Attribute | None:
    """The attribute with elements of 32 bits; None when one does not fit."""
    i32 = ir.IntegerType.get_signless(32)
    if isinstance(value, ir.IntegerAttr):
        return ir.IntegerAttr.get(i32, value.value) if _fits(value.value) else None
    dense = ir.DenseIntElementsAttr(value)
    kind = _narrow_type(value.type)
    if dense.is_splat:
        number = ir.IntegerAttr(dense.get_splat_value()).value
        return ir.DenseElementsAttr.get_splat(kind, ir.IntegerAttr.get(i32, number)) if _fits(number) else None
    numbers = list(dense)
    if not all(map(_fits, numbers)):
        return None
    return ir.DenseElementsAttr.get([ir.IntegerAttr.get(i32, n) for n in numbers], kind)


def _fits(n: int) -> bool:
    return -(1 << 31) <= n < 1 << 31
