"""Which compiled forms a kernel has: one for each set of element types, ranks, layouts and constants that it met."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from xcc.diagnostics import UserError
from xcc.frontends.kernel.arguments import Array, Parameter
from xcc.frontends.kernel.types import DTYPES, dtype_of
from xcc.runtime.dlpack import ON_HOST

if TYPE_CHECKING:
    from xcc import tile

__all__ = ["ArrayOf", "Constant", "Number", "Specialisation", "difference", "is_small", "kinds_of", "named_sizes",
           "trace_program"]

GRID_NAMES = ("grid_0", "grid_1", "grid_2")     # as those of xcc.tile.program
WIDE_BITS = 128     # of the widest access of a thread of a GPU


@dataclass(frozen=True)
class ArrayOf:
    """An array: `layout` is "dense" (row-major, without gaps), "rows" (neighbours along the last dim side by side) or
    "strided"; rows start at multiples of `multiple` elements, and are multiples long. `sizes` are the names of those
    that are equal to another array's, by dim, or numbers that they are known to be; `along` is the dim of a strided one
    along which neighbours lie side by side."""

    dtype: str
    rank: int
    layout: str
    multiple: int = 1
    sizes: tuple[str | int | None, ...] = ()
    along: int | None = None

    def __str__(self) -> str:
        rows = f" of rows of {self.multiple}" if self.multiple > 1 else ""
        rows += f" along dim {self.along}" if self.along is not None else ""
        return f"{self.layout} {self.dtype}[{', '.join(str(n or '?') for n in self.sizes or '?' * self.rank)}]{rows}"


@dataclass(frozen=True)
class Number:
    """A number that is known when the kernel runs."""

    dtype: str

    def __str__(self) -> str:
        return self.dtype


@dataclass(frozen=True)
class Constant:
    """A value that is part of the program. True and 1 are two."""

    value: Any
    kind: type

    def __str__(self) -> str:
        return f"= {self.value!r}"


Kind = ArrayOf | Number | Constant


@dataclass
class Specialisation:
    """A form of a kernel: what its arguments are, by name, why those before it did not do, the grid's dims, by
    name, and whether arrays and grids are small (see :func:`is_small`)."""

    kernel: str
    kinds: dict[str, Kind]
    why: str
    grid: tuple[str, ...] = GRID_NAMES
    small: bool = False
    program: Any = field(default=None, repr=False)
    codes: dict[tuple[str, int], Any] = field(default_factory=dict, repr=False)     # by target and device

    def __str__(self) -> str:
        return f"{self.kernel}({', '.join(f'{n}{_separator(k)}{k}' for n, k in self.kinds.items())}): {self.why}"

    __repr__ = __str__


def _separator(kind: Kind) -> str:
    return " " if isinstance(kind, Constant) else ": "


def kinds_of(parameters: Sequence[Parameter], values: Sequence[Any]) -> tuple[Kind, ...]:
    """What the arguments are, on which the program depends; arrays are described."""
    return tuple(Constant(v, type(v)) if p.constant or v is None or isinstance(v, (bool, str)) else _kind(p.name, v)
                 for p, v in zip(parameters, values, strict=True))


def _kind(name: str, value: Any) -> Kind:
    if isinstance(value, Array):
        layout = layout_of(value.shape, value.strides)
        along = (d for d, (n, s) in enumerate(zip(value.shape, value.strides, strict=True)) if n > 1 and s == 1)
        return ArrayOf(value.dtype, len(value.shape), layout, _multiple(value, layout),
                       along=next(along, None) if layout == "strided" else None)
    if isinstance(value, int):
        return Number("i64")
    if isinstance(value, float):
        return Number("f64")
    if isinstance(value, np.generic):
        dtype = dtype_of(value.dtype)
        if dtype is not None:
            return Number(dtype.name)
    raise UserError(f"the argument '{name}' is a {type(value).__name__}: arrays and numbers vary from launch to "
                    f"launch, anything else is a constant, which the parameter says: {name}: xcc.constexpr")


def _multiple(array: Array, layout: str) -> int:
    """What a GPU moves at once, where all rows are multiples of it; a CPU has no use for another form."""
    wide = WIDE_BITS // max(8, DTYPES[array.dtype].bits)
    lengths = (*(array.strides[:-1] if layout == "rows" else ()), *array.shape[-1:])
    return wide if array.device[0] not in ON_HOST and layout != "strided" and lengths and wide > 1 \
        and not any(n % wide for n in lengths) else 1


def layout_of(shape: Sequence[int], strides: Sequence[int]) -> str:
    """How an array lies, by its strides in elements."""
    step, dense = 1, True
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        dense = dense and (n == 1 or s == step)
        step *= n
    if dense or 0 in shape:
        return "dense"
    return "rows" if shape[-1] == 1 or strides[-1] == 1 else "strided"


def is_small(values: Sequence[Any], grid: Sequence[int]) -> bool:
    """Whether a GPU finds its way through the arrays among `values`, which are described, and the grid with 32 bits; a
    CPU has no use for another form."""
    from xcc.dialects.tile.program import SMALL_GRID, SMALL_SIZE

    arrays = [v for v in values if isinstance(v, Array)]
    numbers = [n for a in arrays for n in (*a.shape, *a.strides, sum(
        (n - 1) * s for n, s in zip(a.shape, a.strides, strict=True)))]
    return any(a.device[0] not in ON_HOST for a in arrays) and prod(grid) < SMALL_GRID \
        and all(n < SMALL_SIZE for n in numbers) and all(s >= 0 for a in arrays for s in a.strides)


def named_sizes(kinds: Mapping[str, Kind], values: Sequence[Any], grid: Sequence[int],
                declared: Mapping[str, Sequence[int | str]] | None = None) \
        -> tuple[dict[str, Kind], tuple[str, ...]]:
    """`kinds` with the sizes that are equal, in these arguments (described), to those of the same dim, from the last
    one on, of an array before, and the names of the grid's dims, which may be as large as a dim of an array. Of what is
    equal a GPU is given one number, and compares nothing; a last dim as long as a constant says (a row that is one
    block) is that number. A CPU has no use for another form.

    A size that is `declared` as a number, by the array's name, is that number where the array has it, and so are those
    of the same dim that are equal, on CPUs, too."""
    names, first, found = list(GRID_NAMES[:len(grid)]), dict[tuple[int, int], str | int](), dict(kinds)
    first.update({(1, k.value): k.value for k in kinds.values() if isinstance(k, Constant) and k.kind is int
                  and k.value > 1})
    arrays = [(n, kind, a) for (n, kind), a in zip(kinds.items(), values, strict=True) if isinstance(kind, ArrayOf)]
    said = declared or {}
    numbers = {(kind.rank - d, size): size for n, kind, a in arrays
               for d, (size, number) in enumerate(zip(a.shape, said.get(n, ()), strict=False)) if size == number}
    first.update(numbers)
    for n, kind, a in arrays:
        if a.device[0] in ON_HOST:
            sizes = tuple(numbers.get((kind.rank - d, size)) for d, size in enumerate(a.shape))
            found[n] = replace(kind, sizes=sizes if any(sizes) else ())
            continue
        known = [first.setdefault((kind.rank - d, size), f"{n}_{d}") for d, size in enumerate(a.shape)]
        found[n] = replace(kind, sizes=tuple(None if k == f"{n}_{d}" else k for d, k in enumerate(known)))
        for i, size in enumerate(grid):
            names[i] = next((k for k, s in zip(known[:-1], a.shape, strict=False)
                             if s == size and names[i] == GRID_NAMES[i] and isinstance(k, str)), names[i])
    return found, tuple(names)


def difference(new: dict[str, Kind], grid: Sequence[str], small: bool, known: Sequence[Specialisation]) -> str:
    """Why there is another form: what differs from the one that is most alike."""
    if not known:
        return "the first launch"
    other = min(known, key=lambda s: sum(new[n] != s.kinds[n] for n in new) + (s.grid != grid) + (s.small != small))
    rank, had = len(grid), len(other.grid)
    why = [f"the grid has {rank} dim{'s'[:rank > 1]}, had {had}"] if rank != had else []
    if rank == had and grid != other.grid:
        why.append(f"the grid is ({', '.join(grid)}), was ({', '.join(other.grid)})")
    if small != other.small:
        why.append(f"places {'fit' if small else 'do not fit'} into 32 bits")
    return ", ".join([*why, *(f"{n} {_was(k, other.kinds[n])}" for n, k in new.items() if k != other.kinds[n])])


def _was(new: Kind, old: Kind) -> str:
    return f"is {str(new).removeprefix('= ')}, was {str(old).removeprefix('= ')}"


def trace_program(function: Callable[..., Any], name: str, kinds: dict[str, Kind],
                  config: Mapping[str, int] | None = None, grid: Sequence[str] = GRID_NAMES,
                  small: bool = False) -> tile.Program:
    """The tile program of a form, for grids of dims with these names."""
    from xcc import tile
    from xcc.frontends.kernel.trace import trace

    constants = {n: k.value for n, k in kinds.items() if isinstance(k, Constant)}
    parameters: dict[str, Any] = {}
    for n, k in kinds.items():
        if isinstance(k, ArrayOf):
            strides = {"dense": None, "rows": (*[None] * (k.rank - 1), 1), "strided": tuple(
                1 if d == k.along else None for d in range(k.rank))}[k.layout]
            parameters[n] = tile.BufferOf(k.dtype, k.sizes or (None,) * k.rank, strides, k.multiple)
        elif isinstance(k, Number):
            parameters[n] = tile.ScalarOf(k.dtype)
    return trace(function, name, constants, parameters, grid, config=config, small=small)
