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

from xcc._mlir import Module, Operation, Value, ir
from xcc.diagnostics import CompilerBug
from xcc.passes.base import Pass, PassContext, register_pass
from xcc.passes.gpu.assign.natural_layouts import CONTRACTION, NaturalLayouts, scan_dim
from xcc.passes.gpu.assign.product_neighbours import join_columns, share_rows
from xcc.passes.gpu.assign.relayout import Relayout, free
from xcc.passes.gpu.index.index_vectors import updates_run
from xcc.passes.gpu.layout.contraction import WARPS, Contraction
from xcc.passes.gpu.layout.forms import blocked
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.tile_ops import CONVERT, LAYOUT, config_int
from xcc.passes.gpu.memory.access import Access, mask_layout, neighbours_in_lanes, neighbours_in_registers
from xcc.passes.gpu.thread.combine import ACCUMULATE, accumulated_layout
from xcc.passes.gpu.thread.sort import SORT
from xcc.passes.shared.updates import UPDATES
from xcc.passes.shared.values import is_elementwise, is_vector
from xcc.passes.walk import walk
from xcc.targets.base import Chip


@register_pass
class AssignLayouts(Pass):
    """Gives every block-level vector of a tile program a layout, with conversions where uses disagree."""

    threads: int = 0             # threads a workgroup where the kernel's config has none; 0: 128

    def run(self, module: Module, ctx: PassContext) -> None:
        for func in module.body.operations:
            if func.operation.name == "func.func" and "xt.kernel" in func.operation.attributes \
                    and "xcc.loops" not in func.operation.attributes:
                threads = config_int(func, "threads", self.threads or 128)
                _Assigner(func, ctx.chip, threads).run()


