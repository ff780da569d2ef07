"""Builds loop kernels: scalar loops on memrefs, for ops that have no tile form.

    func.func private @k(%x: memref<?x8xf32>, %out: memref<?x8xf32>, %d0: index) attributes {xt.kernel, xcc.loops} {
      scf.forall (%i) in (%d0) { scf.for %j = ... { memref.load, memref.store } } {xcc.parallel}
    }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xcc import symbolic
from xcc._mlir import Type, Value, arith_d, ir, memref_d, scf_d
from xcc.passes.shared.regions import when
from xcc.passes.xt.graph.op_graph import IN_PLACE
from xcc.passes.xt_to_linalg.build.dims import DimEmitter
from xcc.passes.xt_to_linalg.build.registry import Op
from xcc.passes.xt_to_linalg.build.types import constant, is_bool, stored
from xcc.symbolic import Dim

PARALLEL_WORK = 1 << 14
"""Elements below which waking threads costs more than it saves."""
COLUMNS = 256
"""Neighbours whose updates go together on CPUs."""
_DYNAMIC = ir.ShapedType.get_dynamic_size()


def buffer_type(dims: Sequence[Dim], dtype: Type) -> Type:
    """The memref of a tensor: bool is i8 with 0 and 1."""
    element = ir.IntegerType.get_signless(8) if is_bool(dtype) else stored(dtype)
    return ir.MemRefType.get([d if isinstance(d, int) else _DYNAMIC for d in dims], element)


@dataclass(frozen=True)
class Buffer:
    """A memref argument with its dims and xt element type."""

    memref: Value
    dims: tuple[Dim, ...]
    dtype: Type

    def load(self, coords: Sequence[Value]) -> Value:
        """The element as a scalar of its xt type; bool as i1."""
        value = memref_d.load(self.memref, list(coords))
        return arith_d.trunci(stored(self.dtype), value) if is_bool(self.dtype) else value

    def store(self, value: Value, coords: Sequence[Value]) -> None:
        if is_bool(self.dtype):
            value = arith_d.extui(ir.IntegerType.get_signless(8), value)
        memref_d.store(value, self.memref, list(coords))

    def merged(self, groups: Sequence[Sequence[int]]) -> Buffer:
        """The same elements with the dims of each group, which are neighbours, as one."""
        dims = tuple(symbolic.product(self.dims[d] for d in group) for group in groups)
        together = ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64(), d) for d in g]) for g in groups])
        made = ir.Operation.create("memref.collapse_shape", results=[buffer_type(dims, self.dtype)],
                                   operands=[self.memref], attributes={"reassociation": together})
        return Buffer(made.result, dims, self.dtype)


@dataclass(frozen=True)
class LoopKernel:
    """One opaque op with its buffers; methods emit loops at the insertion point.

    threads: each iteration of `rows` is a thread of a GPU, of which thousands run side by side; False for a core with
    vectors; None where the chip is not known.
    """

    op: Op
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    dim: DimEmitter
    threads: bool | None = None

    def index(self, value: int) -> Any:
        return self.dim(value)

    @property
    def walked(self) -> tuple[Dim, ...]:
        """The sizes of what the kernel reads or writes: in place, of what it changes."""
        if IN_PLACE not in self.op.operation.attributes:
            return self.outputs[0].dims if self.op.name == "combine_segments" else self.inputs[0].dims
        return self.inputs[1].dims if self.op.name == "dynamic_update_slice" else self.inputs[2].dims

    def rows(self, dims: Sequence[Dim], body: Callable[[list[Any]], None]) -> None:
        """A top-level scf.forall over `dims` whose bodies are independent; at least one iteration."""
        dims = list(dims) or [1]
        dynamic = [self.dim(d) for d in dims if not isinstance(d, int)]
        n = len(dims)
        i64s, i32s = ir.DenseI64ArrayAttr.get, ir.DenseI32ArrayAttr.get
        loop = ir.Operation.create("scf.forall", operands=dynamic, regions=1, attributes={
            "operandSegmentSizes": i32s([0, len(dynamic), 0, 0]), "staticLowerBound": i64s([0] * n),
            "staticUpperBound": i64s([d if isinstance(d, int) else _DYNAMIC for d in dims]),
            "staticStep": i64s([1] * n)})
        work = symbolic.product(self.walked)
        if not isinstance(work, int) or work >= PARALLEL_WORK:
            loop.attributes["xcc.parallel"] = ir.UnitAttr.get()
        block = loop.regions[0].blocks.append(*[ir.IndexType.get()] * n)
        with ir.InsertionPoint(block):
            body(list(block.arguments))
            ends = ir.Operation.create("scf.forall.in_parallel", regions=1)
            ends.regions[0].blocks.append()

    def columns(self, dims: Sequence[Dim],
                body: Callable[[list[Value], Callable[[Callable[[Value], None]], None]], None]) -> None:
        """Rows of neighbours along the last of `dims`, side by side: ``body(rest, each)``, where ``each(f)`` calls f
        for all of them in turn, so that what they write at one place lies together."""
        *outer, last = dims

        def row(c: list[Value]) -> None:
            first = arith_d.muli(c[len(outer)], self.dim(COLUMNS))
            end = arith_d.minsi(arith_d.addi(first, self.dim(COLUMNS)), self.dim(last))
            body(c[:len(outer)], lambda f: self.loop(end, f, first))

        self.rows([*outer, symbolic.ceildiv(last, COLUMNS)], row)

    def fold(self, extent: Any, starts: Sequence[Value], body: Callable[[Any, list[Any]], Sequence[Any]],
             first: Value | None = None) -> list[Value]:
        """scf.for from `first` (0) to `extent` that carries values; `body(i, carried)` gives the next ones."""
        extent = extent if isinstance(extent, ir.Value) else self.dim(extent)
        loop = scf_d.ForOp(self.dim(0) if first is None else first, extent, self.dim(1), list(starts))
        with ir.InsertionPoint(loop.body):
            scf_d.YieldOp(list(body(loop.induction_variable, list(loop.inner_iter_args))))
        return list(loop.results)

    def loop(self, extent: Any, body: Callable[[Any], None], first: Value | None = None) -> None:
        """scf.for without values."""
        def step(i: Value, _: list[Any]) -> list[Any]:
            body(i)
            return []

        self.fold(extent, [], step, first)

    def nest(self, dims: Sequence[Dim], body: Callable[[list[Any]], None], outer: Sequence[Value] = ()) -> None:
        """Loops over all of `dims`, row-major."""
        if len(outer) == len(dims):
            body(list(outer))
        else:
            self.loop(dims[len(outer)], lambda i: self.nest(dims, body, [*outer, i]))

    def nest_fold(self, dims: Sequence[Dim], starts: Sequence[Value],
                  body: Callable[[list[Any], list[Any]], Sequence[Any]], outer: Sequence[Value] = ()) -> list[Value]:
        """As `nest`, carrying values through all iterations."""
        if len(outer) == len(dims):
            return list(body(list(outer), list(starts)))
        return self.fold(dims[len(outer)], starts,
                         lambda i, carried: self.nest_fold(dims, carried, body, [*outer, i]))

    def when(self, condition: Value, body: Callable[[], None]) -> None:
        with when(condition):
            body()

    def scratch(self, size: int, dtype: Type) -> Value:
        """A buffer on the stack."""
        return ir.Operation.create("memref.alloca", results=[buffer_type((size,), dtype)], operands=[], attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}).result

    def flat(self, coords: Sequence[Value], dims: Sequence[Any]) -> Value:
        """The row-major position of `coords`; dims may be index values."""
        out = self.dim(0)
        for at, d in zip(coords, dims, strict=True):
            out = arith_d.addi(arith_d.muli(out, d if isinstance(d, ir.Value) else self.dim(d)), at)
        return out

    def unflat(self, position: Value, dims: Sequence[Dim]) -> list[Value]:
        """The coordinates of a row-major position."""
        coords = []
        for d in reversed(dims):
            coords.append(arith_d.remui(position, self.dim(d)))
            position = arith_d.divui(position, self.dim(d))
        return coords[::-1]

    def wrapped(self, value: Value, dtype: Type, extent: Dim) -> Value:
        """A data index made valid: negative ones count from the end, the rest is clamped."""
        at = arith_d.index_cast(ir.IndexType.get(), value)
        negative = arith_d.cmpi(arith_d.CmpIPredicate.slt, at, self.dim(0))
        at = arith_d.select(negative, arith_d.addi(at, self.dim(extent)), at)
        return arith_d.maxsi(arith_d.minsi(at, self.dim(extent - 1)), self.dim(0))


def i64() -> Type:
    return ir.IntegerType.get_signless(64)


def to_i64(index: Value) -> Value:
    return arith_d.index_cast(i64(), index)


def size_of(dims: Sequence[Dim]) -> Dim:
    return symbolic.product(dims)


def true() -> Value:
    return constant(ir.IntegerType.get_signless(1), 1)
