"""The ops of a function once for each part of its batch, so that stages of a pipeline work at the same time (GPipe).

    %y = f(%x) : 4x8    ->    %y = concatenate(f(%x[0:2]), f(%x[2:4]))

Each part is what a rank would have along an axis `dp` of as many ranks; where such ranks would have to communicate, the
batch stays whole. Reference: Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline
Parallelism" (arXiv 1811.06965).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xcc._mlir import Block, Module, Value, ir
from xcc.dialects import xt
from xcc.passes.host.placement.places import main_of
from xcc.passes.xt.graph.rewrite import at, read_others
from xcc.symbolic import Dim


def copy_of(module: Module) -> Module:
    """The same in a module of its own."""
    return ir.Module.parse(module.operation.get_asm(enable_debug_info=True))


def divisors(batch: Dim, most: int) -> list[int]:
    """In how many parts a batch can be cut, up to `most`; 1 alone where its size is a symbol."""
    return [n for n in range(1, most + 1) if isinstance(batch, int) and batch % n == 0] or [1]


def spread_over_parts(module: Module, parts: int, divided: Callable[[Module, int], bool]) -> int | None:
    """Rewrites @main; gives how many ops behind those of the parts join results, None where the batch stays whole.

    divided: leaves the module of one part, by its number, as along dp; whether ranks there do not communicate.
    """
    copies = [copy_of(module) for _ in range(parts)]
    if not all(divided(copy, n) for n, copy in enumerate(copies)):
        return None
    blocks = [main_of(copy).regions[0].blocks[0] for copy in copies]
    names = [[op.operation.name for op in block.operations] for block in blocks]
    if any(own != names[0] for own in names):
        return None
    block = main_of(module).regions[0].blocks[0]
    end = list(block.operations)[-1].operation
    old = list(block.operations)[:-1]
    whole = [xt.shape_of(v) for v in end.operands]
    joins = 0
    with at(end):
        outputs = [_inlined(copy, block.arguments, n) for n, copy in enumerate(blocks)]
        for i, shape in enumerate(whole):
            own = [made[i] for made in outputs]
            joined = xt.shape_of(own[0]) != shape
            joins += joined
            end.operands[i] = xt.concatenate(*own, axis=0) if joined else own[0]
    for op in reversed(old):
        op.operation.erase()
    return joins


def _inlined(block: Block, arguments: Sequence[Value], part: int) -> list[Value]:
    """The results of the ops of `block`, built here on part `part` of the arguments."""
    values: dict[Value, Value] = {}
    for own, given in zip(block.arguments, arguments, strict=True):
        shape, whole = xt.shape_of(own), xt.shape_of(given)
        values[own] = given
        if shape != whole:
            starts = [part * n if d == 0 else 0 for d, n in enumerate(shape)]
            values[own] = xt.slice_(given, starts=starts, limits=[s + n for s, n in zip(starts, shape, strict=True)])
    *body, end = [op.operation for op in block.operations]
    for op in body:
        new = op.clone()
        read_others(new, values)
        values.update(zip(op.results, new.results, strict=True))
    return [values[v] for v in end.operands]
