"""Containers of tiles, dataclasses too: what the run decides of a variable is what it decides of their elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass

from xcc.frontends.kernel.types import DType, TileType

__all__ = ["containers", "contents", "fresh", "leaves", "paths", "put_back", "rebuilt", "structure"]


@dataclass(frozen=True)
class Structure:
    """A container's type, and the key and the structure of each element: None of what contains nothing."""

    kind: type
    parts: tuple[tuple[object, Structure | None], ...]


def _items(value: object) -> list[tuple[object, object]] | None:
    if type(value) is list or isinstance(value, tuple):
        return list(enumerate(value))
    record = value if type(value) is dict else _record(value)
    return None if record is None else list(record.items())


def _record(value: object) -> dict[str, object] | None:
    """The fields of an object of a dataclass of the program's."""
    if not is_dataclass(value) or isinstance(value, (type, DType, TileType)):
        return None
    return {f.name: getattr(value, f.name) for f in fields(value) if hasattr(value, f.name)}


def structure(value: object) -> Structure | None:
    """What contains what: of lists, tuples, dictionaries and dataclasses."""
    items = _items(value)
    return None if items is None else Structure(type(value), tuple((k, structure(v)) for k, v in items))


def containers(value: object) -> Iterator[object]:
    """What of it can be changed in place, itself first."""
    items = _items(value)
    if items is not None and not isinstance(value, tuple):
        yield value
    for _, v in items or ():
        yield from containers(v)


def contents(container: object) -> list[object]:
    """What it holds."""
    return [v for _, v in _items(container) or ()]


def leaves(value: object, kind: Structure | None) -> list[object]:
    """The elements that contain nothing."""
    if kind is None:
        return [value]
    parts = zip(_items(value) or (), kind.parts, strict=True)
    return [leaf for (_, v), (_, inner) in parts for leaf in leaves(v, inner)]


def paths(name: str, kind: Structure | None) -> list[str]:
    """What the elements of a variable are called."""
    if kind is None:
        return [name]
    part = "{}.{}" if is_dataclass(kind.kind) else "{}[{!r}]"
    return [p for k, inner in kind.parts for p in paths(part.format(name, k), inner)]


def _built(kind: Structure | None, given: Iterator[object]) -> object:
    if kind is None:
        return next(given)
    made = {k: _built(inner, given) for k, inner in kind.parts}
    if kind.kind is dict:
        return made
    if is_dataclass(kind.kind):
        record = object.__new__(kind.kind)
        for name, v in made.items():
            object.__setattr__(record, str(name), v)    # a frozen one, too
        return record
    make: Callable[[Iterable[object]], object] = getattr(kind.kind, "_make", kind.kind)     # of a named tuple
    return make(made.values())


def rebuilt(kinds: Sequence[Structure | None], given: Sequence[object]) -> list[object]:
    """Variables of those structures, of their elements."""
    rest = iter(given)
    return [_built(kind, rest) for kind in kinds]


def fresh(values: Sequence[object]) -> list[object]:
    """The variables with containers of their own: a body that is run for its types changes none of the program's."""
    return [_built(s, iter(leaves(v, s))) for v, s in ((v, structure(v)) for v in values)]


def put_back(old: object, new: object) -> object:
    """`new`, as the container `old` that it was made of: other variables may hold that, too."""
    if isinstance(old, list) and isinstance(new, list):
        old[:] = [put_back(a, b) for a, b in zip(old, new, strict=True)]
        return old
    if isinstance(old, dict) and isinstance(new, dict):
        old.update({k: put_back(old[k], v) for k, v in new.items()})
        return old
    was, now = _record(old), _record(new)
    if was is None or now is None or was.keys() != now.keys():
        return new
    for name, v in now.items():
        object.__setattr__(old, name, put_back(was[name], v))
    return old
