"""What is known about index vectors and masks: how they move along their last dim, and what divides their elements."""

from __future__ import annotations

import math
from typing import Union

from xcc._mlir import Operation, Value, arith_d, ir, maker
from xcc.passes.gpu.index.index_values import MAX_DIVISOR, capped, divisor
from xcc.passes.gpu.layout.tile_ops import element_bytes, splat
from xcc.passes.shared.patterns import int_constant

__all__ = [
    "clamped", "elements_divisor", "gather_run", "line_along", "line_of", "same_along", "scalar_of", "step_along",
    "updates_run"]

WORD = 4        # bytes
RUN = 8         # neighbours, of words, that one access of memory takes: a sector
_AHEAD = frozenset(int(p) for p in (arith_d.CmpIPredicate.slt, arith_d.CmpIPredicate.sge, arith_d.CmpIPredicate.ult,
                                    arith_d.CmpIPredicate.uge))     # of what comes ahead of a bound, or does not
_SHAPES = ("vector.broadcast", "vector.shape_cast")


def _last(value: Value) -> int:
    """The size of a vector's last dim; 1 for a scalar."""
    if not isinstance(value.type, ir.VectorType) or not ir.VectorType(value.type).rank:
        return 1
    return int(ir.VectorType(value.type).shape[-1])


Step = Union[tuple[int, int], None]


def step_along(value: Value, width: int, seen: dict[Value, Step] | None = None) -> Step:
    """How an index vector moves within each aligned run of `width` elements along its last dim.

    (step, divisor): neighbours differ by `step`, and the first element of each run is a multiple of `divisor`.
    None when nothing is known. `seen`: of values that others share, which have as many ways to them as there are
    paths.
    """
    seen = {} if seen is None else seen
    if value not in seen:
        seen[value] = _step_along(value, width, seen)
    return seen[value]


def _step_along(value: Value, width: int, seen: dict[Value, Step]) -> Step:
    if _last(value) == 1:
        return 0, divisor(value) if not isinstance(value.type, ir.VectorType) else _lanes_divisor(value)
    fixed = splat(value)
    if fixed is not None:
        return 0, abs(fixed) or MAX_DIVISOR
    op = maker(value)
    if op is None:
        return None
    if op.name == "vector.step":
        return 1, width
    if op.name in ("vector.broadcast", "vector.shape_cast"):
        source = op.operands[0]
        if _last(source) == _last(value):
            return step_along(source, width, seen)
        if op.name == "vector.broadcast" and _last(source) == 1:
            return 0, step_along(source, width, seen)[1]  # type: ignore[index]
        return None
    if op.name == "vector.transfer_read":       # the same element for all, where the last dim is none of memory's
        return (0, 1) if isinstance(op.attributes["permutation_map"].value.results[-1], ir.AffineConstantExpr) else None
    if not op.operands or not op.name.startswith(("arith.", "math.", "vector.gather")):
        return None
    sides = [step_along(v, width, seen) for v in op.operands]
    if any(x is None for x in sides):
        return None
    known = [x for x in sides if x is not None]
    if op.name in ("arith.addi", "arith.subi"):
        sign = 1 if op.name == "arith.addi" else -1
        return known[0][0] + sign * known[1][0], math.gcd(known[0][1], known[1][1])
    if op.name in ("arith.remui", "arith.remsi", "arith.divui", "arith.divsi") and known[0][0] == 1:
        by = splat(op.operands[1])     # a run starts at a multiple of the width: it does not cross a multiple of `by`
        if by is None or by % width or known[0][1] % width:
            return None
        return (1, width) if "rem" in op.name else (0, 1)
    if op.name == "arith.muli":
        (a, p), (b, q) = known
        if a and b:
            return None
        factor = splat(op.operands[1] if a else op.operands[0])
        if (a or b) and factor is None:
            return None
        return (a or b) * (factor or 0), capped(p * q)
    if any(x[0] for x in known):
        return None
    if op.name in ("arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui"):
        return 0, math.gcd(known[0][1], known[1][1])
    if op.name == "arith.select":
        return 0, math.gcd(known[1][1], known[2][1])
    return (0, known[0][1]) if op.name == "arith.index_cast" else (0, 1)


def line_along(value: Value) -> tuple[Value | None, int] | None:
    """(s, d) where `value` is 0, 1, ... behind the scalar index s (None: 0) along its dim d, the same along others."""
    op = maker(value, "vector.step", "vector.broadcast", "vector.shape_cast", "arith.index_cast", "arith.addi")
    if op is None or op.name == "vector.step":
        return None if op is None else (None, 0)
    if op.name == "arith.addi":
        sides = [(line_along(v), scalar_of(w)) for v, w in zip(op.operands, [*op.operands][::-1], strict=True)]
        return next(((s, line[1]) for line, s in sides if line is not None and line[0] is None
                     and s is not None and isinstance(s.type, ir.IndexType)), None)
    line = line_along(op.operands[0]) if isinstance(op.operands[0].type, ir.VectorType) else None
    if line is None or op.name == "arith.index_cast":
        return line
    old, new = (list(ir.VectorType(v.type).shape) for v in (op.operands[0], value))
    if op.name == "vector.broadcast":
        return line[0], line[1] + len(new) - len(old)
    return (line[0], new.index(old[line[1]])) if [n for n in new if n > 1] == [n for n in old if n > 1] \
        == [old[line[1]]] else None


