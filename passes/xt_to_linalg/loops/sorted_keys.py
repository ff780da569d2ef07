"""Rows of keys sorted where they lie, the largest first: a bitonic network (Batcher, 1968), by vectors.

A key is a word of 64 bits, or several, of which the first counts most.

A block of sorted keys and the next one become one: what stands as far ahead of their border as another behind it is
exchanged (the larger to the front), then what is half a block apart, a quarter, ..., within vectors by shuffles. All
exchanges go the same way, so that a row of any length is one that ends with keys of 0, of which none is ever moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xcc._mlir import Value, arith_d, ir
from xcc.passes.shared.values import dense_constant, op, shuffle, splat, splat_constant, vec
from xcc.passes.xt_to_linalg.build.types import stored
from xcc.passes.xt_to_linalg.loops.loops import Buffer, LoopKernel, i64, to_i64

LANES = 8       # 64 bytes; shorter vectors share them
Keys = list[Value]
"""A vector of each word."""
_I = arith_d.CmpIPredicate


@dataclass(frozen=True)
class KeyRow:
    """The first `n` of the last dim at `outer` of `words`, buffers of any types of 64 bits."""

    k: LoopKernel
    words: tuple[Buffer, ...]
    outer: list[Value]
    n: Value

    def store(self, key: Sequence[Value], i: Value) -> None:
        """The words of key `i`, of i64."""
        for word, value in zip(self.words, key, strict=True):
            word.store(arith_d.bitcast(stored(word.dtype), value), [*self.outer, i])

    def sort(self) -> None:
        """The largest first."""
        k, two = self.k, self.k.dim(2)
        self._in_vectors([1 << i for i in range(1, LANES.bit_length())])

        def exchange(carried: list[Value]) -> list[Value]:
            apart, = carried
            self._exchange(apart)
            return [arith_d.divui(apart, two)]

        def merge(carried: list[Value]) -> list[Value]:
            half, = carried
            self._exchange(half, turned=True)
            k.repeat([arith_d.divui(half, two)], lambda c: arith_d.cmpi(_I.uge, c[0], k.dim(LANES)), exchange)
            self._in_vectors([LANES], merged=True)
            return [arith_d.muli(half, two)]

        k.repeat([k.dim(LANES)], lambda c: arith_d.cmpi(_I.ult, c[0], self.n), merge)

    def _exchange(self, apart: Value, turned: bool = False) -> None:
        """In blocks of twice `apart`: of keys that are so far apart; or `turned`, as far from the middle."""
        k, block, vectors = self.k, arith_d.muli(apart, self.k.dim(2)), arith_d.divui(apart, self.k.dim(LANES))

        def group(g: Value) -> None:
            middle = arith_d.addi(arith_d.muli(g, block), apart)

            def pair(i: Value, mask: Value | None = None) -> None:
                before = arith_d.muli(i, k.dim(LANES))
                high = arith_d.addi(middle, before)
                low = arith_d.subi(middle, arith_d.addi(before, k.dim(LANES)) if turned else
                                   arith_d.subi(apart, before))
                a, b = self._load(low), self._load(high, mask)
                most, least = _ordered(a, _reversed(b) if turned else b)
                self._store(most, low)
                self._store(_reversed(least) if turned else least, high, mask)

            self._whole_and_rest(arith_d.subi(self.n, middle), vectors, pair)

        k.loop(arith_d.ceildivui(arith_d.subi(self.n, apart), block), group)

    def _in_vectors(self, blocks: list[int], merged: bool = False) -> None:
        """Each vector's blocks sorted; `merged`: of two parts that were exchanged already."""
        def one(i: Value, mask: Value | None = None) -> None:
            at = arith_d.muli(i, self.k.dim(LANES))
            keys = self._load(at, mask)
            for block in blocks:
                others = [] if merged else [block - 1]
                others += [block >> i for i in range(1 if merged else 2, block.bit_length())]
                for other in others:
                    keys = _exchanged(keys, other)
            self._store(keys, at, mask)

        self._whole_and_rest(self.n, None, one)

    def _whole_and_rest(self, left: Value, most: Value | None, body: Callable[..., None]) -> None:
        """`body` of the number of each vector of `left` keys, at most `most`, and of the last one's mask."""
        k = self.k
        whole = arith_d.divui(left, k.dim(LANES))
        whole = whole if most is None else arith_d.minui(whole, most)
        k.loop(whole, body)
        rest = arith_d.subi(left, arith_d.muli(whole, k.dim(LANES)))
        ends = arith_d.cmpi(_I.ne, rest, k.dim(0))
        if most is not None:
            ends = arith_d.andi(ends, arith_d.cmpi(_I.ult, whole, most))
        k.when(ends, lambda: body(whole, arith_d.cmpi(_I.ult, dense_constant(i64(), range(LANES)),
                                                      splat(to_i64(rest), LANES))))

    def _load(self, at: Value, mask: Value | None = None) -> Keys:
        loaded = []
        for word in self.words:
            kind, where = vec(LANES, stored(word.dtype)), [word.memref, *self.outer, at]
            found = op("vector.load", [kind], where) if mask is None else \
                op("vector.maskedload", [kind], [*where, mask, splat_constant(kind, 0)])
            loaded.append(arith_d.bitcast(vec(LANES, i64()), found))
        return loaded

    def _store(self, keys: Keys, at: Value, mask: Value | None = None) -> None:
        for word, value in zip(self.words, keys, strict=True):
            value, where = arith_d.bitcast(vec(LANES, stored(word.dtype)), value), [word.memref, *self.outer, at]
            if mask is None:
                op("vector.store", [], [value, *where])
            else:
                op("vector.maskedstore", [], [*where, mask, value])


def _ordered(a: Keys, b: Keys) -> tuple[Keys, Keys]:
    """The larger of the keys of each lane, and the smaller."""
    if len(a) == 1:
        return [arith_d.maxui(a[0], b[0])], [arith_d.minui(a[0], b[0])]
    less = _less(a, b)
    return _chosen(less, b, a), _chosen(less, a, b)


def _less(a: Keys, b: Keys) -> Value:
    first = arith_d.cmpi(_I.ult, a[0], b[0])
    if len(a) == 1:
        return first
    return arith_d.ori(first, arith_d.andi(arith_d.cmpi(_I.eq, a[0], b[0]), _less(a[1:], b[1:])))


def _chosen(which: Value, a: Keys, b: Keys) -> Keys:
    return [arith_d.select(which, x, y) for x, y in zip(a, b, strict=True)]


def _reversed(keys: Keys) -> Keys:
    return [shuffle(v, v, list(reversed(range(LANES)))) for v in keys]


def _exchanged(keys: Keys, other: int) -> Keys:
    """Lanes i and i ^ `other`, the larger to the lower one."""
    most, least = _ordered(keys, [shuffle(v, v, [i ^ other for i in range(LANES)]) for v in keys])
    return _chosen(dense_constant(ir.IntegerType.get_signless(1), [i < i ^ other for i in range(LANES)]), most, least)
