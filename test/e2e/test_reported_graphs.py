"""Graphs that were once refused, wrong or slow, each for a class: compiled for the targets it was about, and right.

A GPU's code runs in the interpreter where that takes seconds, and on a GPU where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from compiled import compare
from onnx import helper, numpy_helper, parser
from small_graphs import compiled, reference

import xcc
from xcc.diagnostics import UserError
from xcc.runtime.cuda_api import find_gpu

Sizes = dict[str, int]


@dataclass(frozen=True)
class Graph:
    """A graph as text; sizes of its free dims to run at; chips to compile for, and to interpret at the first sizes.

    `low` and `high` bound the integers of inputs.
    """

    text: str
    runs: tuple[Sizes, ...]
    chips: tuple[str, ...] = ()
    interpreted: tuple[str, ...] = ()
    opset: int = 20
    high: int = 448
    weights: dict[str, Any] = field(default_factory=dict)

    def model(self) -> onnx.ModelProto:
        made = parser.parse_model(f'<ir_version: 9, opset_import: ["" : {self.opset}]>\n{self.text}')
        for name, value in self.weights.items():
            made.graph.initializer.append(numpy_helper.from_array(value, name))
        return made

    def feeds(self, model: onnx.ModelProto, sizes: Sizes) -> dict[str, Any]:
        rng = np.random.default_rng(0)
        return {i.name: self._values(rng, i.type.tensor_type, sizes) for i in model.graph.input}

    def _values(self, rng: np.random.Generator, kind: Any, sizes: Sizes) -> Any:
        shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in kind.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if dtype.kind == "i":
            return rng.integers(0, self.high, shape).astype(dtype)
        return rng.standard_normal(shape).astype(dtype)


def normal(*shape: int) -> Any:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float16)


AMD = ("gfx90a", "gfx942")
GRAPHS = {
    "size_of_floor_divisions": Graph("""
        g (float[b, samples] x) => (int64[k] y)
          <int64 zero = {0}, int64 one = {1}, int64 eighty = {80}, int64 two = {2}, int64 minus_3 = {-3}> {
            s = Shape <start = 1, end = 2> (x)
            n = Squeeze (s)
            p = Div (n, eighty)
            q = Add (minus_3, p)
            o = Div (q, two)
            y = Range (zero, o, one) }""",
        ({"b": 1, "samples": 1234}, {"b": 2, "samples": 559}), ("sm_90a", "gfx942"), ("sm_90a",)),
    "masked_attention_of_packed_heads": Graph("""
        g (float[b, s, 12, 64] qkv, float[b, 1, s, s] mask) => (float[b, s, 4, 64] y) <float c = {0.125}> {
            q0, k0, v0 = Split <axis = 2, num_outputs = 3> (qkv)
            q = Transpose <perm = [0, 2, 1, 3]> (q0)
            k = Transpose <perm = [0, 2, 3, 1]> (k0)
            v = Transpose <perm = [0, 2, 1, 3]> (v0)
            m = MatMul (q, k)
            m2 = Mul (m, c)
            m3 = Add (m2, mask)
            p = Softmax <axis = -1> (m3)
            o = MatMul (p, v)
            y = Transpose <perm = [0, 2, 1, 3]> (o) }""",
        ({"b": 1, "s": 5}, {"b": 2, "s": 65}), AMD, ("gfx942",)),
    "product_plus_positions": Graph("""
        g (float[b, 7, 31, 16] x, float[16, 128] w, float[31, 128] pos) => (float[b, 7, 31, 128] y) {
            m = MatMul (x, w)
            y = Add (m, pos) }""",
        ({"b": 1}, {"b": 3}), AMD, ("gfx942",)),
    "product_plus_gathered_positions": Graph("""
        g (int64[b, s] ids, int64[s] ps, float[b, s, 384] x, float[384, 384] w, float[448, 384] pos)
          => (float[b, s, 384] y) <int64[1] zero = {0}, int64[1] last = {-1}> {
            m = MatMul (x, w)
            shape = Shape (ids)
            ps0 = Unsqueeze (ps, zero)
            ps1 = Expand (ps0, shape)
            ps2 = Unsqueeze (ps1, last)
            e = GatherND (pos, ps2)
            y = Add (m, e) }""",
        ({"b": 1, "s": 3}, {"b": 2, "s": 17}), AMD),
    "convolution_plus_positions": Graph("""
        g (float[b, 384, 3000] x, float[384, 384, 3] w, float[384] bias, float[1500, 384] pos)
          => (float[b, 1500, 384] u) {
            c = Conv <kernel_shape = [3], pads = [1, 1], strides = [2]> (x, w, bias)
            t = Transpose <perm = [0, 2, 1]> (c)
            u = Add (t, pos) }""",
        ({"b": 1},), AMD),
    "windows_beyond_the_image": Graph("""
        g (float[b, 320, 7, 7] x) => (float[b, 320, 1, 1] y) {
            y = AveragePool <ceil_mode = 1, kernel_shape = [1280, 1280], strides = [1280, 1280]> (x) }""",
        ({"b": 2}, {"b": 1})),
    "concatenation_then_transpose": Graph("""
        g (float[n, 256, h, w] a, float[n, 256, h, w] b, float[n, 256, h, w] c, float[n, 256, h, w] d)
          => (float[n, h, w, 1024] y) {
            e = Concat <axis = 1> (a, b, c, d)
            y = Transpose <perm = [0, 2, 3, 1]> (e) }""",
        ({"n": 1, "h": 5, "w": 7}, {"n": 2, "h": 16, "w": 12})),
    "concatenation_of_grid_samples": Graph("""
        g (float[n, 32, 32, 32] x0, float[n, 1360, 4, 2] g0, float[n, 32, 16, 16] x1, float[n, 1360, 4, 2] g1)
          => (float[n, 32, 1360, 2, 4] y) <int64[1] ax = {3}> {
            y0 = GridSample <align_corners = 0, mode = "linear", padding_mode = "zeros"> (x0, g0)
            z0 = Unsqueeze (y0, ax)
            y1 = GridSample <align_corners = 0, mode = "linear", padding_mode = "zeros"> (x1, g1)
            z1 = Unsqueeze (y1, ax)
            y = Concat <axis = 3> (z0, z1) }""",
        ({"n": 1}, {"n": 3})),
    "linear_resize": Graph("""
        g (float[n, 256, h, w] x) => (float[n, 256, h2, w2] y) <float[4] sc = {1, 1, 8, 8}> {
            y = Resize <coordinate_transformation_mode = "half_pixel", mode = "linear"> (x, "", sc) }""",
        ({"n": 1, "h": 3, "w": 5}, {"n": 2, "h": 8, "w": 8})),
    "batched_matrix_by_vector": Graph("""
        g (float[n, 512, 256] w, float[n, 256, 1] x) => (float[n, 512, 1] y) {
            y = MatMul (w, x) }""",
        ({"n": 1}, {"n": 9})),
    "attention_of_49_keys": Graph("""
        g (float16[64, 3, 49, 32] q, float16[64, 3, 49, 32] k, float16[64, 3, 49, 32] v)
          => (float16[64, 3, 49, 32] o) {
            qs = Mul (q, scale)
            kt = Transpose <perm = [0, 1, 3, 2]> (k)
            s = MatMul (qs, kt)
            sb = Add (s, bias)
            p = Softmax <axis = -1> (sb)
            o = MatMul (p, v) }""",
        ({},), ("sm_90a",), opset=18, weights={"scale": np.float16(32 ** -0.5), "bias": normal(1, 3, 49, 49)}),
    "weights_of_one_number": Graph("""
        g (float[b, 24, 6, 5] x, float[b, 30, 7] m) => (float[b, 28, 6, 5] y, float[b, 20, 4, 3] z, float[b, 30, 9] p,
                                                       float[b, 11, 7] q)
          <int64[4] grouped = {28, 6, 1, 1}, int64[4] whole = {20, 28, 3, 3}, int64[2] right = {7, 9},
           int64[2] left = {11, 30}, float[28, 1, 1, 1] half = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5,
           0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}> {
            w0 = ConstantOfShape <value = float[1] {0.02}> (grouped)
            w = Mul (w0, half)
            y = Conv <group = 4, kernel_shape = [1, 1]> (x, w)
            v = ConstantOfShape <value = float[1] {0.03}> (whole)
            z = Conv <kernel_shape = [3, 3]> (y, v)
            r = ConstantOfShape <value = float[1] {0.04}> (right)
            p = MatMul (m, r)
            l = ConstantOfShape <value = float[1] {-0.7}> (left)
            q = MatMul (l, m) }""",
        ({"b": 1}, {"b": 3}), ("sm_90a", "sm_80", "gfx942"), ("sm_90a", "gfx942")),
}


def check(graph: Graph, model: Any, source: onnx.ModelProto, runs: tuple[Sizes, ...]) -> None:
    for sizes in runs:
        feeds = graph.feeds(source, sizes)
        for got, want in zip(model.run(feeds).values(), reference(source, feeds), strict=True):
            compare(got, want, 4)


@pytest.mark.parametrize("name", GRAPHS)
def test_equals_onnxruntime(name: str) -> None:
    graph = GRAPHS[name]
    source = graph.model()
    check(graph, compiled(source), source, graph.runs)


@pytest.mark.parametrize("name, chip", [(name, chip) for name, g in GRAPHS.items() for chip in g.chips])
def test_compiles_for_a_gpu(name: str, chip: str) -> None:
    graph = GRAPHS[name]
    source = graph.model()
    model = compiled(source, chip)
    if chip in graph.interpreted:
        check(graph, model, source, graph.runs[:1])


@pytest.mark.gpu
@pytest.mark.parametrize("name", GRAPHS)
def test_equals_onnxruntime_on_a_gpu(name: str) -> None:
    if find_gpu() is None:
        pytest.skip("there is no NVIDIA GPU on this machine")
    graph = GRAPHS[name]
    source = graph.model()
    check(graph, xcc.compile(source, target="nvptx"), source, graph.runs)


def test_an_operator_set_that_is_given_twice() -> None:
    """onnx's checker takes the same version of the same domain twice."""
    graph = Graph("g (float[n] x) => (float[n] y) { y = Relu (x) }", ({"n": 3},), opset=18)
    source = graph.model()
    source.opset_import.append(helper.make_opsetid("", 18))
    check(graph, compiled(source), source, graph.runs)
    source.opset_import.append(helper.make_opsetid("ai.onnx", 17))
    with pytest.raises(UserError, match="given twice, as 18 and 17"):
        compiled(source)
