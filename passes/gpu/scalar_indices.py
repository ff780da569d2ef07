"""Indices and masks of accesses as scalars, without the bounds that a mask keeps already.

    %y = arith.maxsi (arith.minsi %x, %n - 1), 0 : vector<8xindex>          %x0 = (the arithmetic of %x's first element)
    %i = vector.extract %y * 32 + %c [0]                                    scf.if (%x0 < %n, unsigned) {
    scf.if %m[0] { vector.load %a[%i] }     of %m = %x < %n, unsigned  ->   vector.load %a[%x0 * 32 + %c0] }

What an access reads is chosen by vectors of a thread's indices and masks; behind them nothing is known of an address.
Coordinates of gathers are clamped so that every read is inside; where the access stands behind the test that its
coordinate is inside, the clamp changes nothing.
"""

from __future__ import annotations

from xcc._mlir import Attribute, Module, Operation, Type, Value, arith_d, ir, maker
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.index.address import ACCESSES
from xcc.passes.gpu.index.index_vectors import clamped
from xcc.passes.shared.patterns import int_constant
from xcc.passes.shared.values import with_operands
from xcc.passes.walk import ops_where

OPENED = frozenset(f"arith.{name}" for name in "addi subi muli index_cast".split())
UNSIGNED_LESS = 6       # arith.cmpi


@register_pass
class ScalarIndices(Pass):
    """Index vectors become scalars where accesses use them; clamps behind a test of the same bounds are dropped."""

    def run(self, module: Module, ctx: PassContext) -> None:
        accesses = ops_where(module, lambda op: op.name in ACCESSES)
        scalars = _Scalars()
        for op in accesses:
            _access(op, scalars)


def _access(op: Operation, scalars: _Scalars) -> None:
    """Rewrites the indices of one load or store, and the condition around it."""
    first = 2 if op.name.endswith(".store") else 1
    parent = op.parent.operation
    inside: list[tuple[Value, Value]] = []
    if parent.name == "scf.if":
        parent.operands[0] = scalars.of(parent.operands[0])
        if op.block == parent.regions[0].blocks[0]:
            inside = _inside(parent.operands[0])
    for n in range(first, len(op.operands)):
        value = scalars.of(op.operands[n])
        if inside:
            value = _opened(value, inside, op)
        op.operands[n] = value


class _Scalars:
    """Elements of vectors, computed by themselves where the vector is."""

    def __init__(self) -> None:
        self.made: dict[tuple[Value, int], Value] = {}

    def of(self, value: Value) -> Value:
        """`value` without vectors, where it is an element of one, or arithmetic on such."""
        op = maker(value)
        if op is None or isinstance(value.type, ir.VectorType):
            return value
        if op.name == "vector.extract" and len(op.operands) == 1:
            position = list(ir.DenseI64ArrayAttr(op.attributes["static_position"]))
            return self.element(op.operands[0], position[0]) if len(position) == 1 else value
        if op.name in OPENED or op.name == "arith.andi":
            for n in range(len(op.operands)):
                op.operands[n] = self.of(op.operands[n])
        return value

    def element(self, vector: Value, n: int) -> Value:
        if (vector, n) not in self.made:
            self.made[vector, n] = self._element(vector, n)
        return self.made[vector, n]

    def _element(self, vector: Value, n: int) -> Value:
        op = maker(vector)
        kind = ir.VectorType(vector.type).element_type
        if op is None:
            with ir.InsertionPoint.at_block_begin(vector.owner):
                return _extracted(vector, n)
        if op.name == "vector.from_elements":
            return self.of(op.operands[n])
        if op.name == "vector.broadcast":
            source = op.operands[0]
            if not isinstance(source.type, ir.VectorType):
                return self.of(source)
            if ir.VectorType(source.type).shape == [1]:
                return self.element(source, 0)
        if op.name == "vector.shuffle":
            at = list(ir.DenseI64ArrayAttr(op.attributes["mask"]))[n]
            size = ir.VectorType(op.operands[0].type).shape[0]
            if at >= 0:
                return self.element(op.operands[0], at) if at < size else self.element(op.operands[1], at - size)
        if op.name == "vector.extract_strided_slice":
            start = ir.IntegerAttr(ir.ArrayAttr(op.attributes["offsets"])[0]).value
            return self.element(op.operands[0], start + n)
        arithmetic = op.name.startswith("arith.") and op.name != "arith.constant" and len(op.results) == 1
        operands = [self.element(v, n) if isinstance(v.type, ir.VectorType) else v for v in op.operands] \
            if arithmetic else []
        with ir.InsertionPoint.after(op):
            if op.name == "arith.constant":
                return arith_d.constant(kind, _number(op.attributes["value"], kind, n))
            if op.name == "vector.step":
                return arith_d.constant(kind, n)
            if not arithmetic:
                return _extracted(vector, n)
            with op.location:
                return with_operands(op, operands, [kind]).result


def _extracted(vector: Value, n: int) -> Value:
    return ir.Operation.create("vector.extract", results=[ir.VectorType(vector.type).element_type], operands=[vector],
                               attributes={"static_position": ir.DenseI64ArrayAttr.get([n])}).result


def _number(dense: Attribute, kind: Type, n: int) -> Attribute:
    """Element `n`, of type `kind`, of a constant vector, as an attribute."""
    if ir.DenseElementsAttr(dense).is_splat:
        return ir.DenseElementsAttr(dense).get_splat_value()
    if isinstance(kind, ir.FloatType):
        return ir.FloatAttr.get(kind, list(ir.DenseFPElementsAttr(dense))[n])
    return ir.IntegerAttr.get(kind, int(list(ir.DenseIntElementsAttr(dense))[n]))


def _inside(condition: Value) -> list[tuple[Value, Value]]:
    """(x, n) of the comparisons x < n, unsigned, that hold where `condition` does."""
    op = maker(condition)
    if op is not None and op.name == "arith.andi":
        return [pair for v in op.operands for pair in _inside(v)]
    if op is not None and op.name == "arith.cmpi" and op.attributes["predicate"].value == UNSIGNED_LESS:
        return [(op.operands[0], op.operands[1])]
    return []


def _opened(value: Value, inside: list[tuple[Value, Value]], access: Operation) -> Value:
    """`value` without the clamps of coordinates that are `inside`, made before the test around `access` or at it."""
    op = maker(value)
    if op is None:
        return value
    found = clamped(op)
    if found is not None and any(found[0] == x and _is_one_less(found[1], n) for x, n in inside):
        return found[0]
    if op.name not in OPENED:
        return value
    operands = [_opened(v, inside, access) for v in op.operands]
    if operands == list(op.operands):
        return value
    late = any((origin := maker(v)) is not None and origin.block == access.block for v in operands)
    with ir.InsertionPoint(access if late else access.parent.operation), access.location:
        return ir.Operation.create(op.name, results=[value.type], operands=operands).result


def _is_one_less(most: Value, size: Value) -> bool:
    """Whether `most` is `size` - 1."""
    fixed, whole = int_constant(most), int_constant(size)
    if fixed is not None and whole is not None:
        return fixed == whole - 1
    op = maker(most)
    return op is not None and op.name == "arith.addi" and op.operands[0] == size and int_constant(op.operands[1]) == -1
