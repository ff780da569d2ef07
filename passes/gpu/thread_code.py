"""Building blocks of per-thread code: thread coordinates, register vectors, shuffles, shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xcc._mlir import arith_d, gpu_d, ir, memref_d, scf_d, vector_d
from xcc.diagnostics import CompilerBug
from xcc.passes.gpu.lane_exchange import emit_shuffle, lane_exchange
from xcc.passes.gpu.layout import Layout, bits, row_major, swizzled
from xcc.passes.gpu.ldmatrix import ROW, matrix_load
from xcc.passes.gpu.tile_ops import element_bytes

__all__ = ["ThreadCode", "from_registers", "register_vector", "registers_of", "select_registers"]

Turn = tuple[Any, int] | None
SHARED = "#gpu.address_space<workgroup>"
TURNS_BYTES = 4096      # of shared memory that conversions take turns with
Reads = tuple[int, int] | None
ANYTHING = (0, 1 << 30)
NO_ROOM = 1 << 30       # cycles of a way through shared memory that is full
BARRIER_CYCLES = 30     # that a warp waits at least, where nothing else runs


def register_vector(count: int, element_type: Any) -> Any:
    return ir.VectorType.get([count], element_type)


def registers_of(value: Any) -> list[Any]:
    """The scalars of a 1-D register vector."""
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.operation.name == "vector.from_elements":
        return list(owner.operation.operands)
    return [vector_d.extract(value, [], [i]) for i in range(ir.VectorType(value.type).shape[0])]


def from_registers(scalars: Sequence[Any]) -> Any:
    return vector_d.from_elements(register_vector(len(scalars), scalars[0].type), list(scalars))


def select_registers(value: Any, indices: Sequence[int]) -> Any:
    """A register vector of the named registers of `value`."""
    count = ir.VectorType(value.type).shape[0]
    if list(indices) == list(range(count)):
        return value
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.operation.name == "vector.from_elements":
        operands = list(owner.operation.operands)
        return from_registers([operands[i] for i in indices])
    return vector_d.shuffle(value, value, list(indices))


def index(value: int) -> Any:
    return arith_d.constant(ir.IndexType.get(), value)


class ThreadCode:
    """The state of one gpu.func under construction: thread ids, cached coordinates and shared memory.

    Attributes:
        shared_bytes: the most bytes of shared memory that any point of the kernel uses.
        reserved: bytes at the start of shared memory that a pipelined loop around this point keeps its tiles in.
    """

    def __init__(self, entry: Any, chip: Any, finish: Callable[[], None]) -> None:
        self.entry, self.warp, self.limit = entry, chip.warp, chip.shared_bytes
        self.finish = finish         # waits for instructions that read shared memory by themselves
        self.matrix_loads = self.async_copies = "mma" in chip.matrix     # sm_80 and newer
        self.amd = chip.triple.startswith("amdgcn")
        warp = chip.warp
        self.shared_bytes = 0
        self.reserved = 0
        self.reads: Reads = None     # what of shared memory threads may still be reading
        self._shared: Any = None
        self._uniform: Any = None
        self._parts: dict[Any, Any] = {}
        self._anchor: Any = None
        with ir.InsertionPoint(entry):
            self.thread = gpu_d.thread_id(gpu_d.Dimension.x)
            self.lane = arith_d.andi(self.thread, index(warp - 1))
            self.warp_id = arith_d.shrui(self.thread, index(warp.bit_length() - 1))
            self._anchor = index(0).owner

    @property
    def uniform_warp(self) -> Any:
        """The warp's number, read from its first lane: code generators then know that all lanes have the same."""
        if self._uniform is None:
            with self._at_entry():
                i32 = ir.IntegerType.get_signless(32)
                first = emit_shuffle(self.warp, arith_d.index_cast(i32, self.warp_id), None, arith_d.constant(i32, 0))
                self._uniform = arith_d.index_cast(ir.IndexType.get(), first)
        return self._uniform

    def _at_entry(self) -> Any:
        return ir.InsertionPoint(self._anchor)

    # -- coordinates --------------------------------------------------------------------------------------------

    def part(self, layout: Layout, dim: int) -> Any:
        """This thread's share of coordinate `dim` (register 0); None where it is always 0."""
        columns = tuple((name, tuple(v[dim] for v in layout.basis(name))) for name in ("lane", "warp"))
        if columns not in self._parts:
            with self._at_entry():
                self._parts[columns] = self._gather_bits(columns)
        return self._parts[columns]

    def _gather_bits(self, columns: Any) -> Any:
        return self.spread([(self.lane if name == "lane" else self.warp_id, values) for name, values in columns])

    def spread(self, columns: Any) -> Any:
        """The XOR of the vectors whose bits are set: columns are (index value, a vector for each of its bits)."""
        terms: list[tuple[Any, int]] = []
        for source, values in columns:
            i = 0
            while i < len(values):
                if not values[i] or values[i] & (values[i] - 1):
                    for b in bits(values[i]):
                        terms.append((self._field(source, i, 1, b), 1 << b))
                    i += 1
                    continue
                count = 1
                while i + count < len(values) and values[i + count] == values[i] << count:
                    count += 1
                terms.append((self._field(source, i, count, values[i].bit_length() - 1),
                              ((1 << count) - 1) * values[i]))
                i += count
        total, seen = None, 0
        for value, mask in terms:
            if total is None:
                total = value
            else:
                total = arith_d.addi(total, value) if not seen & mask else arith_d.xori(total, value)
            seen |= mask
        return total

    @staticmethod
    def _field(source: Any, low: int, count: int, to: int) -> Any:
        value = arith_d.andi(source, index(((1 << count) - 1) << low))
        if to > low:
            return arith_d.shli(value, index(to - low))
        return arith_d.shrui(value, index(low - to)) if to < low else value

    def coordinate(self, layout: Layout, register: int, dim: int) -> Any:
        """Coordinate `dim` of the element in `register`."""
        fixed = layout.at(register=register)[dim]
        part = self.part(layout, dim)
        if part is None:
            return index(fixed)
        if not fixed:
            return part
        moving = 0
        for name in ("lane", "warp"):
            for v in layout.basis(name):
                moving |= v[dim]
        return arith_d.xori(part, index(fixed)) if moving & fixed else arith_d.addi(part, index(fixed))

    def first_copy(self, layout: Layout) -> Any:
        """An i1 that is true in one thread of those that hold the same elements; None when none do."""
        condition = None
        for name, source in (("lane", self.lane), ("warp", self.warp_id)):
            mask = layout.copies(name)
            if mask:
                test = arith_d.cmpi(arith_d.CmpIPredicate.eq, arith_d.andi(source, index(mask)), index(0))
                condition = test if condition is None else arith_d.andi(condition, test)
        return condition

    # -- shared memory ------------------------------------------------------------------------------------------

    def buffer(self, count: int, element_type: Any, offset: int = 0) -> Any:
        """A view of `count` elements of the workgroup's shared memory at byte `offset` behind what is reserved."""
        offset += self.reserved
        self.shared_bytes = max(self.shared_bytes, offset + count * element_bytes(element_type))
        if self.shared_bytes > self.limit:
            raise CompilerBug(f"the kernel needs {self.shared_bytes} bytes of shared memory, the chip has {self.limit}")
        space = ir.Attribute.parse(SHARED)
        with self._at_entry():
            if self._shared is None:
                self._shared = gpu_d.dynamic_shared_memory(
                    ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ir.IntegerType.get_signless(8),
                                      memory_space=space))
            return memref_d.view(ir.MemRefType.get([count], element_type, memory_space=space), self._shared,
                                 index(offset), [])

    def offset_of(self, layout: Layout, register: int, fixed: int = 0, start: Any = None, turn: Turn = None) -> Any:
        """The offset of `register` under a 1-D layout, with the constant `fixed` XORed in, from `start` on.

        turn: a value that is XORed in too, and the bits that it may have.
        """
        constant = layout.at(register=register)[0] ^ fixed
        part = self.part(layout, 0)
        if part is None and turn is None:
            return index(constant) if start is None else arith_d.addi(start, index(constant))
        moving = 0
        for name in ("lane", "warp"):
            for v in layout.basis(name):
                moving |= v[0]
        if turn is not None:
            part = turn[0] if part is None else arith_d.xori(part, turn[0])
            moving |= turn[1]
        # the thread's bits and the constant's bits apart: an addition folds into the address
        apart, crossed = constant & ~moving, constant & moving
        value = arith_d.xori(part, index(crossed)) if crossed else part
        if start is not None:
            value = arith_d.addi(value, start)
        return arith_d.addi(value, index(apart)) if apart else value

    def barrier(self) -> None:
        """All threads have read and written shared memory; on AMD accesses of global memory stay in flight."""
        if self.amd:
            ir.Operation.create("amdgpu.lds_barrier")
        else:
            gpu_d.barrier()

    def keep_order(self) -> None:
        """Keeps the code generator from moving instructions across this point (AMD; ptxas orders by latency)."""
        if self.amd:
            ir.Operation.create("amdgpu.sched_barrier",
                                attributes={"opts": ir.Attribute.parse("#rocdl<sched_group_mask none>")})

    def keep_reads(self) -> None:
        """Behind regions, and at the start of a loop's body: of what may be read only that it may be is known."""
        if self.reads is not None:
            self.reads = ANYTHING

    def free_place(self, size: int) -> int:
        """The byte offset of `size` bytes behind what is reserved that nobody reads; a barrier where all may be read.

        One conversion after the other takes turns with two places: the barrier between the writes and the reads of the
        second says that the first was read.
        """
        self.finish()
        size = -(-size // 16) * 16
        start = 0
        if self.reads is not None:
            low, high = self.reads
            start = 0 if size <= low else high
            if start + size > min(TURNS_BYTES, self.limit - self.reserved):
                self.barrier()
                start = 0
        self.reads = (start, start + size)
        return start

    def begin_shared(self) -> None:
        """Waits until the last content of shared memory has been read."""
        self.finish()
        if self.reads is not None:
            self.barrier()
        self.reads = ANYTHING

    def write_shared(self, value: Any, buffer: Any, offsets: Layout, start: Any = None, last_first: bool = False
                     ) -> None:
        """Stores a register vector; `offsets` maps register, lane and warp to elements of `buffer` from `start` on.

        last_first: what was loaded last is stored first, so that one wait serves all loads.
        """
        size = element_bytes(ir.VectorType(value.type).element_type)
        width, run = offsets.contiguous(max(1, 16 // size))

        def store() -> None:
            groups = register_groups(offsets.registers, run)
            for group in reversed(groups) if last_first else groups:
                piece = select_registers(value, group)
                vector_d.store(piece, buffer, [self.offset_of(offsets, group[0], start=start)],
                               alignment=width * size)

        guarded(self.first_copy(offsets), store)

    def read_shared(self, buffer: Any, offsets: Layout, element_type: Any, fixed: int = 0, start: Any = None,
                    turn: Turn = None) -> Any:
        """Loads a register vector; the opposite of `write_shared`, at offsets XORed with `fixed` and `turn`."""
        size = element_bytes(element_type)
        width, run = offsets.contiguous(max(1, 16 // size))
        if (fixed | (turn[1] if turn else 0)) & (width - 1):
            width, run = 1, []
        out: list[Any] = [None] * offsets.registers
        pieces = []
        groups = register_groups(offsets.registers, run)
        for group in groups:
            pieces.append(vector_d.load(register_vector(width, element_type), buffer,
                                        [self.offset_of(offsets, group[0], fixed, start, turn)],
                                        alignment=width * size))
        if len(groups) == 1 and groups[0] == list(range(offsets.registers)):
            return pieces[0]
        for group, piece in zip(groups, pieces, strict=True):
            for r, s in zip(group, registers_of(piece), strict=True):
                out[r] = s
        return from_registers(out)

    # -- conversions --------------------------------------------------------------------------------------------

    def convert(self, value: Any, source: Layout, target: Layout) -> Any:
        """`value` with layout `source` as a register vector of layout `target`."""
        if source == target:
            return value
        renamed = register_renaming(source, target)
        if renamed is not None:
            return select_registers(value, renamed)
        element = ir.VectorType(value.type).element_type
        stored = memory_type(element)
        matrix = self.matrix_loads and isinstance(stored, ir.FloatType) and stored.width == 16
        memory = best_memory(source, target, element_bytes(stored), matrix)
        size = memory.shape[0] * element_bytes(stored)
        most = memory_cycles(memory, source, target, element_bytes(stored), matrix) \
            if self.reserved + size <= self.limit else NO_ROOM
        exchanged = self._exchange(value, source, target, most)
        if exchanged is not None:
            return exchanged
        buffer = self.buffer(memory.shape[0], stored, self.free_place(size))
        self.write_shared(to_memory(value, stored), buffer, memory.compose(source))
        self.barrier()
        return self.read_tile(buffer, memory.compose(target), element)

    def _exchange(self, value: Any, source: Layout, target: Layout, most: int) -> Any:
        """`value` in `target` by shuffles, where they take fewer cycles than `most` and barriers of several warps."""
        element = ir.VectorType(value.type).element_type
        width = 64 if isinstance(element, ir.IndexType) else int(element.width)
        pairs = width == 16 and source.registers > 1 and target.registers > 1 \
            and source.basis("register")[0] == target.basis("register")[0]
        if pairs:       # two elements in a register change lanes together
            source, target = (x.with_registers(x.basis("register")[1:]) for x in (source, target))
        plan = lane_exchange(source, target)
        waits = 2 * BARRIER_CYCLES if source.size("warp") > 1 else 0
        if plan is None or plan.cycles(max(1, width // 32)) > most + waits:
            return None
        registers = registers_of(value)
        i32 = ir.IntegerType.get_signless(32)
        if pairs:
            pair = register_vector(2, element)
            registers = [vector_d.extract(vector_d.bitcast(register_vector(1, i32), from_registers(registers[r:r + 2])),
                                          [], [0]) for r in range(0, len(registers), 2)]

        def shuffle(scalar: Any, mask: int | None, lane: Any) -> Any:
            return self._shuffle(scalar, lambda word: emit_shuffle(self.warp, word, mask, lane))

        out = plan.emit(self, registers, shuffle)
        if pairs:
            words = [vector_d.bitcast(pair, from_registers([r])) for r in out]
            out = [vector_d.extract(w, [], [n]) for w in words for n in (0, 1)]
        return from_registers(out)

    def read_tile(self, buffer: Any, offsets: Layout, element: Any, start: Any = None, fixed: int = 0) -> Any:
        """A register vector from shared memory, by ldmatrix where the offsets, XORed with `fixed`, have its form."""
        stored = memory_type(element)
        matrix = self.matrix_loads and isinstance(stored, ir.FloatType) and stored.width == 16
        plan = matrix_load(offsets) if matrix and not fixed % ROW else None
        if plan is not None:
            return plan.emit(self, buffer, stored, start, fixed)
        return from_memory(self.read_shared(buffer, offsets, stored, fixed, start), element)

    def shuffle_xor(self, value: Any, mask: int) -> Any:
        """Each register of `value` from the lane whose number differs in the bits of `mask`."""
        return from_registers([self._shuffle(s, lambda word: emit_shuffle(self.warp, word, mask, None))
                               for s in registers_of(value)])

    def _shuffle(self, scalar: Any, move: Callable[[Any], Any]) -> Any:
        """A scalar whose 32-bit words went through `move`."""
        i32 = ir.IntegerType.get_signless(32)
        t = scalar.type
        if isinstance(t, ir.IndexType):
            i64 = ir.IntegerType.get_signless(64)
            return arith_d.index_cast(t, self._shuffle(arith_d.index_cast(i64, scalar), move))
        if isinstance(t, ir.IntegerType):
            if t.width < 32:
                return arith_d.trunci(t, self._shuffle(arith_d.extui(i32, scalar), move))
            if t.width == 64:
                high = move(arith_d.trunci(i32, arith_d.shrui(scalar, arith_d.constant(t, 32))))
                low = move(arith_d.trunci(i32, scalar))
                return arith_d.ori(arith_d.extui(t, low),
                                   arith_d.shli(arith_d.extui(t, high), arith_d.constant(t, 32)))
            return move(scalar)
        same = ir.IntegerType.get_signless(t.width)
        return arith_d.bitcast(t, self._shuffle(arith_d.bitcast(same, scalar), move))


def guarded(condition: Any, build: Callable[[], None]) -> None:
    """Runs `build` inside an scf.if of `condition`, or plainly when it is None."""
    if condition is None:
        build()
        return
    branch = scf_d.IfOp(condition)
    with ir.InsertionPoint(branch.then_block):
        build()
        scf_d.yield_([])


def register_groups(count: int, run: Sequence[int]) -> list[list[int]]:
    """Registers split into runs: each group walks the bits `run`, groups go over the other bits in order."""
    rest = [b for b in range(count.bit_length() - 1) if b not in run]
    groups = []
    for outer in range(1 << len(rest)):
        base = sum(1 << rest[i] for i in bits(outer))
        groups.append([base + sum(1 << run[i] for i in bits(inner)) for inner in range(1 << len(run))])
    return groups


def register_renaming(source: Layout, target: Layout) -> list[int] | None:
    """For each target register the source register that holds its element in the same thread, when one does."""
    if source.basis("lane") != target.basis("lane") or source.basis("warp") != target.basis("warp"):
        return None
    held: dict[tuple[int, ...], int] = {}
    for r in reversed(range(source.registers)):
        held[source.at(register=r)] = r
    wanted = [target.at(register=r) for r in range(target.registers)]
    return [held[w] for w in wanted] if all(w in held for w in wanted) else None


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
        plan = matrix_load(offsets) if matrix and layout is target else None
        if plan is not None:
            total += plan.cycles
            continue
        width, _ = offsets.contiguous(max(1, 16 // size))
        phases = max(1, width * size * offsets.size("lane") // 128)
        total += offsets.registers // width * (1 + phases * (1 + offsets.bank_conflicts(width, size)))
    return total


def memory_type(element_type: Any) -> Any:
    """How a register's element type is kept in shared memory: i1 as i8, index as i64."""
    if isinstance(element_type, ir.IndexType):
        return ir.IntegerType.get_signless(64)
    if isinstance(element_type, ir.IntegerType) and element_type.width < 8:
        return ir.IntegerType.get_signless(8)
    return element_type


def to_memory(value: Any, stored: Any) -> Any:
    t = ir.VectorType(value.type)
    if t.element_type == stored:
        return value
    out = register_vector(t.shape[0], stored)
    return arith_d.index_cast(out, value) if isinstance(t.element_type, ir.IndexType) else arith_d.extui(out, value)


def from_memory(value: Any, element_type: Any) -> Any:
    t = ir.VectorType(value.type)
    if t.element_type == element_type:
        return value
    out = register_vector(t.shape[0], element_type)
    return arith_d.index_cast(out, value) if isinstance(element_type, ir.IndexType) else arith_d.trunci(out, value)
