"""Bytes and operations of kernels."""

import numpy as np
from kernel_cases import module_of

from xcc._mlir import ir
from xcc.dialects import xt
from xcc.passes.base import PassContext
from xcc.passes.xt.form_kernels import FormKernels
from xcc.passes.xt.fusion.kernel_summary import summarise
from xcc.passes.xt.graph.op_graph import IN_PLACE
from xcc.symbolic import parse, sym


def test_matmul_with_bias():
    def build(x, b):
        y = xt.dot_general(x, xt.weight("w", (8, 4), "f32"), lhs_contract=(1,), rhs_contract=(0,))
        return xt.add(y, b)
    module = module_of(build, xt.TensorType((sym("n"), 8), "f32"), xt.TensorType((4,), "f32"))
    FormKernels().run(module, PassContext())
    s = summarise(module)
    (k,) = s.kernels
    assert k.ops == ("dot_general", "add")
    assert k.dispatches == s.dispatches == 1
    assert k.bytes_in == parse("32*d0 + 144")
    assert k.bytes_out == parse("16*d0")
    assert k.flops == parse("68*d0")
    assert s.bytes_moved == parse("48*n + 144")
    assert "1 kernel, 1 dispatch," in str(s)


def test_convolution_and_window():
    def build(x, w):
        y = xt.convolution(x, w, layout="NHWC", filter="HWIO")
        return xt.reduce_window(y, kind="max", window=(1, 2, 2, 1), strides=(1, 2, 2, 1))
    module = module_of(build, xt.TensorType((1, 6, 6, 3), "f32"), xt.TensorType((3, 3, 3, 5), "f32"))
    FormKernels().run(module, PassContext())
    conv, pool = summarise(module).kernels
    assert conv.flops == 2 * 16 * 5 * 27
    assert pool.flops == 4 * 5 * 4


def test_of_a_table_what_is_gathered_counts():
    def build(ids):
        return xt.gather(xt.weight("table", (1000, 8), "f32"), ids, axis=0)
    module = module_of(build, xt.TensorType((5,), "i64"))
    FormKernels().run(module, PassContext())
    (k,) = summarise(module).kernels
    assert k.bytes_in == 5 * 8 + 5 * 8 * 4


def test_of_an_update_in_place_what_is_new_counts():
    def build(cache, row, at):
        return xt.scatter_elements(cache, xt.reshape(at, shape=(1, 1)), row, axis=0)
    module = module_of(build, xt.TensorType((1000, 8), "f32"), xt.TensorType((1, 8), "f32"), xt.TensorType((1,), "i64"))
    for op in module.body.operations[0].regions[0].blocks[0].operations:
        if op.operation.name == "xt.scatter_elements":
            op.attributes[IN_PLACE] = ir.UnitAttr.get(module.context)
    FormKernels().run(module, PassContext())
    s = summarise(module)
    k = s.kernels[-1]
    assert (k.bytes_in, k.bytes_out, s.bytes_moved) == (8 + 32, 32, 8 + 32 + 32)


def test_what_runs_when_loaded_moves_nothing_in_a_run():
    def build(x):
        made = xt.dot_general(xt.constant(np.ones((4, 3), np.float32)), xt.weight("w", (3, 64), "f32"),
                              lhs_contract=(1,), rhs_contract=(0,))
        return xt.dot_general(x, made, lhs_contract=(1,), rhs_contract=(0,))
    module = module_of(build, xt.TensorType((sym("n"), 4), "f32"))
    FormKernels().run(module, PassContext())
    s = summarise(module)
    assert [k.setup for k in s.kernels] == [1, 0] and s.dispatches == 1
    assert s.bytes_moved == parse("16*n + 256*n + 1024")
    assert str(s.kernels[0]).endswith("1536 flop, when loaded")
