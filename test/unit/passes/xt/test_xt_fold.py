"""Folding with a weight store: lazy entries, sizes and values; and folding and simplifying keep the numbers."""

import numpy as np

from xcc import symbolic
from xcc._mlir import func_d, ir
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.passes.base import PassContext, parse_pass
from xcc.passes.xt.graph.rewrite import name_of, walk_ops
from xcc.weights import WeightStore

N = symbolic.sym("n")


def module_of(body, *types):
    with xt.context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            f = func_d.FuncOp("main", ([t.mlir() for t in types], []))
            with ir.InsertionPoint(f.add_entry_block()):
                out = body(*f.arguments)
                func_d.ReturnOp([out])
            f.attributes["function_type"] = ir.TypeAttr.get(
                ir.FunctionType.get([t.mlir() for t in types], [out.type]))
        return module


def names(module):
    return [name_of(op) for op in walk_ops(module)]


def test_large_results_are_lazy_weights():
    store, reads = WeightStore(), []
    big = np.arange(64 * 65, dtype=np.float32).reshape(64, 65)
    store.add("w", lambda: (reads.append("w"), big)[1])
    module = module_of(lambda x: xt.matmul(x, xt.transpose(xt.mul(xt.weight("w", (64, 65), "f32"),
                                                                  xt.scalar(2.0, "f32")), perm=(1, 0))),
                       xt.TensorType((N, 65), "f32"))
    parse_pass("xt-fold").run(module, PassContext(weights=store))
    xt.verify(module)
    assert names(module) == ["weight", "dot_general"]
    assert reads == []
    x = np.ones((3, 65), np.float32)
    np.testing.assert_allclose(interpret(module, [x], store)[0], x @ (2 * big).T, rtol=1e-6)
    assert reads == ["w"]


def test_growth_stays():
    store = WeightStore()
    store.add("w", np.ones((1, 2000), np.float32))
    module = module_of(lambda: xt.broadcast(xt.weight("w", (1, 2000), "f32"), shape=(50, 2000)))
    parse_pass("xt-fold").run(module, PassContext(weights=store))
    assert names(module) == ["weight", "broadcast"]


def test_simplify_keeps_numbers_with_control_flow():
    def body(x):
        zero, one = xt.scalar(0.0, "f32"), xt.scalar(1.0, "f32")
        y = xt.add(xt.transpose(xt.transpose(x, perm=(1, 0)), perm=(1, 0)), zero)
        positive = xt.compare(xt.reduce(y, kind="sum"), zero, direction="gt")
        (z,) = xt.if_(positive, lambda: xt.mul(y, one), lambda: xt.neg(xt.neg(xt.neg(y))))
        last, ys = xt.scan([zero], [xt.reduce(z, kind="sum", axes=(1,))],
                           lambda c, s: ([xt.add(c[0], s[0])], [xt.mul(xt.add(c[0], s[0]), one)]), reverse=[1])
        return ys

    module = module_of(body, xt.TensorType((N, 4), "f32"))
    inputs = [np.random.default_rng(i).standard_normal((5, 4)).astype(np.float32) - 3 * i for i in range(2)]
    want = [interpret(module, [x])[0] for x in inputs]
    parse_pass("xt-simplify").run(module, PassContext())
    xt.verify(module)
    assert "transpose" not in names(module) and "mul" not in names(module)
    for x, w in zip(inputs, want, strict=True):
        np.testing.assert_array_equal(interpret(module, [x])[0], w)
    assert want[0].shape == (5,) and not np.allclose(want[0], want[1])


def test_while_and_data_dependent_shapes():
    def body(x):
        limit = xt.scalar(100, "i64")
        (n,) = xt.while_([xt.dim(N)], lambda i: xt.compare(i, limit, direction="lt"), lambda i: xt.add(i, i))
        found = xt.nonzero(x, symbol="nz")
        return xt.add(xt.reduce(xt.reshape(found, shape=(symbolic.sym("nz"),)), kind="sum"), n)

    module = module_of(body, xt.TensorType((N,), "f32"))
    assert interpret(module, [np.array([0, 2, 0, 3, 1], np.float32)])[0] == 160 + 1 + 3 + 4


def test_a_contraction_that_grows_stays():
    """The model is stored small: what makes more of its weights does it when it is loaded."""
    store = WeightStore()
    store.add("w", np.ones((3, 4096), np.float32))

    def kept(rows):
        module = module_of(lambda x: xt.add(x, xt.dot_general(
            xt.constant(np.ones((rows, 3), np.float32)), xt.weight("w", (3, 4096), "f32"), lhs_contract=(1,),
            rhs_contract=(0,))), xt.TensorType((rows, 4096), "f32"))
        parse_pass("xt-fold").run(module, PassContext(weights=store))
        return "dot_general" in names(module)

    assert kept(4) and not kept(3)


def test_a_scalar_stays_one():
    """A reduction of all of a constant has no dim; it was stored with one."""
    module = module_of(lambda: xt.reduce(xt.constant(np.ones((3, 2), np.float32)), kind="sum", axes=(0, 1)))
    parse_pass("xt-fold").run(module, PassContext(weights=WeightStore()))
    assert names(module) == ["constant"] and module.operation.verify()
    assert "-> tensor<f32>" in str(module) and "return %0 : tensor<f32>" in str(module)


def test_turned_views_keep_numbers():
    """Any two transposes around a reshape that merges neighbours: at most one is left."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        shape = tuple(int(n) for n in rng.integers(1, 4, 4))
        first, start = tuple(int(d) for d in rng.permutation(4)), int(rng.integers(3))
        merged = [shape[d] for d in first]
        merged[start:start + 2] = [merged[start] * merged[start + 1]]
        second = tuple(int(d) for d in rng.permutation(3))
        module = module_of(lambda x, first=first, merged=merged, second=second: xt.transpose(xt.reshape(
            xt.transpose(x, perm=first), shape=merged), perm=second), xt.TensorType(shape, "f32"))
        x = rng.standard_normal(shape).astype(np.float32)
        (want,) = interpret(module, [x])
        parse_pass("xt-simplify").run(module, PassContext())
        xt.verify(module)
        assert names(module).count("transpose") <= 1
        np.testing.assert_array_equal(interpret(module, [x])[0], want)
