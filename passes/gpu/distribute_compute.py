"""Per-thread reductions and contractions."""

from __future__ import annotations

from typing import Any

from xcc._mlir import arith_d, gpu_d, ir, vector_d
from xcc.passes.gpu.analysis import element_bytes
from xcc.passes.gpu.contraction import Contraction
from xcc.passes.gpu.layout import Layout, log2, row_major, swizzled
from xcc.passes.gpu.thread_code import register_vector, registers_of, select_registers

_KINDS = {
    "add": ("addf", "addi"), "mul": ("mulf", "muli"), "minimumf": ("minimumf", ""), "maximumf": ("maximumf", ""),
    "minnumf": ("minnumf", ""), "maxnumf": ("maxnumf", ""), "minsi": ("", "minsi"), "maxsi": ("", "maxsi"),
    "minui": ("", "minui"), "maxui": ("", "maxui"), "and": ("", "andi"), "or": ("", "ori"), "xor": ("", "xori"),
}


def reduction(k: Any, op: Any) -> None:
    """vector.multi_reduction: registers, then lanes by shuffles, then warps through shared memory."""
    source, acc = op.operands
    layout = k.layout(source)
    dims = list(op.attributes["reduction_dims"])
    kind = str(op.attributes["kind"]).split("<")[1].split(">")[0]
    element = ir.VectorType(source.type).element_type
    combine = getattr(arith_d, _KINDS[kind][0 if isinstance(element, ir.FloatType) else 1])
    kept = [d for d in range(len(layout.shape)) if d not in dims]

    def moves_only_reduced(v: tuple[int, ...]) -> bool:
        return any(v) and not any(v[d] for d in kept)

    value = _reduce_registers(k.get(source), [i for i, v in enumerate(layout.basis("register"))
                                              if moves_only_reduced(v)], combine)
    for i, v in enumerate(layout.basis("lane")):
        if moves_only_reduced(v):
            value = combine(value, k.code.shuffle_xor(value, 1 << i))
    warps = [i for i, v in enumerate(layout.basis("warp")) if moves_only_reduced(v)]
    if warps:
        value = _reduce_warps(k, value, layout.sliced(dims), warps, combine)
    if acc.type == op.results[0].type and not isinstance(acc.type, ir.VectorType):
        k.values[op.results[0]] = combine(registers_of(value)[0], k.get(acc))
    else:
        k.values[op.results[0]] = combine(value, k.get(acc))


def _reduce_registers(value: Any, positions: list[int], combine: Any) -> Any:
    """Folds the register bits `positions`, the highest first."""
    for b in sorted(positions, reverse=True):
        count = ir.VectorType(value.type).shape[0]
        low = [r for r in range(count) if not r >> b & 1]
        value = combine(select_registers(value, low), select_registers(value, [r | 1 << b for r in low]))
    return value


def _reduce_warps(k: Any, value: Any, kept: Layout, warps: list[int], combine: Any) -> Any:
    """Partial results of warps, laid side by side along a new dim, are read by all of them and folded."""
    count = 1 << len(warps)
    shape = (*kept.shape, count)

    def extended(name: str) -> list[list[int]]:
        return [[*v, 0] for v in kept.basis(name)]

    partial = [[*v, 1 << warps.index(i)] if i in warps else [*v, 0] for i, v in enumerate(kept.basis("warp"))]
    extra = [[0] * len(kept.shape) + [1 << i] for i in range(len(warps))]
    held = Layout.make(shape, {"register": extended("register"), "lane": extended("lane"), "warp": partial})
    wanted = Layout.make(shape, {"register": [*extra, *extended("register")], "lane": extended("lane"),
                                 "warp": extended("warp")})
    return _reduce_registers(k.code.convert(value, held, wanted), list(range(len(warps))), combine)


