"""Conversions inside a warp: registers change lanes by shuffles (Linear Layouts, arXiv 2505.23819, section 5).

Where two layouts differ in registers and lanes alone, source^-1 after target is a linear map from (register, lane) of
the target to (register, lane) of the source. A shuffle moves one register of each lane, so a round must ask each lane
for one register alone. Lane t fills register round ^ place(t) in a round; `place` is chosen such that the lanes that
are read, as a function of t, are all different (or ask for the same). What a lane sends is then linear in its number:

    sent     = value[start[round] ^ send(lane)]           # selects, one for each lane bit that counts
    received = shuffle(sent, first[round] ^ lanes(lane))
    result[round ^ place(lane)] = received                 # selects again
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

from xcc._mlir import Value, arith_d, gpu_d, ir
from xcc.passes.gpu.layout.linear import Layout, bits
from xcc.passes.shared.values import index

if TYPE_CHECKING:
    from xcc.passes.gpu.exchange.thread_code import ThreadCode

MOST_PLACED = 3         # lane bits that choose the register to fill
SHUFFLE_CYCLES = 4      # of a warp for 4 bytes a lane
Pair = tuple[int, int]  # lane, register


@dataclass(frozen=True)
class LaneExchange:
    """How a conversion is done by shuffles; the maps of the module's docstring, one entry a round or a lane bit."""

    start: tuple[int, ...]
    send: tuple[int, ...]
    first: tuple[int, ...]
    lanes: tuple[int, ...]
    place: tuple[int, ...]

    @property
    def stays(self) -> bool:
        """Whether a lane reads from itself, but for `first`."""
        return self.lanes == tuple(1 << i for i in range(len(self.lanes)))

    @property
    def shuffles(self) -> int:
        return sum(not self.stays or f != 0 for f in self.first)

    def cycles(self, words: int) -> int:
        """Cycles of a warp; `words`: of 4 bytes in a register."""
        selects = sum(map(bool, self.send)) * len(set(self.start)) + sum(map(bool, self.place)) * len(self.start)
        return words * (SHUFFLE_CYCLES * self.shuffles + selects)

    def emit(self, code: ThreadCode, registers: Sequence[Value], shuffle: Any) -> list[Value]:
        """The target's registers; `shuffle(value, mask or None, lane)` reads from lane ^ mask, or from `lane`."""
        held = _swapped(code, list(registers), self.send)
        received = []
        for start, first in zip(self.start, self.first, strict=True):
            if not self.stays:
                received.append(shuffle(held[start], None, _lane(code, self.lanes, first)))
            else:
                received.append(shuffle(held[start], first, None) if first else held[start])
        return _swapped(code, received, self.place)


def _swapped(code: ThreadCode, values: list[Value], by_bit: tuple[int, ...]) -> list[Value]:
    """values[r ^ what the set bits of this lane say]."""
    for i, other in enumerate(by_bit):
        if other:
            test = arith_d.cmpi(arith_d.CmpIPredicate.ne, arith_d.andi(code.lane, index(1 << i)), index(0))
            values = [arith_d.select(test, values[r ^ other], v) for r, v in enumerate(values)]
    return values


def _lane(code: ThreadCode, by_bit: tuple[int, ...], first: int) -> Value:
    """The number of the lane to read, as i32."""
    total = index(first)
    for i, other in enumerate(by_bit):
        if other:
            bit = arith_d.andi(arith_d.shrui(code.lane, index(i)), index(1))
            total = arith_d.xori(total, arith_d.muli(bit, index(other)))
    return arith_d.index_cast(ir.IntegerType.get_signless(32), total)


def emit_shuffle(warp: int, value: Value, mask: int | None, lane: Value | None) -> Value:
    """gpu.shuffle of an i32: from the lane whose number differs in `mask`, or from `lane`."""
    i32 = ir.IntegerType.get_signless(32)
    mode = gpu_d.ShuffleMode.IDX if mask is None else gpu_d.ShuffleMode.XOR
    out, _ = gpu_d.ShuffleOp(value, lane if mask is None else arith_d.constant(i32, mask), arith_d.constant(i32, warp),
                             mode).results
    return out


