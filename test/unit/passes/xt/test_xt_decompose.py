"""Every decomposition gives the numbers of the op's own evaluate, alone and with symbolic dims."""

import numpy as np
import pytest

from xcc import symbolic
from xcc._mlir import func_d, ir
from xcc.dialects import xt
from xcc.dialects.xt.interpret import interpret
from xcc.passes.base import PassContext, get_pass, parse_pass
from xcc.passes.xt.decompose import load
from xcc.passes.xt.graph.rewrite import name_of, walk_ops

RNG = np.random.default_rng(0)


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def case(name, make, *arrays):
    return pytest.param(make, arrays, id=name)


def masked(n=5):
    m = np.tril(np.ones((3, n), bool))
    m[0] = False
    return m


RECURRENT = (normal(6, 2, 3), normal(2, 16, 3), normal(2, 16, 4), normal(2, 32), np.array([6, 3], np.int32),
             normal(2, 2, 4), normal(2, 2, 4), normal(2, 12))
GRU = (normal(6, 2, 3), normal(1, 12, 3), normal(1, 12, 4), normal(1, 24))
IMAGE = normal(1, 2, 5, 6)
TIES = np.array([[1, 3, 3, 0, -0.0], [0, 2, 2, 0, 2], [2, np.nan, 5, np.nan, 1], [-np.inf] * 5,
                 [np.inf, 1, np.inf, 0, 1]], np.float32)

CASES = [
    case("softmax", lambda x: xt.softmax(x, axis=1), normal(2, 5, 3)),
    case("softmax_f16", lambda x: xt.softmax(x), normal(2, 5, dtype=np.float16)),
    case("log_softmax", lambda x: xt.log_softmax(x), normal(2, 5)),
    *(case(f"{kind}_{'last' if last else 'first'}_{axis}", lambda x, kind=kind, last=last, axis=axis: xt.arg_reduce(
        x, kind=kind, axis=axis, select_last=last, keepdims=bool(axis)), TIES)
      for kind in ("argmax", "argmin") for last in (False, True) for axis in (0, 1)),
    case("argmax_bytes", lambda x: xt.arg_reduce(x, kind="argmax", axis=1), TIES[:2].astype(np.uint8)),
    case("argmin_f16", lambda x: xt.arg_reduce(x, kind="argmin", axis=1), TIES.astype(np.float16)),
    case("layer_norm", lambda x, s, b: xt.layer_norm(x, s, b, axes=(1, 2)), normal(2, 3, 4), normal(3, 4), normal(4)),
    case("layer_norm_bare", lambda x: xt.layer_norm(x, axes=(-1,)), normal(2, 7)),
    case("rms_norm", lambda x, s: xt.rms_norm(x, s), normal(2, 7), normal(7)),
    case("group_norm", lambda x, s, b: xt.group_norm(x, s, b, groups=2), IMAGE.repeat(2, 1), normal(4), normal(4)),
    case("group_norm_last", lambda x, s, b: xt.group_norm(x, s, b, groups=2, axis=-1), normal(2, 5, 3, 4), normal(4),
         normal(4)),
    case("lrn", lambda x: xt.lrn(x, size=4, alpha=0.5), normal(2, 7, 3)),
    case("attention", lambda q, k, v: xt.attention(q, k, v), normal(2, 4, 3, 8), normal(2, 4, 5, 8),
         normal(2, 4, 5, 6)),
    case("attention_grouped", lambda q, k, v: xt.attention(q, k, v, causal=True, causal_offset=(2,), softcap=2.0),
         normal(2, 4, 3, 8), normal(2, 2, 5, 8), normal(2, 2, 5, 6)),
    case("attention_mask", lambda q, k, v, m: xt.attention(q, k, v, m), normal(1, 2, 3, 8), normal(1, 2, 5, 8),
         normal(1, 2, 5, 8), masked()),
    case("attention_bias", lambda q, k, v, m: xt.attention(q, k, v, m, scale=0.3), normal(1, 2, 3, 8),
         normal(1, 2, 5, 8), normal(1, 2, 5, 8), normal(2, 3, 5)),
    case("rotary", lambda x, c, s: xt.rotary(x, c, s), normal(2, 3, 8), normal(3, 4), normal(3, 4)),
    case("rotary_pairs", lambda x, c, s: xt.rotary(x, c, s, interleaved=True), normal(2, 3, 8), normal(3, 4),
         normal(3, 4)),
    case("gelu", lambda x: xt.gelu(x), normal(9)),
    case("gelu_tanh", lambda x: xt.gelu(x, approximate="tanh"), normal(9)),
    case("lstm", lambda *xs: xt.lstm(*xs, direction="bidirectional"), *RECURRENT),
    case("lstm_clip", lambda x, w, r, b: xt.lstm(x, w, r, b, clip=0.5, input_forget=True, direction="reverse"),
         *(v[:1] if i else v[:3] for i, v in enumerate(RECURRENT[:4]))),
    case("gru", lambda *xs: xt.gru(*xs), *GRU),
    case("gru_linear", lambda *xs: xt.gru(*xs, linear_before_reset=1, direction="reverse"), *GRU),
    case("rnn", lambda x, w, r: xt.rnn(x, w, r, activations=("HardSigmoid",)), normal(6, 2, 3), normal(1, 4, 3),
         normal(1, 4, 4)),
    case("quantize", lambda x, s: xt.quantize(x, s, dtype="i8"), normal(3, 4), np.float32(0.05)),
    case("quantize_axis", lambda x, s, z: xt.quantize(x, s, z, axis=1, dtype="ui8"), normal(3, 4),
         np.array([0.1, 0.2, 0.3, 0.01], np.float32), np.array([3, 128, 0, 255], np.uint8)),
    case("quantize_reciprocal", lambda x, s: xt.quantize(x, s, axis=1, dtype="i8", reciprocal=True), normal(3, 4),
         np.array([0.1, 0.2, 0.3, 0.01])),
    case("dequantize_block", lambda x, s: xt.dequantize(x, s, axis=1, block=2),
         np.arange(15, dtype=np.int8).reshape(3, 5), normal(3, 3)),
    case("dynamic_quantize", lambda x: xt.dynamic_quantize(x), normal(3, 4)),
    case("dft", lambda x: xt.dft(x, axis=1, onesided=True), normal(2, 8, 1)),
    case("dft_inverse", lambda x: xt.dft(x, axis=0, inverse=True), normal(5, 3, 2)),
    case("dft_long", lambda x: xt.dft(x, axis=1, onesided=True), normal(2, 120, 1)),
    case("dft_real_inverse", lambda x: xt.dft(x, axis=1, inverse=True, onesided=True, length=(9,)), normal(2, 5, 2)),
    case("dft_long_real_inverse", lambda x: xt.dft(x, axis=1, inverse=True, onesided=True, length=(120,)),
         normal(2, 61, 2)),
    case("dft_long_inverse", lambda x: xt.dft(x, axis=0, inverse=True), normal(105, 2, 2)),
    case("random_uniform", lambda: xt.random_uniform(shape=(3, 7), low=-1.0, seed=1234567890123)),
    case("random_normal", lambda: xt.random_normal(shape=(50,), seed=5)),
    case("random_uniform_of_run", lambda seed, offset: xt.random_uniform(seed, offset, shape=(3, 7)),
         np.int64(-1234567890123), np.array([1 << 40], np.int64)),
    case("random_normal_of_run", lambda offset: xt.random_normal(None, offset, shape=(3, 7), seed=5), np.int64(9)),
    *(case(f"resize_{mode}_{coordinate}",
           lambda x, mode=mode, coordinate=coordinate: xt.resize(x, shape=(1, 2, 7, 4), mode=mode,
                                                                 coordinate=coordinate), IMAGE)
      for mode in ("nearest", "linear", "cubic") for coordinate in ("half_pixel", "align_corners", "asymmetric")),
    case("resize_antialias", lambda x: xt.resize(x, shape=(1, 2, 2, 3), mode="linear", antialias=True), IMAGE),
    *(case(f"deform_conv_{dtype}", lambda *xs: xt.deform_conv(*xs, strides=(2, 1), low=(1, 1), high=(1, 0), groups=2,
                                                              dilations=(1, 2), offset_groups=2),
           *(normal(*s).astype(dtype) for s in ((2, 4, 6, 6), (6, 2, 3, 2), (2, 24, 3, 5), (6,), (2, 12, 3, 5))))
      for dtype in ("float32", "float16")),
]


