"""How a block-level contraction is spread over warps: a matrix instruction's fragments, or register tiles of FMAs."""

from __future__ import annotations

from xcc._mlir import Operation, ir
from xcc.diagnostics import CompilerBug
from xcc.passes.gpu.layout.fragments import MatrixInstruction, select_group_instruction, select_instruction
from xcc.passes.gpu.layout.linear import Layout, log2
from xcc.passes.shared.lossy import LOSSY
from xcc.targets.base import Chip

NO_DIM = -2             # the rows of a product of a vector with a matrix: no operand has them
WARPS = "xcc.warps"     # on a vector.contract: the iteration dim that each bit of the warp number halves, -1: none
SWAPPED = "xcc.swapped"     # on a vector.contract: the instruction gets its operands the other way round
HELD = "xcc.held"       # on a vector.contract: its left operand is in registers, where an instruction lets it be so
UNSIGNED = "xcc.unsigned"   # on a vector.contract: the numbers of the operands whose integers are unsigned
RUN = "xcc.run"         # on a vector.contract: neighbouring columns of the result that a thread holds (see column_bits)


class Contraction:
    """The plan of one vector.contract.

    Attributes:
        instruction: the matrix instruction, or None for register tiles of FMAs.
        from_shared: the instruction reads its operands from shared memory.
        lhs, rhs: layouts asked of the operands; None where any will do (they pass through shared memory).
        result: layout of the accumulator.
        types: of the elements of lhs, rhs and accumulator, unsigned ones as "ui8"; `unsigned`: whose they are.
        maps: for lhs, rhs and acc the iteration dim of each of their dims.
        m, n, k, batch: iteration dims by role. With a matrix instruction, m is never empty: a vector's rows are copies.
        swapped: the instruction multiplies rhs by lhs and gives the result transposed: its rows, which lie in registers
            of a lane, are the columns (n) of ours, in the order in which a lane of a left operand holds its k.
    """

    def __init__(self, op: Operation, chip: Chip, warps: int) -> None:
        self.op = op.operation
        self.maps = [[e.position for e in a.value.results] for a in self.op.attributes["indexing_maps"]]
        if str(self.op.attributes["kind"]) != "#vector.kind<add>":
            raise CompilerBug(f"a contraction of kind {self.op.attributes['kind']} has no distribution to threads")
        shapes = [tuple(ir.VectorType(v.type).shape) for v in list(self.op.operands)[:3]]
        self.sizes = {d: s for dims, shape in zip(self.maps, shapes, strict=True)
                      for d, s in zip(dims, shape, strict=True)}
        a, b, c = (set(m) for m in self.maps)
        order = sorted(self.sizes)
        self.batch = [d for d in order if d in a and d in b and d in c]
        self.m = [d for d in order if d in a and d in c and d not in b]
        self.n = [d for d in order if d in b and d in c and d not in a]
        self.k = [d for d in order if d in a and d in b and d not in c]
        vector = not self.m and len(self.n) == len(self.k) == 1     # times a matrix: rows that are all the same
        if vector:
            self.m = [NO_DIM]
        self.unsigned = set(ir.DenseI64ArrayAttr(self.op.attributes[UNSIGNED])) if UNSIGNED in self.op.attributes \
            else set()
        self.types = tuple(("u" if n in self.unsigned else "") + str(ir.VectorType(v.type).element_type)
                           for n, v in enumerate(list(self.op.operands)[:3]))
        self.lhs: Layout | None = None
        self.rhs: Layout | None = None
        self.instruction = self._select(chip, warps)
        if vector:
            self.m, self.sizes[NO_DIM] = ([NO_DIM], self.instruction.m) if self.instruction is not None else ([], 1)
        self.from_shared = self.instruction is not None and self.instruction.emit is None
        self.run = int(self.op.attributes[RUN].value) if self.from_shared and RUN in self.op.attributes else 1
        self.swapped = self.instruction is not None and SWAPPED in self.op.attributes
        self.order: list[int] = []      # of the bits of n: where each bit of the instruction's rows is in ours
        warp_dims = self._split_warps(warps // self.instruction.warps if self.instruction else warps)
        if self.instruction is not None:
            self._fragments(self.instruction, warp_dims)
        else:
            self.result = self._register_tiles(chip.warp, warp_dims)

    def _select(self, chip: Chip, warps: int) -> MatrixInstruction | None:
        if len(self.m) != 1 or len(self.n) != 1 or len(self.k) != 1:
            return None
        lossy = LOSSY in self.op.attributes
        left, right, total = self.types
        types = (right, left, total) if SWAPPED in self.op.attributes else (left, right, total)
        shape = (self.sizes.get(self.m[0], 1 << 10), self.sizes[self.n[0]], self.sizes[self.k[0]])
        if _wants_warpgroups(self.op) and self.m != [NO_DIM] and all(self.sizes[d] == 1 for d in self.batch):
            found = select_group_instruction(chip, types, shape, warps, lossy)
            if found is not None:
                return found
        return select_instruction(chip, types, shape, lossy)

    @property
    def truncates(self) -> bool:
        """Whether the instruction reads operands in shared memory of which it ignores bits."""
        return self.from_shared and self.instruction is not None and not self.instruction.exact

    def rows(self, warps: int) -> list[int] | None:
        """The warp split that gives each warp whole rows of the result, when there are enough of them."""
        i = self.instruction
        if i is None or self.sizes[self.m[0]] // i.m < warps // i.warps:
            return None
        return self.m[:1] * log2(warps // i.warps)

    def _split_warps(self, warps: int) -> list[int]:
        """The iteration dim of each warp bit, -1 for copies: the larger remaining side is split first."""
        if WARPS in self.op.attributes:
            return list(ir.DenseI64ArrayAttr(self.op.attributes[WARPS]))
        tile = (self.instruction.m, self.instruction.n) if self.instruction else (4, 4)
        left = {d: self.sizes[d] // t for dims, t in ((self.m, tile[0]), (self.n, tile[1])) for d in dims[-1:]}
        scale = {d: t for dims, t in ((self.m, tile[0]), (self.n, tile[1])) for d in dims[-1:]}
        out = []
        for _ in range(log2(warps)):
            free = [d for d in left if left[d] > 1]
            if not free:
                out.append(-1)
                continue
            d = max(free, key=lambda x: left[x] * scale[x])
            left[d] //= 2
            out.append(d)
        return out

    def _vector(self, operand: int, dim: int, value: int) -> list[int]:
        return [value if d == dim else 0 for d in self.maps[operand]]

    def _fragments(self, i: MatrixInstruction, warp_dims: list[int]) -> None:
        m, n, k = self.m[0], self.n[0], self.k[0]
        base = {m: i.m, n: i.n, k: i.k}
        within = dict(self.sizes)
        for d in warp_dims:
            if d >= 0:
                within[d] //= 2
        self.order = _rows_order(i, within[n]) if self.swapped else []
        layouts: list[Layout | None] = []
        for operand, (fragment, dims) in enumerate(self.fragments()):
            if self.from_shared and operand < 2 and not (operand == 0 and HELD in self.op.attributes):
                layouts.append(None)
                continue
            if operand == 2 and self.run > 1:
                fragment = _moved_columns(fragment, self.run)
            bases: dict[str, list[list[int]]] = {}
            for name in ("register", "lane", "warp"):
                bases[name] = [[self.placed(d, v[dims.index(d)]) if d in dims else 0 for d in self.maps[operand]]
                               for v in fragment.basis(name)]
            if NO_DIM in dims:
                bases["register"] = [v for v in bases["register"] if any(v)]
            for d in [*reversed(dims), *self.batch]:
                first = base.get(d, 1)
                while first < within[d]:
                    bases["register"].append(self._vector(operand, d, self.placed(d, first)))
                    first *= 2
            at = dict(within)
            for d in warp_dims:
                bases["warp"].append(self._vector(operand, d, at[d]) if d in dims else [0] * len(self.maps[operand]))
                if d >= 0:
                    at[d] *= 2
            layouts.append(Layout.make([self.sizes[d] for d in self.maps[operand]], bases))
        self.lhs, self.rhs = layouts[:2]
        self.result = _known(layouts[2])

    def fragments(self) -> tuple[tuple[Layout, tuple[int, int]], ...]:
        """For lhs, rhs and result: the instruction's layout, and our dims that are its dims."""
        i = self.instruction
        assert i is not None
        m, n, k = self.m[0], self.n[0], self.k[0]
        if self.swapped:
            return (i.b, (k, m)), (i.a, (n, k)), (i.c, (n, m))
        return (i.a, (m, k)), (i.b, (k, n)), (i.c, (m, n))

    def placed(self, d: int, value: int) -> int:
        """The coordinate along `d` that is number `value` for the instruction."""
        if d != self.n[0] or not self.order:
            return value
        low = sum(1 << to for b, to in enumerate(self.order) if value >> b & 1)
        return low | value >> len(self.order) << len(self.order)

    def _register_tiles(self, warp: int, warp_dims: list[int]) -> Layout:
        """4x4 neighbours a thread, lanes 4 rows by the rest, warps outside, and repeats in registers."""
        bits = {d: list(range(log2(self.sizes[d]))) for d in self.maps[2]}
        bases: dict[str, list[list[int]]] = {"register": [], "lane": [], "warp": []}

        def take(name: str, d: int) -> None:
            bases[name].append(self._vector(2, d, 1 << bits[d].pop(0)))

        n, m = self.n[-1:], self.m[-1:]
        for d in [*n, *n, *m, *m]:
            if bits[d]:
                take("register", d)
        held = {d: warp_dims.count(d) for d in bits}
        lane_order = [*n, *n, *n, *m, *m] + [*m, *n] * 6 + [d for d in reversed(self.maps[2])
                                                           for _ in range(log2(self.sizes[d]))]
        for d in lane_order:
            if len(bases["lane"]) < log2(warp) and len(bits[d]) > held[d]:
                take("lane", d)
        while len(bases["lane"]) < log2(warp):
            bases["lane"].append([0] * len(self.maps[2]))
        for d in warp_dims:
            if d >= 0 and bits[d]:
                take("warp", d)
            else:
                bases["warp"].append([0] * len(self.maps[2]))
        for d in reversed(self.maps[2]):
            while bits[d]:
                take("register", d)
        return Layout.make([self.sizes[d] for d in self.maps[2]], bases)


def column_bits(run: int, bits: int) -> list[int]:
    """For each bit of a column of the result the bit of the instruction's column, where threads hold `run` neighbours.

    Of the instruction's columns a thread holds two neighbours, and those eight further on; lanes are between them. An
    operand whose columns are rows of shared memory may have them in any order there, so the next bits of a thread's
    columns change places with those of its lane.
    """
    moved = max(0, log2(run) - 1)
    return [0, *range(3, 3 + moved), 1, 2, *range(3 + moved, bits)]


def _moved_columns(c: Layout, run: int) -> Layout:
    """The fragment `c` of a result whose columns are ordered by `column_bits`."""
    order = column_bits(run, log2(c.shape[1]))
    return Layout(c.shape, tuple((name, tuple((r, 1 << order.index(log2(n)) if n else 0) for r, n in vs))
                                 for name, vs in c.bases))


def _rows_order(i: MatrixInstruction, size: int) -> list[int]:
    """Bits of the rows that a warp has of a swapped result: neighbours in a lane first, as many as a lane of a left
    operand holds along k, then those of the lanes, then the rest."""
    held = [log2(v[0]) for v in i.c.basis("register") if v[0]] + list(range(log2(i.m), log2(size)))
    lanes = [log2(v[0]) for v in i.c.basis("lane") if v[0]]
    run = log2(max(1, i.k * i.m // i.a.size("lane")))
    wanted = [*held[:run], *lanes, *held[run:]]
    return [wanted.index(b) for b in range(len(wanted))]


def _known(layout: Layout | None) -> Layout:
    assert layout is not None
    return layout


def _wants_warpgroups(op: Operation | None) -> bool:
    """Whether the schedule of the kernel around `op` asks for instructions of several warps."""
    while op is not None and "xcc.config" not in op.attributes:
        op = op.parent.operation if op.parent is not None else None
    if op is None:
        return False
    config = ir.DictAttr(op.attributes["xcc.config"])
    return "gpu" in config and "warpgroup" in config["gpu"] and bool(config["gpu"]["warpgroup"].value)
