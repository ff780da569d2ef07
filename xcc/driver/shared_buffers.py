"""Which input and output of a compiled kernel may be the same memory.

Each element of the input must be read before it is written, and by the thread that writes it. That holds where every
read is at the place of a write behind it, in the same loop and of the same width, as no kernel writes an element twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from xcc._mlir import Module, Operation, Value, ir
from xcc.passes.walk import walk
from xcc.passes.xt.fusion.shared_updates import SHARES

__all__ = ["Wanted", "shared_buffers", "wanted_pairs"]

READS = ("vector.transfer_read", "vector.load", "memref.load")
WRITES = {"vector.transfer_write": 1, "vector.store": 1, "memref.store": 1}
"""Writes, and which operand is the memory."""
VIEWS = ("memref.cast", "memref.collapse_shape", "memref.expand_shape", "memref.reinterpret_cast")
LOOPS = ("scf.for", "scf.forall", "scf.while", "scf.parallel")
PURE = ("arith.", "affine.", "gpu.thread_id", "gpu.block_id", "vector.extract", "vector.from_elements",
        "vector.broadcast", "vector.shuffle")


@dataclass(frozen=True)
class Wanted:
    """Pairs of an input and an output that are wanted to share memory, and how many inputs the kernel has."""

    inputs: int
    pairs: tuple[tuple[int, int], ...]


def wanted_pairs(module: Module) -> Wanted | None:
    """What is wanted of the kernel of `module`, at stage ``kernels``."""
    for f in module.body:
        if SHARES in f.attributes:
            numbers = list(ir.DenseI64ArrayAttr(f.attributes[SHARES]))
            inputs = len(f.operation.regions[0].blocks[0].arguments)
            return Wanted(inputs, tuple(zip(numbers[::2], numbers[1::2], strict=True)))
    return None


def shared_buffers(module: Module, wanted: Wanted) -> tuple[tuple[int, int], ...]:
    """Those of the pairs that all functions of `module`, the compiled kernel, allow."""
    functions = [op for op in walk(module.body) if op.name in ("func.func", "gpu.func")]
    return tuple((a, r) for a, r in wanted.pairs if all(_allows(f, a, wanted.inputs + r) for f in functions))


def _allows(function: Operation, source: int, target: int) -> bool:
    block = function.regions[0].blocks[0]
    reads, writes = (_accesses(block.arguments[n]) for n in (source, target))
    if not reads or not writes or {op.name for op in reads} & WRITES.keys() or {op.name for op in writes} & {*READS}:
        return False
    order = {op: n for n, op in enumerate(walk(block))}
    places, written = _Places(), dict[int, int]()
    for op in writes:
        place = places.of(op)
        if place in written:
            return False
        written[place] = order[op]
    return all(order[op] < written.get(places.of(op), -1) for op in reads)


def _accesses(memory: Value) -> list[Operation] | None:
    """The ops that read or write a memref, through views too; None where another op uses it."""
    found = []
    for use in memory.uses:
        op = use.owner.operation
        if op.name in VIEWS:
            inner = _accesses(op.results[0])
            if inner is None:
                return None
            found += inner
        elif op.name in READS or (op.name in WRITES and use.operand_number == WRITES[op.name]):
            found.append(op)
        elif op.name != "memref.prefetch":
            return None
    return found


class _Places:
    """Numbers of places: equal for accesses in one loop, of one width, whose coordinates are computed alike."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._values: dict[Value, int] = {}

    def of(self, access: Operation) -> int:
        first = WRITES.get(access.name, 0)
        operands = list(access.operands)
        memory, moved = operands[first], operands[0] if first else access.results[0]
        indices = operands[first + 1:first + 1 + len(ir.MemRefType(memory.type).shape)]
        order = str(access.attributes["permutation_map"]) if "permutation_map" in access.attributes else ""
        return self._number((_loop(access), str(moved.type), order, self._view(memory), *map(self._value, indices)))

    def _number(self, what: object) -> int:
        return self._numbers.setdefault(what, len(self._numbers))

    def _view(self, memory: Value) -> int:
        """How an argument is seen."""
        owner = getattr(memory.owner, "operation", None)
        if owner is None:
            return self._number(str(memory.type))
        base, *rest = owner.operands
        return self._number((owner.name, str(memory.type), self._view(base), *map(self._value, rest)))

    def _value(self, value: Value) -> int:
        """The same number for values that are computed alike."""
        if value not in self._values:
            owner = getattr(value.owner, "operation", None)
            what: object = value
            if owner is not None and owner.name.startswith(PURE):
                attributes = tuple(sorted((a, str(owner.attributes[a])) for a in owner.attributes))
                what = (owner.name, list(owner.results).index(value), attributes, *map(self._value, owner.operands))
            self._values[value] = self._number(what)
        return self._values[value]


def _loop(op: Operation) -> Operation:
    """The innermost loop around `op`, or its function."""
    while op.name not in LOOPS and not op.name.endswith(".func"):
        op = op.parent.operation
    return op
