"""Ensembles of decision trees (ai.onnx.ml): all rows walk down all trees a level at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xcc._mlir import Value
from xcc.dialects import xt
from xcc.frontends.onnx.context import Array, Context
from xcc.frontends.onnx.ml import DOMAIN, chosen, class_labels, features, transformed
from xcc.frontends.onnx.registry import onnx_op
from xcc.frontends.shared.helpers import convert, dim_scalar, element, scalar
from xcc.symbolic import Expr, dim_max

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
_AGGREGATES = {"SUM": "sum", "AVERAGE": "sum", "MIN": "min", "MAX": "max"}


@dataclass(frozen=True)
class Trees:
    """The nodes of all trees, in one row. A node goes to its first child where x[feature] <= limit (== where `equal`,
    NaN where `missing`), else to its second; both of a leaf are the leaf."""

    feature: Array
    limit: Array
    children: Array
    equal: Array
    missing: Array
    roots: Array

    def depth(self) -> int:
        """The steps to the farthest leaf; more than there are nodes in a graph that is no tree."""
        steps, at = 0, self.roots
        while steps <= len(self.feature) and (self.children[at] != at[:, None]).any():
            at = np.unique(self.children[at])
            steps += 1
        return steps


def _trees(cx: Context, modes: Sequence[str], feature: Array, limit: Array, children: Array, roots: Array) -> Trees:
    """Tests of all kinds as <= and ==. What they say is the other way round for GT, GTE and NEQ."""
    if "BRANCH_MEMBER" in modes:
        cx.fail("tests of membership are not supported")
    leaf = np.arange(len(feature))[:, None] == children
    kind = np.array([*modes, *["LEAF"] * (len(feature) - len(modes))])
    swapped = np.isin(kind, ("BRANCH_GT", "BRANCH_GTE", "BRANCH_NEQ"))
    below = np.isin(kind, ("BRANCH_LT", "BRANCH_GTE"))
    limit = np.where(below, np.nextafter(limit, limit.dtype.type(-np.inf)), limit)
    tracks = np.zeros(len(feature), bool)
    given = cx.attr("nodes_missing_value_tracks_true", ())
    tracks[:len(given)] = np.array(given, bool)
    children = np.where(swapped[:, None], children[:, ::-1], children)
    return Trees(np.where(leaf.all(1), 0, feature), limit, children, np.isin(kind, ("BRANCH_EQ", "BRANCH_NEQ")),
                 (tracks ^ swapped) & ~leaf.all(1) & (kind != "BRANCH_NEQ"), roots)


def _leaves(cx: Context, x: Value, trees: Trees) -> Value:
    """[rows, trees]: the leaf that each row of `x` comes to in each tree."""
    depth, kind = trees.depth(), element(x)
    if depth > len(trees.feature):
        cx.fail("the nodes are no trees")
    feature, children = (xt.constant(a.reshape(-1), "i32") for a in (trees.feature, trees.children))
    limit = xt.constant(trees.limit, kind)

    def step(state: Sequence[Value], slices: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        at = state[0]
        value = xt.gather_elements(x, xt.gather(feature, at, axis=0), axis=1)
        bound = xt.gather(limit, at, axis=0)
        first = xt.compare(value, bound, direction="le")
        if trees.equal.any():
            own = xt.gather(xt.constant(trees.equal), at, axis=0)
            first = xt.select(own, xt.compare(value, bound, direction="eq"), first)
        if trees.missing.any():
            first = xt.or_(first, xt.and_(xt.is_nan(value), xt.gather(xt.constant(trees.missing), at, axis=0)))
        second = xt.select(first, scalar(0, at), scalar(1, at))
        return [xt.gather(children, xt.add(xt.mul(at, scalar(2, at)), second), axis=0)], []

    begin = xt.broadcast(xt.constant(trees.roots.reshape(1, -1), "i32"), shape=(cx.shape(0)[0], len(trees.roots)))
    return xt.scan([begin], [], step, length=depth)[0] if depth else begin


def _scores(cx: Context, trees: Trees, weights: Array, aggregate: str) -> Value:
    """[rows, columns]: what `weights` [nodes, columns] say at the leaves, of all trees."""
    if _AGGREGATES[aggregate] != "sum" and weights.shape[1] > 1:
        cx.fail(f"{aggregate} is supported of one target, not of {weights.shape[1]}")
    there, last = features(cx), int(trees.feature.max(initial=0))
    if isinstance(there, Expr):
        xt.require(there, dim_max(there, last + 1), cx.place)
    if trees.feature.min(initial=0) < 0 or isinstance(there, int) and trees.feature.size and last >= there:
        cx.fail(f"its nodes test features up to {last}, of {there}")
    x = convert(cx[0], "f64" if weights.dtype == np.float64 else "f32")
    at = _leaves(cx, x, trees)
    total = xt.reduce(xt.gather(xt.constant(weights), at, axis=0), kind=_AGGREGATES[aggregate], axes=(1,))
    return xt.div(total, dim_scalar(len(trees.roots), element(x))) if aggregate == "AVERAGE" else total


def _listed(cx: Context, kind: str, columns: int) -> tuple[Trees, Array]:
    """The trees of nodes_* attributes, and [nodes, columns] of those of class_* or target_*."""
    try:
        trees, place = _placed(cx)
        return trees, _dense(cx, place, kind, columns)
    except (IndexError, KeyError, TypeError, ValueError):
        cx.fail("the attributes of its nodes do not fit together")


def _placed(cx: Context) -> tuple[Trees, dict[tuple[int, int], int]]:
    """The trees, and where a (tree, node) is."""
    names = list(zip(cx.attr("nodes_treeids"), cx.attr("nodes_nodeids"), strict=True))
    place = {name: i for i, name in enumerate(names)}
    modes, children = cx.attr("nodes_modes"), np.repeat(np.arange(len(names))[:, None], 2, axis=1)
    ends = list(zip(names, modes, cx.attr("nodes_truenodeids"), cx.attr("nodes_falsenodeids"), strict=True))
    for i, ((tree, _), mode, yes, no) in enumerate(ends):
        if mode != "LEAF":
            children[i] = place[tree, yes], place[tree, no]
    inner = np.arange(len(names))[:, None] != children
    roots = np.setdiff1d(np.arange(len(names)), children[inner])
    limit = _numbers(cx, "nodes_values")
    return _trees(cx, modes, np.array(cx.attr("nodes_featureids")), limit, children, roots), place


def _numbers(cx: Context, name: str) -> Array:
    """An attribute of floats, or its form as a tensor, which may be of doubles."""
    tensor = cx.attr(f"{name}_as_tensor")
    return np.array(cx.attr(name, ()), np.float32) if tensor is None else np.asarray(tensor)


def _dense(cx: Context, place: dict[tuple[int, int], int], kind: str, columns: int) -> Array:
    """[nodes, columns] of the class_* or target_* attributes."""
    given = _numbers(cx, f"{kind}_weights")
    out = np.zeros((len(place), columns), given.dtype)
    nodes = zip(cx.attr(f"{kind}_treeids"), cx.attr(f"{kind}_nodeids"), strict=True)
    np.add.at(out, ([place[n] for n in nodes], cx.attr(f"{kind}_ids")), given)
    return out


def _with_base(cx: Context, scores: Value) -> Value:
    base = _numbers(cx, "base_values")
    return xt.add(scores, xt.constant(base.reshape(1, -1), element(scores))) if base.size else scores


@onnx_op("TreeEnsembleRegressor", domain=DOMAIN)
def tree_ensemble_regressor(cx: Context) -> Value:
    """Y [rows, n_targets], in f32."""
    trees, weights = _listed(cx, "target", cx.attr("n_targets"))
    scores = _with_base(cx, _scores(cx, trees, weights, cx.attr("aggregate_function", "SUM")))
    return convert(transformed(cx, scores, cx.attr("post_transform", "NONE")), "f32")


@onnx_op("TreeEnsembleClassifier", domain=DOMAIN)
def tree_ensemble_classifier(cx: Context) -> tuple[Value, Value]:
    """label [rows], scores [rows, classes]: one column of weights tells two classes apart."""
    labels = class_labels(cx)
    trees, weights = _listed(cx, "class", len(labels))
    single = len(labels) == 2 and set(cx.attr("class_ids")) == {0}
    scores = _with_base(cx, _scores(cx, trees, weights[:, :1] if single else weights, "SUM"))
    positive = bool((_numbers(cx, "class_weights") >= 0).all())
    return chosen(cx, convert(scores, "f32"), labels, cx.attr("post_transform", "NONE"), positive)


@onnx_op("TreeEnsemble", domain=DOMAIN, since=5)
def tree_ensemble(cx: Context) -> Value:
    """Y [rows, n_targets], of X's type: leaves are listed apart, behind the nodes."""
    weights: np.ndarray[Any, Any] = cx.attr("leaf_weights")
    count, targets = len(cx.attr("nodes_featureids")), cx.attr("leaf_targetids")
    ends = [np.array(cx.attr(f"nodes_{side}nodeids")) + count * np.array(cx.attr(f"nodes_{side}leafs"))
            for side in ("true", "false")]
    own = np.repeat(count + np.arange(len(weights))[:, None], 2, axis=1)
    fill = np.zeros(len(weights), np.int64)
    trees = _trees(cx, [_MODES[m] for m in cx.attr("nodes_modes")], np.append(cx.attr("nodes_featureids"), fill),
                   np.append(cx.attr("nodes_splits"), fill.astype(weights.dtype)),
                   np.append(np.stack(ends, 1), own, axis=0), np.array(cx.attr("tree_roots")))
    dense = np.zeros((count + len(weights), cx.attr("n_targets")), weights.dtype)
    dense[count + np.arange(len(weights)), targets] = weights
    kind = ("AVERAGE", "SUM", "MIN", "MAX")[cx.attr("aggregate_function", 1)]
    post = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[cx.attr("post_transform", 0)]
    return transformed(cx, _scores(cx, trees, dense, kind), post)
