"""Per-thread reductions and contractions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Type, Value, arith_d, ir, scf_d, vector_d
from xcc.diagnostics import UserError
from xcc.passes.gpu.exchange.conversions import convert, shuffle_xor
from xcc.passes.gpu.layout.contraction import Contraction
from xcc.passes.gpu.layout.linear import Layout
from xcc.passes.gpu.layout.operand_memory import chunk_of, operand_layout, operand_memory
from xcc.passes.gpu.layout.registers import from_memory, memory_type, registers_of, select_registers, to_memory
from xcc.passes.gpu.layout.staged_tile import StagedTile
from xcc.passes.gpu.layout.tile_ops import element_bytes
from xcc.passes.gpu.memory.extents import extent, summed
from xcc.passes.gpu.vendor import warpgroup
from xcc.passes.shared.attributes import LOGARITHMS
from xcc.passes.shared.combining import combining
from xcc.passes.shared.values import index, vec

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

FRAGMENTS = "xcc.fragments"     # on a vector.contract: when its fragments are read from shared memory
AHEAD, IN_TURN = "ahead", "in_turn"
MOST_STEPS = 16     # of FMAs along k in one block: LLVM may read the operands of a whole block first
MOST_FMAS = 1024    # of a thread in straight code of a loop: what an instruction cache holds


def reduction(k: KernelBuilder, op: Operation) -> None:
    """vector.multi_reduction: registers, then lanes by shuffles, then warps through shared memory; what a scan of the
    same tile has as its total is not computed again."""
    source, acc = op.operands
    scanned = _scanned(k, op)
    if scanned is not None:
        k.values[op.results[0]] = k.get(scanned)
        return
    layout = k.layout(source)
    dims = list(op.attributes["reduction_dims"])
    combine = combining(str(op.attributes["kind"]), ir.VectorType(source.type).element_type)
    kept = [d for d in range(len(layout.shape)) if d not in dims]

    def moves_only_reduced(v: tuple[int, ...]) -> bool:
        return any(v) and not any(v[d] for d in kept)

    value = _reduce_registers(k.get(source), [i for i, v in enumerate(layout.basis("register"))
                                              if moves_only_reduced(v)], combine)
    for i, v in enumerate(layout.basis("lane")):
        if moves_only_reduced(v):
            value = combine(value, shuffle_xor(k.code, value, 1 << i))
    warps = [i for i, v in enumerate(layout.basis("warp")) if moves_only_reduced(v)]
    if warps:
        value = _reduce_warps(k, value, layout.sliced(dims), warps, combine)
    if acc.type == op.results[0].type and not isinstance(acc.type, ir.VectorType):
        k.values[op.results[0]] = combine(registers_of(value)[0], k.get(acc))
    else:
        k.values[op.results[0]] = combine(value, k.get(acc))


def _scanned(k: KernelBuilder, op: Operation) -> Value | None:
    """The total of a scan ahead of the reduction `op` that is the same."""
    dims = list(op.attributes["reduction_dims"])
    for use in op.operands[0].uses:
        scan = use.owner.operation
        if scan.name == "vector.scan" and LOGARITHMS not in scan.attributes and scan.block == op.block \
                and scan.results[1] in k.values \
                and scan.operands[1] == op.operands[1] and scan.attributes["kind"] == op.attributes["kind"] \
                and dims == [int(ir.IntegerAttr(scan.attributes["reduction_dim"]).value)] \
                and k.layout(scan.results[1]) == k.layout(op.results[0]):
            return scan.results[1]
    return None


def _reduce_registers(value: Value, positions: list[int], combine: Any) -> Value:
    """Folds the register bits `positions`, the highest first."""
    for b in sorted(positions, reverse=True):
        count = ir.VectorType(value.type).shape[0]
        low = [r for r in range(count) if not r >> b & 1]
        value = combine(select_registers(value, low), select_registers(value, [r | 1 << b for r in low]))
    return value


def _reduce_warps(k: KernelBuilder, value: Value, kept: Layout, warps: list[int], combine: Any) -> Value:
    """Partial results of warps, laid side by side along a new dim, are read by all of them and folded."""
    count = 1 << len(warps)
    shape = (*kept.shape, count)

    def extended(name: str) -> list[list[int]]:
        return [[*v, 0] for v in kept.basis(name)]

    partial = [[*v, 1 << warps.index(i)] if i in warps else [*v, 0] for i, v in enumerate(kept.basis("warp"))]
    extra = [[0] * len(kept.shape) + [1 << i] for i in range(len(warps))]
    held = Layout.make(shape, {"register": extended("register"), "lane": extended("lane"), "warp": partial})
    wanted = Layout.make(shape, {"register": [*extra, *extended("register")], "lane": extended("lane"),
                                 "warp": extended("warp")})
    return _reduce_registers(convert(k.shared, value, held, wanted), list(range(len(warps))), combine)


def contract(k: KernelBuilder, op: Operation) -> None:
    """vector.contract: matrix instructions on fragments, or FMAs on register tiles fed from shared memory."""
    plan = k.product(op)
    emit = warpgroup.multiply if plan.from_shared else _multiply_add if plan.instruction is None else _instructions
    k.values[op.results[0]] = emit(k, op, plan)


def _instructions(k: KernelBuilder, op: Operation, plan: Contraction) -> Value:
    """One matrix instruction for each (m, n, k) tile of a warp."""
    i = plan.instruction
    assert i is not None and i.emit is not None and plan.lhs is not None and plan.rhs is not None
    m, n, kk = plan.m[0], plan.n[0], plan.k[0]
    staged = [k.staged.get(v) for v in list(op.operands)[:2]]
    values: list[Any] = [None if n < 2 and staged[n] is not None else k.get(v)
                         for n, v in enumerate(list(op.operands)[:3])]
    layouts = [plan.lhs, plan.rhs, plan.result]
    fragments = plan.fragments()
    for number, tile in enumerate(staged):
        if tile is not None:
            layouts[number] = _one_step(layouts[number], plan.maps[number].index(kk), i.k)
    tables = [{layout.at(register=r): r for r in reversed(range(layout.registers))} for layout in layouts]

    def fragment_registers(number: int, ko: int, at: dict[int, int]) -> Value:
        return select_registers(values[number], registers(number, at if staged[number] is not None else
                                                          {**at, kk: ko}))

    def registers(operand: int, at: dict[int, int]) -> list[int]:
        fragment, dims = fragments[operand]
        out = []
        for r in range(fragment.registers):
            position = dict(zip(dims, fragment.at(register=r), strict=True))
            out.append(tables[operand][tuple(plan.placed(d, at.get(d, 0) + position.get(d, 0))
                                             for d in plan.maps[operand])])
        return out

    def offsets(layout: Layout, operand: int, d: int, size: int) -> list[int]:
        if d not in plan.maps[operand]:
            return [0]
        column = plan.maps[operand].index(d)
        held = {layout.at(register=r)[column] for r in range(layout.registers)}
        return [c for c in range(0, plan.sizes[d], size) if plan.placed(d, c) in held]

    def read(number: int, ko: int) -> Value:
        tile = staged[number]
        return values[number] if tile is None else tile.read(k, layouts[number],
                                                             {f"dim{plan.maps[number].index(kk)}": ko})

    result = values[2]
    assert result is not None
    fragments_read = op.attributes[FRAGMENTS].value if FRAGMENTS in op.attributes else ""
    if fragments_read not in ("", AHEAD, IN_TURN):
        raise UserError(f"{op.location}: {FRAGMENTS} is '{fragments_read}', neither '{AHEAD}' nor '{IN_TURN}'")
    depth, columns = summed(op, plan), plan.sizes[n] if plan.swapped else extent(op, plan, 1, n)
    early, alone = fragments_read == AHEAD, fragments_read == IN_TURN and k.holds_nothing
    acc = registers_of(result)
    batches: list[dict[int, int]] = [{}]
    for d in plan.batch:
        batches = [{**b, d: o} for b in batches for o in offsets(plan.result, 2, d, 1)]
    for batch in batches:
        tiles = [(mo, no) for mo in offsets(plan.result, 2, m, i.m) for no in offsets(plan.result, 2, n, i.n)
                 if no < columns]
        slots = {at: registers(2, {**batch, m: at[0], n: at[1]}) for at in tiles}
        c = {at: vector_d.from_elements(vec(len(s), acc[0].type), [acc[r] for r in s])
             for at, s in slots.items()}
        # outermost: neighbouring instructions do not wait for each other
        steps = [s for s in offsets(plan.lhs, 0, kk, i.k) if s < depth]
        ahead: list[Any] = []
        for step, ko in enumerate(steps):
            if step and alone:
                k.code.keep_order()
            values[:2] = ahead if ahead else [read(n, ko) for n in (0, 1)]
            if early and step + 1 < len(steps):
                ahead = [read(n, steps[step + 1]) for n in (0, 1)]
            if step or early and ahead:     # LLVM would read ahead until registers are short
                k.code.keep_order()
            for part in range(i.parts):
                for count, (mo, no) in enumerate(tiles):
                    if 2 * count == len(tiles):
                        k.run_deferred()
                    a, b = (select_registers(fragment_registers(number, ko, {**batch, d: o}), i.part(part, number))
                            for number, d, o in ((0, m, mo), (1, n, no)))
                    c[mo, no] = i.emit(*((b, a) if plan.swapped else (a, b)), c[mo, no])
        for at, s in slots.items():
            for r, e in zip(s, registers_of(c[at]), strict=True):
                acc[r] = e
    return vector_d.from_elements(result.type, acc)


def _one_step(layout: Layout, dim: int, size: int) -> Layout:
    """The part of an operand's layout that lies in the first `size` positions of its k dim."""
    return layout.with_registers([v for v in layout.basis("register") if v[dim] < size])