@lru_cache(maxsize=256)
def lane_exchange(source: Layout, target: Layout) -> LaneExchange | None:
    """The plan of a conversion; None where elements change warps, or no assignment of rounds was found."""
    if source.basis("warp") != target.basis("warp") or source.size("lane") != target.size("lane"):
        return None
    asked = _asked(source, target)
    if asked is None:
        return None
    by_register, by_lane = asked
    count = len(by_lane)
    for places in _places(count, len(by_register)):
        reads = [_xor(by_lane[i], by_register[p]) if p >= 0 else by_lane[i] for i, p in enumerate(places)]
        sends = _as_function(reads, count)
        if sends is not None:
            break
    else:
        return None
    start, first = [], []
    for r in range(1 << len(by_register)):
        lane, register = _combined(by_register, r)
        first.append(lane)
        start.append(register ^ _combined([(0, s) for s in sends], lane)[1])
    return LaneExchange(tuple(start), tuple(sends), tuple(first), tuple(lane for lane, _ in reads),
                        tuple(1 << p if p >= 0 else 0 for p in places))


def _asked(source: Layout, target: Layout) -> tuple[list[Pair], list[Pair]] | None:
    """For each register bit and each lane bit of the target, the (lane, register) bits of the source that move it."""
    flat = source.flatten
    columns = [(flat(v), (1 << i, 0)) for i, v in enumerate(source.basis("lane"))] \
        + [(flat(v), (0, 1 << i)) for i, v in enumerate(source.basis("register"))]
    pivots: list[tuple[int, Pair]] = []
    for column, pair in columns:
        for c, p in pivots:
            if column ^ c < column:
                column, pair = column ^ c, _xor(pair, p)
        if column:
            pivots.append((column, pair))
            pivots.sort(reverse=True)

    def solve(position: int) -> Pair | None:
        pair = (0, 0)
        for c, p in pivots:
            if position ^ c < position:
                position, pair = position ^ c, _xor(pair, p)
        return None if position else pair

    lanes: list[Pair | None] = []
    for i, v in enumerate(target.basis("lane")):
        lanes.append((1 << i, 0) if source.basis("lane")[i] == v else solve(flat(v)))
    registers = [solve(flat(v)) for v in target.basis("register")]
    found_lanes, found_registers = [p for p in lanes if p is not None], [p for p in registers if p is not None]
    if len(found_lanes) < len(lanes) or len(found_registers) < len(registers):
        return None
    return found_registers, found_lanes


def _places(lanes: int, registers: int) -> Iterable[tuple[int, ...]]:
    """Which register bit each lane bit moves in a round's target (-1: none), fewest first."""
    for number in range(min(MOST_PLACED, lanes) + 1):
        for chosen in combinations(range(lanes), number):
            for picked in product(range(registers), repeat=number):
                at = dict(zip(chosen, picked, strict=True))
                yield tuple(at.get(i, -1) for i in range(lanes))


def _as_function(reads: list[Pair], lanes: int) -> list[int] | None:
    """The register of each bit of the lane that is read, where all that read from a lane want one register."""
    pivots: dict[int, Pair] = {}
    for pair in reads:
        for bit, p in pivots.items():
            if pair[0] >> bit & 1:
                pair = _xor(pair, p)
        if not pair[0]:
            if pair[1]:
                return None
            continue
        bit = pair[0].bit_length() - 1
        for other, p in pivots.items():
            if p[0] >> bit & 1:
                pivots[other] = _xor(p, pair)
        pivots[bit] = pair
    return [pivots[i][1] if i in pivots else 0 for i in range(lanes)]


def _combined(pairs: Sequence[Pair], value: int) -> Pair:
    out = (0, 0)
    for b in bits(value):
        out = _xor(out, pairs[b])
    return out


def _xor(a: Pair, b: Pair) -> Pair:
    return a[0] ^ b[0], a[1] ^ b[1]
