"""Per-thread sorts along the last dim of a tile: a bitonic network (Batcher, "Sorting networks and their applications",
1968) whose steps follow from the layout.

Blocks of 2, 4, 8, ... elements are merged from sorted halves. In a block whose upper half is read backwards each step
compares elements that differ in one bit of their place, from the highest bit down, and all comparisons go upwards. To
read the upper half backwards is a linear map of places (the half's bit XORs all lower ones), so it changes the layout
and moves nothing. A step is a comparison of registers once the layout has its bit there; as many bits as there are of
registers come there together, by one conversion.

Where few elements are kept, sorted blocks of so many are merged by the first step alone: the lower of each two stay,
and the tile is half as long from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xcc._mlir import Operation, Value, arith_d, ir
from xcc.passes.gpu.exchange.conversions import convert
from xcc.passes.gpu.layout.forms import blocked
from xcc.passes.gpu.layout.linear import Layout, log2
from xcc.passes.gpu.layout.registers import from_registers, registers_of
from xcc.passes.gpu.layout.tile_ops import element_bytes, shape_of
from xcc.passes.shared.values import is_less

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

SORT = "tile.sort"

LEAST = 2       # bits of places in registers, also where the tile has fewer elements than that for each thread
_INPUTS = ("register", "lane", "warp")


def sorted_layout(value: Value, threads: int, warp: int, vector_bytes: int) -> Layout:
    """The layout in which a sort leaves its result `value`: whole words of neighbours."""
    shape = shape_of(value)
    each = max(1, shape[0] * shape[1] // threads)
    width = max(1, vector_bytes // max(4, element_bytes(ir.VectorType(value.type).element_type)))
    return blocked(shape, [1, 0], min(width, each), warp, threads // warp)


class _Sort:
    """A sort under way: registers of each word, and where they lie."""

    def __init__(self, k: KernelBuilder, words: list[list[Value]], layout: Layout) -> None:
        self.k, self.words = k, words
        self.layout = _numbered(layout)
        self.clean = self.layout        # ahead of the upper half's turning: vectors with a single bit

    @property
    def places(self) -> int:
        """Bits of a place in a row."""
        return log2(self.layout.shape[1])

    def turn(self, bit: int) -> None:
        """Reads the upper halves of blocks of 2 << bit backwards."""
        def turned(v: tuple[int, ...]) -> tuple[int, int]:
            return v[0], v[1] ^ ((1 << bit) - 1 if v[1] >> bit & 1 else 0)

        self.layout = Layout.make(self.layout.shape, {n: [turned(v) for v in vs] for n, vs in self.layout.bases})

    def step(self, bit: int, half: bool = False) -> None:
        """Compares elements whose places differ in `bit` alone; half: the upper ones go."""
        apart = self._apart(bit)
        if apart is None:
            self._bring(bit)
            apart = self._apart(bit)
        assert apart is not None
        for low in range(self.layout.registers):
            if not self.layout.at(register=low)[1] >> bit & 1:
                self._exchange(low, low ^ apart)
        if half:
            self._drop(bit)

    def _apart(self, bit: int) -> int | None:
        """What the numbers of registers differ in whose places differ in `bit`; None where threads hold them."""
        if any(v[1] >> bit & 1 for name in ("lane", "warp") for v in self.layout.basis(name)):
            return None
        for other in range(1, self.layout.registers):
            if self.layout.at(register=other) == (0, 1 << bit):
                return other
        return None

    def _exchange(self, low: int, high: int) -> None:
        """The lesser of two elements to register `low`, the other to `high`: it is what is left of both, which takes no
        second comparison of 64 bits."""
        a, b = ([word[r] for word in self.words] for r in (low, high))
        if len(a) == 1 and a[0].type.width <= 32:
            self.words[0][low], self.words[0][high] = arith_d.minsi(a[0], b[0]), arith_d.maxsi(a[0], b[0])
            return
        wrong = is_less(b, a)
        for word, x, y in zip(self.words, a, b, strict=True):
            word[low] = arith_d.select(wrong, y, x)
            word[high] = arith_d.xori(arith_d.xori(x, y), word[low])

    def _bring(self, bit: int) -> None:
        """Has `bit` and those below it in registers, as many as there are, each place's bit in one input's bit."""
        clean = _widened(self.clean)
        placed = {(name, i): v for name in _INPUTS for i, v in enumerate(clean.basis(name))}
        inside = [at for at in placed if at[0] == "register"]
        first = max(0, bit + 1 - len(inside))
        wanted = [(0, 1 << b) for b in range(first, min(first + len(inside), self.places))]
        room = [at for at in inside if placed[at] not in wanted]
        for v in wanted:
            at = next(at for at, other in placed.items() if other == v)
            if at[0] != "register":
                free = room.pop(0)
                placed[free], placed[at] = v, placed[free]
        self._move(Layout.make(clean.shape, {
            n: [placed[n, i] for i in range(len(clean.basis(n)))] for n in _INPUTS}))

    def _move(self, target: Layout) -> None:
        self.words = [registers_of(convert(self.k.shared, from_registers(word), self.layout, target))
                      for word in self.words]
        self.layout = self.clean = target

    def finish(self, targets: list[Layout]) -> None:
        """Has each word in its layout of `targets`."""
        self.words = [registers_of(convert(self.k.shared, from_registers(word), self.layout, target))
                      for word, target in zip(self.words, targets, strict=True)]

    def _drop(self, bit: int) -> None:
        """Leaves the elements whose place has not `bit`."""
        def without(place: int) -> int:
            return place & (1 << bit) - 1 | place >> bit + 1 << bit

        def left(layout: Layout, registers: list[tuple[int, ...]]) -> Layout:
            bases = {"register": registers, **{n: layout.basis(n) for n in ("lane", "warp")}}
            return Layout.make((layout.shape[0], layout.shape[1] // 2),
                               {n: [(v[0], without(v[1])) for v in vs] for n, vs in bases.items()})

        kept = [r for r in range(self.layout.registers) if not self.layout.at(register=r)[1] >> bit & 1]
        self.words = [[word[r] for r in kept] for word in self.words]
        # numbers with `bit` off, in order, are numbered by a basis of theirs
        basis = [self.layout.at(register=r) for n, r in enumerate(kept) if n and not n & n - 1]
        self.layout = left(self.layout, basis)
        self.clean = left(self.clean, [v for v in self.clean.basis("register") if v != (0, 1 << bit)])


def _numbered(layout: Layout) -> Layout:
    """The same registers, lanes and warps with places along rows in that order: what is not sorted may lie anyhow."""
    left = iter(range(log2(layout.shape[1])))
    return Layout.make(layout.shape, {
        n: [(0, 1 << next(left)) if v[1] else v for v in layout.basis(n)] for n in _INPUTS})


def _widened(layout: Layout) -> Layout:
    """With LEAST bits in registers where rows have them: threads hold copies then."""
    bases = {n: list(layout.basis(n)) for n in _INPUTS}
    while len(bases["register"]) < LEAST:
        along = [(n, i) for n in ("lane", "warp") for i, v in enumerate(bases[n]) if v[1]]
        if not along:
            break
        name, i = along[-1]
        bases["register"].append(bases[name][i])
        bases[name][i] = (0, 0)
    return Layout.make(layout.shape, bases)


def sort(k: KernelBuilder, op: Operation) -> None:
    """tile.sort"""
    state = _Sort(k, [registers_of(k.get(v)) for v in op.operands], k.layout(op.operands[0]))
    kept = log2(shape_of(op.results[0])[1])
    for bit in range(kept):
        state.turn(bit)
        for b in reversed(range(bit + 1)):
            state.step(b)
    while state.places > kept:
        state.turn(kept)
        state.step(kept, half=True)
        for b in reversed(range(kept)):
            state.step(b)
    state.finish([k.layout(r) for r in op.results])
    for r, word in zip(op.results, state.words, strict=True):
        k.values[r] = from_registers(word)