def _multiply_add(k: KernelBuilder, op: Operation, plan: Contraction) -> Value:
    """Both operands are in shared memory; each k step reads a column and a row into registers.

    Many steps are a loop, as are those that no loop is around: LLVM puts FMAs of straight code behind the branches of
    stores, and what they read stays ahead, in registers."""
    acc = k.get(op.operands[2])
    element = ir.VectorType(acc.type).element_type
    tiles = {n: k.staged[v] for n, v in enumerate(list(op.operands)[:2]) if v in k.staged}
    if len(tiles) < 2:
        k.shared.begin()
        offset = 0
        for n in {0, 1} - set(tiles):
            tiles[n] = _in_shared(k, plan, n, op.operands[n], offset)
            offset += -(-tiles[n].slot_bytes // 16) * 16
        k.shared.barrier()
    sides = [_Side(plan, n, tiles[n]) for n in range(2)]
    depth = plan.sizes[plan.k[-1]]
    straight = not k.chip.llvm_schedules and op.parent.name == "scf.for"
    if straight and plan.result.registers * depth <= MOST_FMAS or len(plan.k) > 1 or depth <= MOST_STEPS:
        return _steps(k, plan, sides, acc, element, plan.sizes, None)
    k.run_deferred()
    loop = scf_d.ForOp(index(0), index(depth), index(MOST_STEPS), [acc])
    loop.operation.attributes["llvm.loop_annotation"] = ir.Attribute.parse(
        "#llvm.loop_annotation<unroll = <disable = true>>")
    with ir.InsertionPoint(loop.body):
        first, inner = loop.body.arguments
        scf_d.yield_([_steps(k, plan, sides, inner, element, {plan.k[0]: MOST_STEPS}, first)])
    return loop.results[0]


def _steps(k: KernelBuilder, plan: Contraction, sides: list[_Side], acc: Value, element: Type, sizes: dict[int, int],
           first: Value | None) -> Value:
    """The sum over `sizes` of the k dims, from `first` on (an index value, a multiple of that size; None: 0)."""
    steps: list[dict[int, int]] = [{}]
    for d in plan.k:
        steps = [{**s, d: i} for s in steps for i in range(sizes[d])]
    for side in sides:
        side.begin(k, first, sizes[plan.k[-1]])
    for count, step in enumerate(steps):
        if 4 * count == len(steps):
            k.run_deferred()
        a, b = (side.at(k, step, element) for side in sides)
        if isinstance(element, ir.FloatType):
            acc = vector_d.fma(a, b, acc)
        else:
            acc = arith_d.addi(acc, arith_d.muli(a, b))
    return acc


def _in_shared(k: KernelBuilder, plan: Contraction, operand: int, value: Value, offset: int) -> StagedTile:
    """An operand written to shared memory for this contraction alone."""
    stored = memory_type(ir.VectorType(value.type).element_type)
    memory = operand_memory(plan, operand, k.layout(value), element_bytes(stored))
    tile = StagedTile(value, [], memory, stored, k.shared.buffer(memory.shape[0], stored, offset))
    k.shared.write(to_memory(k.get(value), stored), tile.buffer, memory.compose(k.layout(value)))
    return tile


class _Side:
    """One operand of a register-tiled contraction: reads of `chunk` values of k at once, kept until the next chunk."""

    def __init__(self, plan: Contraction, operand: int, tile: StagedTile) -> None:
        self.plan, self.tile, self.operand = plan, tile, operand
        self.dims, self.c_dims = plan.maps[operand], plan.maps[2]
        self.chunk = chunk_of(plan, operand, tile.memory, element_bytes(tile.stored))
        self.layout = operand_layout(plan, operand, self.chunk)
        self.held = {self.layout.at(register=r): r for r in reversed(range(self.layout.registers))}
        self.loaded: Any = None
        self.turn: Any = None

    def begin(self, k: KernelBuilder, first: Value | None, size: int) -> None:
        """The steps that follow start at k `first`, a multiple of `size`; None: at 0."""
        if first is None:
            return
        vectors = [v[0] for v in self.tile.memory.basis(f"dim{self.dims.index(self.plan.k[-1])}")]
        moved = [v if 1 << b >= size else 0 for b, v in enumerate(vectors)]
        mask = 0
        for v in moved:
            mask |= v
        self.turn = k.code.spread([(first, moved)]), mask

    def at(self, k: KernelBuilder, step: dict[int, int], element: Type) -> Value:
        """The values at one k step, a register for each of the accumulator's registers."""
        plan, tile, last = self.plan, self.tile, self.plan.k[-1]
        inside = step[last] % self.chunk
        if not inside:
            position = {f"dim{i}": step.get(d, 0) for i, d in enumerate(self.dims)}
            kind = ir.VectorType(tile.value.type).element_type
            loaded = from_memory(k.shared.read(tile.buffer, tile.memory.compose(self.layout), tile.stored,
                                                    tile.memory.at(**position)[0], tile.start, self.turn), kind)
            if kind != element:
                out = vec(self.layout.registers, element)
                widen = arith_d.extf if isinstance(kind, ir.FloatType) \
                    else arith_d.extui if self.operand in plan.unsigned else arith_d.extsi
                loaded = widen(out, loaded)
            self.loaded = loaded

        def register(r: int) -> int:
            v = plan.result.at(register=r)
            return self.held[tuple(v[self.c_dims.index(d)] if d in self.c_dims else inside if d == last else 0
                                   for d in self.dims)]

        return select_registers(self.loaded, [register(r) for r in range(plan.result.registers)])
