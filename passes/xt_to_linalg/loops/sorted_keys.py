"""Rows of keys of 64 bits sorted where they lie, the least first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xcc._mlir import Value, arith_d
from xcc.passes.shared.sort_network import Keys, SortNetwork
from xcc.passes.shared.values import op, splat_constant, vec
from xcc.passes.xt_to_linalg.build.types import stored
from xcc.passes.xt_to_linalg.loops.loops import Buffer, i64

LANES = 8       # 64 bytes; shorter vectors share them


@dataclass(frozen=True)
class KeyRow(SortNetwork):
    """The first keys of the last dim at `outer` of `words`, buffers of any types of 64 bits."""

    words: tuple[Buffer, ...]
    outer: list[Value]

    def put(self, key: Sequence[Value], i: Value) -> None:
        """Writes the words of key `i`, of i64."""
        for word, value in zip(self.words, key, strict=True):
            word.store(arith_d.bitcast(stored(word.dtype), value), [*self.outer, i])

    def load(self, at: Value, mask: Value | None) -> Keys:
        loaded, ones = [], splat_constant(vec(LANES, i64()), -1)
        for word in self.words:
            kind, where = vec(LANES, stored(word.dtype)), [word.memref, *self.outer, at]
            found = op("vector.load", [kind], where) if mask is None else \
                op("vector.maskedload", [kind], [*where, mask, splat_constant(kind, 0)])
            bits = arith_d.bitcast(vec(LANES, i64()), found)
            loaded.append(bits if mask is None else arith_d.select(mask, bits, ones))
        return loaded

    def store(self, keys: Keys, at: Value, mask: Value | None) -> None:
        for word, value in zip(self.words, keys, strict=True):
            value, where = arith_d.bitcast(vec(LANES, stored(word.dtype)), value), [word.memref, *self.outer, at]
            if mask is None:
                op("vector.store", [], [value, *where])
            else:
                op("vector.maskedstore", [], [*where, mask, value])
