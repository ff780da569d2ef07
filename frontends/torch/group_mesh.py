"""The mesh whose axes are torch's process groups.

    8 ranks, groups "0" of all of them and "5" of (2, 3):   mesh ranks_2:4,group_5:2; "0" is both axes, "5" the last
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from xcc.runtime.mesh import Mesh

__all__ = ["mesh_of_groups"]

Axes = tuple[str, ...]
Run = tuple[int, int]           # the distance of ranks that follow one another, and how many they are


def mesh_of_groups(rank: int, size: int, groups: Mapping[str, Sequence[int]]) -> tuple[Mesh, dict[str, Axes]] | None:
    """The mesh of `size` ranks, and the axes of each group of those that `rank` is in; None where there is no mesh with
    such groups.

    A group of one rank has no axis. Two groups of the same ranks are told apart by an axis of one rank.
    """
    runs = {name: _runs(ranks) for name, ranks in groups.items()}
    cuts = {1, size}
    for name, found in runs.items():
        if found is None or rank not in groups[name]:
            return None
        cuts |= {cut for step, count in found for cut in (step, step * count)}
    ways = [*pairwise(sorted(cuts))]
    if any(high % low for low, high in ways):
        return None
    own = {name: [w for w in ways if any(s <= w[0] and w[1] <= s * n for s, n in found or ())]
           for name, found in runs.items()}
    names = {way: f"ranks_{way[0]}" for way in ways}
    for name, covered in own.items():
        if len(covered) == 1 and names[covered[0]].startswith("ranks_"):
            names[covered[0]] = _unused(f"group_{name}", [*names.values()])
    axes = [(names[way], way[1] // way[0]) for way in reversed(ways)]
    used: dict[str, Axes] = {}
    for name, covered in own.items():
        of_group = tuple(names[way] for way in reversed(covered))
        if of_group in used.values() and of_group:
            axes.append((_unused(f"group_{name}", [axis for axis, _ in axes]), 1))
            of_group = (*of_group, axes[-1][0])
        used[name] = of_group
    mesh = Mesh(tuple(axes))
    fits = all(mesh.group(rank, of_group) == tuple(groups[name]) for name, of_group in used.items())
    return (mesh, used) if fits else None


def _runs(ranks: Sequence[int]) -> list[Run] | None:
    """The distances in `ranks` and how often each comes, the least first: (1, 2, 5, 6) are 2 ranks at a distance
    of 1, twice at one of 4. None where they do not lie so."""
    at = [r - ranks[0] for r in ranks]
    runs = []
    while len(at) > 1:
        step = at[1]
        count = next((n for n, r in enumerate(at) if r != n * step), len(at))
        rows = [at[n:n + count] for n in range(0, len(at), count)]
        if step < 1 or any([r - row[0] for r in row] != rows[0] for row in rows):
            return None
        runs.append((step, count))
        at = at[::count]
    return runs


def _unused(name: str, taken: Collection[str]) -> str:
    """`name` as that of an axis, which none of those `taken` is."""
    plain = re.sub(r"\W", "_", name)
    while plain in taken:
        plain += "_"
    return plain
