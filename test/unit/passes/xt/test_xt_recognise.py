"""What xt-recognise finds gives the numbers of what stood there before."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_xt_decompose import build, normal  # noqa: E402

from xcc import symbolic
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.dialects.xt.op import attrs_of
from xcc.dialects.xt.types import TensorType
from xcc.passes.base import PassContext, get_pass, parse_pass
from xcc.passes.xt.graph.rewrite import name_of, walk_ops
from xcc.passes.xt.recognise.places import AtMost, Places


def const(value, like):
    return xt.scalar(value, TensorType.of(like).dtype)


def plain_attention(q, k, v, mask=None, guard=False, boolean=False, scale=0.3):
    s = xt.dot_general(xt.mul(q, const(scale, q)), k, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3,),
                       rhs_contract=(3,), dtype="f32")
    if boolean:
        s = xt.select(mask, s, const(-np.inf, s))
    elif mask is not None:
        s = xt.add(s, mask)
    p = xt.softmax(s, axis=3)
    if guard:
        p = xt.select(xt.is_nan(p), const(0.0, p), p)
    return xt.dot_general(p, v, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3,), rhs_contract=(2,), dtype="f32")


def repeated(x):
    b, h, s, d = TensorType.of(x).shape
    wide = xt.broadcast(xt.reshape(x, shape=(b, h, 1, s, d)), shape=(b, h, 2, s, d))
    return xt.reshape(wide, shape=(b, 2 * h, s, d))


def causal(q, k, v):
    n, m = TensorType.of(q).shape[2], TensorType.of(k).shape[2]
    rows = xt.add(xt.iota(shape=(n, 1), axis=0), xt.scalar(1, "i64"))
    return plain_attention(q, k, v, xt.compare(xt.iota(shape=(m,), axis=0), rows, direction="lt"), boolean=True)


def counted(q, k, v):
    """As transformers makes it: a new sequence begins where positions do not rise by one; keys of its own up to it."""
    n = TensorType.of(q).shape[2]
    at = xt.broadcast(xt.iota(shape=(1, n), axis=1), shape=(2, n))
    before = xt.sub(xt.slice(at, starts=(0, 0), limits=(2, 1)), xt.scalar(1, "i64"))
    line = xt.concatenate(before, at, axis=1)
    steps = [xt.slice(line, starts=(0, s), limits=(2, s + n)) for s in (1, 0)]
    begins = xt.convert(xt.compare(xt.sub(*steps), xt.scalar(1, "i64"), direction="ne"), dtype="i64")
    apart = xt.scalar(n, "i64") if isinstance(n, int) else xt.dim(n)
    row, key = (xt.add(xt.mul(xt.iota(shape=(2, 1, 1, 1), axis=0), apart),
                       xt.iota(shape=(1, 1, n, 1) if d == 2 else (1, 1, 1, n), axis=d)) for d in (2, 3))
    first, second = ([xt.gather(xt.reshape(x, shape=(2 * n,)), i, axis=0) for i in (row, key)]
                     for x in (at, xt.cumulative(begins, kind="sum", axis=1)))
    own = xt.compare(*second, direction="eq")
    seen = xt.and_(xt.compare(*first[::-1], direction="le"), own)
    return xt.attention(q, k, v, xt.select(seen, *(const(x, q) for x in (0.0, -np.inf))))


EMPTY_ROW = np.where(np.tril(np.ones((3, 5)), -1) > 0, 0, -np.inf).astype(np.float32)
QKV = (normal(2, 4, 3, 8), normal(2, 4, 5, 8), normal(2, 4, 5, 6))
GROUPED = (normal(2, 4, 3, 8), normal(2, 2, 5, 8), normal(2, 2, 5, 6))

CASES = {
    "attention": ("attention", plain_attention, QKV),
    "attention_grouped": ("attention", lambda q, k, v: plain_attention(q, repeated(k), repeated(v)), GROUPED),
    "attention_causal": ("attention", causal, QKV),
    "attention_counted": ("attention", counted, (*[normal(2, 4, 5, 8)] * 3,)),
    "attention_empty_row": ("attention", lambda *x: plain_attention(*x, guard=True), (*QKV, EMPTY_ROW)),
    "attention_boolean": ("attention", lambda *x: plain_attention(*x, guard=True, boolean=True),
                          (*QKV, EMPTY_ROW == 0)),
    "softmax": ("softmax", lambda x: xt.softmax(x, axis=0), (normal(5, 3),)),
    "rms_norm": ("rms_norm", lambda x, s: xt.rms_norm(x, s, axes=(1,)), (normal(4, 8), normal(8))),
    "layer_norm": ("layer_norm", lambda *x: xt.layer_norm(*x, axes=(1, 2)),
                   (normal(2, 3, 4), normal(3, 4), normal(3, 4))),
    "group_norm": ("group_norm", lambda x, s, b: xt.reshape(xt.group_norm(
        xt.reshape(x, shape=(2, 3, 40)), s, b, groups=3), shape=(2, 6, 4, 5)),
                   (normal(2, 6, 4, 5), normal(3), normal(3))),
    "gelu": ("gelu", xt.gelu, (normal(50),)),
    "gelu_tanh": ("gelu", lambda x: xt.gelu(x, approximate="tanh"), (normal(50),)),
}


@pytest.mark.parametrize("case", CASES)
def test_recognised_is_equal(case):
    name, make, arrays = CASES[case]
    module = build(make, arrays, False)
    want = interpret(module, arrays)[0]
    if not case.startswith(("attention", "group_norm")):
        parse_pass("xt-decompose").run(module, PassContext())
    get_pass("xt-recognise")().run(module, PassContext())
    xt.verify(module)
    found = [name_of(op) for op in walk_ops(module)]
    assert found.count(name) == 1 and not {"exp", "reduce", "dot_general", "erf", "tanh"} & set(found)
    np.testing.assert_allclose(interpret(module, arrays)[0], want, rtol=2e-5, atol=2e-5)


def test_padded_rows_keep_their_nan():
    """A mask that may hide a whole row, with no guard: such rows stay NaN."""
    arrays = (*QKV, EMPTY_ROW)
    module = build(plain_attention, arrays, False)
    want = interpret(module, arrays)[0]
    get_pass("xt-recognise")().run(module, PassContext())
    assert [name_of(op) for op in walk_ops(module)].count("attention") == 1
    assert np.isnan(want[:, :, 0]).all() and not np.isnan(want[:, :, 1:]).any()
    np.testing.assert_allclose(interpret(module, arrays)[0], want, rtol=2e-5, atol=2e-5)
    parse_pass("xt-decompose").run(module, PassContext())
    np.testing.assert_allclose(interpret(module, arrays)[0], want, rtol=2e-5, atol=2e-5)


def filled(q, k, v, mask, fill):
    """where(mask, scores, a number)."""
    s = xt.dot_general(q, k, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3,), rhs_contract=(3,))
    p = xt.softmax(xt.select(mask, s, const(fill, s)), axis=3)
    return xt.dot_general(p, v, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3,), rhs_contract=(2,))


@pytest.mark.parametrize("fill, found", [(float(np.finfo(np.float32).min), 1), (-1e9, 0)])
def test_masks_that_write_a_number(fill, found):
    """A row without keys is the mean of the values: a number so low that it stays what it is may be added instead."""
    arrays = (*QKV, EMPTY_ROW == 0)
    module = build(lambda *x: filled(*x, fill=fill), arrays, False)
    want = interpret(module, arrays)[0]
    get_pass("xt-recognise")().run(module, PassContext())
    assert [name_of(op) for op in walk_ops(module)].count("attention") == found
    np.testing.assert_allclose(interpret(module, arrays)[0], want, rtol=2e-5, atol=2e-5)


def test_two_added_masks():
    arrays = (*QKV, normal(2, 1, 1, 5), normal(3, 5))

    def twice(q, k, v, first, second):
        s = xt.dot_general(q, k, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3,), rhs_contract=(3,))
        p = xt.softmax(xt.add(xt.add(s, first), second), axis=3)
        return xt.dot_general(p, v, lhs_batch=(0, 1), rhs_batch=(0, 1), lhs_contract=(3,), rhs_contract=(2,))

    module = build(twice, arrays, False)
    want = interpret(module, arrays)[0]
    get_pass("xt-recognise")().run(module, PassContext())
    assert [name_of(op) for op in walk_ops(module)].count("attention") == 1
    np.testing.assert_allclose(interpret(module, arrays)[0], want, rtol=2e-5, atol=2e-5)


def test_squares_of_squares_take_no_time():
    """As a product of single factors it has 2^60 of them."""

    def squares(x):
        for _ in range(60):
            x = xt.mul(x, x)
        return x

    module = build(squares, (normal(3),), False)
    get_pass("xt-recognise")().run(module, PassContext())
    assert [name_of(op) for op in walk_ops(module)] == ["mul"] * 60


@pytest.mark.parametrize("symbolic", [False, True])
def test_counted_positions_are_a_causal_mask(symbolic):
    """Of sizes that are known, and of those that are not."""

    def make(x):
        n = TensorType.of(x).shape[0]
        x = xt.broadcast(xt.reshape(x, shape=(1, 1, n, 8)), shape=(2, 3, n, 8))
        return counted(x, x, x)

    module = build(make, (normal(6, 8),), symbolic)
    want = interpret(module, (X := normal(6, 8),))[0]
    for name in ("xt-simplify", "xt-fold", "xt-recognise"):
        get_pass(name)().run(module, PassContext())
    (op,) = (op for op in walk_ops(module) if name_of(op) == "attention")
    assert attrs_of(op).causal and len(op.operands) == 3
    np.testing.assert_allclose(interpret(module, (X,))[0], want, rtol=2e-5, atol=2e-5)


def drawn_positions(rng, n):
    """A value [3, n] of i64 that is computed of positions."""

    def value(depth):
        kind = rng.integers(0 if depth else 6, 9)
        if kind == 0:
            return xt.add(value(depth - 1), value(depth - 1))
        if kind == 1:
            return xt.sub(value(depth - 1), xt.scalar(int(rng.integers(-2, 3)), "i64"))
        if kind == 2:       # ahead of it what may go on in it
            x = value(depth - 1)
            first = xt.sub(xt.slice(x, starts=(0, 0), limits=(3, 1)), xt.scalar(int(rng.integers(0, 3)), "i64"))
            start = int(rng.integers(0, 2))
            return xt.slice(xt.concatenate(first, x, axis=1), starts=(0, start), limits=(3, start + n))
        if kind == 3:       # of all in one line
            at = xt.add(xt.mul(xt.iota(shape=(3, 1), axis=0), xt.dim(n)), xt.iota(shape=(1, n), axis=1))
            at = xt.add(at, xt.scalar(int(rng.integers(-1, 2)), "i64")) if rng.integers(2) else at
            return xt.gather(xt.reshape(value(depth - 1), shape=(3 * n,)), at, axis=0)
        if kind == 4:
            return xt.cumulative(xt.sub(value(depth - 1), value(depth - 1)), kind="sum", axis=1)
        if kind == 5:
            x = xt.reshape(xt.transpose(value(depth - 1), perm=(1, 0)), shape=(n, 1, 3))
            return xt.transpose(xt.reshape(x, shape=(n, 3)), perm=(1, 0))
        return xt.broadcast(xt.iota(shape=(1, n) if kind == 6 else (3, 1), axis=int(kind == 6)), shape=(3, n)) \
            if kind < 8 else xt.broadcast(xt.scalar(int(rng.integers(-1, 3)), "i64"), shape=(3, n))

    return value(2)


def test_drawn_positions_are_what_is_computed():
    """What is said of an element at any place is what the interpreter finds there."""
    rng, said = np.random.default_rng(0), 0
    for n in range(60):
        def make(x, direction=("le", "lt", "ge", "gt", "eq", "ne")[n % 6]):
            size = TensorType.of(x).shape[0]
            return xt.compare(drawn_positions(rng, size), drawn_positions(rng, size), direction=direction)

        module = build(make, (np.zeros(4),), n % 2 == 0)
        (want,) = interpret(module, (np.zeros(4),))
        result = list(walk_ops(module))[-1].results[0]
        places = Places(None)
        place = places.anywhere(result)
        found = places.at(result, place)
        said += found is not None
        for i, j in np.ndindex(want.shape):
            where = {"n": 4} | {symbolic.bare_symbol(p): x for p, x in zip(place, (i, j), strict=True)}
            by = symbolic.evaluate(found.by, where) <= 0 if isinstance(found, AtMost) else found
            assert by is None or by == want[i, j]
    assert said > 15
