"""masked-bits: masked accesses of bf16, and what takes vectors apart or together, as those of integers of 16 bits.

    %v = llvm.intr.masked.load %p, %m, %o : vector<32xbf16>
    ->
    %b = llvm.intr.masked.load %p, %m, %i : vector<32xi16>          %i: the bits of %o
    %v = llvm.bitcast %b : vector<32xi16> to vector<32xbf16>

Where a CPU has no masks or no shuffles of 16 bits LLVM takes such an op apart, and rounds each bf16 element, by a call,
to put it together.
"""

from __future__ import annotations

from xcc._mlir import Module, Type, Value, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.lanes import element, with_element
from xcc.passes.shared.values import with_operands
from xcc.passes.walk import ops_where

MOVES = ("llvm.intr.masked.load", "llvm.intr.masked.store", "llvm.intr.masked.gather", "llvm.intr.masked.scatter",
         "llvm.insertelement", "llvm.extractelement", "llvm.shufflevector")


@register_pass
class MaskedBits(Pass):
    """What only moves bf16 moves its bits."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for o in ops_where(module, lambda o: o.name in MOVES and any(
                _is_bf16(v.type) for v in (*o.operands, *o.results))):
            with ir.InsertionPoint(o), o.location:
                made = with_operands(o, [_cast(v, _bits(v.type)) if _is_bf16(v.type) else v for v in o.operands],
                                     [_bits(r.type) for r in o.results])
                for old, new in zip(o.results, made.results, strict=True):
                    old.replace_all_uses_with(_cast(new, old.type))
            o.erase()


def _is_bf16(kind: Type) -> bool:
    return isinstance(element(kind), ir.BF16Type)


def _bits(kind: Type) -> Type:
    return with_element(kind, ir.IntegerType.get_signless(16)) if _is_bf16(kind) else kind


def _cast(value: Value, kind: Type) -> Value:
    return ir.Operation.create("llvm.bitcast", results=[kind], operands=[value]).results[0]
