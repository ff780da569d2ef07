"""Einsum as a chain of dot_generals: two operands at a time, batch, contracted and free letters told apart."""

from __future__ import annotations

import re
from typing import Any

from xcc._mlir import Value
from xcc.diagnostics import Misfit, UserError
from xcc.dialects import xt
from xcc.frontends.shared.helpers import rank_of, squeeze

Term = tuple[str, ...]


def einsum(equation: str, operands: list[Any]) -> Value:
    """The Einstein sum `equation` of `operands`; UserError where it is malformed."""
    inputs, output = parse(equation, [rank_of(x) for x in operands])
    terms = list(zip(inputs, operands, strict=True))
    terms = [_diagonal(t, x) for t, x in terms]
    while len(terms) > 1:
        (ta, a), (tb, b), rest = terms[0], terms[1], terms[2:]
        needed = set(output) | {letter for t, _ in rest for letter in t}
        terms = [_pair(ta, a, tb, b, needed), *rest]
    return _finish(*terms[0], output)


def parse(equation: str, ranks: list[int]) -> tuple[list[Term], Term]:
    """Letters of each operand and of the result; the dims of an ellipsis get the names ``.0``, ``.1``..."""
    text = equation.replace(" ", "")
    if not re.fullmatch(r"[A-Za-z.,]*(->[A-Za-z.]*)?", text):
        raise UserError(f"malformed equation '{equation}'")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        raise Misfit(f"equation '{equation}' has {len(parts)} operands, not {len(ranks)}")
    wide = max([r - len(p.replace("...", "")) for p, r in zip(parts, ranks, strict=True) if "..." in p], default=0)
    inputs = [_letters(p, r - len(p.replace("...", "")), wide) for p, r in zip(parts, ranks, strict=True)]
    if arrow:
        return inputs, _letters(right, wide, wide)
    every = [x for t in inputs for x in t]
    single = sorted(x for x in set(every) if every.count(x) == 1 and not x.startswith("."))
    return inputs, (*(f".{i}" for i in range(wide)), *single)


def _letters(part: str, own: int, wide: int) -> Term:
    before, dots, after = part.partition("...")
    middle = [f".{i}" for i in range(wide - own, wide)] if dots else []
    return (*before, *middle, *after)


def _diagonal(letters: Term, x: Value) -> tuple[Term, Any]:
    """Repeated letters of one operand: only the diagonal stays, of which each element is read once."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            shape = tuple(1 if d == second else n for d, n in enumerate(xt.shape_of(x)))
            x = squeeze(xt.gather_elements(x, xt.iota(shape=shape, axis=first, dtype="i64"), axis=second), [second])
            letters = (*letters[:second], *letters[second + 1:])
    return letters, x


def _sum(letters: Term, x: Any, keep: set[str]) -> tuple[Term, Any]:
    gone = tuple(i for i, letter in enumerate(letters) if letter not in keep)
    if gone:
        x = xt.reduce(x, kind="sum", axes=gone)
    return tuple(letter for letter in letters if letter in keep), x


def _pair(ta: Term, a: Value, tb: Term, b: Value, needed: set[str]) -> tuple[Term, Any]:
    ta, a = _drop_ones(ta, a, tb, b)
    tb, b = _drop_ones(tb, b, ta, a)
    ta, a = _sum(ta, a, needed | set(tb))
    tb, b = _sum(tb, b, needed | set(ta))
    common = [x for x in ta if x in tb]
    batch = [x for x in common if x in needed]
    contract = [x for x in common if x not in needed]
    out = xt.dot_general(a, b, lhs_batch=tuple(ta.index(x) for x in batch), rhs_batch=tuple(tb.index(x) for x in batch),
                         lhs_contract=tuple(ta.index(x) for x in contract),
                         rhs_contract=tuple(tb.index(x) for x in contract))
    return (*batch, *(x for x in ta if x not in common), *(x for x in tb if x not in common)), out


def _drop_ones(ta: Term, a: Value, tb: Term, b: Value) -> tuple[Term, Any]:
    """A dim of 1 that the other operand stretches is left to it."""
    shape, other = xt.shape_of(a), xt.shape_of(b)
    gone = [i for i, x in enumerate(ta) if shape[i] == 1 and x in tb and other[tb.index(x)] != 1]
    if not gone:
        return ta, a
    return tuple(x for i, x in enumerate(ta) if i not in gone), squeeze(a, gone)


def _finish(letters: Term, x: Value, output: Term) -> Value:
    letters, x = _sum(letters, x, set(output))
    perm = tuple(letters.index(letter) for letter in output)
    return x if perm == tuple(range(len(perm))) else xt.transpose(x, perm=perm)
