"""Sums of exponentials relative to a maximum over the same loop, in one pass over it.

A kernel that holds m = max_k x[k] and sums over k of exp(x[k] - m) * w[k] needs m before it can begin to add. Every
such sum is exp(-m) times a sum without m, so one begun with a smaller maximum is put right by a factor:

    for k:                                 # a block of keys at a time
        m' = max(m, x[k])
        s  = s * exp(m - m') + exp(x[k] - m') * w[k]        # for each of the sums
        m  = m'

With w = 1 this is the normaliser of a softmax (Milakov and Gimelshein, "Online normalizer calculation for softmax",
2018, arXiv:1805.02867); with w the values of attention it is flash attention (Dao et al., 2022, arXiv:2205.14135; Dao,
2023, arXiv:2307.08691). The rewrite knows neither: it looks for the algebra, in the ops of a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xcc import symbolic
from xcc._mlir import ir, scf_d
from xcc.passes.linalg.kernel import Access, Kernel, Op, Tensor, index_to_dim
from xcc.passes.linalg.tile_builder import Axis, Ix, V
from xcc.symbolic import Dim

if TYPE_CHECKING:
    from xcc.passes.linalg.tile_eval import Evaluator

__all__ = ["OnlineGroup", "OnlineSum", "find_groups"]

CONVERSIONS = ("arith.extf", "arith.truncf")
SIGNED_LESS_OR_EQUAL = 3
MAXIMA = ("arith.maximumf", "arith.maxnumf")
LOWEST = {"f16": -65504.0, "bf16": -3.3895313892515355e38, "f32": -3.4028234663852886e38,
          "f64": -1.7976931348623157e308}


@dataclass(frozen=True, eq=False)
class OnlineSum:
    """One sum: its op, the loop it shares with the maximum, where in the maximum it looks (over its own loops)."""

    op: Op
    loop: int
    row: Access


@dataclass(frozen=True, eq=False)
class OnlineGroup:
    """A maximum with the sums that depend on it; `x` is what it is the maximum of, `start` what it begins with."""

    maximum: Op
    loop: int
    x: Tensor
    x_access: Access
    start: float
    sums: tuple[OnlineSum, ...]


# finding ---------------------------------------------------------------------------------------------------------
def find_groups(kernel: Kernel) -> list[OnlineGroup]:
    """The groups of `kernel`, whatever its schedule."""
    found: dict[Op, tuple[float, list[OnlineSum]]] = {}
    for op in kernel.ops:
        match = _sum(op)
        if match is not None:
            found.setdefault(match[0], (match[1], []))[1].append(match[2])
    out = []
    for maximum, (start, sums) in found.items():
        x, access = _summand(maximum)
        out.append(OnlineGroup(maximum, _one_loop(maximum), x, access, start, tuple(sums)))
    return out


def _one_loop(op: Op) -> int:
    loops = [p for p, r in enumerate(op.reduction) if r and op.loops[p] != 1]
    return loops[0] if len(loops) == 1 else -1


def _summand(op: Op) -> tuple[Tensor, Access]:
    return op.inputs[0]


def _sum(op: Op) -> tuple[Op, float, OnlineSum] | None:
    """The maximum that the summands of `op` are relative to, and where it starts; None when it is no such sum."""
    from xcc.passes.linalg.tile_eval import combiner, product_operands

    if op.operation is None or not op.is_reduction or _one_loop(op) < 0 or combiner(op, 0) != "arith.addf":
        return None
    factors = product_operands(op)
    candidates: list[tuple[Tensor, Access]] = []
    for v in factors or ():
        while not isinstance(v.owner, ir.Block) and v.owner.name in CONVERSIONS:
            v = v.owner.operands[0]
        if isinstance(v.owner, ir.Block) and v.arg_number < len(op.inputs):
            candidates.append(op.inputs[v.arg_number])
    if factors is None and len(op.inputs) == 1 and len(list(op.block.operations)) == 2:
        candidates = [op.inputs[0]]
    key = f"i{_one_loop(op)}"
    for t, access in candidates:
        found = _relative(t, access, key)
        if found is None:
            continue
        others = [s for s, _ in op.inputs if s is not t]
        if not any(_depends(s, found[0]) for s in others):
            return found[0], found[1], OnlineSum(op, _one_loop(op), found[2])
    return None


def _relative(t: Tensor, access: Access, key: str) -> tuple[Op, float, Access] | None:
    """(maximum, start, its coordinates) where t[access] = exp(x[...] - maximum of x over `key`)."""
    e = _steps(t, access, CONVERSIONS)
    power = _parallel(*e)
    if power is None or power[0] not in ("math.exp",):
        return None
    difference = _parallel(*power[1][0])
    if difference is None or difference[0] != "arith.subf" or len(difference[1]) != 2:
        return None
    (x, x_access), (top, top_access) = difference[1]
    start: float | None = None
    bounded = _parallel(top, top_access)
    if bounded is not None and bounded[0] in MAXIMA and len(bounded[1]) == 1 and bounded[2] is not None:
        start = bounded[2]
        top, top_access = bounded[1][0]
    maximum = top.producer
    if maximum is None or maximum.operation is None or not maximum.is_reduction or len(maximum.inputs) != 1:
        return None
    from xcc.passes.linalg.tile_eval import combiner

    if combiner(maximum, 0) not in MAXIMA or _one_loop(maximum) < 0 or len(list(maximum.block.operations)) != 2:
        return None
    if any(key in symbolic.symbols_of(d) for d in top_access):
        return None
    env: dict[str, Dim] = {str(o): d for o, d in zip(maximum.outs[0], top_access, strict=True)}
    env[f"i{_one_loop(maximum)}"] = symbolic.sym(key)
    same, same_access = _summand(maximum)
    if same is not x or tuple(symbolic.substitute(d, env) for d in same_access) != tuple(x_access):
        return None
    if start is None:
        start = LOWEST.get(str(top.element))
    return None if start is None else (maximum, start, top_access)


def _parallel(t: Tensor, access: Access) -> tuple[str, list[tuple[Tensor, Access]], float | None] | None:
    """(op, operands, constant operand) when t[access] is one arith or math op on tensors and at most one constant."""
    t, access = _steps(t, access, ())
    op = t.producer
    if op is None or op.operation is None or op.is_reduction:
        return None
    inner = [o.operation for o in op.block.operations]
    if len(inner) != 2 or inner[1].operands[0].owner != inner[0]:
        return None
    env = {str(o): d for o, d in zip(op.outs[t.index], access, strict=True)}
    operands: list[tuple[Tensor, Access]] = []
    constant: float | None = None
    for v in inner[0].operands:
        if isinstance(v.owner, ir.Block) and v.owner == op.block and v.arg_number < len(op.inputs):
            s, a = op.inputs[v.arg_number]
            if s.constant is not None and s.constant.is_splat:
                constant = float(s.constant.get_splat_value().value)
            else:
                operands.append((s, tuple(symbolic.substitute(d, env) for d in a)))
        elif not isinstance(v.owner, ir.Block) and v.owner.name == "arith.constant":
            constant = float(v.owner.attributes["value"].value)
        else:
            return None
    return inner[0].name, operands, constant


def _steps(t: Tensor, access: Access, names: Sequence[str]) -> tuple[Tensor, Access]:
    """Past unit reshapes and ops of `names`."""
    while t.producer is not None:
        op = t.producer
        if op.operation is None:
            env = {str(o): d for o, d in zip(op.outs[t.index], access, strict=True)}
            t, access = op.inputs[0][0], tuple(symbolic.substitute(d, env) for d in op.inputs[0][1])
            continue
        found = _parallel(t, access) if names and not op.is_reduction else None
        if found is None or found[0] not in names:
            break
        t, access = found[1][0]
    return t, access


def _depends(t: Tensor, op: Op) -> bool:
    return t.producer is not None and (t.producer is op or any(_depends(s, op) for s, _ in t.producer.inputs))


def _last_visible(kernel: Kernel, g: OnlineGroup) -> Dim | None:
    """The last key, over the maximum's loops, of which x is not -inf, from x = select(key <= row + c, y, -inf)."""
    t, access = _steps(g.x, g.x_access, ())
    choice = _parallel(t, access)
    if choice is None or choice[0] != "arith.select" or choice[2] != float("-inf") or len(choice[1]) != 2:
        return None
    assert t.producer is not None
    first = next(iter(t.producer.block.operations))
    if isinstance(first.operands[2].owner, ir.Block):      # what is chosen elsewhere is not the constant
        return None
    test_t, test_access = _steps(*choice[1][0], ())
    test = _parallel(test_t, test_access)
    if test is None or test[0] != "arith.cmpi" or len(test[1]) != 2 or test_t.producer is None:
        return None
    if int(next(iter(test_t.producer.block.operations)).attributes["predicate"].value) != SIGNED_LESS_OR_EQUAL:
        return None
    left, right = (_ramp(kernel, *operand) for operand in test[1])
    if left is None or right is None:
        return None
    key = f"i{g.loop}"
    start = left - symbolic.sym(key)
    if any(key in symbolic.symbols_of(d) for d in (start, right)):
        return None
    return right - start