def build(make, arrays, symbolic_dims):
    """A module whose @main is `make` on inputs like `arrays`; with `symbolic_dims` the first input has symbols."""
    with xt.context(), ir.Location.unknown():
        module = ir.Module.create()
        kinds = [xt.TensorType(tuple(a.shape), xt.dtype_name(a.dtype)) for a in arrays]
        if symbolic_dims:
            kinds[0] = kinds[0].with_shape([symbolic.sym("n"), *kinds[0].shape[1:]])
        with ir.InsertionPoint(module.body):
            f = func_d.FuncOp("main", ([k.mlir() for k in kinds], []))
            with ir.InsertionPoint(f.add_entry_block()):
                out = make(*f.arguments)
                out = list(out) if isinstance(out, tuple) else [out]
                func_d.ReturnOp(out)
            f.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([k.mlir() for k in kinds],
                                                                                [v.type for v in out]))
        return module


def composites(module):
    return [name_of(op) for op in walk_ops(module) if name_of(op) in load()]


@pytest.mark.parametrize("make, arrays", CASES)
def test_decomposed_is_evaluated(make, arrays):
    arrays = [np.asarray(a) for a in arrays]
    module = build(make, arrays, False)
    want = interpret(module, arrays)
    parse_pass("xt-decompose").run(module, PassContext())
    xt.verify(module)
    assert not composites(module)
    for have, expected in zip(interpret(module, arrays), want, strict=True):
        assert have.dtype == expected.dtype
        tolerance = 2e-3 if have.dtype == np.float16 else 2e-5
        np.testing.assert_allclose(have, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name, make, arrays", [
    ("softmax", lambda x: xt.softmax(x, axis=0), [normal(6, 3)]),
    ("layer_norm", lambda x: xt.layer_norm(x, axes=(0,)), [normal(6, 3)]),
    ("lstm", lambda *xs: xt.lstm(*xs, direction="bidirectional"), RECURRENT[:4]),
    ("nearest", lambda x: xt.resize(x, shape=(2 * symbolic.sym("n"), 3), scales=(2.0, 1.0)), [normal(6, 3)]),
    ("linear", lambda x: xt.resize(x, shape=(2 * symbolic.sym("n"), 3), mode="linear"), [normal(6, 3)]),
])
def test_symbolic_dims(name, make, arrays):
    module = build(make, arrays, True)
    want = interpret(module, arrays)
    get_pass("xt-decompose")().run(module, PassContext())
    xt.verify(module)
    assert not composites(module)
    for have, expected in zip(interpret(module, arrays), want, strict=True):
        np.testing.assert_allclose(have, expected, rtol=2e-5, atol=2e-5)


def test_keep(tmp_path):
    module = build(lambda x: xt.gelu(xt.softmax(x)), [normal(2, 3)], False)
    parse_pass("xt-decompose{keep=softmax}").run(module, PassContext())
    assert composites(module) == ["softmax"]
