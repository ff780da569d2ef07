"""The panel of a product's right operand, decoded (dequantised) from narrow weights once for a chunk's tiles of rows.

    memref.alloca %panel : memref<1x2048x32xf32>      (on the stack; in the L2 cache while the chunk lasts)
    for each panel of columns:
      if the chunk has more than one tile of rows:
        %panel[0, k, :] = decoded columns of step k, for all k
        for each tile of rows: (reads %panel)
      else:
        (the tile's steps decode what they multiply)

Few rows never wait for the copy, and many do not decode a weight for each tile of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xcc import symbolic
from xcc._mlir import Value
from xcc.passes.linalg.build.tile_values import Ix
from xcc.passes.linalg.evaluate.keep import Part
from xcc.passes.linalg.kernel.domain import domain
from xcc.passes.linalg.kernel.kernel import Access, Kernel, Tensor
from xcc.passes.linalg.kernel.right_columns import operands_at
from xcc.passes.linalg.nests.panels import Panel, room_for

if TYPE_CHECKING:
    from xcc.passes.linalg.nests.nests import Nest


def decoded_operand(kernel: Kernel) -> tuple[Tensor, Access] | None:
    """What the kernel's product reads of weights that it decodes, and where, over the loops of the kernel's domain."""
    found = operands_at(kernel)
    last = f"i{len(domain(kernel).dims) - 1}"
    for t, at in found[1] if found is not None else ():
        walked = {s for e in at for s in symbolic.symbols_of(e) if s.startswith("i")}
        if t.producer is not None and not t.producer.is_reduction and walked == {last} and _is_narrow(t):
            return t, at
    return None


def _is_narrow(t: Tensor) -> bool:
    """Whether some argument behind `t` has narrower elements."""
    left, seen = [t], set[Tensor]()
    while left:
        s = left.pop()
        if s in seen:
            continue
        seen.add(s)
        if s.arg >= 0 and s.element.width < t.element.width:
            return True
        left += [u for u, _ in s.producer.inputs] if s.producer is not None else []
    return False


def panel_dims(t: Tensor, access: Access, columns: int) -> tuple[int, ...] | None:
    """The dims of a tile of `columns` columns of `t`, with all that is summed; None where they are not known."""
    dims = []
    for e, size in zip(access, t.dims, strict=True):
        walked = isinstance(e, symbolic.Expr) and any(s.startswith("i") for s in symbolic.symbols_of(e))
        text = str(e)
        n = size if not walked or text.startswith("mod(") else 1 if text.startswith("floordiv(") else columns
        if not isinstance(n, int):
            return None
        dims.append(n)
    return tuple(dims)


@dataclass(eq=False, kw_only=True)
class DecodedPanel(Panel):
    """The memory of a chunk's panel."""

    t: Tensor
    access: Access
    stored: Tensor
    memref: Value

    @staticmethod
    def of(nest: Nest) -> DecodedPanel | None:
        """Room for it at the insertion point, the chunk's top; None where the schedule wants none."""
        found = decoded_operand(nest.ev.kernel) if nest.schedule.cpu.decoded else None
        dims = panel_dims(*found, nest.schedule.vector[-1]) if found is not None else None
        if found is None or dims is None:
            return None
        stored = replace(found[0], dims=dims, producer=None, constant=None)
        return DecodedPanel(nest=nest, t=found[0], access=found[1], stored=stored, memref=room_for(nest, stored))

    @contextmanager
    def filled(self, at: dict[int, Ix], rows: Sequence[tuple[Value, int]]) -> Iterator[None]:
        """Decodes the panel; inside, it is read from memory."""
        from xcc.passes.linalg.nests.nests import Nest, Result

        ev, b, schedule = self.nest.ev, self.nest.b, self.nest.schedule
        last = len(self.nest.dims) - 1
        column = {f"i{last}": b.ix_of(b.scalar(at[last]))}
        origin = tuple(b.access(e, column) if n != size and not str(e).startswith("mod(") else Ix()
                       for e, n, size in zip(self.access, self.stored.dims, self.t.dims, strict=True))
        rank = len(self.stored.dims)
        vector = (*[1] * (rank - 1), int(self.stored.dims[-1]))    # type: ignore[arg-type]
        plan = replace(schedule, block=(0,) * rank, vector=vector, order=tuple(range(rank)), chunks=(), cpu=replace(
            schedule.cpu, kept=(), shares=0, ahead=0, stream=False, decoded=False, prefetch=0))
        dims = tuple(int(d) for d in self.stored.dims)     # type: ignore[arg-type]
        with b.scope():
            nest = Nest(ev, plan, dims, [Result(self.t, self.memref, None)], origin)
            nest._tiles(list(plan.order), {}, {})
        ev.kept[self.t] = Part(self.t, dims, self.stored, self.memref, origin, {})
        yield
        del ev.kept[self.t]
