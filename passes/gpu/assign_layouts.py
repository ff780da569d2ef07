"""Gives every block-level vector a layout: which thread and register holds which element.

Anchors first: a contraction takes its instruction's fragments, a global access its coalesced form. Other ops follow
their operands. Where a use needs another layout than the value has, values that cost nothing (constants, steps,
masks, broadcasts, transposes, cheap index arithmetic on those) are computed again in the layout needed; others get a
conversion, written as a cast of the vector to its own type. Loads whose only user is a conversion take its layout
directly when that stays coalesced.

    %x = vector.transfer_read ...                      %x = vector.transfer_read ... {xcc.layout = ["tile=[4,256] ..."]}
    %m = vector.multi_reduction <maximumf>, %x ...  -> %m = vector.multi_reduction ... {xcc.layout = ["tile=[4] ..."]}
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from xcc._mlir import ir
from xcc.diagnostics import CompilerBug
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu import warpgroup
from xcc.passes.gpu.analysis import Access, element_bytes, gather_run, owner
from xcc.passes.gpu.contraction import HELD, RUN, SWAPPED, WARPS, Contraction
from xcc.passes.gpu.distribute_scan import scan_layout
from xcc.passes.gpu.layout import Layout, blocked
from xcc.passes.gpu.operand_patch import patch

LAYOUT = "xcc.layout"
CONVERT = "builtin.unrealized_conversion_cast"
LEAVES = ("arith.constant", "vector.step", "vector.create_mask", "vector.constant_mask")
VIEWS = ("vector.broadcast", "vector.transpose", "vector.shape_cast")
CONTRACTION = 4     # how strongly the layout of a contraction's result is wanted
Ranked = tuple[Layout, int]


@register_pass
@dataclass(frozen=True)
class AssignLayouts(Pass):
    """Gives every block-level vector of a tile program a layout, with conversions where uses disagree."""

    name: ClassVar[str] = "assign-layouts"
    threads: int = 0             # threads a workgroup where the kernel's config has none; 0: 128

    def run(self, module: Any, ctx: PassContext) -> None:
        with module.context, ir.Location.unknown():
            for func in module.body.operations:
                if func.operation.name == "func.func" and "xt.kernel" in func.operation.attributes \
                        and "xcc.loops" not in func.operation.attributes:
                    threads = config_int(func, "threads", self.threads or 128)
                    _Assigner(func, ctx.chip, threads).run()


def config_int(func: Any, key: str, default: int) -> int:
    """An integer of the kernel's ``xcc.config``."""
    attributes = func.operation.attributes
    if "xcc.config" in attributes and key in attributes["xcc.config"]:
        return int(attributes["xcc.config"][key].value)
    return default


def is_vector(value: Any) -> bool:
    return isinstance(value.type, ir.VectorType)


def is_elementwise(op: Any) -> bool:
    return op.name.startswith(("arith.", "math.")) and op.name != "arith.constant"


def shape_of(value: Any) -> tuple[int, ...]:
    return tuple(ir.VectorType(value.type).shape)


def broadcast_source(layout: Layout, shape: tuple[int, ...]) -> Layout:
    """What a broadcast to a tile of `layout` asks of its operand of `shape`: copies along the new dims."""
    lead = len(layout.shape) - len(shape)
    stretched = [lead + d for d, s in enumerate(shape) if s == 1]
    return layout.sliced([*range(lead), *stretched]).reshaped(shape)


def walk(block: Any) -> list[Any]:
    """All operations under `block`, outer before inner, in order."""
    out: list[Any] = []
    for op in block.operations:
        out.append(op.operation)
        for region in op.operation.regions:
            for inner in region.blocks:
                out += walk(inner)
    return out


