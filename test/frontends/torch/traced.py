"""Graphs as torch.compile's backend gets them: FX in, xt out.

RUN: %python %s | filecheck %s
"""

from __future__ import annotations

from typing import Any

import torch
from shown import traced
from torch.fx.experimental import _config

aten = torch.ops.aten


def sizes(x: Any, y: Any) -> Any:
    """Sizes are s0, s1, ... in the order of the inputs; an expression of them is one in the types, too."""
    return aten.cat.default([x, y], 1), aten.view.default(x, [x.shape[0] * 2, -1])


# CHECK-LABEL: === sizes
# CHECK: user x_1: f32[s0, s1]
# CHECK-NEXT: user y_1: f32[s0, s2]
# CHECK: @main(%[[X:.*]]: tensor<?x?xf32, ["s0", "s1"]> {{.*}}, %[[Y:.*]]: tensor<?x?xf32, ["s0", "s2"]>
# CHECK: "xtv.concatenate"(%[[X]], %[[Y]]) {{.*}} -> tensor<?x?xf32, ["s0", "s1 + s2"]>
# CHECK: "xt.reshape"(%[[X]]) {{.*}} -> tensor<?x?xf32, ["2*s0", "floordiv(s1, 2)"]>
traced(sizes, torch.randn(3, 4), torch.randn(3, 5))


def layouts(x: Any) -> Any:
    """Memory in another order of dims is read as it lies; a result has eager's strides."""
    return aten.relu.default(x)


# CHECK-LABEL: === layouts
# CHECK: @main(%[[X:.*]]: tensor<?x?x?x?xf32, ["s0", "s2", "s3", "s1"]>
# CHECK-SAME: -> (tensor<?x?x?x?xf32, ["s0", "s2", "s3", "s1"]>
# CHECK: "xt.transpose"(%[[X]]) {perm = [0, 3, 1, 2]}
# CHECK: %[[R:.*]] = "xt.transpose"({{.*}}) {perm = [0, 2, 3, 1]}
# CHECK: return %[[R]]
traced(layouts, torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last))


def writes(cache: Any, at: Any, row: Any) -> Any:
    """A write into an input is an update of it."""
    return aten.copy_.default(cache, aten.index_put.default(cache, [at], row))


# CHECK-LABEL: === writes
# CHECK: return new cache_1 = %index_put into cache_1
# CHECK: @main(%[[CACHE:.*]]: tensor<?x?xf32, ["s0", "s1"]> {xt.name = "cache_1"}
# CHECK-SAME: tensor<?x?xf32, ["s0", "s1"]> {xt.name = "new cache_1", xt.updates = "cache_1"}
# CHECK: %[[NEW:.*]] = "xt.scatter_nd"(%[[CACHE]],
# CHECK: return %[[NEW]], %[[NEW]]
traced(writes, torch.zeros(8, 4), torch.tensor([2]), torch.ones(1, 4))


def types(x: Any, n: Any) -> Any:
    """A Python number does not widen a tensor's type; integers are divided as f32."""
    return aten.add.Tensor(x, 2.5), aten.gt.Scalar(n, 1), aten.div.Tensor(n, 2)


# CHECK-LABEL: === types
# CHECK: add = aten.add.Tensor(self=%x_1, other=2.5, alpha=1): f16[s0]
# CHECK: "xt.add"{{.*}} -> tensor<?xf16, ["s0"]> loc(#[[ADD:.*]])
# CHECK: "xt.compare"{{.*}} -> tensor<?xi1, ["s0"]>
# CHECK: "xt.convert"{{.*}} {dtype = f32,
# CHECK: "xt.div"{{.*}} -> tensor<?xf32, ["s0"]>
# CHECK: #[[ADD]] = loc("add")
traced(types, torch.randn(3).half(), torch.arange(3))


def draws(x: Any) -> Any:
    """Random numbers depend on one more input, the seed of the run, and on which draw of it they are."""
    return aten.native_dropout.default(x, 0.5, True)[0], aten.native_dropout.default(x, 0.5, True)[0]


# CHECK-LABEL: === draws
# CHECK: seed seed: i64[]
# CHECK: %[[SEED:[^ ]*]]: tensor<i64> {xt.name = "seed"}
# CHECK: %[[FIRST:.*]] = "xt.constant"() {value = dense<0> : tensor<i64>}
# CHECK: "xt.random_uniform"(%[[SEED]], %[[FIRST]])
# CHECK: %[[SECOND:.*]] = "xt.constant"() {value = dense<1> : tensor<i64>}
# CHECK: "xt.random_uniform"(%[[SEED]], %[[SECOND]])
traced(draws, torch.randn(3))


def turned(x: Any, angle: Any) -> Any:
    """Complex numbers are a tensor for each part."""
    return torch.view_as_real(torch.view_as_complex(x) * torch.polar(torch.ones_like(angle), angle))


# CHECK-LABEL: === turned
# CHECK: mul = aten.mul.Tensor(self=%view_as_complex, other=%polar): complex64[s0]
# CHECK: "xt.slice"(%[[X:.*]]) {limits = ["s0", 1]
# CHECK: "xt.slice"(%[[X]]) {limits = ["s0", 2]
# CHECK: "xt.sub"
# CHECK: "xt.add"
# CHECK: "xtv.concatenate"{{.*}} {axis = 1 : i64} : {{.*}} -> tensor<?x2xf32, ["s0", 2]>
traced(turned, torch.randn(3, 2), torch.randn(3))


def rows_of_the_same_size(x: Any, at: Any, rows: Any) -> Any:
    """Rows whose size is that of x under another name are written as they are; one number for all of them is spread."""
    return aten.index_put.default(x, [at], rows, True), aten.index_put.default(x, [at], rows[:1, :1])


# CHECK-LABEL: === rows_of_the_same_size
# CHECK: @main(%[[X:.*]]: tensor<?x?xf32, ["s0", "s1"]> {{.*}}, %[[ROWS:.*]]: tensor<?x?xf32, ["s3", "s4"]>
# CHECK: "xt.scatter_nd"(%[[X]], %{{.*}}, %[[ROWS]]) {reduction = "add"}
# CHECK: %[[WIDE:.*]] = "xt.broadcast"({{.*}}) {shape = ["s2", "s1"]}
# CHECK: "xt.scatter_nd"(%[[X]], %{{.*}}, %[[WIDE]]) {reduction = "none"}
with _config.patch(use_duck_shape=False):       # type: ignore[attr-defined]
    traced(rows_of_the_same_size, torch.randn(4, 5), torch.tensor([1, 3, 2]), torch.randn(3, 5))
