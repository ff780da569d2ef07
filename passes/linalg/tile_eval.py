"""Evaluates tiles of a kernel's values on demand.

``tile(t, indices)`` gives the vector of tensor `t` at one index per dim, each index walking over axes. Kernel
arguments become reads; results of parallel ops become their body applied to the tiles of their operands; results of
reductions become loops with vector accumulators. Whatever was evaluated at the same coordinates in the scope is
reused, so a row that fits in registers is read once however many ops use it (demand-driven evaluation in the manner of
Halide's compute_at, with the schedule given as data).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from xcc import symbolic
from xcc._mlir import ir, scf_d
from xcc.passes.linalg.depth_blocks import DepthBlock, fetch_prior, with_prior
from xcc.passes.linalg.fetch_ahead import fetch_ahead
from xcc.passes.linalg.keep import Part
from xcc.passes.linalg.kernel import Kernel, Op, Tensor, is_packed
from xcc.passes.linalg.number_maximum import number_maxima
from xcc.passes.linalg.online import find_groups
from xcc.passes.linalg.online_loops import OnlineLoops
from xcc.passes.linalg.row_parts import RowParts
from xcc.passes.linalg.schedule import Schedule, joined_loops, reduce_plan
from xcc.passes.linalg.tile_builder import Axis, Builder, Ix, V
from xcc.passes.linalg.tile_memory import LINE_BYTES, Memory
from xcc.passes.vector.tiles import scalar_attr
from xcc.symbolic import Dim

# the combining op of a reduction -> vector.multi_reduction's kind
KINDS = {"arith.addf": "add", "arith.addi": "add", "arith.mulf": "mul", "arith.muli": "mul",
         "arith.maximumf": "maximumf", "arith.minimumf": "minimumf", "arith.maxnumf": "maxnumf",
         "arith.minnumf": "minnumf", "arith.maxsi": "maxsi", "arith.minsi": "minsi", "arith.maxui": "maxui",
         "arith.minui": "minui", "arith.andi": "and", "arith.ori": "or", "arith.xori": "xor"}
EXTENSIONS = ("arith.extf", "arith.extsi", "arith.extui")
REDUCTION_ORDER = 1000
ORDERED_GREATER = 2     # arith.cmpf's ogt


class Evaluator:
    """Evaluates tiles of `kernel` with `builder` at its insertion point, as `schedule` says."""

    def __init__(self, kernel: Kernel, builder: Builder, memory: Memory, schedule: Schedule,
                 lossy: bool = False) -> None:
        self.kernel = kernel
        self.lossy = lossy
        self.b = builder
        self.memory = memory
        self.schedule = schedule
        self.reduce = reduce_plan(kernel, schedule)
        self.joined = joined_loops(kernel, schedule)
        self.full_axes: dict[tuple[str, int, int], Axis] = {}
        self.parked: Tensor | None = None       # its tiles are written to `park`, and read back once all are there
        self.park: Any = None
        self.parking = False
        self.bounds: tuple[Any, Any] | None = None      # of the loop over a product's sum; None: all of it
        self.given: tuple[Op, Callable[[tuple[Axis, ...]], V]] | None = None    # an op whose tiles come from elsewhere
        self.zero_past_limits: set[Any] = set()     # values that are 0 in the lanes past their axes' limits
        self.kept: dict[Tensor, Part] = {}     # values that the chunk has in memory of its own
        self.block: DepthBlock | None = None    # the steps of the contraction that are evaluated; None: all
        self.progress: Any = None              # the tile of rows of the panel, an index, for fetch_ahead
        self.row_parts: RowParts | None = None
        self.online = OnlineLoops(self, find_groups(kernel) if schedule.online else [])
        self.number_maxima = number_maxima(kernel) if schedule.access == "rows" else set()
        if schedule.park >= 0:
            self.parked = kernel.ops[schedule.park].results[0]

    # values ----------------------------------------------------------------------------------------------------
    def tile(self, t: Tensor, indices: Sequence[Ix]) -> V:
        """The tile of `t` at `indices` (one per dim)."""
        key = ("tile", t, tuple(i.key() for i in indices))
        found = self.b.recall(key)
        if found is not None:
            assert isinstance(found, V)
            return found
        if t.producer is None:
            return self.b.remember(key, self._leaf(t, indices))
        if t in self.kept:
            return self.b.remember(key, self.kept[t].load(self.b, self.memory, indices))
        if t is self.parked and self.b.recall(self._park_key(indices)):
            return self.b.remember(key, self.memory.load_from(self.park, self._park_place(indices)))
        results = self._op(t.producer, t.index, indices)
        if t is self.parked and self.parking:
            place = self._park_place(indices)
            self.memory.store(replace(t, dims=t.dims[-len(place):]), self.park, results[0], place)
        for n, r in enumerate(t.producer.results):
            self.b.remember(("tile", r, key[2]), results[n])
        return results[t.index]

    def park_in_scratch(self) -> None:
        """Parks rows on the thread's stack: what is stored past the caches must not have been in them."""
        assert self.parked is not None
        kind = ir.MemRefType.get([int(self.parked.dims[-1])], self.parked.element)  # type: ignore[arg-type]
        self.park = self.b.op("memref.alloca", kind, [], operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]),
                              alignment=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), LINE_BYTES))

    def _park_place(self, indices: Sequence[Ix]) -> Sequence[Ix]:
        """Where in `park`, a result's buffer or one row, the tile at `indices` is."""
        return indices[len(indices) - ir.MemRefType(self.park.type).rank:]

    def _park_key(self, indices: Sequence[Ix]) -> Any:
        return ("parked", tuple(i.key() for i in indices[:-1]))

    def alike(self, result: Tensor) -> list[Tensor]:
        """The arguments of the shape of `result` that lie as it does: read at its coordinates but for the last."""
        from xcc.passes.linalg.domain import domain

        place = domain(self.kernel)
        if place.dims != result.dims:
            return []
        outer = tuple(symbolic.sym(f"i{d}") for d in range(len(place.dims) - 1))
        return list(dict.fromkeys(t for t, access in place.reads if t.arg >= 0 and t.dims == result.dims
                                  and tuple(access[:-1]) == outer))

    def _leaf(self, t: Tensor, indices: Sequence[Ix]) -> V:
        if t.constant is not None and t.constant.is_splat:
            return V(self.b.constant(t.constant.get_splat_value(), t.element))
        if t.constant is not None and all(i.base is None and i.vec is None for i in indices):
            return self._known(t, indices)
        return self.memory.load(t, indices)

    def _known(self, t: Tensor, indices: Sequence[Ix]) -> V:
        """Elements of a constant at known places, as a constant; past an axis's limit the last one counts."""
        axes = tuple(dict.fromkeys(a for i in indices for a in i.axes))
        sizes = [d for d in t.dims if isinstance(d, int)]
        elements = list(t.constant)
        values = []
        for at in itertools.product(*(range(a.size) for a in axes)):
            lane, place = dict(zip(axes, at, strict=True)), 0
            for i, size in zip(indices, sizes, strict=True):
                place = place * size + min(i.const + sum(c * lane[a] for a, c in i.coefs), size - 1)
            values.append(elements[place])
        if not axes:
            return V(self.b.constant(scalar_attr(t.element, values[0]), t.element))
        kind = ir.VectorType.get([a.size for a in axes], t.element)
        attr = ir.DenseElementsAttr.get([scalar_attr(t.element, v) for v in values], kind)
        return V(self.b.constant(attr, kind), axes)

    def _op(self, op: Op, result: int, indices: Sequence[Ix]) -> list[V]:
        env = {str(e): i for e, i in zip(op.outs[result], indices, strict=True)}
        if op.operation is None:  # unit reshape
            t, access = op.inputs[0]
            return [self.tile(t, [self.b.access(e, env) for e in access])]
        if not op.is_reduction:
            return self.body(op, env, {})
        return self._reduce(op, env, tuple(dict.fromkeys(a for i in indices for a in i.axes)))

    # bodies ----------------------------------------------------------------------------------------------------
    def body(self, op: Op, env: dict[str, Ix], accumulators: dict[int, V]) -> list[V]:
        """The values yielded by the op's body at loop indices `env`; `accumulators` replaces output arguments."""
        yielded = list(op.block.operations)[-1]
        arguments = list(op.block.arguments)
        values: dict[Any, V | Ix] = {arguments[len(op.inputs) + n]: v for n, v in accumulators.items()}
        return [self._as_value(self._inner(v, op, env, values)) for v in yielded.operands]

    def body_value(self, op: Op, v: Any, env: dict[str, Ix], narrow: bool = False) -> V:
        """One value of the op's body; with `narrow`, what it was before a widening conversion."""
        return self._as_value(self._inner(_narrow(v) if narrow else v, op, env, {}))

    def _inner(self, v: Any, op: Op, env: dict[str, Ix], values: dict[Any, V | Ix]) -> V | Ix:
        """A value of the body, evaluated when first needed."""
        if v in values:
            return values[v]
        owner = v.owner
        if isinstance(owner, ir.Block):
            if owner == op.block:
                t, access = op.inputs[v.arg_number]
                tile = self.tile(t, [self.b.access(e, env) for e in access])
                result: V | Ix = tile
                if isinstance(v.type, ir.IndexType):
                    result = Ix(vec=tile) if tile.axes else self.b.ix_of(tile.value)
            else:
                result = self._outer(v)
        elif owner.operation.block != op.block:
            result = self._outer(v)
        else:
            result = self._inner_op(owner, v, op, env, values)
        values[v] = result
        return result

    def _outer(self, v: Any) -> V | Ix:
        """A value defined outside the body: a symbol, a constant, index arithmetic on them."""
        for name, symbol in self.kernel.symbols.items():
            if v == symbol:
                return self.b.ix_of(self.b.symbols[name])
        owner = v.owner
        if not isinstance(owner, ir.Block) and owner.name == "arith.constant":
            constant = V(self.b.constant(owner.attributes["value"], v.type))
            return self.b.ix_of(constant.value) if isinstance(v.type, ir.IndexType) else constant
        if isinstance(v.type, ir.IndexType):
            operands = [self._as_index(self._outer(x)) for x in owner.operands]
            return self._index_op(owner.name, operands)
        operands_v = [self._as_value(self._outer(x)) for x in owner.operands]
        return self.b.elementwise(owner.name, v.type, operands_v, attributes_of(owner))

    def _inner_op(self, owner: Any, v: Any, op: Op, env: dict[str, Ix], values: dict[Any, V | Ix]) -> V | Ix:
        name = owner.name
        if name == "linalg.index":
            return env[f"i{int(owner.attributes['dim'].value)}"] if f"i{int(owner.attributes['dim'].value)}" in env \
                else Ix()
        if name == "arith.constant":
            constant = self.b.constant(owner.attributes["value"], v.type)
            return self.b.ix_of(constant) if isinstance(v.type, ir.IndexType) else V(constant)
        if name == "tensor.extract":
            t = self.kernel.by_value[owner.operands[0]]
            indices = [self._as_index(self._inner(x, op, env, values)) for x in list(owner.operands)[1:]]
            return self.tile(t, [indices[group[0]] for group in t.groups])
        if name == "arith.select":
            guarded = self._guarded_read(owner, op, env, values)
            if guarded is not None:
                return guarded
        operands = [self._inner(x, op, env, values) for x in owner.operands]
        if isinstance(v.type, ir.IndexType):
            if name in ("arith.index_cast", "arith.index_castui") and isinstance(operands[0], V):
                cast = self.b.elementwise(name, v.type, [operands[0]], {})
                return Ix(vec=cast) if cast.axes else self.b.ix_of(cast.value)
            if name == "arith.select":
                picked = self.b.elementwise(name, v.type, [self._as_value(x) for x in operands], {})
                return Ix(vec=picked) if picked.axes else self.b.ix_of(picked.value)
            return self._index_op(name, [self._as_index(x) for x in operands])
        return self.b.elementwise(name, v.type, [self._as_value(x) for x in operands], attributes_of(owner))

    def _guarded_read(self, owner: Any, op: Op, env: dict[str, Ix], values: dict[Any, V | Ix]) -> V | None:
        """select(test, element of an argument, 0): a gather of the elements that pass the test alone."""
        read, other = owner.operands[1].owner, owner.operands[2].owner
        if isinstance(read, ir.Block) or isinstance(other, ir.Block) or read.name != "tensor.extract" \
                or other.name != "arith.constant" or not _is_zero(other.attributes["value"]):
            return None
        t = self.kernel.by_value[read.operands[0]]
        if t.producer is not None or t.constant is not None:
            return None
        indices = [self._as_index(self._inner(x, op, env, values)) for x in list(read.operands)[1:]]
        indices = [indices[group[0]] for group in t.groups]
        if not self.memory.gathers(t, indices):
            return None
        return self.memory.load(t, indices, self._as_value(self._inner(owner.operands[0], op, env, values)))

    def _index_op(self, name: str, operands: Sequence[Ix]) -> Ix:
        a, b = operands
        if name == "arith.addi":
            return self.b.ix_add(a, b)
        if name == "arith.subi":
            return self.b.ix_add(a, self.b.ix_scale(b, -1))
        if name == "arith.muli":
            for x, y in ((a, b), (b, a)):
                if not y.axes and y.base is None:
                    return self.b.ix_scale(x, y.const)
        return self.b.ix_vector(name, a, b)

    def _as_index(self, x: V | Ix) -> Ix:
        if isinstance(x, Ix):
            return x
        return Ix(vec=x) if x.axes else self.b.ix_of(x.value)

    def _as_value(self, x: V | Ix) -> V:
        return x if isinstance(x, V) else self.b.vector(x)

    # reductions --------------------------------------------------------------------------------------------------
    def _reduce(self, op: Op, env: dict[str, Ix], out_axes: tuple[Axis, ...]) -> list[V]:
        out_axes = tuple(sorted(out_axes, key=lambda a: a.order))
        if self.given is not None and op is self.given[0]:
            return [self.given[1](out_axes)]
        if self.row_parts is not None:
            merged = self.row_parts.merged(op, [env[str(o)] for o in op.outs[0]])
            if merged is not None:
                return [merged]
        reduction = Reduction(self, op, env, out_axes)
        self.hoist(op.inputs, env)
        parked = [a for t, a in op.inputs if t is self.parked and self.park is not None]
        if not parked:
            return reduction.emit()
        key = self._park_key([self.b.access(e, env) for e in parked[0][:-1]] + [Ix()])
        self.parking = not self.b.recall(key)
        results = reduction.emit()
        self.parking = False
        self.b.remember(key, True)
        return results

    def hoist(self, reads: Sequence[tuple[Tensor, tuple[Dim, ...]]], env: dict[str, Ix]) -> None:
        """Evaluates here the reductions behind `reads` whose coordinates `env` already gives.

        Later, inside a loop, they are found instead of computed again.
        """
        for t, access in reads:
            op = t.producer
            if op is None or t in self.kept:
                continue
            if op.is_reduction:
                if op in self.online.ops:
                    continue
                if all(name in env or name in self.kernel.symbols for e in access for name in symbolic.symbols_of(e)):
                    self.tile(t, [self.b.access(e, env) for e in access])
                continue
            inner = {str(o): e for o, e in zip(op.outs[t.index], access, strict=True)}
            self.hoist([(s, tuple(symbolic.substitute(e, inner) for e in a)) for s, a in op.inputs], env)

    def full_axis(self, size: Dim, lanes: int, taken: Sequence[Axis]) -> Axis:
        """The axis that holds a whole dim; the same object for equal dims, unless it is `taken`."""
        variant = 0
        while True:
            key = (str(size), lanes, variant)
            if key not in self.full_axes:
                limit = None if size == lanes else self.b.dim(size)
                self.full_axes[key] = Axis(lanes, REDUCTION_ORDER + variant, limit)
            if self.full_axes[key] not in taken:
                return self.full_axes[key]
            variant += 1


