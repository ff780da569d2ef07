"""The ops of ai.onnx.ml that are tensor arithmetic: scalers, linear models, tables of categories.

Of classifiers only those with integer labels: xt has no type for strings.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Array, Context
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, element, rank_of, scalar, unsqueeze
from xcc.symbolic import Dim

DOMAIN = "ai.onnx.ml"


@onnx_op("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(cx: Context) -> Value:
    """The elements at the flat positions Y of the last dim; a vector becomes one row."""
    x, positions = cx[0], cx[1]
    count = 1
    for d in cx.shape(1):
        count = count * d  # type: ignore[assignment]
    if cx.rank(0) == 1:
        x = xt.reshape(x, shape=(1, *cx.shape(0)))
    return xt.gather(x, xt.reshape(positions, shape=(count,)), axis=len(xt.shape_of(x)) - 1)


@onnx_op("Binarizer", domain=DOMAIN)
def binarizer(cx: Context) -> Value:
    """1 above the threshold, else 0."""
    x = cx[0]
    return convert(xt.compare(x, scalar(cx.attr("threshold", 0.0), x), direction="gt"), element(x))


@onnx_op("Scaler", domain=DOMAIN)
def scaler(cx: Context) -> Value:
    """(x - offset) * scale, as f32."""
    x = convert(cx[0], "f32")
    offset, scale = (xt.constant(cx.attr(name), "f32") for name in ("offset", "scale"))
    return xt.mul(xt.sub(x, offset), scale)


@onnx_op("FeatureVectorizer", domain=DOMAIN)
def feature_vectorizer(cx: Context) -> Value:
    """The columns of all operands, side by side, as f32."""
    return xt.concatenate(*(convert(x, "f32") for x in cx.values()), axis=1)


@onnx_op("Imputer", domain=DOMAIN)
def imputer(cx: Context) -> Value:
    """What equals the replaced value, or is NaN where that is, becomes its column's."""
    x, kind = cx[0], "floats" if element(cx[0]).startswith("f") else "int64s"
    old = cx.attr(f"replaced_value_{kind.removesuffix('s')}", 0)
    hit = xt.is_nan(x) if old != old else xt.compare(x, scalar(old, x), direction="eq")
    return xt.select(hit, xt.constant(cx.attr(f"imputed_value_{kind}"), element(x)), x)


@onnx_op("Normalizer", domain=DOMAIN)
def normalizer(cx: Context) -> Value:
    """Rows over their largest element, the sum of magnitudes or the Euclidean norm; a norm of 0 divides by 1."""
    x, kind = convert(cx[0], "f32"), cx.attr("norm", "MAX")
    part = {"MAX": x, "L1": xt.abs(x), "L2": xt.mul(x, x)}[kind]
    norm = xt.reduce(part, kind="max" if kind == "MAX" else "sum", axes=(rank_of(x) - 1,), keepdims=True)
    norm = xt.sqrt(norm) if kind == "L2" else norm
    return xt.div(x, xt.select(xt.compare(norm, scalar(0, norm), direction="eq"), scalar(1, norm), norm))


@onnx_op("OneHotEncoder", domain=DOMAIN)
def one_hot_encoder(cx: Context) -> Value:
    """A last dim of categories: 1.0 for the one that x is."""
    categories = cx.attr("cats_int64s")
    if not categories or not cx.attr("zeros", 1):
        cx.fail("categories are supported that are integers, with zeros=1")
    return convert(_equal(convert(cx[0], "i64"), np.array(categories)), "f32")


def _equal(x: Value, keys: Array) -> Value:
    """[..., keys]: which key each element is; NaN is NaN."""
    row = unsqueeze(x, [rank_of(x)])
    out = xt.compare(row, xt.constant(keys, element(x)), direction="eq")
    return xt.or_(out, xt.and_(xt.is_nan(row), xt.constant(np.isnan(keys)))) if keys.dtype.kind == "f" else out


@onnx_op("LabelEncoder", domain=DOMAIN, since=2)
def label_encoder(cx: Context) -> Value:
    """The value of the key that each element is, or the default."""
    keys, values = _table(cx, "keys"), _table(cx, "values")
    default = {"f": cx.attr("default_float", -0.0), "i": cx.attr("default_int64", -1)}[values.dtype.kind]
    if cx.attr("default_tensor") is not None:
        default = np.asarray(cx.attr("default_tensor")).reshape(-1)[0]
    hit = _equal(cx[0], keys.astype(cx.dtype(0)))
    found = xt.reduce(hit, kind="or", axes=(cx.rank(0),))
    place = xt.arg_reduce(convert(hit, "i32"), kind="argmax", axis=cx.rank(0))
    return xt.select(found, xt.gather(xt.constant(values), place, axis=0), scalar(default, xt.constant(values)))


