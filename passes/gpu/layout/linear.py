"""Linear layouts: which thread and register holds which element of a tile.

A layout is a linear map over GF(2) from the bits of named inputs (``register``, ``lane``, ``warp``) to a position in
a tile whose sizes are powers of two. It is written as one basis vector an input bit: the position that this bit alone
maps to; the position of any input is the XOR of the basis vectors of its set bits. Coalesced layouts, matrix
fragments, slices of reductions and swizzled shared memory are all of this form, so what a thread loads, whether a
conversion is a renaming, a shuffle or a trip through shared memory, and how many bank conflicts it costs follow from
the same algebra (Linear Layouts, arXiv 2505.23819).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

Vector = tuple[int, ...]
Bases = tuple[tuple[str, tuple[Vector, ...]], ...]


def log2(n: int) -> int:
    """The exponent of `n`; ValueError when it is not a power of two."""
    if n < 1 or n & (n - 1):
        raise ValueError(f"{n} is not a power of two")
    return n.bit_length() - 1


def bits(value: int) -> list[int]:
    """The indices of the set bits of `value`, low to high."""
    return [i for i in range(value.bit_length()) if value >> i & 1]


@dataclass(frozen=True)
class Layout:
    """A linear map from named input bits to a position in a tile of `shape`.

    Attributes:
        shape: sizes of the outputs, powers of two.
        bases: for each input in order, its name and one position a bit, lowest bit first.
    """

    shape: tuple[int, ...]
    bases: Bases

    def __post_init__(self) -> None:
        for size in self.shape:
            log2(size)
        for name, vectors in self.bases:
            for v in vectors:
                if len(v) != len(self.shape) or any(not 0 <= c < s for c, s in zip(v, self.shape, strict=True)):
                    raise ValueError(f"basis vector {v} of '{name}' is outside the tile {self.shape}")

    @staticmethod
    def make(shape: Sequence[int], bases: Mapping[str, Iterable[Sequence[int]]]) -> Layout:
        """A layout from lists."""
        return Layout(tuple(shape), tuple((k, tuple(tuple(v) for v in vs)) for k, vs in bases.items()))

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.bases)

    def basis(self, name: str) -> tuple[Vector, ...]:
        """The basis vectors of input `name`; empty when it has none."""
        for key, vectors in self.bases:
            if key == name:
                return vectors
        return ()

    def size(self, name: str) -> int:
        """How many values the input `name` takes."""
        return 1 << len(self.basis(name))

    @property
    def registers(self) -> int:
        """Elements that one thread holds."""
        return self.size("register")

    def at(self, **coords: int) -> Vector:
        """The position of the given input values; inputs not named are 0."""
        out = [0] * len(self.shape)
        for name, value in coords.items():
            vectors = self.basis(name)
            for b in bits(value):
                for d, c in enumerate(vectors[b]):
                    out[d] ^= c
        return tuple(out)

    def flatten(self, position: Sequence[int]) -> int:
        """The row-major number of a position."""
        n = 0
        for c, s in zip(position, self.shape, strict=True):
            n = n * s + c
        return n

    def unflatten(self, n: int) -> Vector:
        out = []
        for s in reversed(self.shape):
            out.append(n % s)
            n //= s
        return tuple(reversed(out))

    @cached_property
    def _columns(self) -> tuple[tuple[str, int, int], ...]:
        """Every input bit as (input, bit, flat basis)."""
        return tuple((name, i, self.flatten(v)) for name, vs in self.bases for i, v in enumerate(vs))

    @property
    def total_bits(self) -> int:
        return sum(log2(s) for s in self.shape)

    @property
    def rank(self) -> int:
        return len(_reduce([c for _, _, c in self._columns]))

    def is_injective(self) -> bool:
        """Whether no element is held twice."""
        return self.rank == len(self._columns)

    def copies(self, name: str) -> int:
        """The mask of bits of `name` that do not change the position: inputs that differ in them hold copies."""
        return sum(1 << i for i, v in enumerate(self.basis(name)) if not any(v))

    # -- algebra ------------------------------------------------------------------------------------------------

    def compose(self, inner: Layout) -> Layout:
        """self after `inner`: self's inputs ``dim0``, ``dim1``, ... are the outputs of `inner`."""
        def through(v: Vector) -> Vector:
            return self.at(**{f"dim{d}": c for d, c in enumerate(v)})

        for d, s in enumerate(inner.shape):
            if self.size(f"dim{d}") != s:
                raise ValueError(f"composition: dim{d} has {self.size(f'dim{d}')} values, the inner layout {s}")
        return Layout(self.shape, tuple((name, tuple(through(v) for v in vs)) for name, vs in inner.bases))

    def sliced(self, dims: Iterable[int]) -> Layout:
        """The layout of the tile with `dims` reduced away: lanes and warps along them hold copies, registers merge."""
        drop = set(dims)
        keep = [d for d in range(len(self.shape)) if d not in drop]
        bases = {}
        for name, vectors in self.bases:
            kept = [tuple(v[d] for d in keep) for v in vectors]
            bases[name] = [v for v in kept if any(v)] if name == "register" else kept
        return Layout.make([self.shape[d] for d in keep], bases)

    def permuted(self, order: Sequence[int]) -> Layout:
        """The layout of the transposed tile: output i is this layout's output ``order[i]``."""
        return Layout.make([self.shape[d] for d in order],
                           {n: [[v[d] for d in order] for v in vs] for n, vs in self.bases})

    def reshaped(self, shape: Sequence[int]) -> Layout:
        """The same elements seen in row-major order with another shape of equal size."""
        target = Layout.make(shape, {})
        if target.total_bits != self.total_bits:
            raise ValueError(f"a tile of shape {self.shape} cannot be seen as {tuple(shape)}")
        return Layout.make(shape, {n: [target.unflatten(self.flatten(v)) for v in vs] for n, vs in self.bases})

    def with_registers(self, vectors: Sequence[Vector]) -> Layout:
        """The same lanes and warps with other register basis vectors."""
        return Layout.make(self.shape, {**dict(self.bases), "register": vectors})

    def contiguous(self, limit: int, dim: int = -1) -> tuple[int, list[int]]:
        """The widest run of neighbours along `dim` that lies in one thread's registers.

        Returns its length (at most `limit`) and the register bits that span it, in order. All other input bits leave
        the run's low bits alone, so that every run is aligned to its length.
        """
        dim %= len(self.shape)
        registers = [v[dim] if not any(c for d, c in enumerate(v) if d != dim) else 0 for v in self.basis("register")]
        chosen: list[int] = []
        while (2 << len(chosen)) <= limit:
            want = 1 << len(chosen)
            found = [i for i, c in enumerate(registers) if c == want]
            if not found or any(v[dim] & want for n, vs in self.bases for i, v in enumerate(vs)
                                if not (n == "register" and i == found[0])):
                break
            chosen.append(found[0])
        return 1 << len(chosen), chosen

    # -- text ---------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        parts = [f"{name}={json.dumps([list(v) for v in vs], separators=(',', ':'))}" for name, vs in self.bases]
        return " ".join([f"tile={json.dumps(list(self.shape), separators=(',', ':'))}", *parts])

    @staticmethod
    def parse(text: str) -> Layout:
        """Reads what `str` prints; ValueError on anything else."""
        fields: dict[str, list[list[int]]] = {}
        shape: list[int] | None = None
        for part in text.split():
            name, eq, value = part.partition("=")
            if not eq:
                raise ValueError(f"'{part}' in a layout is not name=[...]")
            if name == "tile":
                shape = json.loads(value)
            else:
                fields[name] = json.loads(value)
        if shape is None:
            raise ValueError(f"the layout '{text}' has no tile=[...]")
        return Layout.make(shape, fields)

    def bank_conflicts(self, width: int, element_bytes: int, banks: int = 32) -> int:
        """Extra shared memory cycles of one access by a warp of a 1-D offset layout, 0 when there is no conflict.

        Every lane accesses `width` elements from the offset of its register 0. Accesses wider than 4 bytes are served
        in groups of lanes whose words fill the banks once.
        """
        lanes = self.size("lane")
        words = max(1, width * element_bytes // 4)
        group = max(1, min(lanes, banks // words))
        offsets = [0]
        for v in self.basis("lane"):
            offsets += [n ^ v[0] for n in offsets]
        worst = 0
        for start in range(0, lanes, group):
            firsts = {n * element_bytes // 4 for n in offsets[start:start + group]}
            seen = Counter(w % banks for w in {first + w for first in firsts for w in range(words)})
            worst = max(worst, max(seen.values()) - 1)
        return worst


def unit(rank: int, dim: int, value: int) -> Vector:
    """The position that is `value` along `dim` and 0 along all others."""
    return tuple(value if d == dim else 0 for d in range(rank))


def _reduce(columns: Iterable[int]) -> list[int]:
    """A basis of the span of `columns`."""
    basis: list[int] = []
    for c in columns:
        for b in basis:
            c = min(c, c ^ b)
        if c:
            basis.append(c)
            basis.sort(reverse=True)
    return basis
