"""Which dims a model takes to be equal without its types saying so, to be checked when it is run.

Ops accept different expressions for dims that must be the same (``[n] + [m]``), since a model that works gives them the
same value. Kernels rely on it: the size of one operand is used for both. They rely too on sizes that are not negative
(``[n - 4]``), which are pairs of a size and the larger of it and 0, and on operands that have what is read of them (the
first element, the slice ``[0:4]``): pairs of a size and the larger of it and what it must be. Pairs over symbols of the
inputs, of ops that always run, are listed on the module and compared before a run; for the others an ``xtv.require``
stands in front of the ops that rely on them: those in branches and loops, and those whose sizes an op computes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from xcc import symbolic
from xcc._mlir import Block, Module, Operation, Value, ir
from xcc.bounds import Bounds, interval, number
from xcc.dialects import xt
from xcc.passes.xt.graph.rewrite import dim_bounds, name_of
from xcc.symbolic import Dim

EQUAL = "xt.equal"
"""Module attribute: pairs of dims."""

Pair = tuple[Dim, Dim]


def note_equal_dims(module: Module) -> None:
    """Sets ``xt.equal`` and inserts ``xtv.require``.

    Before: ``%2 = "xt.add"(%a, %b)`` with a: [n] and b: [m]
    After:  the same, and ``xt.equal = [["n", "m"]]`` on the module; in a branch of an if, that branch starts with
            ``"xtv.require"() {equal = ["n", "m"], message = "node 'add'"}``
    """
    with module.context, ir.Location.unknown():
        listed: list[Pair] = []
        bounds = dim_bounds(module)
        for function in module.body:
            for region in function.operation.regions:
                for block in region.blocks:
                    known = _symbols(block.arguments) | {s for v in block.arguments for s in xt.value_symbols(v)}
                    _Block(block, known, set(), listed, bounds).run(())
        if listed:
            module.operation.attributes[EQUAL] = ir.ArrayAttr.get([xt.dims_attr(p) for p in listed])


def equal_dims(module: Module, known: tuple[str, ...]) -> tuple[tuple[Dim, ...], ...]:
    """The pairs of ``xt.equal`` over the symbols in `known`."""
    if EQUAL not in module.operation.attributes:
        return ()
    pairs = [xt.dims_from_attr(p) for p in module.operation.attributes[EQUAL]]
    return tuple(tuple(p) for p in pairs if all(s in known for d in p for s in symbolic.symbols_of(d)))


class _Block:
    """One block. `known` are the symbols that have a value at its start, `done` the differences known to be 0 there.

    `listed` takes the pairs over symbols that are known at the start; without it they are required there.
    """

    def __init__(self, block: Block, known: set[str], done: set[Dim], listed: list[Pair] | None,
                 bounds: Bounds) -> None:
        self.block = block
        self.first = next(iter(block.operations)).operation
        self.start, self.known, self.done, self.listed = known, set(known), set(done), listed
        self.bounds = bounds

    def run(self, yielded: Iterable[Pair]) -> None:
        """Checks the block's ops, and the pairs `yielded` at its end."""
        ops = [o.operation for o in self.block.operations]
        for op in ops[:-1]:
            definition = xt.op_class(op)
            if definition is None:
                continue
            with xt.assumed_equal() as pairs:
                if name_of(op) != "if":
                    definition.problem(op)
            if len(op.regions):
                self._regions(op, pairs)
            else:
                self._check([*pairs, *self._sizes(op)], op)
            self.known |= _symbols(op.results)
        self._check(yielded, ops[-1])

    def _regions(self, op: Operation, pairs: list[Pair]) -> None:
        """What a loop relies on is checked in its body, so that a loop without a turn relies on nothing."""
        blocks = [region.blocks[0] for region in op.regions]
        for n, block in enumerate(blocks):
            at_end = pairs if n == len(blocks) - 1 else []
            if name_of(op) == "if":
                at_end = _given_for(block, op.results)
            _Block(block, self.known, self.done, None, self.bounds).run(at_end)

    def _sizes(self, op: Operation) -> list[Pair]:
        """A pair for each size of a result that may be negative, and for each of an operand that may be too small."""
        dims = {d for v in op.results for d in xt.shape_of(v)}
        if name_of(op) == "slice":
            dims |= set(xt.attrs_of(op).starts)
        least: list[Pair] = [(d, 0) for d in sorted(dims, key=str) if isinstance(d, symbolic.Expr)]
        least += dict.fromkeys((d, number(self.bounds, low, 0)) for d, low in _read_up_to(op))
        return [(d, symbolic.dim_max(d, low)) for d, low in least if interval(self.bounds, d - low, 0)[0] < 0]

    def _check(self, pairs: Iterable[Pair], op: Operation) -> None:
        for a, b in pairs:
            names = {s for d in (a, b) for s in symbolic.symbols_of(d)}
            if a - b in self.done or b - a in self.done or not names <= self.known:
                continue
            self.done.add(a - b)
            if names <= self.start and self.listed is not None:
                self.listed.append((a, b))
                continue
            before = self.first if names <= self.start else op
            with op.location, ir.InsertionPoint(before):
                xt.require(a, b, _place(op))


