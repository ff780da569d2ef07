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

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from xcc import symbolic
from xcc._mlir import Value, ir, scf_d
from xcc.passes.linalg.build.buffers import LINE_BYTES, memref_type
from xcc.passes.linalg.build.tile_values import Ix
from xcc.passes.linalg.evaluate.keep import Part
from xcc.passes.linalg.kernel.domain import contraction_of, domain
from xcc.passes.linalg.kernel.kernel import Access, Kernel, Tensor
from xcc.symbolic import Dim

if TYPE_CHECKING:
    from xcc.passes.linalg.nests.nests import Nest

__all__ = ["DecodedPanel", "decoded_operand", "panel_dims"]

_SGT = 4        # arith.cmpi's


def decoded_operand(kernel: Kernel) -> tuple[Tensor, Access] | None:
    """What the kernel's product reads of weights that it decodes, and where, over the loops of the kernel's domain."""
    op = contraction_of(kernel)
    position = domain(kernel).position.get(op) if op is not None else None
    if op is None or position is None:
        return None
    env: dict[str, Dim] = {f"i{p}": symbolic.sym(f"r{p}") for p in range(len(op.loops))}
    env |= {str(o): e for o, e in zip(op.outs[0], position, strict=True)}
    last = f"i{len(domain(kernel).dims) - 1}"
    for t, access in op.inputs:
        at = tuple(symbolic.substitute(e, env) for e in access)
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


@dataclass(eq=False)
class DecodedPanel:
    """The memory of a chunk's panel."""

    nest: Nest
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
        memref = ir.Operation.create(
            "memref.alloca", results=[memref_type(dims, stored.element)], operands=[], attributes={
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
                "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), LINE_BYTES)}).results[0]
        nest.ev.memory.bind(stored, memref)
        return DecodedPanel(nest, *found, stored, memref)

    def around(self, column: Ix, rows: Sequence[tuple[Value, int]], tiles: Callable[[], None]) -> None:
        """`tiles` of the panel at `column`; `rows`: how many there are along some dims, and the rows of a tile."""
        b = self.nest.b
        several: Any = None
        for size, tile in rows:
            n = b.as_int(size)
            if n is not None and n <= tile:
                continue
            more: Any = b.pure("arith.cmpi", b.i1, [size, b.int(tile)],
                          predicate=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _SGT)) if n is None else True
            several = more if several is None or more is True else several if several is True \
                else b.pure("arith.ori", b.i1, [several, more])
        if several is None:
            tiles()
        elif several is True:
            with self._filled(column):
                tiles()
        else:
            branch = scf_d.IfOp(several, has_else=True)
            with ir.InsertionPoint(branch.then_block), b.scope():
                with self._filled(column):
                    tiles()
                scf_d.YieldOp([])
            with ir.InsertionPoint(branch.else_block), b.scope():
                tiles()
                scf_d.YieldOp([])

    @contextmanager
    def _filled(self, column: Ix) -> Iterator[None]:
        """Decodes the panel at `column`; inside, it is read from memory."""
        from xcc.passes.linalg.nests.nests import Nest, Result

        ev, b, schedule = self.nest.ev, self.nest.b, self.nest.schedule
        at = {f"i{len(self.nest.dims) - 1}": b.ix_of(b.scalar(column))}
        origin = tuple(b.access(e, at) if n != size and not str(e).startswith("mod(") else Ix()
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
