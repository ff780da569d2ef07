"""The instances of a program in chunks, each of which has memory of its own from its first instance to its last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Value, arith_d, ir
from xcc.passes.shared.regions import for_loop, one_dim
from xcc.passes.shared.values import index, op
from xcc.passes.tile.lowering.views import mul, value_of
from xcc.passes.tile.nests.instances import PEELED, emit_instance

if TYPE_CHECKING:
    from xcc.passes.tile.nests.program import Retiler
    from xcc.targets.base import Chip

_DYNAMIC = -(1 << 63)
CHUNKS_A_CORE = 4         # chunks: few, as each begins and ends its memory, and enough for cores that have other work
_CORES = 16         # where no chip is known


def chunks_of(chip: Chip | None) -> int:
    """How many chunks the instances of a program go in."""
    return CHUNKS_A_CORE * (chip.cores if chip else _CORES)


def chunked(r: Retiler, forall: Operation, chunks: int, begin: Callable[[Any], None], end: Callable[[], None],
            many: Sequence[Value] = (), alone: Value | None = None) -> None:
    """Emits `forall` in so many chunks: `begin(instances)` at the start of one, `end()` behind its last instance. In
    fewer, but no less than one a core, where a chunk shall have as `many` instances; in one where `alone`."""
    sizes = _sizes(r, forall)
    total = value_of(_product(sizes))
    each = arith_d.maxsi(op("arith.ceildivui", [total.type], [total, index(chunks)]), index(1))
    for n in many:
        most = op("arith.ceildivui", [total.type], [total, index(max(1, chunks // CHUNKS_A_CORE))])
        each = arith_d.maxsi(each, arith_d.minsi(n, most))
    if alone is not None:
        each = arith_d.select(alone, arith_d.maxsi(total, index(1)), each)
    loop = ir.Operation.create("scf.forall", operands=[op("arith.ceildivui", [total.type], [total, each])], regions=1,
                               attributes=one_dim(forall, PEELED))
    (chunk,) = loop.regions[0].blocks.append(ir.IndexType.get()).arguments
    with ir.InsertionPoint(loop.regions[0].blocks[0]):
        low = arith_d.muli(chunk, each)
        high = arith_d.minsi(arith_d.addi(low, each), total)
        r.single = arith_d.cmpi(arith_d.CmpIPredicate.sge, each, total)
        begin(each)
        _instances(r, forall, sizes, low, high)
        end()
        ir.Operation.create("scf.forall.in_parallel", regions=1).regions[0].blocks.append()


def _instances(r: Retiler, forall: Operation, sizes: list[Value], low: Value, high: Value) -> None:
    """The instances from `low` to `high`, one after the other."""
    old = forall.regions[0].blocks[0]
    with for_loop(low, high, index(1)) as rest:
        last = len(sizes) - 1
        for d in range(last, -1, -1):
            n = value_of(sizes[d])
            r.values[old.arguments[d]] = arith_d.remui(rest, n) if d else rest
            rest = arith_d.divui(rest, n) if d else rest
        emit_instance(r, forall)


def instances_of(r: Retiler, forall: Operation) -> Value:
    """How many there are."""
    return value_of(_product(_sizes(r, forall)))


def _sizes(r: Retiler, forall: Operation) -> list[Value]:
    """How far the dims of `forall` go, from 0."""
    dynamic = iter(r.get(v) for v in forall.operands)
    return [next(dynamic) if n == _DYNAMIC else n for n in ir.DenseI64ArrayAttr(forall.attributes["staticUpperBound"])]


def _product(sizes: list[Value]) -> Value:
    out: Any = 1
    for n in sizes:
        out = mul(out, n)
    return out
