"""What says where the elements of a block value come from, and how that changes from instance to instance."""

from __future__ import annotations

from xcc._mlir import Operation, Value, ir
from xcc.passes.shared.values import is_vector
from xcc.passes.tile.nests.choice import WRITES, is_lazy
from xcc.passes.walk import ops_where

_LINE = "memref.collapse_shape"


def forall_around(op: Operation) -> Operation | None:
    """The scf.forall that `op` is in; None outside of one."""
    return _around(op, ("scf.forall",))


def loop_around(op: Operation) -> Operation | None:
    """The innermost loop around `op` inside an instance, where that is a scf.for."""
    found = _around(op, ("scf.forall", "scf.for", "scf.while"))
    return found if found is not None and found.name == "scf.for" else None


def _around(op: Operation, names: tuple[str, ...]) -> Operation | None:
    while op is not None and op.name != "func.func":
        op = op.parent
        if op is not None and op.operation.name in names:
            return op.operation
    return None


def key_of(value: Value, forall: Operation) -> list[Value] | None:
    """The scalars, of one instance of `forall` each, that say which elements a block value has. None where more than
    they and memory that the program only reads makes these."""
    written = {_buffer(v) for w in ops_where(forall, lambda o: o.name in WRITES) for v in w.operands
               if isinstance(v.type, ir.MemRefType)}
    key: dict[Value, None] = {}
    return list(key) if _collect(value, forall, written, key) else None


def _collect(value: Value, forall: Operation, written: set[Value], key: dict[Value, None]) -> bool:
    if isinstance(value.type, ir.MemRefType):
        return _buffer(value) not in written
    if not is_vector(value):
        if _inside(value, forall):
            if not isinstance(value.type, (ir.IndexType, ir.IntegerType)):
                return False
            key[value] = None
        return True
    if isinstance(value.owner, ir.Block):
        return False
    source = value.owner.operation
    return is_lazy(source) and all([_collect(v, forall, written, key) for v in source.operands])


def _buffer(memref: Value) -> Value:
    while not isinstance(memref.owner, ir.Block) and memref.owner.name == _LINE:
        memref = memref.owner.operands[0]
    return memref


def _inside(value: Value, forall: Operation) -> bool:
    """Whether a scalar is another one in each instance, or may be."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return owner.owner == forall or _around(owner.owner, ("scf.forall",)) is not None
    return owner.operation.name != "arith.constant" and forall_around(owner.operation) is not None


def changes_slowly(value: Value, forall: Operation) -> bool:
    """Whether a scalar is the same in several instances that follow each other: it depends on the last dim of the
    forall by a quotient alone."""
    return _speed(value, forall, {}) < 2


_SMOOTH = ("arith.addi", "arith.subi", "arith.muli", "arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui",
           "arith.cmpi", "arith.andi", "arith.ori", "arith.xori", "arith.index_cast", "arith.extsi",
           "arith.extui", "arith.trunci")
_QUOTIENTS = ("arith.divsi", "arith.divui", "arith.ceildivsi", "arith.ceildivui", "arith.floordivsi")


def _speed(value: Value, forall: Operation, known: dict[Value, int]) -> int:
    """0: the same in all instances, 1: in neighbours, 2: in none. What loops count is the same in all."""
    if value not in known:
        known[value] = _speed_of(value, forall, known)
    return known[value]


def _speed_of(value: Value, forall: Operation, known: dict[Value, int]) -> int:
    owner = value.owner
    if isinstance(owner, ir.Block):
        if owner.owner == forall:
            return 2 if value == list(owner.arguments)[-1] else 1
        loop = owner.owner.operation
        if loop.name == "func.func" or (loop.name == "scf.for" and value == owner.arguments[0]):
            return 0
        return 2
    op = owner.operation
    speeds = [_speed(v, forall, known) for v in op.operands if not isinstance(v.type, (ir.MemRefType, ir.VectorType))]
    if op.name == "arith.select":       # mostly one of two alike: a quotient that is rounded down, a mask's end
        return max(speeds[1:])
    if op.name in _QUOTIENTS:
        return min(1, max(speeds))
    if op.name in _SMOOTH or not speeds:
        return max(speeds, default=0)
    return 0 if max(speeds) == 0 and len(speeds) == len(op.operands) else 2
