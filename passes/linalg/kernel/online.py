"""Sums of exponentials relative to a maximum over the same loop, in one pass over it.

A kernel that holds m = max_k x[k] and sums over k of exp(x[k] - m) * w[k] needs m before it can begin to add. Every
such sum is exp(-m) times a sum without m, so one begun with a smaller maximum is put right by a factor:

    for k:                                 # a block of keys at a time
        m' = max(m, x[k])
        s  = s * exp(m - m') + exp(x[k] - m') * w[k]        # for each of the sums
        m  = m'

Evaluation is in passes/linalg/evaluate/online_loops.py. With w = 1 this is the normaliser of a softmax (Milakov and
Gimelshein, 2018, "Online normalizer calculation for softmax", arXiv:1805.02867); with w the values of attention it is
flash attention (Dao et al., 2022, arXiv:2205.14135; Dao, 2023, arXiv:2307.08691). The rewrite knows neither: it looks
for the algebra, in the ops of a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xcc import symbolic
from xcc._mlir import ir
from xcc.passes.linalg.kernel.kernel import Access, Kernel, Op, Tensor, ops_behind
from xcc.passes.linalg.kernel.kernel_reader import index_to_dim
from xcc.passes.linalg.kernel.reduction_body import combiner, product_operands
from xcc.symbolic import Dim

Read = tuple[Tensor, Access]

CONVERSIONS = ("arith.extf", "arith.truncf")
SIGNED_LESS_OR_EQUAL = 3
MAXIMA = ("arith.maximumf", "arith.maxnumf")
LOWEST = {"f16": -65504.0, "bf16": -3.3895313892515355e38, "f32": -3.4028234663852886e38,
          "f64": -1.7976931348623157e308}


@dataclass(frozen=True, eq=False)
class OnlineSum:
    """One sum: its op, the loop it shares with the maximum, where in the maximum it looks (over its own loops), and
    the exponential that it reads."""

    op: Op
    loop: int
    row: Access
    power: Read


@dataclass(frozen=True, eq=False)
class OnlineGroup:
    """A maximum with the sums that depend on it; `x` is what it is the maximum of, `start` what it begins with."""

    maximum: Op
    loop: int
    x: Tensor
    x_access: Access
    start: float
    sums: tuple[OnlineSum, ...]

    def last_visible(self, kernel: Kernel) -> Dim | None:
        """The last key of which x is not -inf, over the maximum's loops; None where all may count."""
        return visible(kernel, self.loop, (self.x, self.x_access))[1]


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
        if not any(found[0] in ops_behind(s) for s in others):
            return found[0], found[1], OnlineSum(op, _one_loop(op), found[2], _steps(t, access, CONVERSIONS))
    return None


def _relative(t: Tensor, access: Access, key: str) -> tuple[Op, float, Access] | None:
    """(maximum, start, its coordinates) where t[access] = exp(x[...] - maximum of x over `key`)."""
    difference = difference_of(*_steps(t, access, CONVERSIONS))
    if difference is None:
        return None
    (x, x_access), (top, top_access) = difference
    start: float | None = None
    bounded = _parallel(top, top_access)
    if bounded is not None and bounded[0] in MAXIMA and len(bounded[1]) == 1 and bounded[2] is not None:
        start = bounded[2]
        top, top_access = bounded[1][0]
    maximum = top.producer
    if maximum is None or maximum.operation is None or not maximum.is_reduction or len(maximum.inputs) != 1:
        return None
    if combiner(maximum, 0) not in MAXIMA or _one_loop(maximum) < 0 or len(list(maximum.block.operations)) != 2:
        return None
    if any(key in symbolic.symbols_of(d) for d in top_access):
        return None
    env = maximum.loops_at(top_access)
    env[f"i{_one_loop(maximum)}"] = symbolic.sym(key)
    same, same_access = _summand(maximum)
    if same is not x or tuple(symbolic.substitute(d, env) for d in same_access) != tuple(x_access):
        return None
    if start is None:
        start = LOWEST.get(str(top.element))
    return None if start is None else (maximum, start, top_access)


