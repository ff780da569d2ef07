"""Per-thread scans along a dim of a tile.

The bits of a place along the dim are taken from the lowest: those of registers, of lanes, of warps, and of registers
again (`blocked` makes such layouts). At each, what lies in the upper half adds the total of the lower one (Sklansky,
"Conditional-sum addition logic", 1960): between registers by itself, between lanes by a shuffle of the totals, between
warps through shared memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xcc._mlir import Operation, Type, Value, arith_d, ir
from xcc.diagnostics import CompilerBug
from xcc.passes.gpu.exchange.conversions import convert, shuffle_xor
from xcc.passes.gpu.layout.forms import blocked
from xcc.passes.gpu.layout.linear import Layout, Vector, log2, unit
from xcc.passes.gpu.layout.registers import from_registers, registers_of
from xcc.passes.shared.attributes import LOGARITHMS, REVERSE
from xcc.passes.shared.combining import combining, log_add_exp
from xcc.passes.shared.values import index

if TYPE_CHECKING:
    from xcc.passes.gpu.thread.kernel_builder import KernelBuilder

_I = arith_d.CmpIPredicate


def scan_layout(shape: tuple[int, ...], dim: int, width: int, warp: int, warps: int) -> Layout:
    """A layout in which a thread has `width` neighbours along `dim`, then come lanes, warps and registers."""
    order = [dim, *(d for d in reversed(range(len(shape))) if d != dim)]
    return blocked(shape, order, width, warp, warps)


def columns_scan_layout(shape: tuple[int, ...], dim: int, across: int, width: int, lanes: int, warp: int, warps: int
                        ) -> Layout:
    """A layout for a scan along `dim` of what lies together along `across`: a thread has `width` neighbours of that,
    and so have `lanes` lanes; then come registers, lanes and warps along the scan, warps along `across` first."""
    left = {d: [1 << b for b in range(log2(n))] for d, n in enumerate(shape)}
    bases: dict[str, list[Vector]] = {"register": [], "lane": [], "warp": []}

    def take(name: str, d: int, count: int, at: int = 0) -> None:
        for _ in range(min(count, len(left[d]))):
            bases[name].append(unit(len(shape), d, left[d].pop(at)))

    others = [d for d in range(len(shape)) if d not in (dim, across)]
    take("register", across, log2(width))
    take("lane", across, log2(lanes))
    for d in (across, *others):
        take("warp", d, log2(warps) - len(bases["warp"]), -1)
    along = min(len(left[dim]), log2(warp) - len(bases["lane"]))
    outer = min(len(left[dim]) - along, log2(warps) - len(bases["warp"]))
    take("register", dim, len(left[dim]) - along - outer)
    take("lane", dim, along)
    take("warp", dim, outer)
    for name, most in (("lane", log2(warp)), ("warp", log2(warps))):
        for d in (across, *others):
            take(name, d, most - len(bases[name]))
        bases[name] += [(0,) * len(shape)] * (most - len(bases[name]))
    for d in (across, *others):
        take("register", d, len(left[d]))
    return Layout.make(shape, bases)


def _along(layout: Layout, dim: int) -> list[tuple[str, int]]:
    """The input bits of places along `dim`, the lowest first; CompilerBug unless they are in the order above."""
    found = sorted((v[dim], ("register", "lane", "warp").index(name), i, v) for name in ("register", "lane", "warp")
                   for i, v in enumerate(layout.basis(name)) if v[dim])
    kinds = [kind for _, kind, _, _ in found]
    warps = [n for n, kind in enumerate(kinds) if kind == 2]
    if any(place != 1 << n or sum(map(bool, v)) > 1 for n, (place, _, _, v) in enumerate(found)) \
            or warps and warps != list(range(warps[0], warps[-1] + 1)):
        raise CompilerBug(f"a scan along dim {dim} of {layout}")
    return [(("register", "lane", "warp")[kind], i) for _, kind, i, _ in found]


class _Scan:
    """The state of a scan: of each register what comes before it (and itself), of each group of registers the total of
    what has been taken, and, once other threads have been asked, of each group as it was then what its registers still
    add."""

    def __init__(self, k: KernelBuilder, values: list[Value], combine: Callable[[Any, Any], Any], inclusive: bool,
                 reverse: bool) -> None:
        self.k, self.combine, self.reverse = k, combine, reverse
        self.prefix: dict[int, Any] = dict(enumerate(values if inclusive else [None] * len(values)))
        self.totals: dict[int, Any] = dict(enumerate(values))
        self.more: dict[int, Any] = {}
        self.taken, self.inside = 0, 0      # bits of registers; those that a group of `more` has

    def add(self, a: Value | None, b: Value | None) -> Value | None:
        return b if a is None else a if b is None else self.combine(a, b)

    def apart(self) -> None:
        """From here on what lies before is added to groups of registers, as they are now, and to each at the end."""
        if not self.more:
            self.more, self.inside = dict.fromkeys(self.totals), self.taken

    def running(self, starts: dict[int, Any]) -> list[Any]:
        """What each register has at the end; `starts`: what is ahead of each group of all that was taken."""
        self.apart()
        more = {g: self.add(starts[g & ~self.taken], m) for g, m in self.more.items()}
        return [self.add(more[r & ~self.inside], p) for r, p in self.prefix.items()]

    def registers(self, i: int) -> None:
        bit, held = 1 << i, self.more or self.prefix
        for r in held:
            if bool(r & bit) != self.reverse:
                held[r] = self.add(self.totals[(r ^ bit) & ~self.taken], held[r])
        self.totals = {g: self.add(t, self.totals[g | bit]) for g, t in self.totals.items() if not g & bit}
        self.taken |= bit

    def lanes(self, i: int, neutral: Value) -> None:
        self.apart()
        code = self.k.code
        set_ = arith_d.cmpi(_I.ne, arith_d.andi(code.lane, index(1 << i)), index(0))
        groups = list(self.totals)
        others = registers_of(shuffle_xor(code, from_registers([self.totals[g] for g in groups]), 1 << i))
        for g, other in zip(groups, others, strict=True):
            ahead = arith_d.select(set_, *((neutral, other) if self.reverse else (other, neutral)))
            self.add_ahead(g, ahead)
            self.totals[g] = self.add(self.totals[g], other)

    def add_ahead(self, group: int, value: Value) -> None:
        """Adds what lies ahead of a group of all that was taken."""
        for g in self.more:
            if g & ~self.taken == group:
                self.more[g] = self.add(self.more[g], value)

    def warps(self, layout: Layout, dim: int, bits: list[int], neutral: Value) -> None:
        """All bits of warps at once: every warp reads the totals of all, in `held` one a warp along a new dim."""
        self.apart()
        groups, count = list(self.totals), 1 << len(bits)
        left = [v for i, v in enumerate(layout.basis("register")) if not self.taken >> i & 1]
        further = [n for n, v in enumerate(left) if v[dim]]      # bits of registers that are taken after those of warps
        shape = (1 << len(further), *(s for d, s in enumerate(layout.shape) if d != dim), count)
        registers = [[1 << further.index(n) if n in further else 0, *(c for d, c in enumerate(v) if d != dim), 0]
                     for n, v in enumerate(left)]

        def beside(name: str) -> list[list[int]]:
            """What the inputs move beside the scan's dim."""
            return [[0, *(c for d, c in enumerate(v) if d != dim), 0] for v in layout.basis(name)]

        mine = [[*v[:-1], 1 << bits.index(i)] if i in bits else v for i, v in enumerate(beside("warp"))]
        held = Layout.make(shape, {"register": registers, "lane": beside("lane"), "warp": mine})
        every = [[0] * (len(shape) - 1) + [1 << n] for n in range(len(bits))]
        wanted = Layout.make(shape, {"register": [*every, *registers], "lane": beside("lane"), "warp": beside("warp")})
        found = registers_of(convert(self.k.shared, from_registers([self.totals[g] for g in groups]), held, wanted))
        number = self.k.code.spread([(self.k.code.warp_id, [v[-1] for v in mine])])
        behind = _I.ult if self.reverse else _I.ugt
        ahead = [arith_d.cmpi(behind, number, index(n)) for n in range(count)]
        for n, g in enumerate(groups):
            totals = found[n * count:(n + 1) * count]
            for condition, total in zip(ahead, totals, strict=True):
                self.add_ahead(g, arith_d.select(condition, total, neutral))
            self.totals[g] = totals[0]
            for total in totals[1:]:
                self.totals[g] = self.add(self.totals[g], total)


