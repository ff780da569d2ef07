"""Ops of ai.onnx.ml: what they mean, evaluated by the xt dialect, beside onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from xcc._mlir import ir
from xcc.diagnostics import UserError
from xcc.dialects.xt.interpret import interpret
from xcc.frontends.onnx import importer

RNG = np.random.default_rng(0)
ROWS, FEATURES = 40, 5


def drawn(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def model(nodes: Sequence[Any], feeds: dict[str, Any], version: int = 3) -> Any:
    """The outputs are those of the last node."""
    kind = helper.np_dtype_to_tensor_dtype
    given = [helper.make_tensor_value_info(n, kind(x.dtype), ("rows", *x.shape[1:])) for n, x in feeds.items()]
    results = [onnx.ValueInfoProto(name=n) for n in nodes[-1].output]
    return helper.make_model(helper.make_graph(nodes, "g", given, results), ir_version=9, opset_imports=[
        helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)])


def evaluated(op: str, inputs: Sequence[Any], outputs: int = 1, version: int = 3, **attributes: Any) -> Any:
    """What xcc gives, and what onnxruntime gives."""
    feeds = {f"x{i}": x for i, x in enumerate(inputs)}
    node = helper.make_node(op, list(feeds), [f"y{i}" for i in range(outputs)], domain="ai.onnx.ml", **attributes)
    made = model([node], feeds, version)
    wanted = onnxruntime.InferenceSession(made.SerializeToString()).run(None, feeds)
    with ir.Context():
        module, weights = importer.load(made)
        return interpret(module, feeds, weights), wanted


def check(*args: Any, **options: Any) -> None:
    for g, want in zip(*evaluated(*args, **options), strict=True):
        assert g.shape == want.shape and g.dtype == want.dtype
        np.testing.assert_allclose(g, want, atol=2e-5, rtol=1e-4)


class Trees:
    """Attributes of random trees of these depths, in the order of a walk; a leaf weighs for `per` columns of `ids`."""

    def __init__(self, depths: Sequence[int], modes: Sequence[str], ids: Sequence[int], per: int, low: float) -> None:
        self.modes, self.ids, self.per, self.low = modes, ids, per, low
        self.nodes: dict[str, list[Any]] = {n: [] for n in (
            "treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
            "missing_value_tracks_true")}
        self.weights: dict[str, list[Any]] = {n: [] for n in ("treeids", "nodeids", "ids", "weights")}
        for tree, depth in enumerate(depths):
            self.size = 0
            self._node(tree, depth)

    def _node(self, tree: int, depth: int) -> int:
        name, leaf = self.size, depth == 0 or (self.size > 2 and RNG.random() < 0.2)
        self.size += 1
        mode = "LEAF" if leaf else self.modes[RNG.integers(len(self.modes))]
        row = [tree, name, RNG.integers(FEATURES), np.round(RNG.normal(), 1), mode, 0, 0, RNG.integers(2)]
        place = len(self.nodes["modes"])
        for values, v in zip(self.nodes.values(), row, strict=True):
            values.append(v)
        if leaf:
            for i in RNG.choice(self.ids, self.per, replace=False):
                for values, v in zip(self.weights.values(), (tree, name, i, RNG.uniform(self.low, 1)), strict=True):
                    values.append(v)
        else:
            self.nodes["truenodeids"][place] = self._node(tree, depth - 1)
            self.nodes["falsenodeids"][place] = self._node(tree, depth - 1)
        return name

    def attributes(self, kind: str) -> dict[str, Any]:
        return {f"nodes_{n}": v for n, v in self.nodes.items()} | {f"{kind}_{n}": v for n, v in self.weights.items()}


def features() -> Any:
    """Rows with ties and NaN."""
    x = np.round(drawn(ROWS, FEATURES), 1)
    x[RNG.random(x.shape) < 0.1] = np.nan
    return x


@pytest.mark.parametrize("modes", [["BRANCH_LEQ"], ["BRANCH_LT"], ["BRANCH_GT"], ["BRANCH_GTE"], ["BRANCH_EQ"],
                                   ["BRANCH_NEQ"], ["BRANCH_LEQ", "BRANCH_EQ", "BRANCH_GT", "BRANCH_LT"]])
def test_tree_regressors(modes):
    trees = Trees((4, 0, 3), modes, [0, 1], 2, -1).attributes("target")
    for more in ({}, {"aggregate_function": "AVERAGE"}, {"base_values": [0.5, -2.0], "post_transform": "SOFTMAX"}):
        check("TreeEnsembleRegressor", [features()], n_targets=2, **more, **trees)


def test_tree_regressors_of_doubles():
    trees = Trees((5,), ["BRANCH_LEQ"], [0], 1, -1).attributes("target")
    for n in ("nodes_values", "target_weights"):
        trees[f"{n}_as_tensor"] = helper.make_tensor(n, onnx.TensorProto.DOUBLE, [len(trees[n])], trees.pop(n))
    for aggregate in ("MIN", "MAX", "SUM"):
        check("TreeEnsembleRegressor", [features().astype(np.float64)], n_targets=1, aggregate_function=aggregate,
              **trees)


@pytest.mark.parametrize("labels, ids, per, low", [
    ([0, 1], [0], 1, 0), ([3, 7], [0], 1, -1), ([0, 1, 2], [0, 1, 2], 1, 0), ([4, 9, 2], [0, 1, 2], 3, -1)])
@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_tree_classifiers(labels, ids, per, low, post):
    trees = Trees((3, 4, 1), ["BRANCH_LEQ"], ids, per, low).attributes("class")
    for base in ((), np.arange(len(ids)) * 0.5):
        check("TreeEnsembleClassifier", [features()], 2, classlabels_int64s=labels, post_transform=post,
              **trees, **({"base_values": base} if len(base) else {}))


def test_trees_of_two_columns():
    """The label is of the larger score, where onnxruntime gives 1 for a second one above 0, whatever the labels are."""
    trees = Trees((3, 4), ["BRANCH_LEQ"], [0, 1], 2, -1).attributes("class")
    (label, scores), (_, want) = evaluated("TreeEnsembleClassifier", [features()], 2, classlabels_int64s=[5, 2],
                                           **trees)
    np.testing.assert_allclose(scores, want, atol=2e-5)
    np.testing.assert_array_equal(label, np.where(scores[:, 0] >= scores[:, 1], 5, 2))


def test_tree_ensemble_of_version_5():
    """One tree of two tests, another of a leaf on each side."""
    double = onnx.TensorProto.DOUBLE
    for number, kind in ((double, np.float64), (onnx.TensorProto.FLOAT, np.float32)):
        for how, targets in ((0, 2), (1, 2), (2, 1), (3, 1)):
            check("TreeEnsemble", [features().astype(kind)], version=5, n_targets=targets, aggregate_function=how,
                  nodes_featureids=[0, 2, 1],
                  nodes_modes=helper.make_tensor("m", onnx.TensorProto.UINT8, [3], [0, 1, 3]),
                  nodes_splits=helper.make_tensor("s", number, [3], [0.1, -0.3, 0.2]),
                  nodes_truenodeids=[1, 0, 3], nodes_trueleafs=[0, 1, 1], nodes_falsenodeids=[2, 1, 4],
                  nodes_falseleafs=[1, 1, 1], tree_roots=[0, 2], leaf_targetids=[0, targets - 1, 0, targets - 1, 0],
                  leaf_weights=helper.make_tensor("w", number, [5], [0.5, 2.0, -1.0, 3.0, 0.25]))


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_linear_models(post):
    x = drawn(ROWS, FEATURES)
    for labels, rows in (([0, 1], 1), ([7, 3], 1), ([7, 3], 2), ([0, 1, 2], 3)):
        attributes = {"coefficients": drawn(rows * FEATURES), "intercepts": drawn(rows), "post_transform": post}
        check("LinearClassifier", [x], 2, classlabels_ints=labels, **attributes)
        check("LinearRegressor", [x], targets=rows, **(attributes | {"post_transform": "NONE"}))


def test_rows_and_columns():
    x, y = drawn(ROWS, FEATURES), RNG.integers(0, 4, (ROWS, 2))
    x[3] = 0
    for norm in ("MAX", "L1", "L2"):
        check("Normalizer", [x], norm=norm)
    check("FeatureVectorizer", [x, drawn(ROWS, 2)], inputdimensions=[FEATURES, 2])
    check("Imputer", [features()], replaced_value_float=float("nan"), imputed_value_floats=drawn(FEATURES))
    check("Imputer", [y], replaced_value_int64=2, imputed_value_int64s=[9])


def test_categories():
    y = RNG.integers(0, 6, (ROWS, 2))
    check("OneHotEncoder", [y], cats_int64s=[4, 0, 2], zeros=1)
    check("LabelEncoder", [y], keys_int64s=[4, 0, 2], values_floats=[0.5, 1.5, -2.0], default_float=7.0)
    check("LabelEncoder", [y], keys_int64s=[4, 0, 2], values_int64s=[11, 12, 13])
    check("LabelEncoder", [features()], version=4, keys_floats=[0.5, float("nan"), -0.1], values_int64s=[1, 2, 3],
          default_int64=8)


@pytest.mark.parametrize("changed, message", [
    ({"nodes_truenodeids": [1, 9, 0, 0, 0]}, "do not fit together"),
    ({"nodes_featureids": [0, 7, 0, 0, 0]}, "up to 7, of 5"),
    ({"nodes_truenodeids": [1, 1, 0, 0, 0]}, "no trees"), ({"post_transform": "PROBIT"}, "PROBIT is not supported"),
    ({"aggregate_function": "MAX"}, "of one target, not of 2"), ({"target_ids": [0, 5, 0]}, "do not fit together")])
def test_ensembles_that_are_none(changed, message):
    nodes = {"treeids": [0] * 5, "nodeids": [0, 1, 2, 3, 4], "featureids": [0, 1, 0, 0, 0], "values": [0.5] * 5,
             "modes": ["BRANCH_LEQ"] * 2 + ["LEAF"] * 3, "truenodeids": [1, 2, 0, 0, 0],
             "falsenodeids": [4, 3, 0, 0, 0]}
    leaves = {"treeids": [0] * 3, "nodeids": [2, 3, 4], "ids": [0, 1, 0], "weights": [1.0, 2.0, 3.0]}
    attributes = {f"nodes_{n}": v for n, v in nodes.items()} | {f"target_{n}": v for n, v in leaves.items()}
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=2,
                            **(attributes | changed))
    with pytest.raises(UserError, match=message), ir.Context():
        importer.load(model([node], {"x": features()}))


def machine(kind: str, count: int) -> dict[str, Any]:
    return {"kernel_type": kind, "kernel_params": [0.3, 0.1, 3.0], "support_vectors": drawn(count * FEATURES).tolist()}


@pytest.mark.parametrize("kind", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vector_regressors(kind):
    for one_class in (0, 1):
        check("SVMRegressor", [drawn(ROWS, FEATURES)], coefficients=drawn(7).tolist(), rho=[0.2], n_supports=7,
              one_class=one_class, **machine(kind, 7))
    if kind == "LINEAR":
        check("SVMRegressor", [drawn(ROWS, FEATURES)], coefficients=drawn(FEATURES).tolist(), rho=[0.2],
              kernel_type=kind, kernel_params=[0.0, 0.0, 0.0])


@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("counts", [(3, 2), (2, 3, 1), (1, 1, 2, 2)])
def test_support_vector_classifiers(counts, post):
    pairs = len(counts) * (len(counts) - 1) // 2
    labels, weights = [10 * i + 5 for i in range(len(counts))], drawn((len(counts) - 1) * sum(counts))
    check("SVMClassifier", [drawn(ROWS, FEATURES)], 2, coefficients=weights.tolist(), rho=drawn(pairs).tolist(),
          vectors_per_class=counts, classlabels_ints=labels, post_transform=post, **machine("RBF", sum(counts)))