class _Assigner:
    """Assigns the layouts of one kernel."""

    def __init__(self, func: Operation, chip: Chip, threads: int) -> None:
        self.func, self.chip, self.threads = func, chip, threads
        self.natural = NaturalLayouts(chip, threads, config_int(func, "beside", 1))
        self.warps = self.natural.warps
        self.persistent = config_int(func, "persistent", 0)
        self.values = Relayout()
        self.loads: list[Operation] = []

    def run(self) -> None:
        ops = walk(self.func.regions[0].blocks[0])
        for op in ops:
            if op.name == "vector.contract":
                share_rows(op, self.chip, self.warps)
        for op in ops:
            if op.name == "vector.contract" and WARPS not in op.attributes:
                join_columns(op, self.chip, self.warps, self.natural)
        for op in ops:
            for r in op.results:
                if is_vector(r):
                    self.natural.of(r)
        for op in ops:
            self.assign(op)
        self.sweep()
        for op in self.loads:
            self.relabel(op)

    def layout_of(self, value: Value) -> Layout:
        """The layout that `value` has by itself."""
        return self.natural.known[value][0]

    def assign(self, op: Operation) -> None:
        if op.name == "scf.yield":
            return self.assign_yield(op)
        if op.name == "scf.condition":
            return self.assign_condition(op)
        if op.name in ("scf.for", "scf.if", "scf.while"):
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
        if op.name == SORT:
            return self.assign_sort(op)
        if op.name == ACCUMULATE:
            return self.assign_accumulate(op)
        if not vectors and not uses:
            return None
        if vectors and free(op):
            return None
        layout = self.layout_of(vectors[0]) if vectors else self.layout_of(op.operands[uses[0]])
        if op.name in UPDATES and updates_run(op):      # a warp's lanes update whole sectors at once
            layout = blocked(layout.shape, [0], 1, self.chip.warp, self.warps)
        if op.name == "vector.transfer_read":
            self.loads.append(op)
            self.values.set(op, [layout])
            return self.use_mask(op, layout)
        if op.name == "vector.contract":
            plan = Contraction(op, self.chip, self.warps)
            for i, wanted in enumerate((plan.lhs, plan.rhs, plan.result)):
                self.values.use(op, i, wanted if wanted is not None else self.layout_of(op.operands[i]))
            return self.values.set(op, [layout])
        if is_elementwise(op) or op.name in ("vector.gather", "vector.extract", *UPDATES):
            for i in uses:
                self.values.use(op, i, layout)
            if vectors:
                self.values.set(op, [layout])
            return None
        raise CompilerBug(f"{op.name} has no distribution to threads")

    def assign_reduction(self, op: Operation) -> None:
        source = self.layout_of(op.operands[0])
        self.values.use(op, 0, source)
        kept = source.sliced(list(op.attributes["reduction_dims"]))
        if is_vector(op.operands[1]):
            self.values.use(op, 1, kept)
            self.values.set(op, [kept])

    def assign_scan(self, op: Operation) -> None:
        layout = self.natural.scanned(op)
        totals = layout.sliced([scan_dim(op)])
        self.values.use(op, 0, layout)
        self.values.use(op, 1, totals)
        self.values.set(op, [layout, totals])

    def assign_sort(self, op: Operation) -> None:
        for i in range(len(op.operands)):
            self.values.use(op, i, self.layout_of(op.operands[0]))
        self.values.set(op, [self.layout_of(r) for r in op.results])

    def assign_accumulate(self, op: Operation) -> None:
        layout = accumulated_layout(op, self.chip.warp, self.warps)
        for i in (1, 2):
            self.values.use(op, i, layout)

    def assign_write(self, op: Operation) -> None:
        natural, strength = self.natural.known[op.operands[0]]
        access = Access(op, self.chip.vector_bytes)
        layout = natural
        one_each = natural.registers == 1 and natural.copies("lane")     # already one store by few threads
        least = 0.51 if strength == CONTRACTION else 0.5   # half sectors of fragments: whole ones through shared memory
        if not one_each and access.efficiency(natural) < least:
            coalesced = self.natural.coalesced(op)
            if self.persistent and strength == CONTRACTION:     # shared memory is in use: neighbours by shuffles
                coalesced = neighbours_in_registers(natural, access)
                if access.efficiency(coalesced) < least:
                    coalesced = max(coalesced, neighbours_in_lanes(natural, access), key=access.efficiency)
            if access.efficiency(coalesced) > access.efficiency(natural):
                layout = coalesced
        self.values.use(op, 0, layout)
        op.attributes[LAYOUT] = ir.ArrayAttr.get([ir.StringAttr.get(str(layout))])
        self.use_mask(op, layout)

    def assign_scatter(self, op: Operation) -> None:
        value = op.operands[len(op.operands) - 1]
        layout = self.layout_of(value)
        for i, v in enumerate(op.operands):
            if is_vector(v):
                self.values.use(op, i, layout)
        op.attributes[LAYOUT] = ir.ArrayAttr.get([ir.StringAttr.get(str(layout))])

    def use_mask(self, op: Operation, layout: Layout) -> None:
        segments = list(op.attributes["operandSegmentSizes"])
        if segments[-1]:
            self.values.use(op, len(op.operands) - 1, mask_layout(op, layout))

    def assign_region(self, op: Operation) -> None:
        layouts = [self.layout_of(r) for r in op.results if is_vector(r)]
        if layouts:
            self.values.set(op, layouts)
        if op.name == "scf.for":
            for i, r in enumerate(op.results):
                if is_vector(r):
                    self.values.use(op, 3 + i, self.layout_of(r))
                    self.values.assigned[op.regions[0].blocks[0].arguments[1 + i]] = self.layout_of(r)

        if op.name == "scf.while":
            before, after = (list(r.blocks[0].arguments) for r in op.regions)
            for i, argument in enumerate(before):
                if is_vector(argument):
                    self.values.assigned[argument] = self.layout_of(argument)
                    self.values.use(op, i, self.layout_of(argument))
            for argument, result in zip(after, op.results, strict=True):
                if is_vector(argument):
                    self.values.assigned[argument] = self.layout_of(result)

    def assign_condition(self, op: Operation) -> None:
        results = op.parent.operation.results
        for i, v in enumerate(list(op.operands)[1:]):
            if is_vector(v):
                self.values.use(op, 1 + i, self.layout_of(results[i]))

    def assign_yield(self, op: Operation) -> None:
        parent = op.parent
        if parent.operation.name == "scf.while":
            for i, v in enumerate(op.operands):
                if is_vector(v):
                    self.values.use(op, i, self.layout_of(parent.operation.regions[0].blocks[0].arguments[i]))
            return
        for i, v in enumerate(op.operands):
            if is_vector(v):
                self.values.use(op, i, self.layout_of(parent.operation.results[i]))

    # -- clean up -----------------------------------------------------------------------------------------------

    def relabel(self, op: Operation) -> None:
        """Lets a load take the one layout that all its users convert it to, when that is nearly as coalesced.

        Casts of its elements between it and the conversions take the layout too.
        """
        last, casts = op, []
        while (cast := self._only_cast(last)) is not None:
            casts.append(cast)
            last = cast
        users = [u.owner.operation for u in last.results[0].uses]
        wanted = {self.values.assigned[u.results[0]] for u in users if u.name == CONVERT}
        if not users or len(wanted) != 1 or any(u.name != CONVERT for u in users):
            return
        if any(v.owner.operation.name == "vector.contract" for u in users for v in u.results[0].uses):
            return
        layout = wanted.pop()
        access = Access(op, self.chip.vector_bytes)
        natural = self.values.assigned[op.results[0]]
        size = natural.registers * self.threads * access.bytes
        efficiency = access.efficiency(layout)
        small = size <= 16 * self.threads and efficiency >= 0.25
        if not small and (efficiency < 0.5 or layout.registers > 2 * natural.registers):
            return
        self.values.set(op, [layout])
        self.use_mask(op, layout)
        for cast in casts:
            self.values.set(cast, [layout])
        for u in users:
            u.results[0].replace_all_uses_with(last.results[0])
            u.erase()

    @staticmethod
    def _only_cast(op: Operation) -> Operation | None:
        """The conversion between float types that alone reads `op`, or None."""
        users = [u.owner.operation for u in op.results[0].uses]
        return users[0] if len(users) == 1 and users[0].name in ("arith.extf", "arith.truncf") else None

    def sweep(self) -> None:
        """Erases the vector ops that nothing uses."""
        for op in reversed(walk(self.func.regions[0].blocks[0])):
            if op.results and not op.regions and op.name not in UPDATES and all(is_vector(r) for r in op.results) \
                    and not any(True for r in op.results for _ in r.uses):
                self.loads = [x for x in self.loads if x != op]
                op.erase()