def _table(cx: Context, name: str) -> Array:
    for form, dtype in (("int64s", np.int64), ("floats", np.float32)):
        if cx.attr(f"{name}_{form}"):
            return np.array(cx.attr(f"{name}_{form}"), dtype)
    tensor = cx.attr(f"{name}_tensor")
    if not isinstance(tensor, np.ndarray):
        cx.fail(f"{name} are supported that are numbers; strings are not")
    return tensor


@onnx_op("LinearRegressor", domain=DOMAIN)
def linear_regressor(cx: Context) -> Value:
    """Y [rows, targets] = X coefficients' + intercepts, in f32."""
    return transformed(cx, _linear(cx, cx.attr("targets", 1)), cx.attr("post_transform", "NONE"))


@onnx_op("LinearClassifier", domain=DOMAIN)
def linear_classifier(cx: Context) -> tuple[Value, Value]:
    """label [rows], scores [rows, classes] of X coefficients' + intercepts."""
    labels = class_labels(cx)
    columns = features(cx)
    if not isinstance(columns, int):
        cx.fail(f"the number of features, '{columns}', must be a number: fix it (--dim)")
    rows = len(cx.attr("coefficients")) // max(columns, 1)
    return chosen(cx, _linear(cx, rows), labels, cx.attr("post_transform", "NONE"), positive=None)


def features(cx: Context) -> Dim:
    """The columns of X."""
    if cx.rank(0) != 2:
        cx.fail(f"X of shape {[str(d) for d in cx.shape(0)]} is not supported, but rows of features")
    return cx.shape(0)[-1]


def _linear(cx: Context, rows: int) -> Value:
    columns, given = features(cx), len(cx.attr("coefficients"))
    if given % max(rows, 1) or isinstance(columns, int) and given != rows * columns:
        cx.fail(f"{given} coefficients for {rows} rows of {columns} features")
    weight = np.array(cx.attr("coefficients"), np.float32).reshape(rows, -1)
    if not isinstance(columns, int):
        xt.require(columns, weight.shape[1], cx.place)
    out = xt.dot_general(convert(cx[0], "f32"), xt.constant(weight), lhs_contract=(1,), rhs_contract=(1,))
    return xt.add(out, xt.constant(cx.attr("intercepts"), "f32")) if cx.attr("intercepts") else out


def class_labels(cx: Context) -> Sequence[int]:
    """The labels of a classifier."""
    labels: Sequence[int] = cx.attr("classlabels_int64s") or cx.attr("classlabels_ints")
    if not labels:
        cx.fail("labels are supported that are integers; strings are not")
    return labels


def chosen(cx: Context, scores: Value, labels: Sequence[int], post: str, positive: bool | None) -> tuple[Value, Value]:
    """label, scores [rows, classes]: the class of most; of two classes told apart by one column the second above 0.

    `positive`: such a column is of weights that are not negative, which are probabilities: above 0.5; None: of none.
    """
    if xt.shape_of(scores)[1] == 1 and len(labels) == 2:
        limit = scalar(0.5 if positive else 0.0, scores)
        place = xt.reshape(convert(xt.compare(scores, limit, direction="gt"), "i64"), shape=(cx.shape(0)[0],))
        other = xt.neg(scores) if positive is False or post == "LOGISTIC" else xt.sub(scalar(1, scores), scores)
        scores, post = xt.concatenate(other, scores, axis=1), post if post == "LOGISTIC" else "NONE"
    else:
        place = convert(xt.arg_reduce(scores, kind="argmax", axis=1), "i64")
    if list(labels) != list(range(len(labels))):
        place = xt.gather(xt.constant(np.array(labels)), place, axis=0)
    return place, transformed(cx, scores, post)


def transformed(cx: Context, x: Value, post: str) -> Value:
    """The scores `x` [rows, classes] by `post_transform`."""
    if post == "SOFTMAX":
        return xt.softmax(x, axis=1)
    if post == "LOGISTIC":
        return xt.sigmoid(x)
    if post == "SOFTMAX_ZERO":      # what is 0 stays 0
        most = xt.reduce(x, kind="max", axes=(1,), keepdims=True)
        zero = xt.compare(xt.abs(x), scalar(1e-7, x), direction="le")
        weight = xt.select(zero, xt.mul(x, xt.exp(xt.neg(most))), xt.exp(xt.sub(x, most)))
        return xt.div(weight, xt.reduce(weight, kind="sum", axes=(1,), keepdims=True))
    if post != "NONE":
        cx.fail(f"post_transform {post} is not supported")
    return x
