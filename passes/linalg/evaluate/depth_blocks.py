"""Long products in blocks of their depth, so that a block of the left operand stays in the L2 cache.

    for block of k:                               # in a chunk of the result; with `parts` around all chunks
      for panel of columns, tile of rows:
        acc = sum over the block of k
        out[tile] = acc                           # the first block
        out[tile] = out[tile] + acc               # those between
        out[tile] = (the rest of the kernel)(out[tile] + acc)     # the last

What is there already is asked for along a tile's loop and added when it ends. (K. Goto and R. van de Geijn, "Anatomy of
High-Performance Matrix Multiplication", 2008, whose kc this is.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from xcc._mlir import Value, ir
from xcc.diagnostics import UserError
from xcc.passes.linalg.build.buffers import LINE_BYTES, prefetch
from xcc.passes.linalg.build.tile_builder import Builder
from xcc.passes.linalg.build.tile_values import Ix, V
from xcc.passes.linalg.kernel.domain import contraction_of, domain
from xcc.passes.linalg.kernel.kernel import Kernel, Op, bare_loop

if TYPE_CHECKING:
    from xcc.passes.linalg.evaluate.tile_eval import Evaluator


@dataclass(frozen=True)
class DepthBlock:
    """The steps [low, low + size) of the reduction `op`; `out` is the buffer of the sums, where `prior` says that
    those of the steps before are there. `final`: the last block, after which the rest of the kernel follows."""

    op: Op
    low: Value
    size: int
    out: Value
    prior: bool
    final: bool


def depth_of(kernel: Kernel) -> tuple[Op, int] | None:
    """The kernel's one reduction and its steps, where it is a product that lies as the one f32 result does."""
    op = contraction_of(kernel)
    if op is None or len(kernel.results) != 1 or any(kernel.borders) \
            or [o for o in kernel.ops if o.is_reduction] != [op]:
        return None
    result, loops = kernel.results[0], [p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1]
    size = op.loops[loops[0]] if len(loops) == 1 else None
    position = domain(kernel).position.get(op, ())
    alike = [bare_loop(e) for e in position] == list(range(len(result.dims)))
    if not isinstance(size, int) or not alike or op.results[0].dims != result.dims \
            or not all(isinstance(e, ir.F32Type) for e in (result.element, op.results[0].element)):
        return None
    return op, size


def blocked_product(kernel: Kernel, size: int) -> tuple[Op, int]:
    """The kernel's product, whose sum is to be in blocks of `size` steps, and all its steps; UserError where it cannot
    be."""
    found = depth_of(kernel)
    if found is None or found[1] % size:
        raise UserError(f"{kernel.function.location}: blocks of depth {size} need one product with an f32 result and a "
                        "sum of a multiple of so many steps")
    return found


def each_block(ev: Evaluator, out: Value, size: int, loop: Callable[..., None], emit: Callable[[], None]) -> None:
    """Calls `emit` for the first block of `size` steps, for those between in a loop, and for the last."""
    op, depth = blocked_product(ev.kernel, size)

    def block(low: Value, prior: bool, final: bool) -> None:
        with ev.b.scope():
            ev.block = DepthBlock(op, low, size, out, prior, final)
            emit()
            ev.block = None

    block(ev.b.int(0), False, depth <= size)
    loop(ev.b.int(size), ev.b.int(depth - size), size, lambda low: block(low, True, False))
    if depth > size:
        block(ev.b.int(depth - size), True, True)


def store_partial(ev: Evaluator, indices: Sequence[Ix]) -> None:
    """The tile of a block's sums at `indices`, into the buffer of the result."""
    assert ev.block is not None
    t = ev.block.op.results[0]
    ev.memory.store(t, ev.block.out, ev.tile(t, indices), indices)


def prior_lines(b: Builder, block: DepthBlock, indices: Sequence[Ix], steps: int) -> Callable[[Any], None]:
    """What asks for the tile that is there already: called every so many `steps` of the block with the step, it asks
    for a line or a few. All at once would keep what the product itself waits for from coming. Into the first cache:
    rows some power of two apart do not all stay there, but reading all of them from the second takes 1% of a block."""
    sizes = [i.axes[0].size if i.axes else 1 for i in indices]
    wide = -(-sizes[-1] * 4 // LINE_BYTES)
    lines = prod(sizes[:-1]) * wide
    calls = block.size // steps
    each = -(-lines // calls)

    def fetch(step: Value) -> None:
        first = b.mul(b.binary("arith.divui", step, b.int(steps)), b.int(each))
        for n in range(each):
            number = b.binary("arith.minsi", b.add(first, b.int(n)), b.int(lines - 1))
            at = [b.mul(b.binary("arith.remui", number, b.int(wide)), b.int(LINE_BYTES // 4))]
            number = b.binary("arith.divui", number, b.int(wide))
            for size in reversed(sizes[:-1]):
                at.insert(0, b.binary("arith.remui", number, b.int(size)))
                number = b.binary("arith.divui", number, b.int(size))
            prefetch(block.out, [b.add(b.scalar(i), k) for i, k in zip(indices, at, strict=True)])

    return fetch


def with_prior(ev: Evaluator, acc: V, indices: Sequence[Ix]) -> V:
    """acc + what is there already."""
    assert ev.block is not None
    prior = ev.b.broadcast(ev.memory.load_from(ev.block.out, indices), acc.axes)
    return ev.b.elementwise("arith.addf", ev.block.op.results[0].element, [acc, prior], {})