def _neutral(kind: str, element: Type) -> Value:
    """What leaves others as they are, as a scalar."""
    name = kind.split("<")[1].split(">")[0]
    if isinstance(element, ir.FloatType):
        value = {"add": 0.0, "mul": 1.0, "maximumf": -math.inf, "minimumf": math.inf}[name]
        return arith_d.constant(element, ir.FloatAttr.get(element, value))
    bits = ir.IntegerType(element).width
    whole = {"add": 0, "mul": 1, "maxsi": -(1 << bits - 1), "minsi": (1 << bits - 1) - 1, "maxui": 0, "minui": -1}
    return arith_d.constant(element, ir.IntegerAttr.get(element, whole[name]))


def scan(k: KernelBuilder, op: Operation) -> None:
    """vector.scan: the tile's running values and the totals, both with the initial value."""
    source, initial = op.operands
    layout, dim = k.layout(source), int(ir.IntegerAttr(op.attributes["reduction_dim"]).value)
    element = ir.VectorType(source.type).element_type
    kind = str(op.attributes["kind"])
    combine, neutral = combining(kind, element), _neutral(kind, element)
    if LOGARITHMS in op.attributes:
        combine, neutral = log_add_exp, arith_d.constant(element, ir.FloatAttr.get(element, -math.inf))
    inclusive = bool(ir.BoolAttr(op.attributes["inclusive"]).value)
    state = _Scan(k, registers_of(k.get(source)), combine, inclusive, REVERSE in op.attributes)
    warps: list[int] = []
    for name, i in _along(layout, dim):
        if name == "warp":
            warps.append(i)
            continue
        if warps:
            state.warps(layout, dim, warps, neutral)
            warps = []
        if name == "register":
            state.registers(i)
        else:
            state.lanes(i, neutral)
    if warps:
        state.warps(layout, dim, warps, neutral)
    first = registers_of(k.get(initial))
    left = [i for i in range(len(layout.basis("register"))) if not state.taken >> i & 1]
    starts = {g: first[sum((g >> i & 1) << n for n, i in enumerate(left))] for g in state.totals}
    k.values[op.results[0]] = from_registers(state.running(starts))
    k.values[op.results[1]] = from_registers([combine(starts[g], t) for g, t in state.totals.items()])