class Reduction:
    """One reduction evaluated at one output tile: loops, accumulators, final combination across lanes."""

    def __init__(self, ev: Evaluator, op: Op, env: dict[str, Ix], out_axes: tuple[Axis, ...]) -> None:
        self.ev, self.b, self.op, self.env, self.out_axes = ev, ev.b, op, env, out_axes
        self.loops = [p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1]
        self.block = ev.block if ev.block is not None and ev.block.op is op else None
        self.combiners = [combiner(op, n) for n in range(len(op.results))]
        self.product = product_operands(op)
        lanes = ev.reduce[op]
        if any(c is None for c in self.combiners):
            lanes = {p: min(n, 1) for p, n in lanes.items()}
        self.joined = ev.joined.get(op, ())
        if self.joined:
            self.loops = [self.joined[-1]]
        self.lanes = {p: lanes[p] for p in self.loops}
        self.sizes = {p: op.loops[p] for p in self.loops}
        if self.joined:
            self.sizes[self.joined[-1]] = symbolic.product([op.loops[p] for p in self.joined])
        self.axes: dict[int, Axis] = {}
        taken = list(out_axes)
        for p in self.loops:
            n, size = self.lanes[p], self.sizes[p]
            if n > 1:
                whole = isinstance(size, int) and size <= n
                self.axes[p] = ev.full_axis(size, n, taken) if whole else Axis(n, REDUCTION_ORDER + 100 + p)
                taken.append(self.axes[p])
        self.contract = self.product is not None and bool(self.axes) and (ev.schedule.dot or self._two_sided())
        self.acc_axes = out_axes if self.contract else (*out_axes, *self.axes.values())
        self.current = dict(self.axes)

    def _two_sided(self) -> bool:
        """Whether each factor walks an axis of the result that the other does not: a matrix product, not a dot.

        In a loop over blocks (online) the second factor may do so alone: each block is a vector times a matrix.
        """
        assert self.product is not None
        used = [loops_of(self.op, v) for v in self.product]
        walked = {p for p in range(len(self.op.loops)) if f"i{p}" in self.env and self.env[f"i{p}"].axes}
        return bool(walked & (used[1] - used[0])) and (bool(walked & (used[0] - used[1])) or self.ev.schedule.online)

    def emit(self) -> list[V]:
        accs = [self.neutral(n, self.acc_axes) for n in range(len(self.op.results))]
        if self.block is not None and self.block.prior:
            indices = [self.env[str(e)] for e in self.op.outs[0]]
            fetch_prior(self.b, self.block, indices)
            accs = [with_prior(self.ev, self.run(0, dict(self.env), accs)[0], indices)]
        else:
            accs = self.run(0, dict(self.env), accs)
        if self.contract or not self.axes:
            return accs
        return [self.combine_lanes(n, a) for n, a in enumerate(accs)]

    def neutral(self, n: int, axes: tuple[Axis, ...]) -> V:
        fill = self.op.neutral[n]
        constant = fill.owner.attributes["value"]
        return self.b.broadcast(V(self.b.constant(constant, fill.type)), axes)

    def run(self, at: int, env: dict[str, Ix], accs: list[V]) -> list[V]:
        """The loops from number `at` on."""
        if at == len(self.loops):
            if self.joined:
                parts = self.b.parts(env[f"i{self.joined[-1]}"], [self.op.loops[p] for p in self.joined])
                env = {**env, **{f"i{p}": i for p, i in zip(self.joined, parts, strict=True)}}
            return self.accumulate(env, accs)
        p = self.loops[at]
        size, n, name = self.sizes[p], self.lanes[p], f"i{p}"
        if n == 0 and isinstance(size, int):
            for i in range(size):
                accs = self.run(at + 1, {**env, name: Ix(const=i)}, accs)
            return accs
        part = self.ev.row_parts.range(self.op, size, n) if self.ev.row_parts is not None and n > 1 else None
        if part is not None:
            end = None if isinstance(size, int) and size % n == 0 else self.b.dim(size)
            return self.loop(at, env, accs, *part, n, self.walk(p, end))
        if n <= 1:
            low, high = self.b.int(0), self.b.dim(size)
            if self.block is not None:
                low, high = self.block.low, self.b.add(self.block.low, self.b.int(self.block.size))
            return self.loop(at, env, accs, low, high, 1, lambda iv: Ix(base=iv))
        if self.ev.bounds is not None and self.contract:
            end = None if isinstance(size, int) and size % n == 0 else self.b.dim(size)
            return self.loop(at, env, accs, *self.ev.bounds, n, self.walk(p, end))
        if isinstance(size, int) and size <= n:
            return self.run(at + 1, {**env, name: Ix(coefs=((self.axes[p], 1),))}, accs)
        if self.ev.schedule.tail == "mask" and not (isinstance(size, int) and size % n == 0):
            return self.loop(at, env, accs, self.b.int(0), self.b.dim(size), n, self.walk(p, self.b.dim(size)))
        whole = size - symbolic.mod(size, n)
        if whole != 0:
            accs = self.loop(at, env, accs, self.b.int(0), self.b.dim(whole), n, self.walk(p, None))
        if isinstance(size, int) and size % n:
            axis = self.current[p] = Axis(n, self.axes[p].order, self.b.int(size % n))
            return self.run(at + 1, {**env, name: Ix(const=size - size % n, coefs=((axis, 1),))}, accs)
        if not isinstance(size, int) and symbolic.mod(size, n) != 0:
            accs = self.loop(at, env, accs, self.b.dim(whole), self.b.dim(size), n, self.walk(p, self.b.dim(size)))
        return accs

    def walk(self, p: int, end: Any) -> Callable[[Any], Ix]:
        """The index of loop p at a loop variable: a fresh axis, limited by `end` when given."""
        def at(iv: Any) -> Ix:
            n = self.axes[p].size
            limit = None
            if end is not None:
                limit = self.b.binary("arith.minsi", self.b.int(n), self.b.sub(end, iv))
            self.current[p] = Axis(n, self.axes[p].order, limit)
            return Ix(base=iv, coefs=((self.current[p], 1),))
        return at

    def loop(self, at: int, env: dict[str, Ix], accs: list[V], low: Any, high: Any, step: int,
             index: Callable[[Any], Ix]) -> list[V]:
        first, end = self.b.as_int(low), self.b.as_int(high)
        if first is not None and end is not None and end - first == step:
            return self.run(at + 1, {**env, f"i{self.loops[at]}": self.fixed(index(low))}, accs)
        loop = scf_d.ForOp(low, high, self.b.int(step), [a.value for a in accs])
        with ir.InsertionPoint(loop.body), self.b.scope():
            inner = [V(v, a.axes) for v, a in zip(loop.inner_iter_args, accs, strict=True)]
            env = {**env, f"i{self.loops[at]}": index(loop.induction_variable)}
            if not self.joined:
                self.ev.hoist(self.op.inputs, env)
            out = self.run(at + 1, env, inner)
            scf_d.YieldOp([v.value for v in out])
        return [V(v, a.axes) for v, a in zip(loop.results, accs, strict=True)]

    def fixed(self, i: Ix) -> Ix:
        """A constant base as `const`, so that equal coordinates have equal keys."""
        n = None if i.base is None else self.b.as_int(i.base)
        return i if n is None else Ix(None, i.const + n, i.coefs)

    def accumulate(self, env: dict[str, Ix], accs: list[V]) -> list[V]:
        """One step: the body at `env` combined into the accumulators."""
        now = {self.axes[p]: self.current[p] for p in self.axes}
        back = {v: k for k, v in now.items()}
        tagged = [V(a.value, tuple(now.get(x, x) for x in a.axes)) for a in accs]
        if self.product is not None and self.ev.schedule.prefetch:
            self.prefetch(env)
        if self.ev.schedule.shares:
            fetch_ahead(self.ev, self.op, env)
        if self.contract:
            new = [self.contraction(env, tagged[0])]
        elif self.product is not None and self.combiners[0] == "arith.addf":
            total = list(self.op.block.operations)[-1].operands[0].owner
            p, q = (self.ev.body_value(self.op, v, env) for v in self.product)
            new = [self.b.elementwise("math.fma", self.op.results[0].element,
                                      [self.b.broadcast(v, tagged[0].axes) for v in (p, q)] + [tagged[0]],
                                      {k: v for k, v in total.attributes.items() if k == "fastmath"})]
        elif self.op in self.ev.number_maxima:
            new = [self.greater(env, tagged[0])]
        elif self.first_of_lanes(tagged[0]):
            new = [self.summand(env)]
        else:
            new = self.ev.body(self.op, env, dict(enumerate(tagged)))
        out = []
        limited = tuple(a for a in now.values() if a.limit is not None)
        for a, v in zip(tagged, new, strict=True):
            v = self.b.broadcast(v, a.axes)
            if limited and not self.contract:
                mask = self.b.mask(limited)
                assert mask is not None
                lanes = self.b.broadcast(mask, a.axes)
                v = V(self.b.op("arith.select", v.value.type, [lanes.value, v.value, a.value]), a.axes)
            out.append(V(v.value, tuple(back.get(x, x) for x in v.axes)))
        return out

    def first_of_lanes(self, acc: V) -> bool:
        """Whether lanes are summed up later and there is nothing yet but the zeros to start with."""
        lanes = bool(self.axes) and self.combiners == ["arith.addf"] and _is_zero(
            self.op.neutral[0].owner.attributes["value"])
        return lanes and _is_fill(acc)

    def summand(self, env: dict[str, Ix]) -> V:
        """What the body adds to the accumulator at `env`."""
        total = list(self.op.block.operations)[-1].operands[0].owner
        accumulator = self.op.block.arguments[len(self.op.inputs)]
        return self.ev.body_value(self.op, next(v for v in total.operands if v != accumulator), env)

    def greater(self, env: dict[str, Ix], acc: V) -> V:
        """The greater of the summand at `env` and `acc`; either where one is NaN."""
        t, access = self.op.inputs[0]
        x = self.b.broadcast(self.ev.tile(t, [self.b.access(e, env) for e in access]), acc.axes)
        if _is_fill(acc):
            return x            # the first: there is nothing but the neutral element yet
        kind = acc.value.type
        bits = ir.VectorType.get(ir.VectorType(kind).shape, self.b.i1) if isinstance(kind, ir.VectorType) else self.b.i1
        above = self.b.op("arith.cmpf", bits, [x.value, acc.value],
                          predicate=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ORDERED_GREATER))
        return V(self.b.op("arith.select", kind, [above, x.value, acc.value]), acc.axes)

    def prefetch(self, env: dict[str, Ix]) -> None:
        """Asks for the row of the packed operand that will be read `schedule.prefetch` steps from now."""
        for t, access in self.op.inputs:
            if t.arg < 0 or not is_packed(access):
                continue
            *outer, row, lane = (self.b.access(e, env) for e in access)
            if not any(i.axes for i in (*outer, row)) and lane.vec is None:
                ahead = self.b.add(self.b.scalar(row), self.b.int(self.ev.schedule.prefetch))
                self.ev.memory.prefetch(t, [*(self.b.scalar(i) for i in outer), ahead], lane)

    def contraction(self, env: dict[str, Ix], acc: V) -> V:
        """acc + the product of two tiles summed over the reduction axes, as vector.contract."""
        assert self.product is not None
        reduced = set(self.current.values())
        narrow = len({_narrow(v).type for v in self.product}) == 1
        lhs, rhs = (self.zero_invalid(self.ev.body_value(self.op, v, env, narrow), reduced) for v in self.product)
        axes = list(dict.fromkeys((*acc.axes, *lhs.axes, *rhs.axes)))
        maps = [ir.AffineMapAttr.get(ir.AffineMap.get(
            len(axes), 0, [ir.AffineDimExpr.get(axes.index(a)) for a in v.axes])) for v in (lhs, rhs, acc)]
        kinds = [ir.Attribute.parse(f"#vector.iterator_type<{'reduction' if a in reduced else 'parallel'}>")
                 for a in axes]
        value = self.b.op("vector.contract", acc.value.type, [lhs.value, rhs.value, acc.value],
                          indexing_maps=ir.ArrayAttr.get(maps), iterator_types=ir.ArrayAttr.get(kinds),
                          kind=ir.Attribute.parse("#vector.kind<add>"),
                          **({"xcc.lossy": ir.UnitAttr.get()} if self.ev.lossy else {}), **self.signs())
        return V(value, acc.axes)

    def signs(self) -> dict[str, Any]:
        """``xcc.unsigned``: the numbers of the operands whose elements are extended with zeros."""
        assert self.product is not None
        found = [n for n, v in enumerate(self.product)
                 if not isinstance(v.owner, ir.Block) and v.owner.name == "arith.extui"]
        return {"xcc.unsigned": ir.DenseI64ArrayAttr.get(found)} if found else {}

    def zero_invalid(self, v: V, reduced: set[Axis]) -> V:
        limited = tuple(a for a in v.axes if a in reduced and a.limit is not None)
        source = v.value
        while not isinstance(source.owner, ir.Block) and source.owner.name in ("arith.extf", "arith.truncf"):
            source = source.owner.operands[0]
        if not limited or source in self.ev.zero_past_limits \
                or v.value.owner.name in ("vector.transfer_read", "vector.gather"):  # masked lanes are 0
            return v
        mask = self.b.mask(limited)
        assert mask is not None
        element = ir.VectorType(v.value.type).element_type
        zero = ir.FloatAttr.get(element, 0.0) if not isinstance(element, ir.IntegerType) \
            else ir.IntegerAttr.get(element, 0)
        lanes = self.b.broadcast(mask, v.axes)
        return V(self.b.op("arith.select", v.value.type,
                           [lanes.value, v.value, self.b.splat(zero, [a.size for a in v.axes])]), v.axes)

    def combine_lanes(self, n: int, acc: V) -> V:
        """Reduces the accumulator's reduction axes to the output axes."""
        kind = KINDS[str(self.combiners[n])]
        lanes = set(self.axes.values())
        dims = [d for d, a in enumerate(acc.axes) if a in lanes]
        element = ir.VectorType(acc.value.type).element_type
        rest = tuple(a for a in acc.axes if a not in lanes)
        start = self.neutral(n, rest)
        result = ir.VectorType.get([a.size for a in rest], element) if rest else element
        value = self.b.op("vector.multi_reduction", result, [acc.value, start.value],
                          kind=ir.Attribute.parse(f"#vector.kind<{kind}>"),
                          reduction_dims=ir.DenseI64ArrayAttr.get(dims),
                          **({"xcc.numbers": ir.UnitAttr.get()} if self.op in self.ev.number_maxima else {}))
        return V(value, rest)


