"""What xt-recognise finds gives the numbers of what stood there before."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_xt_decompose import build, normal  # noqa: E402

from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.dialects.xt.types import TensorType
from xcc.passes.base import PassContext, get_pass, parse_pass
from xcc.passes.xt.graph.rewrite import name_of, walk_ops


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


EMPTY_ROW = np.where(np.tril(np.ones((3, 5)), -1) > 0, 0, -np.inf).astype(np.float32)
QKV = (normal(2, 4, 3, 8), normal(2, 4, 5, 8), normal(2, 4, 5, 6))
GROUPED = (normal(2, 4, 3, 8), normal(2, 2, 5, 8), normal(2, 2, 5, 6))

CASES = {
    "attention": ("attention", plain_attention, QKV),
    "attention_grouped": ("attention", lambda q, k, v: plain_attention(q, repeated(k), repeated(v)), GROUPED),
    "attention_causal": ("attention", causal, QKV),
    "attention_empty_row": ("attention", lambda *x: plain_attention(*x, guard=True), (*QKV, EMPTY_ROW)),
    "attention_boolean": ("attention", lambda *x: plain_attention(*x, guard=True, boolean=True),
                          (*QKV, EMPTY_ROW == 0)),
    "softmax": ("softmax", lambda x: xt.softmax(x, axis=0), (normal(5, 3),)),
    "rms_norm": ("rms_norm", lambda x, s: xt.rms_norm(x, s, axes=(1,)), (normal(4, 8), normal(8))),
    "layer_norm": ("layer_norm", lambda *x: xt.layer_norm(*x, axes=(1, 2)),
                   (normal(2, 3, 4), normal(3, 4), normal(3, 4))),
    "gelu": ("gelu", xt.gelu, (normal(50),)),
    "gelu_tanh": ("gelu", lambda x: xt.gelu(x, approximate="tanh"), (normal(50),)),
}


@pytest.mark.parametrize("case", CASES)
def test_recognised_is_equal(case):
    name, make, arrays = CASES[case]
    module = build(make, arrays, False)
    want = interpret(module, arrays)[0]
    if not case.startswith("attention"):
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
