"""Functions of kernels that combine elements along an axis: by a function of the user's, by size, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xcc.frontends.kernel.machine import machine
from xcc.frontends.kernel.place import error
from xcc.frontends.kernel.shapes import shape_of
from xcc.frontends.kernel.tile import Tile, as_tile, convert
from xcc.frontends.kernel.types import DTYPES, TileType

__all__ = ["argmax", "argmin", "argsort", "cummax", "reduce", "scan", "sort", "topk"]


def argmax(x: Tile, axis: int = -1) -> Tile:
    """The place (i32) of the largest element along `axis`: the first of several, or of the first NaN."""
    return _place("argmax", x, axis)


def argmin(x: Tile, axis: int = -1) -> Tile:
    """The place (i32) of the smallest element along `axis`: the first of several, or of the first NaN."""
    return _place("argmin", x, axis)


def cummax(x: Tile, axis: int = -1, reverse: bool = False) -> Tile:
    """The largest of the elements up to each one along `axis`."""
    x = as_tile(x)
    at = _axis("cummax", x, axis)
    return Tile(x.type, machine().op("scan", x.type, x, kind="max", axis=at, reverse=reverse))


def sort(x: Tile, descending: bool = False) -> Tile:
    """Sorted along the last dim; NaN comes last, first with `descending`."""
    x = as_tile(x)
    _axis("sort", x, -1)
    return Tile(x.type, machine().op("sort", x.type, x, descending=descending))


def argsort(x: Tile, descending: bool = False) -> Tile:
    """The places (i32) of the elements along the last dim in the order of :func:`sort`; of those that are alike the
    first one comes first."""
    x = as_tile(x)
    return _ordered("argsort", x, x.shape[-1:], descending)[1]


def topk(x: Tile, k: int) -> tuple[Tile, Tile]:
    """The `k` largest elements along the last dim, the largest first, and their places (i32); NaN is the largest, of
    those that are alike the first one comes first."""
    return _ordered("topk", as_tile(x), shape_of(k), True)


def _ordered(name: str, x: Tile, keep: tuple[int, ...], descending: bool) -> tuple[Tile, Tile]:
    _axis(name, x, -1)
    if keep[0] > x.shape[-1]:
        raise error(f"{x.type} has no {keep[0]} elements along its last dim")
    kinds = [x.type.shaped((*x.shape[:-1], keep[0])), TileType(DTYPES["i32"], (*x.shape[:-1], keep[0]))]
    values, places = machine().several("order", kinds, x, descending=descending, keep=keep[0])
    return Tile(kinds[0], values), Tile(kinds[1], places)


def reduce(tiles: Any, axis: int, combine: Callable[..., Any]) -> Any:
    """The elements of one tile, or of several at once, along `axis`, combined by an associative function.

    Of n tiles the function takes 2n scalars, an element of each and another one of each, and gives n. ::

        best, place = xcc.reduce((x, places), 1, lambda a, i, b, j: (xcc.where(a > b, a, b), xcc.where(a > b, i, j)))
    """
    return _combined("reduce", tiles, axis, combine, False)


def scan(tiles: Any, axis: int, combine: Callable[..., Any], reverse: bool = False) -> Any:
    """Like :func:`reduce`, of the elements up to each one along `axis`; `reverse`: from each one to the last."""
    return _combined("scan", tiles, axis, combine, reverse)


def _axis(name: str, x: Tile, axis: int) -> int:
    if not -x.ndim <= axis < x.ndim:
        raise error(f"{x.type} has no axis {axis}")
    if x.dtype.kind == "bool":
        raise error(f"{name} of {x.type}: convert it with .to(xcc.i32)")
    return axis % x.ndim


def _place(name: str, x: Tile, axis: int) -> Tile:
    x = as_tile(x)
    at = _axis(name, x, axis)
    kind = TileType(DTYPES["i32"], x.shape[:at] + x.shape[at + 1:])
    return Tile(kind, machine().op(name, kind, x, axis=at))


def _combined(name: str, tiles: Any, axis: int, combine: Callable[..., Any], reverse: bool) -> Any:
    given: Sequence[Tile] = [as_tile(t) for t in (tiles if isinstance(tiles, (tuple, list)) else (tiles,))]
    if not given or any(t.shape != given[0].shape for t in given):
        raise error(f"{name} of {', '.join(str(t.type) for t in given) or 'nothing'}: give tiles of one shape")
    if not -given[0].ndim <= axis < given[0].ndim:
        raise error(f"{given[0].type} has no axis {axis}")
    at = axis % given[0].ndim
    left = given[0].shape[:at] + given[0].shape[at + 1:] if name == "reduce" else given[0].shape

    def step(*sides: Tile) -> list[Tile]:
        made = combine(*sides)
        values = list(made) if isinstance(made, (tuple, list)) else [made]
        if len(values) != len(given):
            raise error(f"the function gives {len(values)} values, of {len(given)} tiles")
        return [convert(as_tile(v), t.dtype) for v, t in zip(values, given, strict=True)]

    kinds = [t.type.shaped(left) for t in given]
    made = [Tile(k, d) for k, d in zip(kinds, machine().combine(name, given, at, step, reverse), strict=True)]
    return tuple(made) if isinstance(tiles, (tuple, list)) else made[0]
