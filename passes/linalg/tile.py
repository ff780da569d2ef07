"""linalg kernels to tile programs, as their ``xcc.config`` says.

Before::

    func.func private @k(%x: tensor<?x768xf32>, %d0: index) -> tensor<?x768xf32>
        attributes {xcc.config = {block = array<i64: 8, 0>, vector = array<i64: 1, 32>, ...}}
      linalg.generic ... (ops of the kernel)

After::

    func.func private @k(%x: memref<?xf32>, %out: memref<?xf32>, %d0: index)
      scf.forall (%i) = (0) to (%n) step (8)
        scf.for ... vector.transfer_read ... arith on vectors ... vector.transfer_write

Buffers that one nest fills and a later one reads (`splits`) are arguments between the outputs and the symbols; their
dims are ``xt.scratch_dims``, their bytes ``xcc.scratch``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from xcc import symbolic
from xcc._mlir import func_d, ir
from xcc.dialects.xt.base import dims_attr
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.linalg.border import BorderedResult
from xcc.passes.linalg.buffers import memref_type
from xcc.passes.linalg.domain import element_bytes
from xcc.passes.linalg.forall import forall
from xcc.passes.linalg.kernel_reader import read
from xcc.passes.linalg.nests import Nest, Result
from xcc.passes.linalg.online_parts import KeyParts, partial_results, parts_of
from xcc.passes.linalg.part_nests import PartsNest, RowPartsNest
from xcc.passes.linalg.row_parts import RowParts, levels_of
from xcc.passes.linalg.schedule import Schedule
from xcc.passes.linalg.streamed import Streamed, workspace_dims
from xcc.passes.linalg.tile_builder import Builder
from xcc.passes.linalg.tile_eval import Evaluator
from xcc.passes.linalg.tile_memory import Memory
from xcc.symbolic import Dim


@register_pass
@dataclass(frozen=True)
class Tile(Pass):
    """Turns every configured linalg kernel into a tile program."""

    name: ClassVar[str] = "tile"

    def run(self, module: Any, ctx: PassContext) -> None:
        with module.context, ir.Location.unknown():
            for function in list(module.body.operations):
                if function.operation.name == "func.func" and "xcc.config" in function.attributes \
                        and "xcc.tiles" not in function.attributes:
                    lossy = ctx.options is not None and ctx.options.precision == "tf32"
                    tile_kernel(function, module, lossy)


def tile_kernel(function: Any, module: Any, lossy: bool = False) -> None:
    """Replaces one kernel function by its tile program; `lossy` allows f32 products in tf32."""
    kernel = read(function)
    schedule = Schedule.from_attr(function.attributes["xcc.config"])
    outputs = list(kernel.results)
    stored = [t.dims if border is None else border.padded for t, border in zip(outputs, kernel.borders, strict=True)]
    main = max((t for t in outputs), key=lambda t: _volume(t.dims))
    parts = parts_of(schedule, main.dims) if schedule.splits > 1 else 1
    levels = levels_of(kernel) if parts != 1 and not schedule.online else []
    scratch = partial_results(kernel, parts, levels) if parts != 1 else []
    spaces = [(p.stored.dims, p.stored.element) for p in scratch]
    if schedule.streamed:
        spaces.append(workspace_dims(kernel, schedule))
    types = [*(memref_type(t.dims, t.element) for t in kernel.args),
             *(memref_type(dims, t.element) for t, dims in zip(outputs, stored, strict=True)),
             *(memref_type(dims, element) for dims, element in spaces)]
    index = ir.IndexType.get()
    with ir.InsertionPoint(function), function.location:
        new = func_d.FuncOp(kernel.name + "__tiled", ([*types, *([index] * len(kernel.symbols))], []))
    for name, attr in function.attributes.items():
        if name not in ("sym_name", "function_type", "xt.arg_dims", "xt.result_dims", "res_attrs", "arg_attrs"):
            new.attributes[name] = attr
    for key, shapes in (("xt.arg_dims", [t.dims for t in kernel.args]), ("xt.result_dims", stored)):
        new.attributes[key] = ir.ArrayAttr.get([dims_attr(dims) for dims in shapes])
    if spaces:
        new.attributes["xt.scratch_dims"] = ir.ArrayAttr.get([dims_attr(dims) for dims, _ in spaces])
        new.attributes["xcc.scratch"] = ir.ArrayAttr.get([ir.StringAttr.get(str(
            symbolic.product(dims) * element_bytes(element))) for dims, element in spaces])
    entry = new.add_entry_block()
    arguments = list(entry.arguments)
    symbols = dict(zip(kernel.symbols, arguments[len(types):], strict=True))
    with ir.InsertionPoint(entry), function.location:
        builder = Builder(entry, symbols)
        memory = Memory(builder, module, schedule.access)
        for t, memref in zip(kernel.args, arguments, strict=False):
            memory.bind(t, memref)
        stores = [Result(t, memref, None if border is None else BorderedResult(memory, t, memref, border))
                  for t, memref, border in zip(outputs, arguments[len(kernel.args):], kernel.borders, strict=False)]
        ev = Evaluator(kernel, builder, memory, schedule, lossy)
        for size in dict.fromkeys(d for op in kernel.ops for d in op.loops):
            builder.dim(size)
        groups: dict[tuple[Dim, ...], list[Result]] = {}
        for r in stores:
            groups.setdefault(r.t.dims, []).append(r)
            if r.bordered is not None:
                _fill_border(builder, r.bordered)
        handed = list(zip(scratch, arguments[len(types) - len(spaces):], strict=False))
        if levels:
            ev.row_parts = RowParts(ev, levels, parts, handed)
            for number, ops in enumerate(levels):
                ev.row_parts.level = number
                for op in ops:
                    with builder.scope():
                        RowPartsNest(ev, _points(schedule, len(op.results[0].dims)), op, parts).emit()
            ev.row_parts.level = None
        for dims, group in groups.items():
            part = schedule if dims == main.dims else _default(dims, schedule)
            ev.parking.buffer = group[0].memref if part is schedule else None
            if part is schedule and scratch and not levels:
                ev.online.parts = KeyParts(builder, memory, schedule, parts, handed)
                with builder.scope():
                    PartsNest(ev, schedule, dims, group, parts).emit()
                part = _rows(schedule)
            with builder.scope():
                nest = Nest(ev, part, dims, group)
                if part.streamed:
                    Streamed(nest, kernel, arguments[len(types) - 1]).emit()
                else:
                    nest.emit()
        func_d.ReturnOp([])
    function.operation.erase()
    new.attributes["sym_name"] = ir.StringAttr.get(kernel.name)


def _points(like: Schedule, rank: int) -> Schedule:
    """A result a workgroup, for results of `rank` dims."""
    ones = (1,) * rank
    return replace(like, block=ones, vector=ones, order=tuple(range(rank)), chunks=(), flatten=(), descending=-1)


def _rows(like: Schedule) -> Schedule:
    """Merges the parts of what `like` cuts, a row a workgroup."""
    tile = tuple(n if d == len(like.vector) - 1 else 1 for d, n in enumerate(like.vector))
    return replace(like, block=tile, vector=tile, descending=-1)


def _fill_border(b: Builder, bordered: BorderedResult) -> None:
    loop = forall([1], [], [1], False)
    with ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]), b.scope():
        bordered.fill()


def _volume(dims: tuple[Dim, ...]) -> tuple[int, int]:
    static = 1
    for d in dims:
        static *= d if isinstance(d, int) else 64
    return (len(dims), static) if static else (0, 0)


def _default(dims: tuple[Dim, ...], like: Schedule) -> Schedule:
    """A plain schedule for a smaller second result: vectors along the last dim."""
    n = len(dims)
    vector = tuple(like.vector[-1] if d == n - 1 else 1 for d in range(n)) if like.vector else (1,) * n
    return Schedule(vector if n and like.access == "gather" else (0,) * n, vector, tuple(range(n)), like.reduce,
                    like.tail, like.access, threads=like.threads, joined=like.joined)

