"""Checks of what a program that comes from a file says of its collectives."""

from __future__ import annotations

from collections.abc import Iterable

from xcc.runtime.arena import walk
from xcc.runtime.mesh import Mesh
from xcc.runtime.program import COMBINED_TYPES, Collective, Program

__all__ = ["collective_problem", "mesh_problem"]

_SAME_SIZE = ("all_reduce", "all_to_all", "permute", "broadcast")
_COMBINING = ("all_reduce", "reduce_scatter")
_IN_PLACE = ("all_reduce", "broadcast")


def collective_problem(p: Program, s: Collective) -> str:
    """What is wrong with `s` whatever the mesh is; "" for nothing. Its buffers are buffers of `p`."""
    if not s.axes or len(set(s.axes)) < len(s.axes):
        return "names no axes, or one twice"
    if (s.combine != "") != (s.kind in _COMBINING):
        return f"{s.kind} with combine '{s.combine}'"
    dtype = p.buffers[s.source].dtype
    if s.combine and (dtype not in COMBINED_TYPES or dtype == "i1" and s.combine not in ("max", "min")):
        return f"{s.kind} with combine '{s.combine}' of {dtype}"
    if s.pairs and s.kind != "permute" or s.root and s.kind != "broadcast":
        return f"{s.kind} with pairs or a root"
    if s.root < 0 or any(place < 0 for pair in s.pairs for place in pair):
        return "names a negative place"
    if _repeats(a for a, _ in s.pairs) or _repeats(b for _, b in s.pairs):
        return "a rank sends or receives twice"
    if s.source == s.target and s.kind not in _IN_PLACE:
        return f"{s.kind} from a buffer to itself"
    return _size_problem(p, s)


def _repeats(places: Iterable[int]) -> bool:
    seen = list(places)
    return len(set(seen)) < len(seen)


def _size_problem(p: Program, s: Collective) -> str:
    if p.buffers[s.source].dtype != p.buffers[s.target].dtype:
        return f"buffers {s.source} and {s.target} differ in their element types"
    source, target = p.nbytes(s.source), p.nbytes(s.target)
    if not isinstance(source, int) or not isinstance(target, int):
        return ""
    fits = {"all_gather": source and target % source == 0, "reduce_scatter": target and source % target == 0}
    if s.kind in _SAME_SIZE and source != target or source + target and not fits.get(s.kind, True):
        return f"{s.kind} from {source} to {target} bytes"
    return ""


def mesh_problem(p: Program, mesh: Mesh) -> str:
    """Why the collectives of `p` cannot run on `mesh`; "" for nothing."""
    for s in walk(p.body):
        if isinstance(s, Collective) and (problem := _group_problem(p, s, mesh)):
            return f"{s.kind} over {', '.join(s.axes)}: {problem}"
    return ""


def _group_problem(p: Program, s: Collective, mesh: Mesh) -> str:
    unknown = [a for a in s.axes if a not in mesh.names]
    if unknown:
        return f"the mesh {mesh} has no axis '{unknown[0]}'"
    size = mesh.group_size(s.axes)
    if any(place >= size for place in (s.root, *(place for pair in s.pairs for place in pair))):
        return f"names a place beyond its {size} ranks"
    source, target = p.nbytes(s.source), p.nbytes(s.target)
    if not isinstance(source, int) or not isinstance(target, int):
        return ""
    if s.kind == "all_gather" and target != source * size or s.kind == "reduce_scatter" and source != target * size:
        return f"from {source} to {target} bytes among {size} ranks"
    return f"{source} bytes are not {size} equal parts" if s.kind == "all_to_all" and source % size else ""
