"""Support vector machines of ai.onnx.ml: kernels of rows and support vectors, and weighted sums of these."""

from __future__ import annotations

from itertools import accumulate, combinations

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Context
from xcc.frontends.onnx.ml import DOMAIN, class_labels, features, transformed
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, scalar, unsqueeze


@onnx_op("SVMRegressor", domain=DOMAIN)
def svm_regressor(cx: Context) -> Value:
    """Y [rows, 1] = kernel(X, support vectors) coefficients + rho; of one class 1 above 0 and -1 elsewhere."""
    weight = np.array(cx.attr("coefficients"), np.float32)[:, None]
    kernel = _kernel(cx, cx.attr("n_supports", 0))
    out = xt.dot_general(kernel, xt.constant(weight), lhs_contract=(1,), rhs_contract=(0,))
    out = xt.add(out, xt.constant(np.float32(cx.attr("rho")[0])))
    if cx.attr("one_class", 0):
        return xt.select(xt.compare(out, scalar(0, out), direction="gt"), scalar(1, out), scalar(-1, out))
    return transformed(cx, out, cx.attr("post_transform", "NONE"))


@onnx_op("SVMClassifier", domain=DOMAIN)
def svm_classifier(cx: Context) -> tuple[Value, Value]:
    """label [rows], scores [rows, pairs]: each pair of classes has a score, and votes for its first one above 0.

    Of two classes the scores are those of both.
    """
    labels, counts = class_labels(cx), cx.attr("vectors_per_class")
    if not counts or cx.attr("prob_a"):
        cx.fail("machines are supported that have support vectors (vectors_per_class), and no probabilities (prob_a)")
    kernel = _kernel(cx, sum(counts))
    pairs = list(combinations(range(len(counts)), 2))
    scores = xt.dot_general(kernel, xt.constant(_pair_weights(cx, counts)), lhs_contract=(1,), rhs_contract=(0,))
    scores = xt.add(scores, xt.constant(np.array(cx.attr("rho"), np.float32)))
    first = xt.compare(scores, scalar(0, scores), direction="gt")
    votes = xt.select(first, *(xt.constant(np.array([p[n] for p in pairs])) for n in (0, 1)))
    own = xt.compare(unsqueeze(votes, [2]), xt.iota(shape=(1, 1, len(counts)), axis=2, dtype="i64"), direction="eq")
    place = xt.arg_reduce(xt.reduce(convert(own, "i64"), kind="sum", axes=(1,)), kind="argmax", axis=1)
    label = xt.gather(xt.constant(np.array(labels)), convert(place, "i64"), axis=0)
    post = cx.attr("post_transform", "NONE")
    if len(counts) == 2:        # as onnxruntime has them: only LOGISTIC is of both
        other = xt.sub(scalar(1, scores), scores) if post.startswith("SOFTMAX") else xt.neg(scores)
        scores, post = xt.concatenate(other, scores, axis=1), "NONE" if post.startswith("SOFTMAX") else post
    return label, transformed(cx, scores, post)


def _pair_weights(cx: Context, counts: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """What each support vector counts for each pair of classes: of class i row j - 1 of the coefficients for j > i, of
    class j row i."""
    given = np.array(cx.attr("coefficients"), np.float32).reshape(len(counts) - 1, -1)
    ends = [0, *accumulate(counts)]
    out = []
    for i, j in combinations(range(len(counts)), 2):
        column = np.zeros(ends[-1], np.float32)
        for own, row in ((i, j - 1), (j, i)):
            column[ends[own]:ends[own + 1]] = given[row, ends[own]:ends[own + 1]]
        out.append(column)
    return np.stack(out, 1)


def _kernel(cx: Context, count: int) -> Value:
    """[rows, count]: what the kernel makes of each row and each support vector; the rows where there are none."""
    x, kind = convert(cx[0], "f32"), cx.attr("kernel_type", "LINEAR")
    columns = features(cx)
    gamma, shift, degree = cx.attr("kernel_params") or (0.0, 0.0, 0.0)
    if not count:
        return x
    vectors = np.array(cx.attr("support_vectors"), np.float32).reshape(count, -1)
    if not isinstance(columns, int):
        xt.require(columns, vectors.shape[1], cx.place)
    if kind == "RBF":
        far = xt.sub(unsqueeze(x, [1]), xt.constant(vectors))
        near = xt.reduce(xt.mul(far, far), kind="sum", axes=(2,))
        return xt.exp(xt.mul(near, scalar(-gamma, near)))
    dot = xt.dot_general(x, xt.constant(vectors), lhs_contract=(1,), rhs_contract=(1,))
    if kind == "LINEAR":
        return dot
    dot = xt.add(xt.mul(dot, scalar(gamma, dot)), scalar(shift, dot))
    if kind not in ("POLY", "SIGMOID"):
        cx.fail(f"kernel_type {kind} is not supported")
    return xt.tanh(dot) if kind == "SIGMOID" else xt.pow(dot, scalar(degree, dot))
