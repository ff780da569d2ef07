"""scalar-bits: and, or and xor of vectors of 32 bits, one element after the other.

    %r = llvm.and %a, %b : vector<2xi32>
    ->
    %x = llvm.extractelement %a[%c0], %y = llvm.extractelement %b[%c0], %p = llvm.and %x, %y : i32
    ...
    %r = llvm.insertelement %q, %half[%c1] : vector<2xi32>

CDNA has no such instructions of vectors. LLVM 22 takes two elements together all the same, and ends with "This
target-independent node should have been selected" where one of the two is the upper half of an i64 and the result goes
through a select (keys of a sort: floats above, places below).
"""

from __future__ import annotations

from xcc._mlir import Module, Operation, Value, ir
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.shared.values import op
from xcc.passes.walk import ops_where


@register_pass
class ScalarBits(Pass):
    """Bitwise operations of 32-bit integers, of scalars alone."""

    def run(self, module: Module, ctx: PassContext) -> None:
        for source in ops_where(module, _of_words):
            with source.location, ir.InsertionPoint(source):
                source.results[0].replace_all_uses_with(_by_elements(source))
            source.erase()


def _of_words(source: Operation) -> bool:
    if source.name not in ("llvm.and", "llvm.or", "llvm.xor") or not isinstance(source.results[0].type, ir.VectorType):
        return False
    kind = ir.VectorType(source.results[0].type)
    return bool(kind.rank == 1 and kind.element_type == ir.IntegerType.get_signless(32))


def _by_elements(source: Operation) -> Value:
    kind = ir.VectorType(source.results[0].type)
    word = kind.element_type
    out = op("llvm.mlir.poison", [kind], [])
    for n in range(kind.shape[0]):
        at = op("llvm.mlir.constant", [word], [], value=ir.IntegerAttr.get(word, n))
        a, b = (op("llvm.extractelement", [word], [v, at]) for v in source.operands)
        out = op("llvm.insertelement", [kind], [out, op(source.name, [word], [a, b]), at])
    return out
