"""In which order a tile lies in shared memory where threads write it in one layout and read it in another."""

from __future__ import annotations

from xcc.passes.gpu.layout.forms import row_major, swizzled
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.vendor.ldmatrix import matrix_load


def best_memory(source: Layout, target: Layout, size: int, matrix: bool = False) -> Layout:
    """The shared memory layout in which writing `source` and reading `target` take the fewest cycles, issue included.

    matrix: reads may be ldmatrix.
    """
    shape = source.shape
    dims = list(reversed(range(len(shape))))
    orders = {(near, *(d for d in dims if d != near)) for near in dims}
    candidates = [row_major(shape, order) for order in sorted(orders)]
    for order in sorted(orders):
        row = shape[order[0]] * size
        for vector in (1, 2, 4, 8, 16):
            for limit, folds in sorted({(128, 1), (128, 2), (row, 1)}, key=lambda c: (c[1], c[0])):
                if vector * size <= 16 and vector * size < limit:
                    candidates.append(swizzled(shape, order, vector, limit, size, folds))

    return min(candidates, key=lambda m: memory_cycles(m, source, target, size, matrix)) if shape else row_major(())


def memory_cycles(memory: Layout, source: Layout, target: Layout, size: int, matrix: bool = False) -> int:
    """Cycles of a warp for writing `source` to `memory` and reading `target`; see `best_memory`."""
    total = 0
    for layout in (source, target):
        offsets = memory.compose(layout)
        plan = matrix_load(offsets, size) if matrix and layout is target else None
        if plan is not None:
            total += plan.cycles
            continue
        width, _ = offsets.contiguous(max(1, 16 // size))
        phases = max(1, width * size * offsets.size("lane") // 128)
        total += offsets.registers // width * (1 + phases * (1 + offsets.bank_conflicts(width, size)))
    return total
