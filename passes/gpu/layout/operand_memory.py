"""How register-tiled contractions keep their operands in shared memory."""

from __future__ import annotations

from xcc.passes.gpu.layout.contraction import Contraction
from xcc.passes.gpu.layout.forms import row_major, swizzled
from xcc.passes.gpu.layout.linear import Layout, log2

CHUNK_BYTES = 16


def operand_memory(plan: Contraction, operand: int, source: Layout, size: int) -> Layout:
    """Shared memory for operand 0 or 1, whose tile threads hold as `source`; elements have `size` bytes.

    Where the source has neighbours along k in a thread, or there is no other dim, k stays nearest (writes are wide and
    reads take several k at once, which many registers hold); else the other dim is.
    """
    dims = plan.maps[operand]
    shape = [plan.sizes[d] for d in dims]
    inner = next((d for d in range(len(dims)) if any(v[d] == 1 for v in source.basis("register"))), None)
    others = [d for d in dims if d not in plan.k]
    near = dims[inner] if inner is not None and dims[inner] in plan.k else (others or dims)[-1]
    order = [dims.index(d) for d in [near, *[d for d in reversed(dims) if d != near]]]
    vector = min(CHUNK_BYTES // size, shape[order[0]])
    candidates = [row_major(shape, order)]
    for limit in sorted({128, shape[order[0]] * size}):
        if limit > vector * size and log2(shape[order[0]]) >= log2(vector):
            candidates += [swizzled(shape, order, vector, limit, size, by_row=by_row) for by_row in (True, False)]

    def cost(memory: Layout) -> int:
        total = 0
        for layout in (source, operand_layout(plan, operand, chunk_of(plan, operand, memory, size))):
            offsets = memory.compose(layout)
            width, _ = offsets.contiguous(max(1, CHUNK_BYTES // size))
            weight = 1 if layout is source else plan.sizes[plan.k[-1]] // chunk_of(plan, operand, memory, size)
            total += weight * offsets.registers // width * (1 + offsets.bank_conflicts(width, size))
        return total

    return min(candidates, key=cost)


def chunk_of(plan: Contraction, operand: int, memory: Layout, size: int) -> int:
    """How many neighbours along the last k dim one read takes."""
    steps = memory.basis(f"dim{plan.maps[operand].index(plan.k[-1])}")
    chunk = 1
    while chunk < CHUNK_BYTES // size and chunk < 1 << len(steps) and steps[log2(chunk)] == (chunk,):
        chunk *= 2
    return chunk


def operand_layout(plan: Contraction, operand: int, chunk: int) -> Layout:
    """What each thread reads of an operand at one step of `chunk` values of the last k dim, in the lowest registers."""
    dims, c_dims = plan.maps[operand], plan.maps[2]

    def project(v: tuple[int, ...]) -> list[int]:
        return [v[c_dims.index(d)] if d in c_dims else 0 for d in dims]

    bases = {name: [project(v) for v in vs] for name, vs in plan.result.bases}
    along = [[1 << b if d == plan.k[-1] else 0 for d in dims] for b in range(log2(chunk))]
    bases["register"] = [*along, *[v for v in bases["register"] if any(v)]]
    return Layout.make([plan.sizes[d] for d in dims], bases)
