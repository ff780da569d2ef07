"""A mesh of ranks: named axes, ranks in row-major order of their coordinates, the last axis fastest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from xcc.diagnostics import UserError

__all__ = ["Mesh"]

_NAME = re.compile(r"[A-Za-z_]\w*")
_MAX_RANKS = 1 << 20


@dataclass(frozen=True)
class Mesh:
    """`axes`: (name, size) in order. A mesh without axes is one rank. ``str(mesh)`` is what :meth:`parse` reads.

    UserError where a name is none or comes twice, or a size is not positive.
    """

    axes: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        for name, size in self.axes:
            if not _NAME.fullmatch(name) or self.names.count(name) > 1:
                raise UserError(f"mesh {self}: '{name}' is no name of an axis, or comes twice")
            if not 1 <= size <= _MAX_RANKS:
                raise UserError(f"mesh {self}: axis '{name}' has {size} ranks")
        if self.size > _MAX_RANKS:
            raise UserError(f"mesh {self}: {self.size} ranks are more than {_MAX_RANKS}")

    @staticmethod
    def parse(text: str) -> Mesh:
        """The mesh of a text such as ``dp:2,tp:4``; UserError otherwise."""
        axes = []
        for part in filter(None, (p.strip() for p in text.split(","))):
            name, colon, size = part.partition(":")
            if not colon or not size.strip().isdecimal():
                raise UserError(f"mesh '{text}': '{part}' is no axis; write NAME:SIZE, as in dp:2,tp:4")
            axes.append((name.strip(), int(size)))
        return Mesh(tuple(axes))

    @staticmethod
    def of(axes: Mapping[str, int] | Iterable[Sequence[Any]]) -> Mesh:
        """The mesh of a dict of sizes, or of pairs as a manifest has them; UserError for anything else."""
        pairs = list(axes.items() if isinstance(axes, Mapping) else axes)
        for pair in pairs:
            if isinstance(pair, str) or len(pair) != 2 or not isinstance(pair[0], str) or type(pair[1]) is not int:
                raise UserError(f"mesh: {pair!r} is no axis: a name and a number of ranks are")
        return Mesh(tuple((name, size) for name, size in pairs))

    def __str__(self) -> str:
        return ",".join(f"{name}:{size}" for name, size in self.axes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The axes' names, in order."""
        return tuple(name for name, _ in self.axes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The axes' sizes, in order."""
        return tuple(size for _, size in self.axes)

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return prod(self.shape)

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Where `rank` is on each axis."""
        if not 0 <= rank < self.size:
            raise ValueError(f"there is no rank {rank} on the mesh {self}")
        out = []
        for size in reversed(self.shape):
            rank, at = divmod(rank, size)
            out.append(at)
        return tuple(reversed(out))

    def rank(self, coordinates: Sequence[int]) -> int:
        """The rank at `coordinates`."""
        out = 0
        for at, size in zip(coordinates, self.shape, strict=True):
            if not 0 <= at < size:
                raise ValueError(f"there is nothing at {tuple(coordinates)} of the mesh {self}")
            out = out * size + at
        return out

    def group(self, rank: int, axes: Sequence[str]) -> tuple[int, ...]:
        """The ranks, in order, whose coordinates are those of `rank` but for `axes`; `rank` is one of them."""
        own = self.coordinates(rank)
        ways = [range(size) if name in axes else (at,) for (name, size), at in zip(self.axes, own, strict=True)]
        return tuple(self.rank(c) for c in product(*ways))

    def place(self, rank: int, axes: Sequence[str]) -> int:
        """Where `rank` is in its group."""
        return self.group(rank, axes).index(rank)

    def groups(self, axes: Sequence[str]) -> list[tuple[int, ...]]:
        """All groups over `axes`, by their first ranks."""
        return sorted({self.group(rank, axes) for rank in range(self.size)})

    def group_size(self, axes: Sequence[str]) -> int:
        """How many ranks a group over `axes` has."""
        return prod(size for name, size in self.axes if name in axes)