def _read_up_to(op: Operation) -> list[Pair]:
    """Dims of the first operand, and the size of them that `op` reads or writes."""
    name, a, shapes = name_of(op), xt.attrs_of(op), [xt.shape_of(v) for v in op.operands]
    pairs: list[Pair] = []
    if name in ("slice", "dynamic_slice"):
        pairs += zip(shapes[0], a.limits if name == "slice" else a.sizes, strict=True)
    if name == "top_k":
        pairs.append((shapes[0][a.axis], a.k[0]))
    if name == "compress":
        pairs.append((symbolic.product(shapes[0]) if a.flat else shapes[0][a.axis], shapes[1][0]))
    if name == "scatter_elements":      # an index is clamped to the places that there are
        pairs.append((shapes[0][a.axis], symbolic.dim_min(1, symbolic.product(shapes[2]))))
    if name in ("gather_elements", "scatter_elements"):
        pairs += [p for i, p in enumerate(zip(shapes[0], shapes[-1], strict=True)) if i != a.axis]
    if name == "scatter_nd":
        *outer, depth = shapes[1]
        assert isinstance(depth, int)
        pairs += [(d, symbolic.dim_min(1, symbolic.product(outer))) for d in shapes[0][:depth]]
    sampled = xt.CLASSES[op.name].sampled(a, *xt.operand_types(op))
    pairs += [(shapes[0][d], xt.least_read(xt.shape_of(op.results[0]))) for d in sampled]
    return [(d, n) for d, n in pairs if not _is_at_most(n, d)]


def _is_at_most(n: Dim, most: Dim) -> bool:
    """Whether `n` is `most`, or the smaller of it and something."""
    if not isinstance(n, symbolic.Expr) or len(n.terms) != 1 or n == most:
        return n == most
    (atoms, factor), = n.terms
    return factor == 1 and len(atoms) == 1 and atoms[0][0] == "min" and most in atoms[0][1:]


def _given_for(block: Block, results: Sequence[Value]) -> list[Pair]:
    """The pairs that must be equal for what `block` yields to be `results`."""
    values = block.operations[len(block.operations) - 1].operation.operands
    with xt.assumed_equal() as pairs:
        for value, result in zip(values, results, strict=True):
            xt.agree(xt.TensorType.of(value), xt.TensorType.of(result))
    return pairs


def _symbols(values: Iterable[Value]) -> set[str]:
    return {s for v in values for d in xt.shape_of(v) for s in symbolic.symbols_of(d)}


def _place(op: Operation) -> str:
    """The name of the node that `op` was made from."""
    found = re.search(r'"([^"]+)"', str(op.location))
    return f"node '{found.group(1)[:1000]}'" if found else f"an {op.name}"
