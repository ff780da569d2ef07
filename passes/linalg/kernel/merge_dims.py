"""Kernels over fewer dims: those of size 1 are dropped, neighbours that every op walks together become one."""

from __future__ import annotations

from xcc import symbolic
from xcc.passes.linalg.kernel.domain import estimate
from xcc.passes.linalg.kernel.kernel import Access, Kernel, Op, Tensor, bare_loop, captured_tensors
from xcc.symbolic import Dim

LONG = 512      # elements
Merge = tuple[dict[Tensor, int], dict[Op, tuple[int, int]]]
"""The first of two neighbouring dims of each tensor, the two loops of each op, that become one."""


def drop_units(kernel: Kernel) -> None:
    """Removes dims and loops of size 1."""
    for op in kernel.ops:
        env: dict[str, Dim] = {f"i{n}": 0 for n, size in enumerate(op.loops) if size == 1}
        if env:
            op.inputs = [(t, tuple(symbolic.substitute(e, env) for e in a)) for t, a in op.inputs]
            op.outs = [tuple(symbolic.substitute(e, env) for e in a) for a in op.outs]
    for op in kernel.ops:
        op.inputs = [(t, tuple(e for e, d in zip(a, t.dims, strict=True) if d != 1)) for t, a in op.inputs]
        op.outs = [tuple(e for e, d in zip(a, r.dims, strict=True) if d != 1)
                   for r, a in zip(op.results, op.outs, strict=True)]
    for t in kernel.by_value.values():
        keep = [j for j, d in enumerate(t.dims) if d != 1]
        t.groups = [t.groups[j] for j in keep]
        t.dims = tuple(t.dims[j] for j in keep)


def merge_dims(kernel: Kernel) -> None:
    """Merges neighbouring dims that are contiguous in every access; one pair at a time, until none is left."""
    while True:
        pair = _find_mergeable(kernel)
        if pair is None:
            return
        tensor_pairs, op_pairs = pair
        for t in sorted(tensor_pairs, key=id):
            j = tensor_pairs[t]
            t.dims = (*t.dims[:j], t.dims[j] * t.dims[j + 1], *t.dims[j + 2:])
            t.groups = [*t.groups[:j], t.groups[j] + t.groups[j + 1], *t.groups[j + 2:]]
        for op, (p, q) in op_pairs.items():
            inner = f"i{q}"
            op.inputs = [(t, tuple(e for e in a if str(e) != inner)) for t, a in op.inputs]
            op.outs = [tuple(e for e in a if str(e) != inner) for a in op.outs]
            op.loops[p], op.loops[q] = op.loops[p] * op.loops[q], 1


def _find_mergeable(kernel: Kernel) -> Merge | None:
    pairs = [(t, j) for t in kernel.results for j in range(len(t.dims) - 1)]
    pairs += [(t, j) for op in kernel.ops if op.is_reduction and len(op.inputs) == 1 for t, _ in op.inputs
              for j in range(len(t.dims) - 1) if _is_long(t.dims[j] * t.dims[j + 1])]
    return next((found for t, j in pairs if (found := _closure(kernel, t, j)) is not None), None)


def _is_long(size: Dim) -> bool:
    """Whether reduced dims of `size` together are worth one loop: of short rows GPUs take several at a time. So are
    those of unknown sizes, as an image's: a vector along one of its lines alone is mostly empty."""
    return estimate(size) >= LONG


def _cuts_lanes(kernel: Kernel, t: Tensor, j: int) -> bool:
    """Whether dims (j, j+1) of a result must stay apart: a border lies between elements along its last dim, or what
    is left as it is between elements along any.

    Dims of size 1 between them count, too: they are in no group, but may have a border.
    """
    return any(
        border is not None and (border.value is None or j + 2 == len(t.dims))
        and any(border.pads(d) for d in range(t.groups[j][0] + 1, t.groups[j + 1][-1] + 1))
        for r, border in zip(kernel.results, kernel.borders, strict=True) if r is t)


def _closure(kernel: Kernel, start: Tensor, at: int) -> Merge | None:
    """Everything that merges together with dims (at, at+1) of `start`, or None when something forbids it."""
    tensors: dict[Tensor, int] = {start: at}
    ops: dict[Op, tuple[int, int]] = {}
    work = [start]
    captured = {t for op in kernel.ops for t in captured_tensors(op, kernel)}
    while work:
        t = work.pop()
        j = tensors[t]
        if t in captured or t.constant is not None or _cuts_lanes(kernel, t, j):
            return None
        for op in kernel.ops:
            for _, access in (site for site in _sites(op) if site[0] is t):
                p, q = bare_loop(access[j]), bare_loop(access[j + 1])
                if p is None or q is None or ops.get(op, (p, q)) != (p, q):
                    return None
                if op in ops:
                    continue
                walked = _walked(op, p, q)
                if walked is None or (op.loops[p], op.loops[q]) != t.dims[j:j + 2]:
                    return None
                ops[op] = p, q
                for other, k in walked:
                    if other not in tensors:
                        tensors[other] = k
                        work.append(other)
                    elif tensors[other] != k:
                        return None
    return tensors, ops


def _sites(op: Op) -> list[tuple[Tensor, Access]]:
    """Every tensor that `op` reads or makes, with how it is walked."""
    return [*op.inputs, *zip(op.results, op.outs, strict=True)]


def _walked(op: Op, p: int, q: int) -> list[tuple[Tensor, int]] | None:
    """Where loops p and q of `op` walk neighbouring dims of its tensors: the first of the two.

    None where they walk one apart from the other, or cannot be one loop.
    """
    if op.reduction[p] != op.reduction[q] or _indexed_loops(op) & {p, q}:
        return None
    out = []
    for t, access in _sites(op):
        touching = [n for n, e in enumerate(access) if {f"i{p}", f"i{q}"} & set(symbolic.symbols_of(e))]
        if not touching:
            continue
        k = touching[0]
        if touching != [k, k + 1] or [bare_loop(e) for e in access[k:k + 2]] != [p, q] \
                or t.dims[k:k + 2] != (op.loops[p], op.loops[q]):
            return None
        out.append((t, k))
    return out


def _indexed_loops(op: Op) -> set[int]:
    """The loops whose index the body of `op` asks for."""
    if op.operation is None:
        return set()
    return {int(o.attributes["dim"].value) for o in op.block.operations if o.name == "linalg.index"}
