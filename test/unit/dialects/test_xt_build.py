"""Builders, inference with symbolic dims, verification and the text form."""

import numpy as np
import pytest

from xcc import symbolic
from xcc._mlir import func_d, ir
from xcc.diagnostics import UserError
from xcc.dialects import xt

BATCH = symbolic.sym("batch")


@pytest.fixture()
def module():
    """An empty module that is current."""
    with xt.context(), ir.Location.unknown():
        m = ir.Module.create()
        with ir.InsertionPoint(m.body):
            yield m


def arguments(*types):
    kinds = [t.mlir() for t in types]
    f = func_d.FuncOp("main", (kinds, []))
    return f, list(f.add_entry_block().arguments)


def inside(f):
    return ir.InsertionPoint(f.entry_block)


def test_broadcast_prefers_static_dims(module):
    f, (x, y) = arguments(xt.TensorType((BATCH, 1), "f32"), xt.TensorType((symbolic.sym("n"), 4), "f32"))
    with inside(f):
        assert str(xt.TensorType.of(xt.add(x, y))) == "f32[batch, 4]"
        assert str(xt.TensorType.of(xt.add(y, xt.constant(np.zeros((7, 4), np.float32))))) == "f32[7, 4]"


def test_shape_mismatch_names_op_and_operands(module):
    a, b = (xt.constant(np.zeros(n, np.float32)) for n in (3, 4))
    with pytest.raises(UserError, match=r"xt\.add\(f32\[3\], f32\[4\]\): cannot broadcast"):
        xt.add(a, b)


def test_missing_and_unknown_attributes(module):
    x = xt.constant(np.zeros((2, 3), np.float32))
    with pytest.raises(TypeError, match="needs the attribute 'kind'"):
        xt.reduce(x)
    with pytest.raises(TypeError, match="no attribute 'kinds'"):
        xt.reduce(x, kinds="sum")
    with pytest.raises(UserError, match="kind = 'mean' is none of"):
        xt.reduce(x, kind="mean")


def test_text_round_trip(module):
    f, (x,) = arguments(xt.TensorType((BATCH, 3, 8, 8), "f32"))
    with inside(f):
        w = xt.constant(np.zeros((4, 3, 3, 3), np.float32))
        y = xt.convolution(x, w, strides=(2, 2), low=(1, 1), high=(1, 1))
        (z,) = xt.if_(xt.scalar(True, "i1"), lambda: xt.neg(y), lambda: xt.concatenate(y, axis=-1))
        func_d.ReturnOp([])
    xt.verify(module)
    assert str(ir.Module.parse(str(module))) == str(module)
    assert str(xt.TensorType.of(z)) == "f32[batch, 4, 4, 4]"


def test_verifier_compares_with_inference(module):
    with pytest.raises(ir.MLIRError, match="f32\\[2\\] follows from its operands"):
        ir.Module.parse('%a = "xt.constant"() {value = dense<0.> : tensor<2xf32>} : () -> tensor<2xf32>\n'
                        '%b = "xt.neg"(%a) : (tensor<2xf32>) -> tensor<3xf32>')


def test_list_ops_are_verified(module):
    bad = ir.Module.parse('%a = "xt.constant"() {value = dense<0.> : tensor<2xf32>} : () -> tensor<2xf32>\n'
                          '%b = "xtv.concatenate"(%a, %a) {axis = 0 : i64} : (tensor<2xf32>, tensor<2xf32>)'
                          ' -> tensor<3xf32>')
    with pytest.raises(UserError, match="follows from its operands"):
        xt.verify(bad)


def test_scan_result_types(module):
    f, (x,) = arguments(xt.TensorType((BATCH, 5), "f32"))
    with inside(f):
        start = xt.constant(np.zeros(5, np.float32))
        last, ys = xt.scan([start], [x], lambda c, xs: ([xt.add(c[0], xs[0])], [xt.mul(c[0], xs[0])]), out_axes=(1,))
    assert (str(xt.TensorType.of(last)), str(xt.TensorType.of(ys))) == ("f32[5]", "f32[5, batch]")


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "f8E4M3FN", "f8E5M2", "i4", "i8", "ui8", "i64", "i1", "ui32"])
@pytest.mark.parametrize("shape", [(), (2, 3), (0, 2), (130,)])
def test_constants_keep_their_bits(module, dtype, shape):
    array = (np.arange(int(np.prod(shape))) % 3).reshape(shape).astype(xt.numpy_dtype(dtype))
    for value in (array, np.ones(shape, xt.numpy_dtype(dtype))):
        back = xt.attrs_of(xt.constant(value).owner).value
        assert back.dtype == value.dtype and back.shape == value.shape
        assert back.tobytes() == value.tobytes()
