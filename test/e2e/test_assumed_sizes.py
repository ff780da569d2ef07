"""Symbolic sizes of inputs that must be those of weights, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_graphs import check, node, numbers


@pytest.mark.parametrize("chip", ["", "sm_80", "gfx942"])
def test_product_of_a_symbolic_depth(chip: str) -> None:
    check([node("MatMul", "x w", "y")], {"x": numbers(5, 33)}, "y", {"w": numbers(33, 20)}, chip, {"x": ["m", "k"]})
    check([node("Softmax", "x", "p"), node("MatMul", "p w", "y")], {"x": numbers(2, 5, 33)}, "y",
          {"w": numbers(33, 20)}, chip, {"x": ["b", "m", "k"]})


@pytest.mark.parametrize("shape", [["m", "k"], ["m", 33]])
def test_integer_product_of_a_symbolic_depth(shape: list[Any]) -> None:
    x, w = (np.random.default_rng(0).integers(0, 255, s, np.uint8) for s in ((5, 33), (33, 20)))
    check([node("MatMulInteger", "x w", "y")], {"x": x, "w": w}, "y", dims={"x": shape, "w": [33, 20]})
    check([node("MatMulInteger", "x w", "y")], {"x": x, "w": w}, "y", dims={"x": shape, "w": ["k2", 20]})


def test_depths_that_are_computed() -> None:
    """The pooled, the concatenated and the padded size is the filter's; other sizes follow from it."""
    check([node("MaxPool", "x", "p", kernel_shape=[2], strides=[2]), node("MatMul", "p w", "y")],
          {"x": numbers(1, 2, 15)}, "y", {"w": numbers(7, 3)}, dims={"x": [1, 2, "k"]})
    check([node("Relu", "x", "r"), node("Concat", "r r", "c", axis=1), node("MatMul", "c w", "y"),
           node("Pad", "x p", "z")], {"x": numbers(5, 7)}, "y z", {"w": numbers(14, 3), "p": np.array([0, 1, 0, 1])},
          dims={"x": [5, "k"]})
    check([node("Conv", "x v", "c", pads=[1, 1]), node("Add", "c r", "a"), node("MatMul", "a w", "y")],
          {"x": numbers(1, 2, 7), "r": numbers(1, 2, 7)}, "y", {"v": numbers(2, 2, 3), "w": numbers(7, 3)},
          dims={"x": [1, 2, "k"], "r": [1, 2, "j"]})


def test_products_without_rows_and_steps() -> None:
    """A depth of 0 that one operand leaves open; two sizes of 0 are taken as two that are not known."""
    for shape in ([0, 0], ["m", "k"]):
        check([node("MatMul", "x w", "y")], {"x": numbers(0, 0), "w": numbers(0, 33)}, "y", dims={"x": shape})
        check([node("Gemm", "x w b", "y")], {"x": numbers(0, 0), "w": numbers(0, 33), "b": numbers(33)}, "y",
              dims={"x": shape})
        check([node("MatMulInteger", "x w", "y")],
              {"x": np.zeros((0, 0), np.uint8), "w": np.zeros((0, 33), np.uint8)}, "y", dims={"x": shape})


def test_images_of_a_symbolic_size_before_a_classifier() -> None:
    """Flattened, their size is a product of expressions, and that of the weight."""
    for make in (node("Conv", "x v", "c"), node("MaxPool", "x", "c", kernel_shape=[3, 3])):
        depth = (4 if make.op_type == "Conv" else 3) * 4 * 3
        check([make, node("Flatten", "c", "r"), node("Gemm", "r w b", "y")], {"x": numbers(2, 3, 6, 5)}, "y",
              {"v": numbers(4, 3, 3, 3), "w": numbers(depth, 7), "b": numbers(7)}, dims={"x": ["n", 3, "h", "w"]})


def test_other_products_of_symbolic_depths() -> None:
    check([node("Gemm", "x w b", "y", transA=1)], {"x": numbers(33, 5)}, "y",
          {"w": numbers(33, 20), "b": numbers(5, 20)}, dims={"x": ["k", "m"]})
    check([node("Einsum", "x w", "y", equation="bik,kj->bij")], {"x": numbers(2, 5, 33)}, "y", {"w": numbers(33, 4)},
          dims={"x": ["b", "m", "k"]})
    check([node("LSTM", "x w r", "y h", hidden_size=6)], {"x": numbers(3, 2, 5)}, "y h",
          {"w": numbers(1, 24, 5), "r": numbers(1, 24, 6)}, dims={"x": ["t", "b", "k"]})


def test_attention_of_a_symbolic_batch_beside_a_known_one() -> None:
    q, k, v = (numbers(2, 4, s, 8) for s in (7, 9, 9))
    check([node("Attention", "q k v", "y")], {"q": q, "k": k, "v": v}, "y", dims={"q": ["b", "h", "t", 8]}, opset=23)
