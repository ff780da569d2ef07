"""Which dims of a shape are split into which of another."""

from __future__ import annotations

from xcc import symbolic
from xcc.symbolic import Dim


def split_dims(old: tuple[Dim, ...], new: tuple[Dim, ...]) -> list[list[int]] | None:
    """For each old dim the new dims that it is split into, in order; None when dims were merged. One of 1 may have
    none."""
    parts: list[list[int]] = []
    at = 0
    for d, size in enumerate(old):
        mine: list[int] = []
        if size == 1 and (at == len(new) or new[at] != 1):
            parts.append(mine)
            continue
        while at < len(new) and (not mine or symbolic.product(new[k] for k in mine) != size):
            mine.append(at)
            at += 1
        if symbolic.product(new[k] for k in mine) != size:
            return None
        while d == len(old) - 1 and at < len(new) and new[at] == 1:
            mine.append(at)
            at += 1
        parts.append(mine)
    return parts if at == len(new) else None
