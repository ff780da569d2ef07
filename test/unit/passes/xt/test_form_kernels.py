"""Which ops share a kernel, and that the host program still computes the model."""

import numpy as np
import pytest
from kernel_cases import check, functions, module_of

from xcc.dialects import xt
from xcc.passes.xt.fusion.outline import Group
from xcc.passes.xt.graph.op_graph import Graph
from xcc.symbolic import sym

RNG = np.random.default_rng(0)
N, M = sym("n"), sym("m")


def f32(*shape):
    return xt.TensorType(shape, "f32")


def data(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def softmax(x):
    e = xt.exp(xt.sub(x, xt.reduce(x, kind="max", axes=(-1,), keepdims=True)))
    return xt.div(e, xt.reduce(e, kind="sum", axes=(-1,), keepdims=True))


def layer_norm(x, scale, bias, size):
    n = xt.scalar(float(size), "f32")
    mean = xt.div(xt.reduce(x, kind="sum", axes=(-1,), keepdims=True), n)
    d = xt.sub(x, mean)
    var = xt.div(xt.reduce(xt.mul(d, d), kind="sum", axes=(-1,), keepdims=True), n)
    return xt.add(xt.mul(xt.mul(d, xt.rsqrt(xt.add(var, xt.scalar(1e-5, "f32")))), scale), bias)


def matmul(x, name="w", k=8, n=8):
    w = xt.weight(name, (k, n), "f32")
    rank = xt.TensorType.of(x).rank
    return xt.dot_general(x, w, lhs_contract=(rank - 1,), rhs_contract=(0,))


def test_no_fusion():
    check(lambda x: xt.add(xt.exp(x), xt.scalar(1.0, "f32")), [f32(N, 4)], [data(3, 4)], fuse="none",
          kernels=["exp", "add"])


def test_pointwise_chain():
    check(lambda x, y: xt.tanh(xt.mul(xt.add(x, y), xt.scalar(2.0, "f32"))), [f32(N, 4), f32(4)],
          [data(3, 4), data(4)], kernels=["add mul tanh"])


def test_pointwise_with_two_outputs():
    def build(x):
        a = xt.exp(x)
        return a, xt.add(a, x)
    check(build, [f32(N, 4)], [data(3, 4)], kernels=["exp add"])


def test_softmax_is_one_kernel():
    check(lambda x: softmax(x), [f32(N, 5, M)], [data(2, 5, 7)], kernels=["reduce sub exp reduce div"])


def test_long_rows_stay_apart():
    found = check(lambda x: softmax(x), [f32(2, 64)], [data(2, 64)], max_row=32)
    assert len(found) > 1


def test_layer_norm_with_residual_is_one_kernel():
    def build(x, r, scale, bias):
        h = xt.add(x, r)
        return h, layer_norm(h, scale, bias, 8)
    found = check(build, [f32(N, 8), f32(N, 8), f32(8), f32(8)], [data(3, 8), data(3, 8), data(8), data(8)])
    assert len(found) == 1


def test_matmul_takes_bias_and_activation():
    def build(x, b, r):
        return xt.add(xt.maximum(xt.add(matmul(x), b), xt.scalar(0.0, "f32")), r)
    check(build, [f32(N, 4, 8), f32(8), f32(N, 4, 8)], [data(2, 4, 8), data(8), data(2, 4, 8)],
          weights={"w": data(8, 8)}, kernels=["dot_general add maximum add"])


def test_expensive_prologue_stays_outside():
    check(lambda x: matmul(xt.exp(x)), [f32(N, 8)], [data(3, 8)], weights={"w": data(8, 8)},
          kernels=["exp", "dot_general"])


def test_expensive_prologue_behind_a_unit_reshape_stays_outside():
    check(lambda x: matmul(xt.reshape(xt.exp(x), shape=(N, 1, 8))), [f32(N, 8)], [data(3, 8)],
          weights={"w": data(8, 8)}, kernels=["exp", "dot_general"])


def test_expensive_ops_are_not_interpolated():
    def build(x):
        return xt.resize(xt.add(xt.exp(x), xt.scalar(1.0, "f32")), shape=(2 * N, 8), mode="linear", scales=(2.0, 2.0))
    check(build, [f32(N, 4)], [data(3, 4)], kernels=["exp", "add resize"])


def test_two_matmuls_are_two_kernels():
    check(lambda x: matmul(matmul(x), "v"), [f32(N, 8)], [data(3, 8)], weights={"w": data(8, 8), "v": data(8, 8)},
          kernels=["dot_general", "dot_general"])


def test_transformer_block():
    def build(x, scale, bias):
        h = xt.add(matmul(layer_norm(x, scale, bias, 8)), x)
        return xt.add(matmul(xt.maximum(matmul(layer_norm(h, scale, bias, 8), "v"), xt.scalar(0.0, "f32")), "u"), h)
    found = check(build, [f32(N, M, 8), f32(8), f32(8)], [data(2, 3, 8), data(8), data(8)],
                  weights={"w": data(8, 8), "v": data(8, 8), "u": data(8, 8)})
    assert [f.split()[0] for f in found] == ["reduce", "dot_general", "reduce", "dot_general", "dot_general"]


def test_dependences_through_a_third_kernel():
    """a feeds a matmul whose result meets a again: a and the last add must not become one kernel before it."""
    def build(x):
        a = xt.exp(x)
        return xt.add(matmul(a), a)
    check(build, [f32(N, 8)], [data(3, 8)], weights={"w": data(8, 8)}, kernels=["exp", "dot_general add"])


def test_cheap_producers_are_copied():
    """The mask is made where it is used, instead of being stored."""
    def build(x, y):
        rows = xt.iota((4, 8), axis=0, dtype="i64")
        mask = xt.compare(rows, xt.iota((4, 8), axis=1, dtype="i64"), direction="ge")
        zero = xt.scalar(0.0, "f32")
        return (xt.reduce(xt.select(mask, x, zero), kind="sum", axes=(0,)),
                xt.reduce(xt.select(mask, y, zero), kind="sum", axes=(1,)))
    found = check(build, [f32(4, 8), f32(4, 8)], [data(4, 8), data(4, 8)])
    assert found == ["iota iota compare select reduce"] * 2


def test_transpose_joins_its_consumer():
    check(lambda x, y: xt.add(xt.transpose(xt.exp(x), perm=(1, 0)), y), [f32(N, M), f32(M, N)],
          [data(3, 4), data(4, 3)], kernels=["exp transpose add"])


def test_reshape_is_a_view():
    check(lambda x: xt.exp(xt.reshape(xt.tanh(x), shape=(2 * N, 4))), [f32(N, 8)], [data(3, 8)],
          kernels=["tanh", "exp"])


def test_unit_reshape_stays_inside():
    def build(x, y):
        s = xt.reshape(xt.reduce(x, kind="sum", axes=(1,)), shape=(N, 1))
        return xt.sub(x, s)
    check(build, [f32(N, 8), f32(N, 8)], [data(3, 8), data(3, 8)], kernels=["reduce reshape sub"])


def test_unit_reshape_at_the_edge_is_a_view():
    check(lambda x: xt.reshape(xt.exp(xt.reshape(x, shape=(N, 1, 8))), shape=(1, N, 8)), [f32(N, 8)], [data(3, 8)],
          kernels=["exp"])


def test_equal_kernels_are_one_function():
    from kernel_cases import functions, module_of

    from xcc.passes.base import PassContext
    from xcc.passes.xt.form_kernels import FormKernels

    def build(x, y):
        return xt.exp(xt.reshape(xt.exp(x), shape=(2 * N, 4))), xt.exp(y)
    module = module_of(build, f32(N, 8), f32(N, 4))
    FormKernels(fuse="none").run(module, PassContext())
    assert sorted(functions(module)) == ["exp_0", "exp_1", "main"]


def test_returned_inputs_and_constants():
    def build(x):
        c = xt.constant(np.arange(4, dtype=np.float32))
        return x, c, xt.reshape(x, shape=(4, N)), xt.dim(N * 4)
    check(build, [f32(N, 4)], [data(3, 4)], kernels=[])


def test_one_value_returned_twice():
    def build(x):
        y = xt.exp(x)
        return y, y, xt.reshape(y, shape=(4, N))
    check(build, [f32(N, 4)], [data(3, 4)], kernels=["exp"])


@pytest.mark.parametrize("flag", [True, False])
def test_if(flag):
    def build(x, c):
        return xt.if_(c, lambda: xt.exp(x), lambda: x)
    check(build, [f32(N, 4), xt.TensorType((), "i1")], [data(3, 4), np.array(flag)], kernels=["exp"])


def test_while():
    def build(x, limit):
        one = xt.scalar(1, "i64")
        return xt.while_([xt.scalar(0, "i64"), x, xt.exp(x)],
                         lambda i, a, b: xt.compare(i, limit, direction="lt"),
                         lambda i, a, b: [xt.add(i, one), b, xt.add(a, b)])
    check(build, [f32(N, 4), xt.TensorType((), "i64")], [data(3, 4), np.array(5)])


@pytest.mark.parametrize("reverse", [0, 1])
def test_scan(reverse):
    def build(x, h):
        def body(state, slices):
            new = xt.tanh(xt.add(state[0], slices[0]))
            return [new], [xt.mul(new, slices[0])]
        return xt.scan([h], [x], body, reverse=[reverse], out_reverse=[reverse])
    check(build, [f32(N, 3, 4), f32(3, 4)], [data(5, 3, 4), data(3, 4)])


@pytest.mark.parametrize("returned", [False, True])
def test_sizes_that_depend_on_data(returned):
    def build(x):
        where = xt.nonzero(x, symbol="k")
        return where if returned else xt.add(where, xt.scalar(1, "i64"))
    check(build, [f32(N, 4)], [np.maximum(data(3, 4), 0)], kernels=["nonzero"] + ["add"] * (not returned))


def test_scan_along_inner_axes():
    def build(x, h):
        def body(state, slices):
            new = xt.tanh(xt.add(state[0], slices[0]))
            return [new], [xt.mul(new, slices[0])]
        return xt.scan([h], [x], body, axes=[1], out_axes=[2], reverse=[1])
    check(build, [f32(3, N, 4), f32(3, 4)], [data(3, 5, 4), data(3, 4)])


def test_rows_that_line_up_with_columns():
    """In a square, the maximum of row j may be added to column j: it is another row than the one being computed."""
    def build(x):
        y = softmax(x)
        return xt.maximum(y, xt.reduce(y, kind="max", axes=(1,)))
    for n in (N, 5):
        check(build, [f32(n, n)], [data(5, 5)], kernels=["reduce sub exp reduce div reduce", "maximum"])


def test_of_copied_producers_only_what_is_read():
    """A kernel has no argument for what nobody in it reads: kernels beside each other are joined by those of parts."""
    module = module_of(lambda x, y: xt.exp(xt.neg(x)) if xt.mul(x, y) is not None else None, f32(4), f32(4))
    graph = Graph(functions(module)["main"].regions[0].blocks[0])
    neg, mul, exp = (next(n for n in graph.nodes if n.name == name) for name in ("neg", "mul", "exp"))
    group = Group([exp], [neg, mul])
    assert group.body() == [neg, exp] and group.inputs() == list(neg.operands)


def test_copies_bring_what_they_read():
    """The gradient of a norm of columns: the difference, which a copied product reads, is computed where that is."""
    def build(x, g, mean):
        d, s = xt.convert(g, dtype="f32"), xt.sub(xt.convert(x, dtype="f32"), mean)
        total, scaled = (xt.reduce(v, kind="sum", axes=(0,)) for v in (d, xt.mul(d, s)))
        return xt.sub(xt.sub(d, xt.mul(s, scaled)), total)
    narrow = xt.TensorType((256, 64), "f16")
    check(build, [narrow, narrow, f32(64)], [data(256, 64).astype(np.float16) for _ in range(2)] + [data(64)],
          kernels=["convert reduce", "convert convert sub mul reduce", "convert convert sub mul sub sub"])
