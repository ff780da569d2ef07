"""A linalg-stage kernel in plain Python: tensors, structured ops, and accesses as symbolic expressions.

An access is a tuple of dims over the loop symbols ``i0, i1, ...`` of the op (``2*i1 + i4``). Kernels are normalised
when they are read (passes/linalg/kernel/kernel_reader.py): unit dims are dropped, and neighbouring dims that every op
walks together are merged into one, so that a pointwise kernel over [8, 64, 7, 7] is a kernel over [25088].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xcc import symbolic
from xcc._mlir import Attribute, Block, Operation, Type, Value
from xcc.diagnostics import CompilerBug
from xcc.symbolic import Dim

Access = tuple[Dim, ...]


@dataclass(eq=False)
class Tensor:
    """A tensor value: kernel argument (`arg` >= 0), op result (`producer`) or constant.

    dims are those after normalisation; `groups[j]` lists the original dims that make dim j.
    """

    value: Value | None
    dims: tuple[Dim, ...]
    element: Type
    arg: int = -1
    producer: Op | None = None
    index: int = 0
    constant: Any = None
    groups: list[list[int]] = field(default_factory=list)


@dataclass(eq=False)
class Op:
    """One linalg.generic. `loops[p]` is the size of loop ``i<p>``; `neutral[r]` the initial scalar of result r."""

    operation: Any              # an Operation; None of a view that is none
    loops: list[Dim]
    reduction: list[bool]
    inputs: list[tuple[Tensor, Access]]
    outs: list[Access]
    neutral: list[Any]
    results: list[Tensor] = field(default_factory=list)

    @property
    def block(self) -> Block:
        return self.operation.regions[0].blocks[0]

    @property
    def yielded(self) -> Sequence[Value]:
        """What its body gives, a value a result."""
        return list(self.block.operations)[-1].operands

    @property
    def is_reduction(self) -> bool:
        return any(self.reduction)

    def out_loops(self) -> list[int]:
        """The loop that walks each dim of the first result."""
        return [loop_index(e) for e in self.outs[0]]

    def loops_at(self, access: Access, result: int = 0) -> dict[str, Dim]:
        """The loops that walk a result, by name, where its element at `access` is made."""
        return {str(o): e for o, e in zip(self.outs[result], access, strict=True)}

    def reads(self, loops: Mapping[str, Dim]) -> list[tuple[Tensor, Access]]:
        """Its inputs, and where they are read at these `loops`."""
        return [(t, tuple(symbolic.substitute(e, loops) for e in a)) for t, a in self.inputs]


@dataclass(frozen=True)
class Border:
    """What is stored around a result: `low` and `high` elements of the scalar `value` at the ends of each original dim;
    None: nothing, these are left as they are.

    dims: the original dims of what is computed, without the border.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    value: Attribute | None
    dims: tuple[Dim, ...]

    @property
    def padded(self) -> tuple[Dim, ...]:
        """The dims of the buffer."""
        return tuple(lo + d + hi for lo, d, hi in zip(self.low, self.dims, self.high, strict=True))

    def pads(self, d: int) -> bool:
        return self.low[d] != 0 or self.high[d] != 0


@dataclass(eq=False)
class Kernel:
    """A whole kernel: arguments, results, ops in order, symbol arguments.

    borders[n] is what is stored around result n, None: nothing.
    """

    name: str
    args: list[Tensor]
    results: list[Tensor]
    ops: list[Op]
    symbols: dict[str, Value]
    function: Operation
    by_value: dict[Any, Tensor] = field(default_factory=dict)
    borders: list[Border | None] = field(default_factory=list)


def ops_behind(t: Tensor, stop: Callable[[Op], bool] = lambda op: False) -> Iterator[Op]:
    """The ops that `t` is made of, each once though very many ways may lead to it; not those behind ops that `stop`."""
    seen: set[Op] = set()
    left = [t]
    while left:
        op = left.pop().producer
        if op is not None and op not in seen:
            seen.add(op)
            yield op
            if not stop(op):
                left += [s for s, _ in op.inputs]


def loop(n: int) -> symbolic.Expr:
    return symbolic.sym(f"i{n}")


def loop_index(e: Dim) -> int:
    """The n of a bare ``i<n>``; CompilerBug for anything else."""
    n = bare_loop(e)
    if n is None:
        raise CompilerBug(f"an output is indexed by '{e}', which is not one loop")
    return n


def bare_loop(e: Dim) -> int | None:
    """The n of ``i<n>``, None for any other expression."""
    text = str(e)
    return int(text[1:]) if isinstance(e, symbolic.Expr) and text[0] == "i" and text[1:].isdigit() else None


def is_packed(access: Access) -> bool:
    """Whether the access is to panels of columns: (n floordiv P, ..., k, n mod P)."""
    last = access[-1] if access else 0
    return len(access) > 2 and isinstance(last, symbolic.Expr) and \
        [[atom[0] for atom in monomial] for monomial, _ in last.terms] == [["mod"]]


def rows_of_steps(op: Op, access: Access) -> bool:
    """Whether neighbours are the columns of one step of the reduction `op`: (..., k, n)."""
    loops = [bare_loop(e) for e in access[-2:]]
    return len(loops) == 2 and None not in loops and [op.reduction[p] for p in loops if p is not None] == [True, False]


def captured_tensors(op: Op, kernel: Kernel) -> Iterator[Tensor]:
    """The tensors that the op's body reads by tensor.extract."""
    if op.operation is None:
        return
    for inner in op.block.operations:
        if inner.name == "tensor.extract" and inner.operands[0] in kernel.by_value:
            yield kernel.by_value[inner.operands[0]]