def difference_of(t: Tensor, access: Access) -> tuple[Read, Read] | None:
    """(x, y) where t[access] = exp(x - y)."""
    power = _parallel(t, access)
    if power is None or power[0] != "math.exp":
        return None
    difference = _parallel(*power[1][0])
    if difference is None or difference[0] != "arith.subf" or len(difference[1]) != 2:
        return None
    return difference[1][0], difference[1][1]


def _parallel(t: Tensor, access: Access) -> tuple[str, list[tuple[Tensor, Access]], float | None] | None:
    """(op, operands, constant operand) when t[access] is one arith or math op on tensors and at most one constant."""
    t, access = _steps(t, access, ())
    op = t.producer
    if op is None or op.operation is None or op.is_reduction:
        return None
    inner = [o.operation for o in op.block.operations]
    if len(inner) != 2 or inner[1].operands[0].owner != inner[0]:
        return None
    env = op.loops_at(access, t.index)
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
            t, access = op.reads(op.loops_at(access, t.index))[0]
            continue
        found = _parallel(t, access) if names and not op.is_reduction else None
        if found is None or found[0] not in names:
            break
        t, access = found[1][0]
    return t, access


def multiple(t: Tensor, access: Access) -> tuple[Read, float] | None:
    """(y, c) where t[access] = y * c for a constant c > 0."""
    found = _parallel(t, access)
    if found is None or found[0] != "arith.mulf" or len(found[1]) != 1 or found[2] is None or not found[2] > 0:
        return None
    return found[1][0], found[2]


def hidden(t: Tensor, access: Access) -> tuple[Read, Read] | None:
    """(test, y) where t[access] = select(test, y, -inf)."""
    choice = _parallel(t, access)
    if choice is None or choice[0] != "arith.select" or choice[2] != float("-inf") or len(choice[1]) != 2:
        return None
    source = _steps(t, access, ())[0].producer
    assert source is not None
    first = next(iter(source.block.operations))
    if isinstance(first.operands[2].owner, ir.Block):      # what is chosen elsewhere is not the constant
        return None
    return choice[1][0], choice[1][1]


def visible(kernel: Kernel, loop: int, x: Read) -> tuple[Dim | None, Dim | None]:
    """The first and the last step of `loop` for which x is not -inf, over the other loops; None: no such end."""
    choice = hidden(*x)
    return seen_steps(kernel, loop, choice[0]) if choice is not None else (None, None)


def seen_steps(kernel: Kernel, loop: int, test: Read) -> tuple[Dim | None, Dim | None]:
    """The first and the last step of `loop` for which `test` holds, over the other loops, where it says that one sum
    of loops and numbers is at most another; None: no such end."""
    test_t, test_access = _steps(*test, ())
    found = _parallel(test_t, test_access)
    if found is None or found[0] != "arith.cmpi" or len(found[1]) != 2 or test_t.producer is None:
        return None, None
    if int(next(iter(test_t.producer.block.operations)).attributes["predicate"].value) != SIGNED_LESS_OR_EQUAL:
        return None, None
    left, right = (_ramp(kernel, *operand) for operand in found[1])
    if left is None or right is None:
        return None, None
    step = symbolic.sym(f"i{loop}")
    first, last = (None if f"i{loop}" in symbolic.symbols_of(e) else e
                   for e in (left - (right - step), right - (left - step)))
    return first, last


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
    env = op.loops_at(access, t.index)
    cast = op.yielded[t.index].owner
    if isinstance(cast, ir.Block) or cast.name != "arith.index_cast":
        return None
    source = cast.operands[0]
    if not isinstance(source.owner, ir.Block) and source.owner.name == "linalg.index":
        return env.get(f"i{int(source.owner.attributes['dim'].value)}", 0)
    if isinstance(source.owner, ir.Block) and source.owner == op.block:
        return None
    return index_to_dim(source, {value: name for name, value in kernel.symbols.items()})