def line_of(value: Value) -> tuple[Value | None, int] | None:
    """(s, n) where the elements of `value` are 0, 1, ... n - 1 behind the scalar s (None: 0), in whatever shape."""
    line = _shaped(value)
    if line is None or line.name not in ("vector.step", "arith.addi"):
        return None
    if line.name == "vector.step":
        return None, _last(line.results[0])
    for start, rest in (list(line.operands), list(line.operands)[::-1]):
        step = _shaped(rest)
        if step is not None and step.name == "vector.step" and scalar_of(start) is not None:
            return scalar_of(start), _last(step.results[0])
    return None


def _shaped(value: Value) -> Operation | None:
    """What `value` is, but for its shape."""
    op = maker(value)
    while op is not None and op.name in _SHAPES:
        op = maker(op.operands[0])
    return op


def scalar_of(value: Value) -> Value | None:
    """The scalar that all elements of `value` are; None where there is none."""
    op = maker(value)
    while op is not None and op.name in _SHAPES:
        value = op.operands[0]
        op = maker(value)
    return None if isinstance(value.type, ir.VectorType) else value


def _lanes_divisor(value: Value) -> int:
    """A divisor of all elements of a vector whose last dim has one element."""
    op = maker(value)
    if op is not None and op.name in ("vector.shape_cast", "vector.broadcast"):
        source = op.operands[0]
        return divisor(source) if not isinstance(source.type, ir.VectorType) else elements_divisor(source)
    return 1


def elements_divisor(value: Value) -> int:
    """A divisor of every element of an index vector."""
    fixed = splat(value)
    if fixed is not None:
        return abs(fixed) or MAX_DIVISOR
    op = maker(value)
    if op is None:
        return 1
    if not isinstance(value.type, ir.VectorType):
        return divisor(value)
    if op.name in ("vector.shape_cast", "vector.broadcast"):
        return elements_divisor(op.operands[0])
    if op.name == "arith.muli":
        return capped(elements_divisor(op.operands[0]) * elements_divisor(op.operands[1]))
    if op.name in ("arith.addi", "arith.subi", "arith.minsi", "arith.maxsi"):
        return math.gcd(elements_divisor(op.operands[0]), elements_divisor(op.operands[1]))
    if op.name == "arith.select":
        return math.gcd(elements_divisor(op.operands[1]), elements_divisor(op.operands[2]))
    return 1


def same_along(mask: Value, width: int) -> bool:
    """Whether every aligned run of `width` elements along the mask's last dim is all on or all off."""
    op = maker(mask)
    if _last(mask) == 1:
        return True
    if op is None:
        return False
    if op.name == "vector.create_mask":
        return divisor(op.operands[len(op.operands) - 1]) % width == 0
    if op.name == "vector.constant_mask":
        return bool(list(op.attributes["mask_dim_sizes"])[-1] % width == 0)
    if op.name == "arith.constant":
        return bool(ir.DenseElementsAttr(op.attributes["value"]).is_splat)
    if op.name in ("vector.broadcast", "vector.shape_cast"):
        source = op.operands[0]
        return _last(source) == 1 and op.name == "vector.broadcast" or \
            _last(source) == _last(mask) and same_along(source, width)
    if op.name == "arith.cmpi":
        sides = [step_along(v, width) for v in op.operands]
        if any(s is None for s in sides):
            return False
        (step, first), (fixed, bound) = (s for s in sides if s is not None)
        # a run of neighbours that starts at a multiple of the width lies on one side of a multiple of it
        sure = step == 0 or step == 1 and first % width == 0 and bound % width == 0 \
            and int(op.attributes["predicate"].value) in _AHEAD
        return fixed == 0 and sure
    return op.name in ("arith.andi", "arith.ori", "arith.xori") and all(same_along(v, width) for v in op.operands)


def gather_run(op: Operation, max_bytes: int) -> int:
    """How many neighbours along the last dim one access of a vector.gather may read: they lie together, aligned."""
    operands = list(op.operands)
    base, index = operands[:-3], operands[-3]
    size = element_bytes(ir.VectorType(op.results[0].type).element_type)
    width = max(1, max_bytes // size)
    while width > 1:
        found = step_along(index, width) if _last(index) % width == 0 else None
        if found is not None and found[0] == 1 and found[1] % width == 0 and divisor(base[-1]) % width == 0:
            return width
        width //= 2
    return 1


def updates_run(op: Operation) -> bool:
    """Whether neighbours of a tile.atomic, along the last dim that its line of places had, are next to each other in
    memory, in words of their own: lanes that update one word by comparing wait for each other."""
    line = maker(op.operands[-1])
    places = line.operands[0] if line is not None and line.name == "vector.shape_cast" else op.operands[-1]
    width = min(_last(places), RUN)
    found = step_along(places, width)
    wide = element_bytes(ir.VectorType(op.results[0].type).element_type) >= WORD
    return wide and width > 1 and found is not None and found[0] == 1


def clamped(op: Operation) -> tuple[Value, Value] | None:
    """(x, most) of max(min(x, most), 0) or min(max(x, 0), most)."""
    for outer, inner in (("arith.maxsi", "arith.minsi"), ("arith.minsi", "arith.maxsi")):
        if op.name == outer:
            for n, v in enumerate(op.operands):
                found = maker(v)
                if found is None or found.name != inner:
                    continue
                low = op.operands[1 - n] if outer == "arith.maxsi" else found.operands[1]
                if (splat(low) if isinstance(low.type, ir.VectorType) else int_constant(low)) == 0:
                    return (found.operands[0], found.operands[1]) if outer == "arith.maxsi" \
                        else (found.operands[0], op.operands[1 - n])
    return None