def _is_fill(v: V) -> bool:
    """Whether `v` is what accumulators begin with."""
    return not isinstance(v.value.owner, ir.Block) and v.value.owner.name in ("arith.constant", "vector.broadcast")


def _is_zero(attr: Any) -> bool:
    return isinstance(attr, ir.IntegerAttr | ir.FloatAttr) and not attr.value


def attributes_of(op: Any) -> dict[str, Any]:
    """Every attribute of an op, by name."""
    return dict(op.attributes.items())


def combiner(op: Op, n: int) -> str | None:
    """The op that combines result n's accumulator with the new value, when a lane reduction can do the same."""
    accumulator = op.block.arguments[len(op.inputs) + n]
    yielded = list(op.block.operations)[-1].operands[n]
    owner = yielded.owner
    if isinstance(owner, ir.Block) or owner.name not in KINDS or len(op.results) != 1:
        return None
    return owner.name if accumulator in list(owner.operands) else None


def product_operands(op: Op) -> tuple[Any, Any] | None:
    """The factors (body values) of a sum of products over different tensors' loops, else None."""
    if combiner(op, 0) not in ("arith.addf", "arith.addi") or len(op.inputs) < 2:
        return None
    total = list(op.block.operations)[-1].operands[0].owner
    accumulator = op.block.arguments[len(op.inputs)]
    factors = [v for v in total.operands if v != accumulator]
    if len(factors) != 1 or isinstance(factors[0].owner, ir.Block):
        return None
    product = factors[0].owner
    if product.name not in ("arith.mulf", "arith.muli"):
        return None
    used = [loops_of(op, v) for v in product.operands]
    shared = {n for n, r in enumerate(op.reduction) if r}
    if used[0] - shared == used[1] - shared and not (used[0] ^ used[1]):
        return None
    return product.operands[0], product.operands[1]


def loops_of(op: Op, value: Any) -> set[int]:
    """The loops that a body value depends on through the inputs it reads."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        if owner != op.block or value.arg_number >= len(op.inputs):
            return set()
        return {int(s[1:]) for e in op.inputs[value.arg_number][1] for s in symbolic.symbols_of(e)}
    if owner.name == "linalg.index":
        return {int(owner.attributes["dim"].value)}
    return set().union(*(loops_of(op, v) for v in owner.operands), set())


def _narrow(value: Any) -> Any:
    """What a widening conversion reads, or the value itself."""
    extended = not isinstance(value.owner, ir.Block) and value.owner.name in EXTENSIONS
    return value.owner.operands[0] if extended else value
