"""Rows of keys sorted where they lie, the least first: a bitonic network (Batcher, 1968), by vectors.

A key is a word, or several, of which the first counts most.

A block of sorted keys and the next one become one: what stands as far ahead of their border as another behind it is
exchanged, then what is half a block apart, a quarter, ..., within vectors by shuffles. All exchanges go the same way,
so that a row of any length is one that ends with keys as great as there are, of which none is ever moved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from xcc._mlir import Value, arith_d, ir
from xcc.passes.shared.regions import for_loop, repeat, when
from xcc.passes.shared.values import dense_constant, index, is_less, shuffle, splat

Keys = list[Value]
"""A vector of each word."""
_I = arith_d.CmpIPredicate


@dataclass(frozen=True)
class SortNetwork(ABC):
    """Sorts the `n` keys of a row, by vectors of `lanes`; rows end with a whole vector where `n` is an int.

    Words are `signed` numbers or not.
    """

    n: Value | int
    lanes: int
    signed: bool

    @abstractmethod
    def load(self, at: Value, mask: Value | None) -> Keys:
        """The keys from `at` on; behind the mask the greatest there are."""

    @abstractmethod
    def store(self, keys: Keys, at: Value, mask: Value | None) -> None:
        """Writes the keys from `at` on."""

    def sort(self) -> None:
        """Sorts the row."""
        self._in_vectors([1 << i for i in range(1, self.lanes.bit_length())])

        def merge(carried: list[Value]) -> list[Value]:
            half, = carried
            self._exchange(half, turned=True)
            repeat([arith_d.divui(half, index(2))], lambda c: arith_d.cmpi(_I.uge, c[0], index(self.lanes)), exchange)
            self._in_vectors([self.lanes], merged=True)
            return [arith_d.muli(half, index(2))]

        def exchange(carried: list[Value]) -> list[Value]:
            apart, = carried
            self._exchange(apart)
            return [arith_d.divui(apart, index(2))]

        repeat([index(self.lanes)], lambda c: arith_d.cmpi(_I.ult, c[0], self._end), merge)

    @property
    def _end(self) -> Value:
        return index(self.n) if isinstance(self.n, int) else self.n

    def _exchange(self, apart: Value, turned: bool = False) -> None:
        """In blocks of twice `apart`: of keys that are so far apart; or `turned`, as far from the middle."""
        lanes, block = index(self.lanes), arith_d.muli(apart, index(2))
        with for_loop(apart, self._end, block) as middle:
            def pair(before: Value, mask: Value | None) -> None:
                high = arith_d.addi(middle, before)
                low = arith_d.subi(middle, arith_d.addi(before, lanes) if turned else arith_d.subi(apart, before))
                a, b = self.load(low, None), self.load(high, mask)
                first, last = self._ordered(a, self._reversed(b) if turned else b)
                self.store(first, low, None)
                self.store(self._reversed(last) if turned else last, high, mask)

            self._vectors(arith_d.minui(apart, arith_d.subi(self._end, middle)), pair)

    def _in_vectors(self, blocks: list[int], merged: bool = False) -> None:
        """Each vector's blocks sorted; `merged`: of two parts that were exchanged already."""
        def one(at: Value, mask: Value | None) -> None:
            keys = self.load(at, mask)
            for block in blocks:
                others = [] if merged else [block - 1]
                others += [block >> i for i in range(1 if merged else 2, block.bit_length())]
                for other in others:
                    keys = self._exchanged(keys, other)
            self.store(keys, at, mask)

        self._vectors(self._end, one)

    def _vectors(self, end: Value, body: Callable[[Value, Value | None], None]) -> None:
        """`body` of the place of each vector ahead of `end`, the last one with a mask if it is not whole."""
        lanes = index(self.lanes)
        if isinstance(self.n, int):
            with for_loop(index(0), end, lanes) as at:
                return body(at, None)
        whole = arith_d.subi(end, arith_d.remui(end, lanes))
        with for_loop(index(0), whole, lanes) as at:
            body(at, None)
        with when(arith_d.cmpi(_I.ne, whole, end)):
            i64 = ir.IntegerType.get_signless(64)
            left = splat(arith_d.index_cast(i64, arith_d.subi(end, whole)), self.lanes)
            ahead = arith_d.cmpi(_I.ult, dense_constant(i64, range(self.lanes)), left)
            body(whole, ahead)

    def _reversed(self, keys: Keys) -> Keys:
        return [shuffle(v, v, list(reversed(range(self.lanes)))) for v in keys]

    def _exchanged(self, keys: Keys, other: int) -> Keys:
        """Lanes i and i ^ `other`, the lesser to the lower one."""
        others = [shuffle(v, v, [i ^ other for i in range(self.lanes)]) for v in keys]
        upper = dense_constant(ir.IntegerType.get_signless(1), [i > i ^ other for i in range(self.lanes)])
        if len(keys) == 1:
            least, most = self._ordered(keys, others)
            return _chosen(upper, most, least)
        return _chosen(arith_d.xori(is_less(others, keys, self.signed), upper), others, keys)

    def _ordered(self, a: Keys, b: Keys) -> tuple[Keys, Keys]:
        """The lesser of the keys of each lane, and the greater."""
        if len(a) == 1:
            least, most = (arith_d.minsi, arith_d.maxsi) if self.signed else (arith_d.minui, arith_d.maxui)
            return [least(a[0], b[0])], [most(a[0], b[0])]
        swap = is_less(b, a, self.signed)
        return _chosen(swap, b, a), _chosen(swap, a, b)


def _chosen(which: Value, a: Keys, b: Keys) -> Keys:
    return [arith_d.select(which, x, y) for x, y in zip(a, b, strict=True)]
