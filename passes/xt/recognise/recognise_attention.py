"""Attention, as exporters spell it out: dot_general, scale, mask, softmax, dot_general."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from xcc._mlir import Operation, Value
from xcc.dialects import xt
from xcc.dialects.xt.fields import as_tuple
from xcc.dialects.xt.op import attrs_of, build, op_class
from xcc.dialects.xt.types import is_float
from xcc.passes.xt.graph.match import NoMatch, dims_of, dtype_of, no_match, number, only_user, scaled
from xcc.passes.xt.graph.rewrite import name_of, producer
from xcc.passes.xt.recognise.recognise_mask import HIDDEN, read_mask
from xcc.symbolic import Dim
from xcc.weights import WeightStore

ABSORBING = -1e30       # x plus a number at most this negative is that number, for scores of any size that occurs


@dataclass
class _Scores:
    """What lies between the softmax and q k^T."""

    product: Any = None
    scale: float = 1.0
    softcap: float = 0.0
    causal: bool = False
    offset: Dim = 0
    masks: list[Value] = field(default_factory=list)
    nan_rows: bool = False


class Attention:
    """The pattern; `weights` holds the tables that masks may be."""

    def __init__(self, weights: WeightStore | None) -> None:
        self.weights = weights

    def __call__(self, op: Operation) -> Value | NoMatch | None:
        """dot_general(softmax(dot_general(q, k) * scale + mask), v) -> attention(q, k, v, mask)."""
        found = self._softmax(op)
        if found is None:
            return None
        softmax, guarded = found
        if not (only_user(op.operands[0]) and (only_user(softmax.results[0]) or guarded and _guards_only(softmax))):
            return no_match(op, "the weights have another user")
        rank = len(dims_of(softmax.results[0]))
        if rank not in (3, 4) or attrs_of(softmax).axis != rank - 1:
            return no_match(op, "the softmax is not along the last of 3 or 4 dims")
        a = attrs_of(op)
        if a.lhs_batch != tuple(range(rank - 2)) or a.lhs_contract != (rank - 1,):
            return no_match(op, "the weights are not contracted along their last dim")
        scores = self._scores(softmax.operands[0], guarded, op)
        if isinstance(scores, NoMatch):
            return scores
        return self._build(op, scores, rank)

    def _softmax(self, op: Operation) -> tuple[Operation, bool] | None:
        """The softmax that makes the weights, and whether a guard turns the NaN of empty rows into 0."""
        value, guarded = op.operands[0], False
        for _ in range(4):
            inner = producer(value)
            if inner is None:
                return None
            if name_of(inner) == "convert" and is_float(dtype_of(inner.operands[0])):
                value = inner.operands[0]
            elif name_of(inner) == "select" and number(inner.operands[1]) == 0:
                test = producer(inner.operands[0], "is_nan")
                if test is None or test.operands[0] != inner.operands[2]:
                    return None
                value, guarded = inner.operands[2], True
            else:
                return (inner, guarded) if name_of(inner) == "softmax" else None
        return None

    def _scores(self, value: Value, guarded: bool, root: Operation) -> _Scores | NoMatch:
        s = _Scores()
        while True:
            op = producer(value)
            if op is None:
                return no_match(root, "the scores are an input")
            if not only_user(value):
                return no_match(root, f"the scores have another user, at {op.location}")
            name, scale = name_of(op), scaled(value)
            if name == "dot_general":
                s.product = op
                return s
            if name == "convert" and is_float(dtype_of(op.operands[0])):
                value = op.operands[0]
            elif scale is not None and (tanh := producer(scale[0], "tanh")) is not None:
                if s.softcap:
                    return no_match(root, "the scores are capped twice")
                inner = scaled(tanh.operands[0])
                if inner is None or abs(inner[1] * scale[1] - 1) > 1e-5 or s.scale != 1:
                    return no_match(root, "the scores go through a tanh that is no soft cap")
                s.softcap, value = scale[1], inner[0]
            elif scale is not None:
                s.scale, value = s.scale * scale[1], scale[0]
            elif name in ("add", "select") and not s.softcap and s.scale == 1:
                below = self._masked(s, op, guarded)
                if isinstance(below, NoMatch):
                    return below
                assert below != value
                value = below
            else:
                return no_match(root, f"the scores come from {op.name}")

    def _masked(self, s: _Scores, op: Operation, guarded: bool) -> Value | NoMatch:
        """Takes the mask that `op` applies into `s`; gives the scores below it."""
        pair = self._mask_of(op)
        if isinstance(pair, NoMatch):
            return pair
        x, mask, fill = pair
        if dims_of(x) != dims_of(op.results[0]):
            return no_match(op, "the mask has more elements than the scores")
        read = read_mask(mask, dims_of(x)[-2], self.weights)
        if read.kind == "some" and fill > -float("inf") and not read.never_empty:
            if fill > ABSORBING or dtype_of(x) not in ("f32", "bf16"):
                return no_match(op, "the mask writes a finite score, and may hide a whole row")
            zero, low = (xt.scalar(n, "f32") for n in (0.0, fill))
            mask = xt.select(mask, zero, low)       # added to a score it leaves nothing of it
        elif read.kind == "some" and not (guarded or read.never_empty):
            s.nan_rows = True
        if read.kind == "causal":
            if s.causal:
                return no_match(op, "there are two causal masks")
            s.causal, s.offset = True, read.offset
        elif read.kind == "some":
            s.masks.append(mask)
        return x

    def _mask_of(self, op: Operation) -> tuple[Value, Value, float] | NoMatch:
        """(scores, mask, what hidden scores become) of add(scores, mask) or select(mask, scores, fill)."""
        if name_of(op) == "select":
            fill = number(op.operands[2])
            if fill is None or fill > HIDDEN:
                return no_match(op, "the select does not hide scores where its predicate is false")
            return op.operands[1], op.operands[0], fill
        for x, mask in (tuple(op.operands), tuple(op.operands)[::-1]):
            if _leads_to_product(x):
                return x, mask, -float("inf")
        return no_match(op, "neither operand is the product of queries and keys")

    def _build(self, op: Operation, s: _Scores, rank: int) -> Value | NoMatch:
        a, b = attrs_of(op), attrs_of(s.product)
        batch = rank - 2
        v_order = (*a.rhs_batch, *a.rhs_contract, *_free(op.operands[1], a.rhs_batch, a.rhs_contract))
        q_order = (*b.lhs_batch, *_free(s.product.operands[0], b.lhs_batch, b.lhs_contract), *b.lhs_contract)
        k_order = (*b.rhs_batch, *_free(s.product.operands[1], b.rhs_batch, b.rhs_contract), *b.rhs_contract)
        if not len(v_order) == len(q_order) == len(k_order) == rank or len(b.lhs_batch) != batch:
            return no_match(op, "queries, keys or values have more than one dim of positions or of features")
        if len(s.masks) > 1 and any(dtype_of(m) == "i1" for m in s.masks):
            return no_match(op, "there are two masks")
        q, q_scale = _operand(s.product.operands[0], q_order)
        k, k_scale = _operand(s.product.operands[1], k_order)
        v, v_scale = _operand(op.operands[1], v_order)
        mask = _together(s.masks)
        if mask is not None and dtype_of(mask) not in ("i1", "f32", dtype_of(q)):
            return no_match(op, f"the mask is {dtype_of(mask)} and the queries are {dtype_of(q)}")
        if not dtype_of(q) == dtype_of(k) == dtype_of(v) or not is_float(dtype_of(q)) or v_scale != 1:
            return no_match(op, "queries, keys and values differ in type")
        if rank == 3:
            q, k, v = (xt.reshape(x, shape=(1, *dims_of(x))) for x in (q, k, v))
        else:
            q, k, v = q, *_shared_heads(k, v)
        out = xt.attention(q, k, v, mask, scale=s.scale * q_scale * k_scale, softcap=s.softcap, causal=s.causal,
                           causal_offset=(s.offset,), nan_rows=s.nan_rows)
        if rank == 3:
            out = xt.reshape(out, shape=dims_of(op.results[0]))
        return out if dtype_of(out) == dtype_of(op.results[0]) else xt.convert(out, dtype=dtype_of(op.results[0]))


def shared_heads(op: Operation) -> Value | NoMatch:
    """attention(q, k, v) whose k and v are heads that were repeated -> attention of those heads."""
    q, k, v, *mask = op.operands
    own = _shared_heads(k, v)
    if own[0] == k:
        return no_match(op, "keys and values are no repeated heads")
    return xt.attention(q, *own, *mask, **vars(attrs_of(op)))


class CausalMask:
    """attention(q, k, v, mask), or a gradient of it, whose mask hides nothing, or what `causal` hides: without it."""

    def __init__(self, weights: WeightStore | None) -> None:
        self.weights = weights

    def __call__(self, op: Operation) -> Sequence[Value] | NoMatch:
        cls, a = op_class(op), vars(attrs_of(op))
        assert cls is not None
        operands = dict(zip(cls.operand_fields, op.operands, strict=False))
        mask = operands.pop("mask", None)
        if mask is None:
            return no_match(op, "there is no mask")
        read = read_mask(mask, dims_of(operands["q"])[2], self.weights)
        if read.kind == "causal" and not a["causal"] and (read.offset == 0 or "causal_offset" in a):
            a |= {"causal": True} | ({"causal_offset": (read.offset,)} if "causal_offset" in a else {})
        elif read.kind != "none":
            return no_match(op, "the mask is not what `causal` says")
        return as_tuple(build(cls, *operands.values(), **a))


def _together(masks: list[Value]) -> Value | None:
    """One mask of several that are added; None where there are none."""
    if len(masks) < 2:
        return masks[0] if masks else None
    total = xt.convert(masks[0], dtype="f32")
    for mask in masks[1:]:
        total = xt.add(total, xt.convert(mask, dtype="f32"))
    return total


def _guards_only(softmax: Operation) -> bool:
    """Whether the softmax has no users but the guard: its test and its select."""
    return {use.owner.name for use in softmax.results[0].uses} <= {"xt.is_nan", "xt.select"}


def _leads_to_product(value: Value) -> bool:
    """Whether a product is behind scales, conversions and masks."""
    for _ in range(8):
        op = producer(value)
        if op is None:
            return False
        if name_of(op) == "dot_general":
            return True
        scale = scaled(value)
        if scale is not None:
            value = scale[0]
        elif name_of(op) in ("convert", "tanh"):
            value = op.operands[0]
        elif name_of(op) == "select" and (number(op.operands[2]) or 0.0) <= HIDDEN:
            value = op.operands[1]
        elif name_of(op) == "add":
            return any(map(_leads_to_product, op.operands))
        else:
            return False
    return False


def _free(x: Value, batch: tuple[int, ...], contract: tuple[int, ...]) -> list[int]:
    return [d for d in range(len(dims_of(x))) if d not in (*batch, *contract)]


def _operand(value: Value, order: tuple[int, ...]) -> tuple[Value, float]:
    """(x, c) where c * x is `value` with its dims in `order`; x lies before scales and transposes."""
    scale = 1.0
    while True:
        pair, turned = scaled(value), producer(value, "transpose")
        if pair is not None:
            value, scale = pair[0], scale * pair[1]
        elif turned is not None:
            value, order = turned.operands[0], tuple(attrs_of(turned).perm[d] for d in order)
        else:
            break
    if list(order) != sorted(order):
        value = xt.transpose(value, perm=order)
    return value, scale


def _shared_heads(k: Value, v: Value) -> tuple[Value, Value]:
    """k and v before each head was repeated for a group of query heads, when both were alike."""
    first, second = _before_repeat(k), _before_repeat(v)
    if first is None or second is None or dims_of(first)[1] != dims_of(second)[1]:
        return k, v
    return first, second


def _before_repeat(x: Value) -> Value | None:
    """[b, h, s, d] behind [b, h, 1, s, d] -> broadcast [b, h, g, s, d] -> reshape [b, h*g, s, d]; else None."""
    merged = producer(x, "reshape")
    wide = producer(merged.operands[0], "broadcast") if merged is not None else None
    if wide is None:
        return None
    to, source = dims_of(wide.results[0]), dims_of(wide.operands[0])
    if len(to) != 5 or len(source) != 5 or source[2] != 1 or (*source[:2], *source[3:]) != (*to[:2], *to[3:]):
        return None
    if dims_of(x) != (to[0], to[1] * to[2], *to[3:]):
        return None
    return xt.reshape(wide.operands[0], shape=(*to[:2], *to[3:]))



