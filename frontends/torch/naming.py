"""Names of what an exported program returns: the way to each value in the nesting of ``call_spec.out_spec``.

    return {"logits": a, "past": (b, c)}        logits, past_0, past_1
    return a, {"mask": b}                       out0, out1_mask

torch.export names a call's arguments so, too: ``forward(batch)`` with ``{"ids": a, "mask": b}`` has the inputs
``batch_ids`` and ``batch_mask``. Fields of dataclasses and named tuples count as keys of dicts do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["output_names"]


def output_names(spec: Any, taken: Iterable[str]) -> list[str]:
    """A name for each leaf of a ``TreeSpec``, none of them twice or in `taken`."""
    used, out = set(taken), []
    for way in _ways(spec):
        name = own = "_".join(map(str, way if way and isinstance(way[0], str) else (f"out{(*way, 0)[0]}", *way[1:])))
        n = 0
        while own in used:
            n += 1
            own = f"{name}_{n}"
        used.add(own)
        out.append(own)
    return out


def _ways(spec: Any) -> Iterator[tuple[int | str, ...]]:
    """The keys that lead to each leaf."""
    if spec.is_leaf():
        yield ()
        return
    children = spec.children()
    for key, child in zip(_keys(spec.context, len(children)), children, strict=True):
        for rest in _ways(child):
            yield key, *rest


def _keys(context: Any, count: int) -> list[int | str]:
    """What a container calls its parts; their numbers where it has no names for them."""
    names = getattr(context, "_fields", context)        # of a named tuple's type
    if isinstance(names, list) and names and isinstance(names[0], list):
        names = names[0]        # of a dataclass: the fields that are there, then those that are None
    if not isinstance(names, list | tuple) or len(names) != count or not all(isinstance(n, str | int) for n in names):
        return list(range(count))
    return list(map(str, names))