def product_behind(value: Any) -> Any:
    """The contraction that `value` is computed from element by element; None when there is none."""
    seen: set[Any] = set()
    todo = [value]
    while todo:
        op = owner(todo.pop())
        if op is None or op in seen:
            continue
        seen.add(op)
        if op.name == "vector.contract":
            return op
        if op.name == "scf.if":
            todo += [_Assigner.yielded(op, 0)] if len(op.results) == 1 else []
        elif is_elementwise(op):
            todo += [v for v in op.operands if is_vector(v)]
    return None


def neighbours_in_registers(layout: Layout, access: Access) -> Layout:
    """`layout` with lane bits along the nearest dim changed for register bits, so that a thread's accesses are wide."""
    dim = next((i for i, d in enumerate(access.dims) if d == len(access.sizes) - 1), None)
    if dim is None:
        return layout
    registers, lanes = list(layout.basis("register")), list(layout.basis("lane"))

    def along(step: int) -> tuple[int, ...]:
        return tuple(step if d == dim else 0 for d in range(len(layout.shape)))

    far = [n for n, v in enumerate(registers) if v in [along(1 << b) for b in range(30)] and v[dim] >= access.aligned]
    step = 1
    while step < access.aligned:
        if along(step) not in registers:
            if along(step) not in lanes or not far:
                break
            n, m = far.pop(0), lanes.index(along(step))
            registers[n], lanes[m] = lanes[m], registers[n]
        step *= 2
    return Layout(layout.shape, tuple((name, tuple({"register": registers, "lane": lanes}.get(name, vectors)))
                                      for name, vectors in layout.bases))


