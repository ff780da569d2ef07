"""What carries out the operations of a kernel: numpy at once, a builder of tile programs, or nothing but types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from xcc.diagnostics import UserError
from xcc.frontends.kernel.place import Place, error
from xcc.frontends.kernel.types import Number, TileType

if TYPE_CHECKING:
    from xcc.frontends.kernel.tile import Tile
    from xcc.frontends.kernel.view import View

__all__ = ["BuildingMachine", "Machine", "machine", "no_result", "running", "running_on"]


class Machine(Protocol):
    """`data` of tiles and views is the machine's own; types are checked before it is called, operands of one element
    type and shape where an operation needs that."""

    concrete: bool      # whether a tile's numbers are there as soon as it is made

    def constant(self, value: Number, result: TileType) -> object:
        """A scalar."""

    def op(self, name: str, result: TileType, *operands: Tile, **attributes: Any) -> object:
        """The data of what the operation `name` of :mod:`xcc.frontends.kernel.eager` makes of the tiles `operands`."""

    def load(self, view: View, result: TileType, offsets: Sequence[Tile],
             other: Tile | None, mask: Tile | None) -> object:
        """The block of `view` at `offsets`; elements outside it, or not of `mask`, are the scalar `other`, if given."""

    def store(self, view: View, offsets: Sequence[Tile], value: Tile, mask: Tile | None) -> None:
        """Writes a block; what is outside `view`, or not of `mask`, is left out."""

    def gather(self, view: View, result: TileType, indices: Sequence[Tile],
               other: Tile | None, mask: Tile | None) -> object:
        """One element for each place of `indices`, a tile for each dim of the view."""

    def scatter(self, view: View, indices: Sequence[Tile], value: Tile, mask: Tile | None) -> None:
        """Writes an element for each place of `indices`."""

    def atomic(self, kind: str, view: View, indices: Sequence[Tile], value: Tile, mask: Tile | None) -> object:
        """Combines what is there with an element, for each place of `indices`; what was there before, else 0."""

    def compare_swap(self, view: View, indices: Sequence[Tile], expected: Tile, value: Tile,
                     mask: Tile | None) -> object:
        """Writes an element for each place of `indices` where that of `expected` is there; what was there, else 0."""

    def combine(self, name: str, tiles: Sequence[Tile], axis: int, step: Callable[..., Sequence[Tile]],
                reverse: bool) -> Sequence[object]:
        """Data of a "reduce" or "scan" of several tiles by a function of tiles."""

    def several(self, name: str, kinds: Sequence[TileType], x: Tile, descending: bool = False,
                keep: int = 0) -> Sequence[object]:
        """Data of what "split" or "order" makes of `x`, one of each kind."""

    def program(self, name: str, axis: int) -> object:
        """The index ("id") of this instance, or the number ("count") of instances, along `axis`."""

    def size(self, view: View, axis: int) -> object:
        """How many elements `view` has along `axis`."""

    def check(self, condition: Tile, message: str) -> None:
        """Ends the run unless all of `condition` holds."""

    def show(self, label: str, tile: Tile) -> None:
        """Prints a tile."""


class BuildingMachine(Machine, Protocol):
    """One that makes a program of what runs later: it takes control flow, too. Regions are functions that run the code
    in them, and return the tiles that they end with."""

    def branch(self, condition: Tile, types: Sequence[TileType], then: Callable[[], Sequence[Tile]],
               orelse: Callable[[], Sequence[Tile]]) -> Sequence[object]:
        """Data of `types`, from the one region or the other."""

    def loop(self, start: Tile, stop: Tile, step: Tile, entries: Sequence[Tile],
             body: Callable[[object, Sequence[object]], Sequence[Tile]]) -> Sequence[object]:
        """What the body's results are at the end; it gets the data of the counter and of its last results."""

    def repeat(self, entries: Sequence[Tile], test: Callable[[Sequence[object]], Tile],
               body: Callable[[Sequence[object]], Sequence[Tile]]) -> Sequence[object]:
        """As long as `test` of them holds."""


_CURRENT: ContextVar[Machine | None] = ContextVar("machine", default=None)


def machine() -> Machine:
    """The machine of the kernel that is running."""
    found = _CURRENT.get()
    if found is None:
        raise UserError("this is for use in kernels: call it in a function with @xcc.kernel that is launched as "
                        "f[(instances,)](arguments)")
    return found


def running() -> bool:
    """Whether a kernel is running."""
    return _CURRENT.get() is not None


@contextmanager
def running_on(chosen: Machine) -> Iterator[None]:
    """What happens inside is carried out by `chosen`."""
    token = _CURRENT.set(chosen)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def no_result(function: Callable[..., object], made: object) -> None:
    """UserError where a kernel's function gives something back."""
    if made is not None:
        code = function.__code__
        place = Place(code.co_filename, code.co_firstlineno, 1, 2)
        what = getattr(made, "type", type(made).__name__)
        raise error(f"'{function.__name__}' gives back {what}, which nothing takes: write it to an array with .store()",
                    place)