def contract(k: Any, op: Any) -> None:
    """vector.contract: matrix instructions on fragments, or FMAs on register tiles fed from shared memory."""
    plan = Contraction(op, k.chip, k.threads // k.chip.warp)
    k.values[op.results[0]] = _instructions(k, op, plan) if plan.instruction is not None else _multiply_add(k, op, plan)


def _instructions(k: Any, op: Any, plan: Contraction) -> Any:
    """One matrix instruction for each (m, n, k) tile of a warp."""
    i = plan.instruction
    assert i is not None and plan.lhs is not None and plan.rhs is not None
    m, n, kk = plan.m[0], plan.n[0], plan.k[0]
    values = [k.get(v) for v in list(op.operands)[:3]]
    layouts = (plan.lhs, plan.rhs, plan.result)
    fragments = ((i.a, (m, kk)), (i.b, (kk, n)), (i.c, (m, n)))
    tables = [{layout.at(register=r): r for r in reversed(range(layout.registers))} for layout in layouts]

    def registers(operand: int, at: dict[int, int]) -> list[int]:
        fragment, dims = fragments[operand]
        out = []
        for r in range(fragment.registers):
            position = dict(zip(dims, fragment.at(register=r), strict=True))
            out.append(tables[operand][tuple(at.get(d, 0) + position.get(d, 0) for d in plan.maps[operand])])
        return out

    def offsets(layout: Layout, operand: int, d: int, size: int) -> list[int]:
        column = plan.maps[operand].index(d)
        return sorted({c for r in range(layout.registers) if (c := layout.at(register=r)[column]) % size == 0})

    acc = registers_of(values[2])
    batches: list[dict[int, int]] = [{}]
    for d in plan.batch:
        batches = [{**b, d: o} for b in batches for o in offsets(plan.result, 2, d, 1)]
    for batch in batches:
        for mo in offsets(plan.result, 2, m, i.m):
            for no in offsets(plan.result, 2, n, i.n):
                slots = registers(2, {**batch, m: mo, n: no})
                c = vector_d.from_elements(register_vector(len(slots), acc[0].type), [acc[s] for s in slots])
                for ko in offsets(plan.lhs, 0, kk, i.k):
                    a = select_registers(values[0], registers(0, {**batch, m: mo, kk: ko}))
                    b = select_registers(values[1], registers(1, {**batch, kk: ko, n: no}))
                    c = i.emit(a, b, c)
                for s, e in zip(slots, registers_of(c), strict=True):
                    acc[s] = e
    return vector_d.from_elements(values[2].type, acc)


def _multiply_add(k: Any, op: Any, plan: Contraction) -> Any:
    """Both operands are staged in shared memory; each k step reads a column and a row into registers."""
    acc = k.get(op.operands[2])
    element = ir.VectorType(acc.type).element_type
    sides = []
    offset = 0
    k.code.begin_shared()
    for operand in (0, 1):
        value = op.operands[operand]
        kind = ir.VectorType(value.type).element_type
        dims = plan.maps[operand]
        near = [d for d in dims if d not in plan.k][-1:]
        order = [dims.index(d) for d in [*near, *[d for d in reversed(dims) if d not in near]]]
        shape = [plan.sizes[d] for d in dims]
        memory = _staging(shape, order, element_bytes(kind), k.layout(value))
        buffer = k.code.buffer(memory.shape[0], kind, offset)
        k.code.write_shared(k.get(value), buffer, memory.compose(k.layout(value)))
        offset += memory.shape[0] * element_bytes(kind)
        offset += -offset % 16
        sides.append((operand, memory, buffer, kind))
    gpu_d.barrier()
    steps: list[dict[int, int]] = [{}]
    for d in plan.k:
        steps = [{**s, d: i} for s in steps for i in range(plan.sizes[d])]
    for step in steps:
        a, b = (_operand(k, plan, *side, step, element) for side in sides)
        if isinstance(element, ir.FloatType):
            acc = vector_d.fma(a, b, acc)
        else:
            acc = arith_d.addi(acc, arith_d.muli(a, b))
    return acc


def _staging(shape: list[int], order: list[int], size: int, source: Layout) -> Layout:
    """Shared memory with `order`'s first dim nearest, swizzled where that makes the writes cheaper."""
    candidates = [row_major(shape, order)]
    vector = min(4, shape[order[0]])
    if log2(shape[order[0]]) > log2(vector):
        candidates.append(swizzled(shape, order, vector, shape[order[0]] * size, size))

    def cost(memory: Layout) -> int:
        offsets = memory.compose(source)
        width, _ = offsets.contiguous(max(1, 16 // size))
        return offsets.registers // width * (1 + offsets.bank_conflicts(width, size))

    return min(candidates, key=cost)


def _operand(k: Any, plan: Contraction, operand: int, memory: Layout, buffer: Any, kind: Any, step: dict[int, int],
             element: Any) -> Any:
    """The operand's values at one k step, a register for each of the accumulator's registers."""
    dims, c_dims = plan.maps[operand], plan.maps[2]

    def project(v: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(v[c_dims.index(d)] if d in c_dims else 0 for d in dims)

    bases = {name: [project(v) for v in vs] for name, vs in plan.result.bases}
    bases["register"] = [v for v in bases["register"] if any(v)]
    layout = Layout.make([plan.sizes[d] for d in dims], bases)
    fixed = memory.at(**{f"dim{i}": step.get(d, 0) for i, d in enumerate(dims)})[0]
    loaded = k.code.read_shared(buffer, memory.compose(layout), kind, fixed)
    if kind != element:
        out = register_vector(layout.registers, element)
        loaded = arith_d.extf(out, loaded) if isinstance(kind, ir.FloatType) else arith_d.extsi(out, loaded)
    held = {layout.at(register=r): r for r in reversed(range(layout.registers))}
    return select_registers(loaded, [held[project(plan.result.at(register=r))]
                                     for r in range(plan.result.registers)])
