"""What a strategy asks of a kernel: its main domain, where each op stands in it, work and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from xcc import symbolic
from xcc._mlir import Type, ir
from xcc.passes.linalg.kernel.kernel import Access, Kernel, Op, Tensor, loop
from xcc.passes.linalg.kernel.reduction_body import product_operands
from xcc.symbolic import Dim

ASSUMED: ContextVar[int] = ContextVar("ASSUMED", default=256)     # size of a symbol in estimates


@dataclass(frozen=True)
class Domain:
    """dims: those of the kernel's largest result; of equal ones, of one that is made of the sum of products.
    position: for each op reached from it, the coordinates (over the domain's loops i0, i1...) at which its result is
    needed, outside of reductions if anywhere. reads: the arguments and their accesses in the domain's loops, each once
    (loops of reductions appear as r0, r1...)."""

    main: Tensor
    dims: tuple[Dim, ...]
    position: dict[Op, Access]
    reads: list[tuple[Tensor, Access]]


@contextmanager
def assuming(size: int) -> Iterator[None]:
    """Inside, estimates take each symbol to be `size`."""
    token = ASSUMED.set(size)
    try:
        yield
    finally:
        ASSUMED.reset(token)


def estimate(d: Dim) -> int:
    """A number for a dim, each symbol taken as ASSUMED."""
    return symbolic.evaluate(d, dict.fromkeys(symbolic.symbols_of(d), ASSUMED.get()))


def volume(dims: Any) -> int:
    n = 1
    for d in dims:
        n *= estimate(d)
    return n


def domain(kernel: Kernel) -> Domain:
    product = contraction_of(kernel)
    main = max(kernel.results, key=lambda t: (len(t.dims), volume(t.dims), _is_made_of(t, product)))
    found = Domain(main, main.dims, {}, [])
    counter = iter(range(10_000))
    seen: set[tuple[Tensor, Access]] = set()

    def visit(t: Tensor, access: Access) -> None:
        if (t, access) in seen:
            return
        seen.add((t, access))
        op = t.producer
        if op is None:
            found.reads.append((t, access))
            return
        if op not in found.position or _inside(found.position[op]) and not _inside(access):
            found.position[op] = access
        env = op.loops_at(access, t.index)
        env |= {i: symbolic.sym(f"r{next(counter)}") for p in range(len(op.loops)) if (i := f"i{p}") not in env}
        for s, a in op.reads(env):
            visit(s, a)

    visit(main, tuple(loop(n) for n in range(len(main.dims))))
    return found


def _inside(access: Access) -> bool:
    """Whether a loop of a reduction walks `access`."""
    return any(name.startswith("r") for e in access for name in symbolic.symbols_of(e))


def is_outer_sum(e: Dim) -> bool:
    """Whether a coordinate of an op's position is the loop of a sum around the op."""
    text = str(e)
    return isinstance(e, symbolic.Expr) and text[0] == "r" and text[1:].isdigit()


def element_bytes(element: Type) -> int:
    """Bytes of one element in memory: 8 of an index, 1 of what is less than a byte."""
    width = 64 if isinstance(element, ir.IndexType) else element.width
    return max(1, int(width) // 8)


def bytes_moved(kernel: Kernel) -> int:
    """Every argument once and every result once."""
    return sum(volume(t.dims) * element_bytes(t.element) for t in (*kernel.args, *kernel.results))


def work(kernel: Kernel) -> int:
    """Scalar operations, every op once over its loops."""
    return sum(operations_of(op) * volume(op.loops) for op in kernel.ops)


def operations_of(op: Op) -> int:
    """Scalar operations of one step of the op's loops; a transcendental counts 10."""
    if op.operation is None:
        return 0
    names = [inner.operation.name for inner in op.block.operations]
    return sum(10 if name.startswith("math.") and name != "math.fma" else int(name.startswith("arith."))
               for name in names)


def _is_made_of(t: Tensor, op: Op | None) -> bool:
    """Whether `t` is computed of what `op` gives."""
    known: set[Tensor] = set()
    rest = [t] if op is not None else []
    while rest:
        one = rest.pop()
        if one.producer is op is not None:
            return True
        if one.producer is not None and one not in known:
            known.add(one)
            rest += [source for source, _ in one.producer.inputs]
    return False


def contraction_of(kernel: Kernel) -> Op | None:
    """The kernel's sum of products, if it has one."""
    for op in kernel.ops:
        if op.operation is not None and op.is_reduction and product_operands(op) is not None:
            return op
    return None