def stored_columns(plan: Contraction, limit: int) -> int:
    """How many neighbouring columns of a product one access of `limit` bytes stores; 1 where it is not stored along
    them."""
    column = plan.maps[2].index(plan.n[0])
    todo, found = [plan.op.results[0]], 1
    while todo:
        for use in todo.pop().uses:
            user, number = use.owner.operation, use.operand_number
            if user.name == "scf.yield":
                todo.append(user.parent.operation.results[number])
            elif user.name == "vector.transfer_write" and number == 0:
                access = Access(user, limit)
                if access.dims[column] != len(access.sizes) - 1:
                    return 1
                found = max(found, min(access.aligned, max(1, limit // access.bytes)))
            elif is_elementwise(user) or user.name == "vector.contract" and number == 2:
                todo += list(user.results)
            elif user.name != "vector.multi_reduction":
                return 1
    return found


class _Assigner:
    def __init__(self, func: Any, chip: Any, threads: int) -> None:
        self.func, self.chip, self.threads = func, chip, threads
        self.warps = threads // chip.warp
        self.persistent = config_int(func, "persistent", 0)
        self.known: dict[Any, Ranked] = {}
        self.active: set[Any] = set()
        self.assigned: dict[Any, Layout] = {}
        self.cache: dict[tuple[Any, Layout], Any] = {}
        self.loads: list[Any] = []

    def run(self) -> None:
        ops = walk(self.func.regions[0].blocks[0])
        for op in ops:
            if op.name == "vector.contract":
                self.share_rows(op)
        for op in ops:
            if op.name == "vector.contract" and WARPS not in op.attributes:
                self.join_columns(op)
        for op in ops:
            for r in op.results:
                if is_vector(r):
                    self.natural(r)
        for op in ops:
            self.assign(op)
        self.sweep()
        for op in self.loads:
            self.relabel(op)

    def share_rows(self, op: Any) -> None:
        """Gives the warps of `op` and of the contraction that its left operand is computed from the same rows, so
        that what lies between them stays in a warp; on AMD in a lane, which holds a row's neighbours where the
        instruction's operands change places."""
        first = product_behind(op.operands[0])
        if first is None:
            return
        plans = [Contraction(o, self.chip, self.warps) for o in (first, op)]
        splits = [plan.rows(self.warps) for plan in plans]
        if splits[0] is None or splits[1] is None \
                or plans[0].maps[2].index(plans[0].m[0]) != plans[1].maps[0].index(plans[1].m[0]):
            return
        for o, split in zip((first, op), splits, strict=True):
            o.attributes[WARPS] = ir.DenseI64ArrayAttr.get(split)
            if not self.chip.triple.startswith("nvptx"):    # its lanes hold neighbours along both products' sums
                o.attributes[SWAPPED] = ir.UnitAttr.get()
        op.attributes[HELD] = ir.UnitAttr.get()

    def join_columns(self, op: Any) -> None:
        """Lets threads hold as many neighbouring columns of the product `op` as its stores take at once, where its
        instruction may be given its columns in any order: the right operand's lie in rows along k."""
        plan = Contraction(op, self.chip, self.warps)
        right = self.natural(op.operands[1])
        if not plan.from_shared or right is None or not warpgroup.near_k(plan, 1, right[0]):
            return
        i = plan.instruction
        run = min(stored_columns(plan, self.chip.vector_bytes), i.n // 4 if i is not None else 1)
        if run > 2:
            op.attributes[RUN] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), run)

    # -- natural layouts ----------------------------------------------------------------------------------------

    def default(self, value: Any) -> Layout:
        shape = shape_of(value)
        size = 1
        for s in shape:
            size *= s
        per_thread = max(1, size // self.threads)
        width = max(1, self.chip.vector_bytes // max(4, element_bytes(ir.VectorType(value.type).element_type)))
        return blocked(shape, list(reversed(range(len(shape)))), min(width, per_thread), self.chip.warp, self.warps)

    def coalesced(self, op: Any) -> Layout:
        access = Access(op, self.chip.vector_bytes)
        size = 1
        for s in access.shape:
            size *= s
        order = access.order
        width = 1
        if order and access.dims[order[0]] == len(access.sizes) - 1:
            width = min(access.aligned, access.shape[order[0]], max(1, size // self.threads))
            turned = patch(op.results[0], order[0], width, self.threads, self.chip) if op.results else None
            if turned is not None:
                return blocked(access.shape, order, turned[0], self.chip.warp, self.warps, turned[1:])
        return blocked(access.shape, order, width, self.chip.warp, self.warps)

    def rows_gathered(self, op: Any, run: int) -> Layout:
        """The coalesced layout of a gather that reads `run` neighbours at once."""
        shape = shape_of(op.results[0])
        size = 1
        for s in shape:
            size *= s
        width = min(run, max(1, size // self.threads))
        return blocked(shape, list(reversed(range(len(shape)))), width, self.chip.warp, self.warps)

    def natural(self, value: Any) -> Ranked | None:
        """The layout that `value` has by itself and how strongly: 0 any, 1 gather, 2 memory, 4 contraction."""
        if value in self.known:
            return self.known[value]
        if value in self.active:
            return None
        self.active.add(value)
        found = self._natural(value)
        self.active.discard(value)
        if found is not None:
            self.known[value] = found
        return found

    def best(self, values: list[Any]) -> Ranked | None:
        found = [n for n in (self.natural(v) for v in values if is_vector(v)) if n is not None]
        return max(found, key=lambda n: n[1]) if found else None

    def _natural(self, value: Any) -> Ranked | None:
        op = owner(value)
        if op is None:
            parent = value.owner.owner.operation
            i = ir.BlockArgument(value).arg_number - 1
            return self.best([self.yielded(parent, i), parent.operands[3 + i]]) or (self.default(value), 0)
        if op.name in ("scf.for", "scf.if"):
            i = [r for r in op.results].index(value)
            if op.name == "scf.for":
                return self.natural(op.regions[0].blocks[0].arguments[1 + i])
            return self.best([self.yielded(op, i), op.regions[1].blocks[0].operations[-1].operands[i]])
        if op.name == "vector.transfer_read":
            return self.coalesced(op), 2
        if op.name == "vector.contract":
            return Contraction(op, self.chip, self.warps).result, CONTRACTION
        if op.name == "vector.multi_reduction":
            source = self.natural(op.operands[0])
            return (source[0].sliced(list(op.attributes["reduction_dims"])), source[1]) if source else None
        if op.name == "vector.scan":
            layout = self.scanned(op)
            return layout if value == op.results[0] else layout.sliced([_scan_dim(op)]), 3
        if op.name == "vector.transpose":
            source = self.natural(op.operands[0])
            return (source[0].permuted(list(op.attributes["permutation"])), source[1]) if source else None
        if op.name == "vector.shape_cast":
            source = self.natural(op.operands[0])
            return (source[0].reshaped(shape_of(value)), source[1]) if source else None
        if op.name == "vector.gather":
            run = gather_run(op, self.chip.vector_bytes)
            if run > 1:
                return self.rows_gathered(op, run), 2
            found = self.best(list(op.operands))
            return found if found is not None and found[1] else (self.default(value), 1)
        if is_elementwise(op):
            return self.best(list(op.operands))
        return self.default(value), 0

    @staticmethod
    def yielded(op: Any, i: int) -> Any:
        block = op.regions[0].blocks[0]
        return block.operations[len(block.operations) - 1].operands[i]

    # -- uses ---------------------------------------------------------------------------------------------------

    def free(self, op: Any) -> bool:
        """Whether `op` is computed again wherever it is used in another layout."""
        if op.name in LEAVES or op.name in VIEWS:
            return True
        if not op.name.startswith("arith.") or op.name.startswith(("arith.div", "arith.rem")) \
                and not isinstance(ir.VectorType(op.results[0].type).element_type, ir.IndexType):
            return False
        owners = [owner(v) for v in op.operands if is_vector(v)]
        return all(o is not None and self.leafy(o) for o in owners)

    def leafy(self, op: Any) -> bool:
        """Whether `op` reads no data: leaves, and views and cheap arithmetic of those."""
        if op.name in LEAVES:
            return True
        if op.name in VIEWS:
            source = op.operands[0]
            return not is_vector(source) or (owner(source) is not None and self.leafy(owner(source)))
        return self.free(op)

    def at(self, value: Any, layout: Layout) -> Any:
        """`value` in `layout`."""
        if self.assigned.get(value) == layout:
            return value
        key = (value, layout)
        if key not in self.cache:
            op = owner(value)
            self.cache[key] = self.again(op, layout) if op is not None and self.free(op) else \
                self.converted(value, layout)
        return self.cache[key]

    def again(self, op: Any, layout: Layout) -> Any:
        operands = []
        for v in op.operands:
            if not is_vector(v):
                operands.append(v)
            elif op.name == "vector.broadcast":
                operands.append(self.at(v, broadcast_source(layout, shape_of(v))))
            elif op.name == "vector.shape_cast":
                operands.append(self.at(v, layout.reshaped(shape_of(v))))
            elif op.name == "vector.transpose":
                order = list(op.attributes["permutation"])
                operands.append(self.at(v, layout.permuted([order.index(d) for d in range(len(order))])))
            else:
                operands.append(self.at(v, layout))
        with after(op):
            copy = op.clone()
        for i, v in enumerate(operands):
            copy.operands[i] = v
        self.set(copy, [layout])
        return copy.results[0]

    def converted(self, value: Any, layout: Layout) -> Any:
        if layout.shape != shape_of(value):
            raise CompilerBug(f"a layout of tile {layout.shape} is asked of a value of type {value.type}")
        op = owner(value)
        place = after(op) if op is not None else ir.InsertionPoint.at_block_begin(value.owner)
        with place:
            cast = ir.Operation.create(CONVERT, results=[value.type], operands=[value])
        self.set(cast, [layout])
        return cast.results[0]

    def set(self, op: Any, layouts: list[Layout]) -> None:
        op.attributes[LAYOUT] = ir.ArrayAttr.get([ir.StringAttr.get(str(x)) for x in layouts])
        for r, x in zip([r for r in op.results if is_vector(r)], layouts, strict=True):
            self.assigned[r] = x

    def use(self, op: Any, index: int, layout: Layout) -> None:
        op.operands[index] = self.at(op.operands[index], layout)

    # -- ops ----------------------------------------------------------------------------------------------------

    def assign(self, op: Any) -> None:
        if op.name == "scf.yield":
            return self.assign_yield(op)
        if op.name in ("scf.for", "scf.if"):
            return self.assign_region(op)
        if op.name == "vector.transfer_write":
            return self.assign_write(op)
        if op.name == "vector.scatter":
            return self.assign_scatter(op)
        vectors = [r for r in op.results if is_vector(r)]
        uses = [i for i, v in enumerate(op.operands) if is_vector(v)]
        if op.name == "vector.multi_reduction":
            return self.assign_reduction(op)
        if op.name == "vector.scan":
            return self.assign_scan(op)
        if not vectors and not uses:
            return None
        if vectors and self.free(op):
            return None
        layout = self.known[vectors[0]][0] if vectors else self.known[op.operands[uses[0]]][0]
        if op.name == "vector.transfer_read":
            self.loads.append(op)
            self.set(op, [layout])
            return self.use_mask(op, layout)
        if op.name == "vector.contract":
            plan = Contraction(op, self.chip, self.warps)
            for i, wanted in enumerate((plan.lhs, plan.rhs, plan.result)):
                self.use(op, i, wanted if wanted is not None else self.known[op.operands[i]][0])
            return self.set(op, [layout])
        if is_elementwise(op) or op.name in ("vector.gather", "vector.extract"):
            for i in uses:
                self.use(op, i, layout)
            if vectors:
                self.set(op, [layout])
            return None
        raise CompilerBug(f"{op.name} has no distribution to threads")

    def assign_reduction(self, op: Any) -> None:
        source = self.known[op.operands[0]][0]
        self.use(op, 0, source)
        kept = source.sliced(list(op.attributes["reduction_dims"]))
        if is_vector(op.operands[1]):
            self.use(op, 1, kept)
            self.set(op, [kept])

    def scanned(self, op: Any) -> Layout:
        """The layout of a scan's operand and result: whole words of neighbours along the scan."""
        shape = shape_of(op.operands[0])
        size = element_bytes(ir.VectorType(op.operands[0].type).element_type)
        width = min(max(1, self.chip.vector_bytes // size), max(1, math.prod(shape) // self.threads))
        return scan_layout(shape, _scan_dim(op), width, self.chip.warp, self.warps)

    def assign_scan(self, op: Any) -> None:
        layout = self.scanned(op)
        totals = layout.sliced([_scan_dim(op)])
        self.use(op, 0, layout)
        self.use(op, 1, totals)
        self.set(op, [layout, totals])

    def assign_write(self, op: Any) -> None:
        natural, strength = self.known[op.operands[0]]
        access = Access(op, self.chip.vector_bytes)
        layout = natural
        one_each = natural.registers == 1 and natural.copies("lane")     # already one store by few threads
        least = 0.51 if strength == CONTRACTION else 0.5   # half sectors of fragments: whole ones through shared memory
        if not one_each and access.efficiency(natural) < least:
            coalesced = self.coalesced(op)
            if self.persistent and strength == CONTRACTION:     # shared memory is in use: neighbours by shuffles
                coalesced = neighbours_in_registers(natural, access)
            if access.efficiency(coalesced) > access.efficiency(natural):
                layout = coalesced
        self.use(op, 0, layout)
        op.attributes[LAYOUT] = ir.ArrayAttr.get([ir.StringAttr.get(str(layout))])
        self.use_mask(op, layout)

    def assign_scatter(self, op: Any) -> None:
        value = op.operands[len(op.operands) - 1]
        layout = self.known[value][0]
        for i, v in enumerate(op.operands):
            if is_vector(v):
                self.use(op, i, layout)
        op.attributes[LAYOUT] = ir.ArrayAttr.get([ir.StringAttr.get(str(layout))])

    def use_mask(self, op: Any, layout: Layout) -> None:
        segments = list(op.attributes["operandSegmentSizes"])
        if segments[-1]:
            self.use(op, len(op.operands) - 1, mask_layout(op, layout))

    def assign_region(self, op: Any) -> None:
        layouts = [self.known[r][0] for r in op.results if is_vector(r)]
        self.set(op, layouts) if layouts else None
        if op.name == "scf.for":
            for i, r in enumerate(op.results):
                if is_vector(r):
                    self.use(op, 3 + i, self.known[r][0])
                    self.assigned[op.regions[0].blocks[0].arguments[1 + i]] = self.known[r][0]

    def assign_yield(self, op: Any) -> None:
        parent = op.parent
        for i, v in enumerate(op.operands):
            if is_vector(v):
                self.use(op, i, self.known[parent.operation.results[i]][0])

    # -- clean up -----------------------------------------------------------------------------------------------

    def relabel(self, op: Any) -> None:
        """Lets a load take the one layout that all its users convert it to, when that is nearly as coalesced.

        Casts of its elements between it and the conversions take the layout too.
        """
        last, casts = op, []
        while (cast := self._only_cast(last)) is not None:
            casts.append(cast)
            last = cast
        users = [u.owner.operation for u in last.results[0].uses]
        wanted = {self.assigned[u.results[0]] for u in users if u.name == CONVERT}
        if not users or len(wanted) != 1 or any(u.name != CONVERT for u in users):
            return
        if any(v.owner.operation.name == "vector.contract" for u in users for v in u.results[0].uses):
            return
        layout = wanted.pop()
        access = Access(op, self.chip.vector_bytes)
        natural = self.assigned[op.results[0]]
        size = natural.registers * self.threads * access.bytes
        efficiency = access.efficiency(layout)
        small = size <= 16 * self.threads and efficiency >= 0.25
        if not small and (efficiency < 0.5 or layout.registers > 2 * natural.registers):
            return
        self.set(op, [layout])
        self.use_mask(op, layout)
        for cast in casts:
            self.set(cast, [layout])
        for u in users:
            u.results[0].replace_all_uses_with(last.results[0])
            u.erase()

    @staticmethod
    def _only_cast(op: Any) -> Any:
        """The conversion between float types that alone reads `op`, or None."""
        users = [u.owner.operation for u in op.results[0].uses]
        return users[0] if len(users) == 1 and users[0].name in ("arith.extf", "arith.truncf") else None

    def sweep(self) -> None:
        """Erases the vector ops that nothing uses."""
        for op in reversed(walk(self.func.regions[0].blocks[0])):
            if op.results and not op.regions and all(is_vector(r) for r in op.results) \
                    and not any(True for r in op.results for _ in r.uses):
                self.loads = [x for x in self.loads if x != op]
                op.erase()


def _scan_dim(op: Any) -> int:
    return int(ir.IntegerAttr(op.attributes["reduction_dim"]).value)


def mask_layout(op: Any, layout: Layout) -> Layout:
    """The layout of the mask of a transfer op whose vector has `layout`: its dims are in the memory's order."""
    access = Access(op, 1)
    kept = [i for i, d in enumerate(access.dims) if d >= 0]
    order = sorted(range(len(kept)), key=lambda j: access.dims[kept[j]])
    return layout.sliced([i for i, d in enumerate(access.dims) if d < 0]).permuted(order)


def after(op: Any) -> Any:
    """The insertion point right after `op`."""
    block = op.block
    found = False
    for other in block.operations:
        if found:
            return ir.InsertionPoint(other)
        found = other.operation == op
    return ir.InsertionPoint(block)