def _ramp(kernel: Kernel, t: Tensor, access: Access) -> Dim | None:
    """t[access] as an expression over loops and symbols, when it is made of loop indices, symbols and sums."""
    t, access = _steps(t, access, ())
    op = t.producer
    if op is None or op.operation is None or op.is_reduction:
        return None
    added = _parallel(t, access)
    if added is not None:
        if added[0] != "arith.addi" or not added[1]:
            return None
        parts = [_ramp(kernel, *operand) for operand in added[1]]
        total: Dim = int(added[2] or 0)
        for part in parts:
            if part is None:
                return None
            total = total + part
        return total
    env = {str(o): d for o, d in zip(op.outs[t.index], access, strict=True)}
    cast = list(op.block.operations)[-1].operands[t.index].owner
    if isinstance(cast, ir.Block) or cast.name != "arith.index_cast":
        return None
    source = cast.operands[0]
    if not isinstance(source.owner, ir.Block) and source.owner.name == "linalg.index":
        return env.get(f"i{int(source.owner.attributes['dim'].value)}", 0)
    if isinstance(source.owner, ir.Block) and source.owner == op.block:
        return None
    return index_to_dim(source, {value: name for name, value in kernel.symbols.items()})


# evaluating ------------------------------------------------------------------------------------------------------
class OnlineLoops:
    """Evaluates the groups of a kernel for an Evaluator."""

    def __init__(self, ev: Evaluator, groups: list[OnlineGroup]) -> None:
        self.ev, self.b = ev, ev.b
        self.groups = [g for g in groups if self._fits(g)]
        self.ops = {s.op for g in self.groups for s in g.sums} | {g.maximum for g in self.groups}

    def _fits(self, g: OnlineGroup) -> bool:
        """Whether the loop has more than one step, and the same for all."""
        lanes = self.ev.reduce[g.maximum][g.loop]
        size = g.maximum.loops[g.loop]
        return lanes > 1 and not (isinstance(size, int) and size <= lanes) \
            and all(self.ev.reduce[s.op][s.loop] == lanes for s in g.sums)

    def prepare(self, reads: Sequence[tuple[Tensor, Access]], env: dict[str, Ix]) -> None:
        """Evaluates the sums behind `reads` at `env`; they are found when asked for."""
        wanted: dict[Op, dict[str, Ix]] = {}
        self._collect(reads, env, wanted)
        for g in self.groups:
            sums = [s for s in g.sums if s.op in wanted]
            if sums:
                self._emit(g, sums, wanted)

    def _collect(self, reads: Sequence[tuple[Tensor, Access]], env: dict[str, Ix],
                 wanted: dict[Op, dict[str, Ix]]) -> None:
        for t, access in reads:
            op = t.producer
            if op is None:
                continue
            if op.is_reduction:
                if op in self.ops and op not in wanted:
                    wanted[op] = {str(o): self.b.access(e, env) for o, e in zip(op.outs[t.index], access, strict=True)}
                continue
            inner: dict[str, Dim] = {str(o): e for o, e in zip(op.outs[t.index], access, strict=True)}
            self._collect([(s, tuple(symbolic.substitute(e, inner) for e in a)) for s, a in op.inputs], env, wanted)

    def _emit(self, g: OnlineGroup, sums: list[OnlineSum], wanted: dict[Op, dict[str, Ix]]) -> None:
        from xcc.passes.linalg.tile_eval import REDUCTION_ORDER, Reduction

        ev, b = self.ev, self.b
        first = wanted[sums[0].op]
        rows = [b.access(e, first) for e in sums[0].row]
        row_axes = tuple(dict.fromkeys(a for i in rows for a in i.axes))
        m_type = g.maximum.results[0].element
        start = b.broadcast(V(b.constant(ir.FloatAttr.get(m_type, g.start), m_type)), row_axes)
        reductions = []
        for s in sums:
            axes = tuple(sorted({a for i in wanted[s.op].values() for a in i.axes}, key=lambda a: a.order))
            reductions.append(Reduction(ev, s.op, wanted[s.op], axes))
        accs = [start, *(r.neutral(0, r.out_axes) for r in reductions)]
        env_m = {str(o): i for o, i in zip(g.maximum.outs[0], rows, strict=True)}
        self._prefetch(g.x, g.x_access, env_m)
        size, lanes = g.maximum.loops[g.loop], ev.reduce[g.maximum][g.loop]
        end = b.dim(size)
        loop = scf_d.ForOp(b.int(0), self._end(g, env_m, end), b.int(lanes), [a.value for a in accs])
        with ir.InsertionPoint(loop.body), b.scope():
            iv = loop.induction_variable
            limit = None if isinstance(size, int) and size % lanes == 0 else \
                b.binary("arith.minsi", b.int(lanes), b.sub(end, iv))
            axis = Axis(lanes, REDUCTION_ORDER + 100, limit)
            key = Ix(base=iv, coefs=((axis, 1),))
            old, *before = [V(v, a.axes) for v, a in zip(loop.inner_iter_args, accs, strict=True)]
            env = {**env_m, f"i{g.loop}": key}
            x = ev.tile(g.x, [b.access(e, env) for e in g.x_access])
            new = self._combine("maximumf", x, old, axis, g.start)
            b.remember(("tile", id(g.maximum.results[0]), tuple(i.key() for i in rows)), new)
            change = b.elementwise("math.exp", m_type, [b.elementwise("arith.subf", m_type, [old, new], {})], {})
            after = [new]
            for s, r, acc in zip(sums, reductions, before, strict=True):
                scaled = b.elementwise("arith.mulf", s.op.results[0].element, [acc, b.broadcast(change, acc.axes)], {})
                after.append(self._add(s, r, {**wanted[s.op], f"i{s.loop}": key}, scaled, axis))
            scf_d.YieldOp([v.value for v in after])
        results = [V(v, a.axes) for v, a in zip(loop.results, accs, strict=True)]
        b.remember(("tile", id(g.maximum.results[0]), tuple(i.key() for i in rows)), results[0])
        for s, v in zip(sums, results[1:], strict=True):
            indices = [wanted[s.op][str(o)] for o in s.op.outs[0]]
            b.remember(("tile", id(s.op.results[0]), tuple(i.key() for i in indices)), v)

    def _end(self, g: OnlineGroup, env: dict[str, Ix], size: Any) -> Any:
        """Where the loop over keys may end: at `size`, or before the first key that all rows of the tile hide."""
        last = _last_visible(self.ev.kernel, g)
        if last is None:
            return size
        row = self.b.access(last, env)
        if row.vec is not None:
            return size
        most = sum((a.size - 1) * c for a, c in row.coefs if c > 0)
        return self.b.binary("arith.minsi", size, self.b.add(self.b.scalar(row), self.b.int(most + 1)))

    def _add(self, s: OnlineSum, r: Any, env: dict[str, Ix], acc: V, axis: Axis) -> V:
        """acc + the sum over one block of keys."""
        r.current = {s.loop: axis}
        if r.contract:
            out: V = r.contraction(env, acc)
            return out
        from xcc.passes.linalg.tile_eval import product_operands

        element = s.op.results[0].element
        factors = product_operands(s.op)
        if factors is None:
            t, access = s.op.inputs[0]
            value = self.ev.tile(t, [self.b.access(e, env) for e in access])
        else:
            value = self.b.elementwise("arith.mulf", element, [self.ev.body_value(s.op, v, env) for v in factors], {})
        return self._combine("add", value, acc, axis, 0.0)

    def _combine(self, kind: str, value: V, acc: V, axis: Axis, neutral: float) -> V:
        """The lanes of `axis` of `value` reduced into `acc`; lanes past its limit do not count."""
        b = self.b
        element = ir.VectorType(value.value.type).element_type
        value = b.broadcast(value, (*acc.axes, axis))
        if axis.limit is not None:
            mask = b.mask((axis,))
            assert mask is not None
            fill = b.splat(ir.FloatAttr.get(element, neutral), [a.size for a in value.axes])
            value = V(b.op("arith.select", value.value.type, [b.broadcast(mask, value.axes).value, value.value, fill]),
                      value.axes)
        reduced = b.op("vector.multi_reduction", acc.value.type, [value.value, acc.value],
                       kind=ir.Attribute.parse(f"#vector.kind<{kind}>"),
                       reduction_dims=ir.DenseI64ArrayAttr.get([len(acc.axes)]))
        return V(reduced, acc.axes)

    def _prefetch(self, t: Tensor, access: Access, env: dict[str, Ix]) -> None:
        """Reads before the loop what does not change in it: operands of products behind `t` that no key walks."""
        op = t.producer
        if op is None:
            return
        inner: dict[str, Dim] = {str(o): e for o, e in zip(op.outs[t.index], access, strict=True)}
        outer: dict[str, Ix] = dict(env)
        for p, r in enumerate(op.reduction):
            size, lanes = op.loops[p], self.ev.reduce[op].get(p, 0) if op.is_reduction else 0
            if r and isinstance(size, int) and 1 < lanes and size <= lanes:
                name = f"whole{id(op)}_{p}"
                outer[name] = Ix(coefs=((self.ev.full_axis(size, lanes, []), 1),))
                inner[f"i{p}"] = symbolic.sym(name)
        for s, a in op.inputs:
            at = tuple(symbolic.substitute(e, inner) for e in a)
            known = all(n in outer or n in self.ev.kernel.symbols for e in at for n in symbolic.symbols_of(e))
            if s.producer is None and op.is_reduction and known:
                self.ev.tile(s, [self.b.access(e, outer) for e in at])
            elif s.producer is not None:
                self._prefetch(s, at, outer)
