"""Results that are a part of a larger buffer: tiles go to an offset of it, and what is around is left as it is."""

from __future__ import annotations

from dataclasses import replace

from xcc import symbolic
from xcc._mlir import Value
from xcc.passes.linalg.build.tile_memory import Memory
from xcc.passes.linalg.build.tile_values import Ix, V
from xcc.passes.linalg.kernel.kernel import Border, Tensor
from xcc.passes.linalg.nests.border import BorderedResult
from xcc.symbolic import Dim


class InsertedResult:
    """Result `t` in the buffer `memref`, of the dims that `stored_dims` gives."""

    def __init__(self, memory: Memory, t: Tensor, memref: Value, border: Border) -> None:
        self.memory, self.memref = memory, memref
        self.whole = replace(t, dims=stored_dims(t, border))
        self.places = _places(t, border)

    def store(self, value: V, indices: list[Ix]) -> None:
        """Writes a tile; `indices` walk the result's own dims."""
        b = self.memory.b
        own = [Ix() if j < 0 else indices[j] for j, _, _ in self.places]
        self.memory.store(self.whole, self.memref, value,
                          [b.ix_add(i, b.ix_of(b.dim(low))) for i, (_, _, low) in zip(own, self.places, strict=True)])


def bordered_result(memory: Memory, t: Tensor, memref: Value, border: Border | None,
                    ) -> BorderedResult | InsertedResult | None:
    """How `t` is stored with `border` around it."""
    if border is None:
        return None
    return InsertedResult(memory, t, memref, border) if border.value is None else \
        BorderedResult(memory, t, memref, border)


def stored_dims(t: Tensor, border: Border | None) -> tuple[Dim, ...]:
    """The dims of the buffer of a result."""
    if border is None:
        return t.dims
    return border.padded if border.value is not None else tuple(size for _, size, _ in _places(t, border))


def _places(t: Tensor, border: Border) -> list[tuple[int, Dim, Dim]]:
    """Of each dim of the buffer which dim of the result walks it (-1: none, its size is 1 there), its size, and where
    the result begins. Of dims that are walked as one only the first goes on beyond the result."""
    group_of = {d: j for j, group in enumerate(t.groups) for d in group}
    found: list[tuple[int, Dim, Dim]] = []
    for d, size in enumerate(border.padded):
        j = group_of.get(d, -1)
        if j < 0 and size != 1:
            found.append((j, size, border.low[d]))
        elif j >= 0 and d == t.groups[j][0]:
            inner = symbolic.product([border.dims[k] for k in t.groups[j][1:]])
            found.append((j, size * inner, border.low[d] * inner))
    return found
